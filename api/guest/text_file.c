#include "api/guest/text_file.h"
#include "api/guest/tool.h"
#include "controller/base/random.h"
#include "controller/base/utf8.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define LOCKS 64 // as many as text_file_locks has bits

static pthread_mutex_t locks[LOCKS] = {[0 ... LOCKS - 1] = PTHREAD_MUTEX_INITIALIZER};

static unsigned lock_number(const char *real)
{
    unsigned hash = 5381;
    for (const char *at = real; *at; at++)
        hash = hash * 33 + (unsigned char)*at;
    return hash % LOCKS;
}

struct text_file_lock text_file_lock(const char *real)
{
    pthread_mutex_t *mutex = &locks[lock_number(real)];
    pthread_mutex_lock(mutex);
    return (struct text_file_lock){mutex};
}

// In the order of their numbers, and whoever holds a single one waits for no other: no circle.
struct text_file_locks text_file_lock_all(const char *const *reals, size_t count)
{
    struct text_file_locks taken = {0};
    for (size_t i = 0; i < count; i++)
        taken.held |= UINT64_C(1) << lock_number(reals[i]);
    for (unsigned i = 0; i < LOCKS; i++)
        if (taken.held >> i & 1)
            pthread_mutex_lock(&locks[i]);
    return taken;
}

void text_file_unlock_all(struct text_file_locks *taken)
{
    for (unsigned i = 0; i < LOCKS; i++)
        if (taken->held >> i & 1)
            pthread_mutex_unlock(&locks[i]);
    taken->held = 0;
}

void text_file_unlock(struct text_file_lock *lock)
{
    if (lock->mutex)
        pthread_mutex_unlock(lock->mutex);
    lock->mutex = NULL;
}

void text_file_free(struct text_file *file)
{
    free(file->text);
    file->text = NULL;
}

static void decode(struct buffer *bytes, struct text_file *file)
{
    file->bytes = bytes->len;
    file->has_bad_bytes = !utf8_is_valid(buffer_text(bytes), bytes->len);
    file->len = bytes->len;
    file->text =
        file->has_bad_bytes ? utf8_to_valid(bytes->data, bytes->len, &file->len) : buffer_take_string(bytes);
    text_sha256(file->text, file->len, file->sha256);
}

int text_file_read(int fd, const char *path, size_t max_bytes, struct text_file *ret,
                   struct error *err)
{
    struct text_file file = {0};
    struct error read_error = ERROR_INIT;
    CLEANUP(buffer_free) struct buffer bytes = BUFFER_INIT(max_bytes);
    if (fstat(fd, &file.meta) < 0)
        return guest_tool_fail_errno(err, errno, "stat '%s'", path);
    if (!S_ISREG(file.meta.st_mode))
        return guest_tool_fail(err, NULL, "Not a file: %s", path);
    if ((size_t)file.meta.st_size > max_bytes)
        return guest_tool_fail(err, "read a part with start_line and end_line, or use bash",
                               "File is too large (%lld bytes). Limit: %zu bytes.",
                               (long long)file.meta.st_size, max_bytes);
    if (lseek(fd, 0, SEEK_SET) < 0 || fs_read_all(fd, &bytes, &read_error) < 0)
        return read_error.code == ERROR_TOO_LARGE
                   ? guest_tool_fail(err, NULL, "File is too large (it grows). Limit: %zu bytes.", max_bytes)
                   : guest_tool_fail_errno(err, errno, "read '%s'", path);
    if (text_is_binary(buffer_text(&bytes), bytes.len))
        return guest_tool_fail(err, "use bash", "Refusing to read binary file.");
    decode(&bytes, &file);
    *ret = file;
    return 0;
}

int text_file_open_target(const struct workspace *workspace, const struct place *place, int *ret_fd,
                          struct error *err)
{
    int fd = workspace_open_real(workspace, place->real, O_RDWR | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == EISDIR)
        return guest_tool_fail(err, NULL, "Not a file: %s", place->path);
    if (fd < 0 && errno != ENOENT)
        return guest_tool_fail_errno(err, errno, "open '%s'", place->path);
    *ret_fd = fd;
    return 0;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int write_at_start(int fd, const char *bytes, size_t len)
{
    struct error ignored = ERROR_INIT;
    if (lseek(fd, 0, SEEK_SET) < 0 || fs_write_all(fd, bytes, len, &ignored) < 0 ||
        ftruncate(fd, (off_t)len) < 0)
        return -1;
    return 0;
}

int text_file_rewrite(int fd, const char *path, const struct text_file *before, const char *text, size_t len,
                      struct error *err)
{
    struct stat now;
    if (fstat(fd, &now) < 0 || !is_same(&now, &before->meta))
        return guest_tool_fail(err, "read it again", "File changed during write: %s", path);
    // Room first, so that a full disk is an error before the first byte changes and not in the middle.
    if (len > before->bytes && fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)len) < 0 &&
        (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
        return guest_tool_fail_errno(err, errno, "write '%s'", path);
    if (write_at_start(fd, text, len) < 0) {
        int number = errno;
        if (!before->has_bad_bytes)
            write_at_start(fd, before->text, before->len);
        return guest_tool_fail_errno(err, number, "write '%s'", path);
    }
    return fsync(fd) < 0 && errno != EINVAL ? guest_tool_fail_errno(err, errno, "fsync '%s'", path) : 0;
}

static int fill_new(int dir, const char *temp, const char *text, size_t len)
{
    struct error ignored = ERROR_INIT;
    CLEANUP_CLOSE int fd = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return -1;
    return fs_write_all(fd, text, len, &ignored) < 0 || (fsync(fd) < 0 && errno != EINVAL) ? -1 : 0;
}

int text_file_create(const struct workspace *workspace, const struct place *place, bool create_dirs,
                     const char *text, size_t len, struct error *err)
{
    const char *name;
    CLEANUP_CLOSE int dir = workspace_open_parent(workspace, place->real, create_dirs, &name);
    if (dir < 0)
        return guest_tool_fail_errno(err, errno, "open '%s'", place->path);
    char temp[40] = ".chat2shell-";
    random_hex(temp + strlen(temp), 16);
    if (fill_new(dir, temp, text, len) < 0 || (renameat2(dir, temp, dir, name, RENAME_NOREPLACE) < 0 &&
                                               (errno != EINVAL || renameat(dir, temp, dir, name) < 0))) {
        int number = errno;
        unlinkat(dir, temp, 0);
        return number == EEXIST
                   ? guest_tool_fail(err, "read it first", "File changed during write: %s", place->path)
                   : guest_tool_fail_errno(err, number, "write '%s'", place->path);
    }
    fsync(dir); // the file is there; a file system that cannot do this is no reason to say otherwise
    return 0;
}

int text_file_check_hash(const json_t *args, const struct text_file *file, const char *path,
                         struct error *err)
{
    const char *expected = json_get_text(args, "expected_sha256");
    if (!expected || strcasecmp(expected, file->sha256) == 0)
        return 0;
    return guest_tool_fail(err, "read it again", "File changed since it was read: %s (expected %s, now %s)",
                           path, expected, file->sha256);
}
