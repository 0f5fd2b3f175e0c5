#include "cli/scratch.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int scratch_make(struct scratch *ret, const char *purpose, struct error *err)
{
    const char *base = getenv("TMPDIR");
    CLEANUP_FREE char *path = mem_format("%s/chat2shell-%s-XXXXXX", base && *base == '/' ? base : "/tmp", purpose);
    if (!mkdtemp(path)) // 0700
        return error_errno(err, errno, "set TMPDIR to a directory that you may write", "cannot make the directory %s", path);
    *ret = (struct scratch){.path = TAKE_PTR(path)};
    return 0;
}

void scratch_clear(struct scratch *scratch)
{
    if (scratch->path && !scratch->is_kept)
        fs_remove_tree(AT_FDCWD, scratch->path, NULL);
    free(scratch->path);
    *scratch = (struct scratch){0};
}

char *scratch_path(const struct scratch *scratch, const char *name)
{
    return mem_format("%s/%s", scratch->path, name);
}

int scratch_make_directory(const struct scratch *scratch, const char *name, struct error *err)
{
    CLEANUP_FREE char *path = scratch_path(scratch, name);
    return mkdir(path, 0700) == 0 ? 0 : error_errno(err, errno, NULL, "cannot make the directory %s", path);
}

int scratch_write(const struct scratch *scratch, const char *name, const char *bytes, size_t len, struct error *err)
{
    CLEANUP_FREE char *path = scratch_path(scratch, name);
    unlink(path);
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_errno(err, errno, NULL, "cannot write %s", path);
    return fs_write_all(fd, bytes, len, err) < 0 ? error_context(err, "cannot write %s", path) : 0;
}

int scratch_read(const struct scratch *scratch, const char *name, struct buffer *buf, struct error *err)
{
    CLEANUP_FREE char *path = scratch_path(scratch, name);
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, errno, NULL, "cannot read %s", path);
    return fs_read_all(fd, buf, err) < 0 ? error_context(err, "cannot read %s", path) : 0;
}
