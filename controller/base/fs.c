#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/base/random.h"
#include <dirent.h>
#include <errno.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

int fs_openat2(int dir_fd, const char *path, int flags, mode_t mode, uint64_t resolve)
{
    struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC), .mode = mode, .resolve = resolve};
    for (int tries = 0; tries < 16; tries++) { // EAGAIN: a rename raced with the resolution
        int fd = (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
        if (fd >= 0 || (errno != EINTR && errno != EAGAIN))
            return fd;
    }
    return -1;
}

int fs_open_beneath(int dir_fd, const char *path, int flags, mode_t mode)
{
    return fs_openat2(dir_fd, path, flags, mode, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
}

int fs_read_all(int fd, struct buffer *buf, struct error *err)
{
    for (;;) {
        size_t room = buf->max - buf->len < 65536 ? buf->max - buf->len : 65536;
        char extra; // one byte past the maximum tells "exactly full" from "too large"
        char *at = room ? buffer_reserve(buf, room) : &extra;
        ssize_t n = read(fd, at, room ? room : 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, errno, NULL, "cannot read");
        if (n == 0)
            return buffer_text(buf), 0;
        if (!room)
            return error_set(err, ERROR_TOO_LARGE, NULL, "more than %zu bytes", buf->max);
        buf->len += (size_t)n;
    }
}

int fs_read_file(const char *path, struct buffer *buf, struct error *err)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return error_errno(err, errno, NULL, "cannot open %s", path);
    if (fs_read_all(fd, buf, err) < 0)
        return error_context(err, "%s", path);
    return 0;
}

int fs_write_all(int fd, const void *bytes, size_t len, struct error *err)
{
    const char *at = bytes;
    while (len) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, errno, NULL, "cannot write");
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

static int write_and_rename(int dir_fd, const char *temp, const char *name, const void *bytes, size_t len, mode_t mode,
                            struct error *err)
{
    CLEANUP_CLOSE int fd = openat(dir_fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return error_errno(err, errno, NULL, "cannot create a file beside %s", name);
    if (fs_write_all(fd, bytes, len, err) < 0)
        return error_context(err, "%s", name);
    if (fsync(fd) < 0)
        return error_errno(err, errno, NULL, "cannot make %s durable", name);
    if (renameat(dir_fd, temp, dir_fd, name) < 0)
        return error_errno(err, errno, NULL, "cannot put %s in place", name);
    return fsync(dir_fd) < 0 ? error_errno(err, errno, NULL, "cannot make the name %s durable", name) : 0;
}

int fs_replace_file(int dir_fd, const char *name, const void *bytes, size_t len, mode_t mode, struct error *err)
{
    char suffix[17];
    random_hex(suffix, 16);
    CLEANUP_FREE char *temp = mem_format(".%s.tmp", suffix);
    int r = write_and_rename(dir_fd, temp, name, bytes, len, mode, err);
    if (r < 0)
        unlinkat(dir_fd, temp, 0);
    return r;
}

static int make_parents(const char *path, struct error *err)
{
    CLEANUP_FREE char *copy = mem_strdup(path);
    for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(copy, 0755) < 0 && errno != EEXIST)
            return error_errno(err, errno, NULL, "cannot create %s", copy);
        *slash = '/';
    }
    return 0;
}

static int tighten(int fd, const char *path, struct error *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return error_errno(err, errno, NULL, "cannot look at %s", path);
    if (st.st_uid != geteuid())
        return error_set(err, ERROR_REFUSED, "choose a directory of your own, or change its owner",
                         "%s belongs to uid %u, not to this user (uid %u)", path, st.st_uid, geteuid());
    if ((st.st_mode & 07777) != 0700 && fchmod(fd, 0700) < 0)
        return error_errno(err, errno, "chmod 700 it", "cannot make %s private", path);
    return 0;
}

int fs_make_private_dir(const char *path, int *ret_fd, struct error *err)
{
    if (make_parents(path, err) < 0)
        return -1;
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return error_errno(err, errno, "choose another place or make its parent writable", "cannot create %s", path);
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, errno, "it has to be a directory and no symbolic link", "cannot open %s", path);
    if (tighten(fd, path, err) < 0)
        return -1;
    if (ret_fd)
        *ret_fd = TAKE_FD(fd);
    return 0;
}

#define REMOVE_MAX_DEPTH 256

static int remove_entry(int dir_fd, const char *name, dev_t device, int depth, struct error *err);

static int remove_children(int fd, dev_t device, int depth, struct error *err)
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
            r = remove_entry(fd, entry->d_name, device, depth + 1, err);
    closedir(list);
    return r;
}

static int remove_directory(int dir_fd, const char *name, dev_t device, int depth, struct error *err)
{
    if (depth > REMOVE_MAX_DEPTH)
        return error_set(err, ERROR_TOO_LARGE, "remove it by hand", "%s is nested deeper than %d levels", name,
                         REMOVE_MAX_DEPTH);
    CLEANUP_CLOSE int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    // a sandbox may leave directories of mode 0
    if (fd < 0 && errno == EACCES && fchmodat(dir_fd, name, 0700, 0) == 0)
        fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, errno, NULL, "cannot open %s to remove it", name);
    struct stat st;
    if (fstat(fd, &st) < 0)
        return error_errno(err, errno, NULL, "cannot look at %s", name);
    if (st.st_dev != device)
        return error_set(err, ERROR_REFUSED, "unmount it first", "%s is on another file system", name);
    if (!(st.st_mode & S_IWUSR) && fchmod(fd, 0700) < 0)
        return error_errno(err, errno, NULL, "cannot make %s writable to empty it", name);
    if (remove_children(fd, device, depth, err) < 0)
        return -1;
    if (unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return error_errno(err, errno, NULL, "cannot remove %s", name);
    return 0;
}

static int remove_entry(int dir_fd, const char *name, dev_t device, int depth, struct error *err)
{
    if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return error_errno(err, errno, NULL, "cannot remove %s", name);
    return remove_directory(dir_fd, name, device, depth, err);
}

int fs_remove_tree(int dir_fd, const char *name, struct error *err)
{
    struct stat st;
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : error_errno(err, errno, NULL, "cannot look at %s", name);
    return remove_entry(dir_fd, name, st.st_dev, 0, err);
}

bool fs_is_below(const char *path, const char *dir)
{
    size_t len = strlen(dir);
    if (len == 1 && dir[0] == '/')
        return path[0] == '/' && path[1] != '\0';
    return strncmp(path, dir, len) == 0 && path[len] == '/' && path[len + 1] != '\0';
}

int fs_set_nonblocking(int fd, bool is_nonblocking)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return -1;
    return fcntl(fd, F_SETFL, is_nonblocking ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}
