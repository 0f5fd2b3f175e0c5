#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/base/random.h"
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

// Mostly the parents are there, and often the directory, too.
static int make_with_parents(const char *path, struct error *err)
{
    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return 0;
    if (errno == ENOENT && make_parents(path, err) < 0)
        return -1;
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return error_errno(err, errno, "choose another place or make its parent writable", "cannot create %s", path);
    return 0;
}

int fs_make_private_dir(const char *path, int *ret_fd, struct error *err)
{
    if (make_with_parents(path, err) < 0)
        return -1;
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, errno, "it has to be a directory and no symbolic link", "cannot open %s", path);
    if (tighten(fd, path, err) < 0)
        return -1;
    if (ret_fd)
        *ret_fd = TAKE_FD(fd);
    return 0;
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
