// The host directory of a workspace: can sbx be told its path, and is it still the one that was approved? sbx takes a path, not
// a descriptor, so the directory is looked at before and after.
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "reconcilers/drivers/sbx/sbx.h"
#include <errno.h>
#include <string.h>

int sbx_place_check_path(const char *path, struct error *err)
{
    if (path[0] != '/')
        return error_set(err, ERROR_INVALID, NULL, "the workspace's path is not absolute");
    if (strchr(path, ':'))
        return error_set(err, ERROR_UNSUPPORTED, "rename the directory, or use a workspace elsewhere",
                         "%s has a colon in its path, and sbx would read what follows as an option", path);
    return 0;
}

int sbx_place_check(const char *path, int64_t device, int64_t inode, bool is_after, struct error *err)
{
    struct stat info;
    CLEANUP_CLOSE int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
        return error_set(err, ERROR_NOT_FOUND, "create a sandbox on another workspace", "the workspace's directory %s %s", path,
                         is_after ? "vanished while the sandbox was being made" : "is not there any more");
    if (fd < 0 || fstat(fd, &info) < 0)
        return error_errno(err, errno, NULL, "the workspace's directory %s cannot be opened", path);
    bool is_checked = device != 0 || inode != 0;
    if (is_checked && ((int64_t)info.st_dev != device || (int64_t)info.st_ino != inode))
        return error_set(err, ERROR_STATE, "ask for approval of the path again", "%s is another directory than the one that was approved%s", path,
                         is_after ? ": it was replaced while the sandbox was being made" : "");
    return 0;
}

int sbx_place_check_checkout(const char *path, struct error *err)
{
    CLEANUP_FREE char *git = mem_format("%s/.git", path);
    struct stat info;
    if (lstat(git, &info) == 0 && S_ISDIR(info.st_mode))
        return 0;
    return error_set(err, ERROR_UNSUPPORTED, "give the top directory of an ordinary checkout, or use mode direct",
                     "%s has no .git directory of its own, so that no private clone can be made of it", path);
}
