#include "reconcilers/drivers/bubblewrap/shim/tree.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

// One map serves all directories of one owner: the shim's process makes them for one identity only.
static int find_owner_map(int fd, const struct identity *identity, struct error *err)
{
    static struct {
        uid_t uid;
        gid_t gid;
        int map_fd;
    } last = {.map_fd = -1};
    struct stat info;
    if (fstat(fd, &info) < 0)
        return error_errno(err, errno, NULL, "cannot look at a directory to mount");
    if (last.map_fd >= 0 && last.uid == info.st_uid && last.gid == info.st_gid)
        return last.map_fd;
    char uid_map[96], gid_map[96];
    const char *format = "%u %u 1\n%u %u %u\n";
    uint32_t foreign = IDENTITY_FOREIGN_ID + 1, others = identity->base + 1, count = IDENTITY_IDS - 1;
    snprintf(uid_map, sizeof(uid_map), format, info.st_uid, identity->base, foreign, others, count);
    snprintf(gid_map, sizeof(gid_map), format, info.st_gid, identity->base, foreign, others, count);
    int map_fd = identity_make_map(uid_map, gid_map, err);
    if (map_fd < 0)
        return -1;
    if (last.map_fd >= 0)
        close(last.map_fd);
    last.uid = info.st_uid;
    last.gid = info.st_gid;
    return last.map_fd = map_fd;
}

static int apply_map(int tree_fd, int userns_fd, struct error *err)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)userns_fd};
    if (mount_setattr(tree_fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        return error_errno(err, errno, "use a file system that can (ext4, xfs, btrfs, tmpfs), or run chat2shell as an ordinary user",
                           "the file system of a directory cannot map owners (idmapped mounts)");
    return 0;
}

int tree_open_as_root(int fd, enum tree_map map, const struct identity *identity, struct error *err)
{
    CLEANUP_CLOSE int tree_fd = open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (tree_fd < 0)
        return error_errno(err, errno, NULL, "cannot take a directory for mounting");
    int map_fd = map == TREE_MAP_OWNER ? find_owner_map(fd, identity, err) : identity->userns_fd;
    if (map_fd < 0 || (map != TREE_MAP_NONE && apply_map(tree_fd, map_fd, err) < 0))
        return -1;
    return TAKE_FD(tree_fd);
}

// A descriptor belongs to the mount namespace it was opened in, and only the working directory is carried over into a
// new one. So a child that shares our descriptors goes there, makes a mount namespace and detaches what it stands in.
static void detach_in_child(int fd, int *ret_fd, int *ret_errno)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct stat info;
    bool is_directory = fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
    if (!is_directory || fchdir(fd) < 0 || unshare(CLONE_NEWNS) < 0 ||
        (*ret_fd = open_tree(AT_FDCWD, ".", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE)) < 0)
        *ret_errno = is_directory ? errno : ENOTDIR;
    _exit(0);
}

struct shared_result {
    int fd, errno_value;
};

int tree_open_inside(int fd, struct error *err)
{
    struct shared_result *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return error_errno(err, errno, NULL, "cannot map memory");
    *shared = (struct shared_result){.fd = -1};
    pid_t pid = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0)
        detach_in_child(fd, &shared->fd, &shared->errno_value);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    struct shared_result result = *shared;
    munmap(shared, sizeof(*shared));
    if (result.fd < 0)
        return error_errno(err, result.errno_value ? result.errno_value : ECHILD, NULL, "cannot take a directory for mounting");
    return result.fd;
}

int tree_attach(int tree_fd, const char *path, uint64_t attributes, struct error *err)
{
    struct mount_attr attr = {.attr_set = attributes};
    if (move_mount(tree_fd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return error_errno(err, errno, NULL, "cannot mount at %s of the staging area", path);
    if (mount_setattr(AT_FDCWD, path, AT_RECURSIVE, &attr, sizeof(attr)) < 0)
        return error_errno(err, errno, NULL, "cannot restrict the mount at %s of the staging area", path);
    return 0;
}
