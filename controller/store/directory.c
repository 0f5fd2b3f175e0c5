#include "controller/store/internal.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

// Files of the store that may stand there from a time of wider modes. Before SQLite opens any of them: closing a
// descriptor of a database drops the process's POSIX locks on it.
static int tighten(int dir_fd, struct error *err)
{
    static const char *const names[] = {STORE_DATABASE_NAME, STORE_DATABASE_NAME "-wal", STORE_DATABASE_NAME "-shm", "reserve"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CLEANUP_CLOSE int fd = openat(dir_fd, names[i], O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0 && errno == ENOENT)
            continue;
        struct stat st;
        if (fd < 0 || fstat(fd, &st) < 0)
            return error_errno(err, errno, "give the file back to the user that runs the daemon", "cannot open %s in the state directory",
                               names[i]);
        if (!S_ISREG(st.st_mode))
            return error_set(err, ERROR_REFUSED, "move it away", "%s in the state directory is not a regular file", names[i]);
        if ((st.st_mode & 07777) != 0600 && fchmod(fd, 0600) < 0)
            return error_errno(err, errno, "it must be readable by its owner only", "cannot tighten the mode of %s", names[i]);
    }
    return 0;
}

static int word_held(int fd, const char *path, struct error *err)
{
    char text[32] = "";
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    long pid = n > 0 ? strtol(text, NULL, 10) : 0;
    if (pid > 0)
        return error_set(err, ERROR_STATE, "stop that process first, or give this one a state directory of its own",
                         "the process %ld serves the state directory %s already", pid, path);
    return error_set(err, ERROR_STATE, "stop it first, or give this one a state directory of its own",
                     "another process serves the state directory %s already", path);
}

static int take_lock(int dir_fd, const char *path, int *ret_fd, struct error *err)
{
    CLEANUP_CLOSE int fd = openat(dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0)
        return error_errno(err, errno, NULL, "cannot open the lock file in %s", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? word_held(fd, path, err) : error_errno(err, errno, NULL, "cannot lock %s", path);
    char text[32]; // of one size, so that a full disk has no block to refuse
    int len = snprintf(text, sizeof(text), "%20ld\n", (long)getpid());
    if (fchmod(fd, 0600) < 0 || (pwrite(fd, text, (size_t)len, 0) != len && errno != ENOSPC))
        return error_errno(err, errno, NULL, "cannot write the lock file in %s", path);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int store_directory_open(const char *path, int *ret_dir_fd, int *ret_lock_fd, struct error *err)
{
    CLEANUP_CLOSE int dir_fd = -1;
    if (fs_make_private_dir(path, &dir_fd, err) < 0)
        return error_context(err, "state directory");
    CLEANUP_CLOSE int lock_fd = -1;
    if (take_lock(dir_fd, path, &lock_fd, err) < 0 || tighten(dir_fd, err) < 0)
        return -1;
    *ret_dir_fd = TAKE_FD(dir_fd);
    *ret_lock_fd = TAKE_FD(lock_fd);
    return 0;
}

int store_directory_make_database(int dir_fd, struct error *err)
{
    CLEANUP_CLOSE int fd = openat(dir_fd, STORE_DATABASE_NAME, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno == EEXIST)
        return 0;
    if (fd < 0)
        return error_errno(err, errno, NULL, "cannot create the database");
    return 0;
}
