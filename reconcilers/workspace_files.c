#include "reconcilers/workspace_files.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/fault.h"
#include <errno.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>

#define TRASH_NAME ".trash"

static int identity_of(int fd, const char *path, int64_t *ret_device, int64_t *ret_inode, struct error *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return error_errno(err, errno, NULL, "cannot look at %s", path);
    *ret_device = (int64_t)st.st_dev;
    *ret_inode = (int64_t)st.st_ino;
    return 0;
}

int workspace_files_make(const struct config *config, const char *uid, char **ret_root, int64_t *ret_device, int64_t *ret_inode, struct error *err)
{
    CLEANUP_CLOSE int top = -1;
    CLEANUP_FREE char *wrapper = mem_format("%s/%s", config->workspace_root, uid);
    CLEANUP_FREE char *root = mem_format("%s/root", wrapper);
    CLEANUP_CLOSE int root_fd = -1;
    if (fs_make_private_dir(config->workspace_root, &top, err) < 0 || fs_make_private_dir(wrapper, NULL, err) < 0)
        return error_context(err, "cannot make the workspace");
    if (FAULT("workspace.make.between"))
        return error_set(err, ERROR_IO, NULL, "fault point");
    if (fs_make_private_dir(root, &root_fd, err) < 0 || identity_of(root_fd, root, ret_device, ret_inode, err) < 0)
        return error_context(err, "cannot make the workspace");
    if (fsync(top) < 0)
        return error_errno(err, errno, NULL, "cannot make the workspace %s durable", wrapper);
    *ret_root = TAKE_PTR(root);
    return 0;
}

int workspace_files_trash(const struct config *config, const char *uid, struct error *err)
{
    CLEANUP_CLOSE int top = -1, trash = -1;
    CLEANUP_FREE char *trash_path = mem_format("%s/" TRASH_NAME, config->workspace_root);
    if (fs_make_private_dir(config->workspace_root, &top, err) < 0 || fs_make_private_dir(trash_path, &trash, err) < 0)
        return error_context(err, "cannot open the trash");
    if (FAULT("workspace.trash.before"))
        return error_set(err, ERROR_IO, NULL, "fault point");
    if (syscall(SYS_renameat2, top, uid, trash, uid, RENAME_NOREPLACE) < 0 && errno != ENOENT)
        return error_errno(err, errno, "look into the trash directory: something of that name may be there", "cannot move the workspace %s to the trash", uid);
    if (fsync(trash) < 0 || fsync(top) < 0)
        return error_errno(err, errno, NULL, "cannot make the move of %s to the trash durable", uid);
    return 0;
}

int workspace_files_check(const char *path, int64_t device, int64_t inode, struct error *err)
{
    // The path was resolved when it was recorded: a link in it, which a sandbox may have planted, is not followed.
    CLEANUP_CLOSE int fd = fs_openat2(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0, RESOLVE_NO_SYMLINKS);
    int64_t now_device = 0, now_inode = 0;
    if (fd < 0)
        return error_errno(err, errno, "put it back, or delete this workspace and ask again", "the workspace directory %s cannot be opened", path);
    if (identity_of(fd, path, &now_device, &now_inode, err) < 0)
        return -1;
    if (now_device != device || now_inode != inode)
        return error_set(err, ERROR_CONFLICT, "ask for approval of the path again", "%s is not the directory that was approved: it was replaced", path);
    return 0;
}
