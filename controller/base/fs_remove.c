// Removing a tree that a sandbox may have made: of any depth, with directories of mode 0, and names of any bytes.
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/random.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Each level costs two descriptors and some stack. What lies deeper is lifted to the top and removed from there.
#define REMOVE_MAX_DEPTH 64

struct removing {
    dev_t device;
    int top_fd; // the tree's root, -1 before it is open
    bool was_lifted;
};

static int remove_entry(struct removing *removing, int dir_fd, const char *name, int depth, struct error *err);

static int remove_children(struct removing *removing, int fd, int depth, struct error *err)
{
    int list_fd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = list_fd >= 0 ? fdopendir(list_fd) : NULL;
    if (!list) {
        if (list_fd >= 0)
            close(list_fd);
        return error_errno(err, errno, NULL, "cannot list a directory to remove");
    }
    int r = 0;
    for (struct dirent *entry; r == 0 && (entry = readdir(list));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            r = remove_entry(removing, fd, entry->d_name, depth + 1, err);
    closedir(list);
    return r;
}

// The list being read may or may not show what was lifted meanwhile, so the root is read again until nothing was.
static int remove_all_children(struct removing *removing, int fd, struct error *err)
{
    removing->top_fd = fd;
    do {
        removing->was_lifted = false;
        if (remove_children(removing, fd, 0, err) < 0)
            return -1;
    } while (removing->was_lifted);
    return 0;
}

// Opens a directory of the tree so that it can be emptied: a sandbox may leave them with mode 0.
static int open_to_empty(const struct removing *removing, int dir_fd, const char *name, struct error *err)
{
    CLEANUP_CLOSE int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == EACCES && fchmodat(dir_fd, name, 0700, 0) == 0)
        fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, errno, NULL, "cannot open %s to remove it", name);
    struct stat st;
    if (fstat(fd, &st) < 0)
        return error_errno(err, errno, NULL, "cannot look at %s", name);
    if (st.st_dev != removing->device)
        return error_set(err, ERROR_REFUSED, "unmount it first", "%s is on another file system", name);
    if ((st.st_mode & S_IRWXU) != S_IRWXU && fchmod(fd, 0700) < 0)
        return error_errno(err, errno, NULL, "cannot make %s writable to empty it", name);
    return TAKE_FD(fd);
}

static int lift(struct removing *removing, int dir_fd, const char *name, struct error *err)
{
    char to[33];
    random_hex(to, 32);
    if (renameat(dir_fd, name, removing->top_fd, to) < 0)
        return error_errno(err, errno, NULL, "cannot move the deep directory %s to remove it", name);
    removing->was_lifted = true;
    return 0;
}

static int remove_directory(struct removing *removing, int dir_fd, const char *name, int depth, struct error *err)
{
    CLEANUP_CLOSE int fd = open_to_empty(removing, dir_fd, name, err);
    if (fd < 0)
        return -1;
    if (depth > REMOVE_MAX_DEPTH)
        return lift(removing, dir_fd, name, err);
    if ((depth ? remove_children(removing, fd, depth, err) : remove_all_children(removing, fd, err)) < 0)
        return -1;
    if (unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return error_errno(err, errno, NULL, "cannot remove %s", name);
    return 0;
}

static int remove_entry(struct removing *removing, int dir_fd, const char *name, int depth, struct error *err)
{
    if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return error_errno(err, errno, NULL, "cannot remove %s", name);
    return remove_directory(removing, dir_fd, name, depth, err);
}

int fs_remove_tree(int dir_fd, const char *name, struct error *err)
{
    struct stat st;
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : error_errno(err, errno, NULL, "cannot look at %s", name);
    struct removing removing = {.device = st.st_dev, .top_fd = -1};
    return remove_entry(&removing, dir_fd, name, 0, err);
}
