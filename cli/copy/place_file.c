#include "cli/copy/place_internal.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <stdio.h>

// Under no name where the file system can, so that even a kill leaves nothing behind; else under a temporary one.
static int open_unseen(struct place_file *file)
{
    int fd = openat(file->dir_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    file->temp_name = place_temp_name();
    fd = openat(file->dir_fd, file->temp_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        free(TAKE_PTR(file->temp_name));
        return -1;
    }
    return fd;
}

int place_file_open(struct place *place, const char *path, struct place_file *ret, struct error *err)
{
    int parent_fd;
    const char *name;
    struct place_file file = PLACE_FILE_INIT;
    if (place_open_parent(place, path, &parent_fd, &name, err) < 0)
        return -1;
    file.dir_fd = fcntl(parent_fd, F_DUPFD_CLOEXEC, 0);
    if (file.dir_fd < 0 || (file.fd = open_unseen(&file)) < 0) {
        place_fail(err, errno, path, "cannot write");
        place_file_drop(&file);
        return -1;
    }
    file.name = mem_strdup(name);
    *ret = file;
    return 0;
}

static int link_unseen(const struct place_file *file, const char *name)
{
    char at[32];
    snprintf(at, sizeof(at), "/proc/self/fd/%d", file->fd);
    return linkat(AT_FDCWD, at, file->dir_fd, name, AT_SYMLINK_FOLLOW);
}

// Something may be there already: then a temporary name first, because a link never replaces.
static int show(struct place_file *file, struct error *err)
{
    if (!file->temp_name) {
        if (link_unseen(file, file->name) == 0)
            return 0;
        CLEANUP_FREE char *temp_name = place_temp_name();
        if (errno != EEXIST || link_unseen(file, temp_name) < 0)
            return place_fail(err, errno == EEXIST ? EIO : errno, file->name, "cannot write");
        file->temp_name = TAKE_PTR(temp_name);
    }
    CLEANUP_FREE char *temp_name = TAKE_PTR(file->temp_name); // place_rename takes it away in any case
    return place_rename(file->dir_fd, temp_name, file->name, file->name, err);
}

int place_file_commit(struct place_file *file, mode_t mode, const struct timespec *mtime, struct error *err)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, *mtime};
    int r = 0;
    if (fchmod(file->fd, mode) < 0 || futimens(file->fd, times) < 0)
        r = place_fail(err, errno, file->name, "cannot finish");
    else
        r = show(file, err);
    place_file_drop(file);
    return r;
}

void place_file_drop(struct place_file *file)
{
    if (file->temp_name)
        unlinkat(file->dir_fd, file->temp_name, 0);
    free(file->temp_name);
    free(file->name);
    if (file->fd >= 0)
        close(file->fd);
    if (file->dir_fd >= 0)
        close(file->dir_fd);
    *file = (struct place_file)PLACE_FILE_INIT;
}
