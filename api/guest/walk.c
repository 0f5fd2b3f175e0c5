#include "api/guest/walk.h"
#include "api/guest/blocked.h"
#include "api/guest/directory.h"
#include "api/guest/ignore.h"
#include "api/guest/text.h"
#include "api/guest/tool.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include "controller/base/utf8.h"
#include <dirent.h>
#include <errno.h>
#include <linux/openat2.h>
#include <string.h>

#define MAX_DEPTH 128
#define KEEP_BYTES (256 * 1024) // of the buffer, from one file to the next

struct walking {
    const struct walk_options *options;
    struct walk_result *result;
    int64_t deadline_ms;
    struct buffer
        bytes; // of the file at work: one buffer for all, or the kernel maps and clears pages for each
};

static bool should_stop(struct walking *walking)
{
    if (boot_time_now().ms >= walking->deadline_ms)
        walking->result->is_out_of_time = true;
    return walking->result->is_out_of_time || atomic_load(walking->options->is_cancelled);
}

static int visit_text(struct walking *walking, const char *path, struct error *err)
{
    struct walk_counts *counts = &walking->result->counts;
    struct buffer *bytes = &walking->bytes;
    if (text_is_binary(buffer_text(bytes), bytes->len)) {
        counts->binary++;
        return 0;
    }
    struct walk_file file = {path, bytes->data, bytes->len};
    CLEANUP_FREE char *valid = NULL;
    if (!utf8_is_valid(bytes->data, bytes->len))
        file.text = valid = utf8_to_valid(bytes->data, bytes->len, &file.len);
    counts->searched++;
    counts->bytes += bytes->len;
    return walking->options->visit(walking->options->context, &file, err);
}

// Asked for one byte more, a file that gives its size has ended; else it changes, or its size means nothing.
static int read_bytes(int fd, struct buffer *bytes, off_t size, struct error *err)
{
    ssize_t n = size && size < WALK_MAX_FILE_BYTES
                    ? read(fd, buffer_reserve(bytes, (size_t)size + 1), (size_t)size + 1)
                    : 0;
    bytes->len = n > 0 ? (size_t)n : 0;
    return n > 0 && n == size ? 0 : fs_read_all(fd, bytes, err);
}

static int visit_file(struct walking *walking, const char *path, int fd, struct error *err)
{
    struct walk_counts *counts = &walking->result->counts;
    struct error read_error = ERROR_INIT;
    struct stat meta;
    counts->files++;
    if (walking->options->wants && !walking->options->wants(walking->options->context, path))
        return 0;
    if (fd < 0 || fstat(fd, &meta) < 0 || !S_ISREG(meta.st_mode)) {
        counts->unreadable++;
        return 0;
    }
    walking->bytes.len = 0;
    if (meta.st_size > WALK_MAX_FILE_BYTES ||
        read_bytes(fd, &walking->bytes, meta.st_size, &read_error) < 0) {
        *(read_error.code && read_error.code != ERROR_TOO_LARGE ? &counts->unreadable : &counts->large) += 1;
        return 0;
    }
    int result = visit_text(walking, path, err);
    if (walking->bytes.cap > KEEP_BYTES)
        buffer_free(&walking->bytes);
    return result;
}

static int walk_directory(struct walking *walking, int fd, const char *path,
                          const struct ignore_level *parent, int depth, struct error *err);

// False if the entry is left out, which is counted.
static bool is_included(struct walking *walking, const struct directory_entry *entry, const char *path,
                        const struct ignore_level *ignore)
{
    struct walk_counts *counts = &walking->result->counts;
    bool is_directory = entry->type == DT_DIR;
    if (blocked_path(path)) {
        counts->blocked++;
    } else if (entry->name[0] == '.' && !walking->options->include_hidden) {
        counts->hidden++;
    } else if (ignore_hides(ignore, path, is_directory)) {
        counts->ignored++;
    } else {
        return is_directory || !walking->options->glob || glob_accepts(walking->options->glob, path);
    }
    return false;
}

static int walk_entry(struct walking *walking, int fd, const struct directory_entry *entry, const char *path,
                      const struct ignore_level *ignore, int depth, struct error *err)
{
    if ((entry->type != DT_DIR && entry->type != DT_REG) || !is_included(walking, entry, path, ignore))
        return 0;
    const struct walk_options *options = walking->options;
    if (entry->type == DT_REG && options->wants && !options->wants(options->context, path)) {
        walking->result->counts.files++;
        return 0; // not even opened
    }
    int flags = entry->type == DT_DIR ? O_RDONLY | O_DIRECTORY : O_RDONLY | O_NONBLOCK | O_NOCTTY;
    CLEANUP_CLOSE int sub = fs_openat2(fd, entry->name, flags, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    if (entry->type == DT_REG)
        return visit_file(walking, path, sub, err);
    if (sub < 0 || depth == MAX_DEPTH) {
        walking->result->counts.unreadable++;
        return 0;
    }
    return walk_directory(walking, sub, path, ignore, depth + 1, err);
}

static int walk_entries(struct walking *walking, int fd, const char *path, const struct ignore_level *ignore,
                        int depth, struct error *err)
{
    CLEANUP_DIRECTORY struct directory directory = {0};
    if (directory_read(fd, false, &directory) < 0)
        walking->result->counts.unreadable++;
    for (size_t i = 0; i < directory.count; i++) {
        const struct directory_entry *entry = &directory.entries[i];
        CLEANUP_FREE char *sub = *path ? mem_format("%s/%s", path, entry->name) : mem_strdup(entry->name);
        int result = should_stop(walking) ? 1 : walk_entry(walking, fd, entry, sub, ignore, depth, err);
        if (result)
            return result;
    }
    return 0;
}

static int walk_directory(struct walking *walking, int fd, const char *path,
                          const struct ignore_level *parent, int depth, struct error *err)
{
    CLEANUP(ignore_free) struct ignore_level level;
    ignore_read(&level, parent, fd, path);
    return walk_entries(walking, fd, path, &level, depth, err);
}

// The rules of the directories above a start below the root count too.
static int walk_from(struct walking *walking, const char *path, size_t done,
                     const struct ignore_level *parent, int fd, struct error *err)
{
    const char *rest = path + done + (path[done] == '/');
    if (!*rest)
        return walk_directory(walking, fd, path, parent, 0, err);
    CLEANUP_FREE char *above = mem_strndup(path, done);
    CLEANUP_CLOSE int above_fd =
        workspace_open_real(walking->options->workspace, *above ? above : ".", O_RDONLY | O_DIRECTORY);
    CLEANUP(ignore_free) struct ignore_level level = {.parent = parent};
    if (above_fd >= 0)
        ignore_read(&level, parent, above_fd, above);
    return walk_from(walking, path, (size_t)(rest - path) + strcspn(rest, "/"), &level, fd, err);
}

static void free_walking(struct walking *walking)
{
    buffer_free(&walking->bytes);
}

int walk_files(const struct walk_options *options, const struct place *place, struct walk_result *ret,
               struct error *err)
{
    struct walk_result result = {0};
    CLEANUP(free_walking)
    struct walking walking = {options, &result, boot_time_now().ms + WALK_MAX_MS,
                              BUFFER_INIT(WALK_MAX_FILE_BYTES)};
    struct stat meta;
    if (fstat(place->fd, &meta) < 0)
        return guest_tool_fail_errno(err, errno, "stat '%s'", place->path);
    if (!S_ISDIR(meta.st_mode) && !S_ISREG(meta.st_mode))
        return guest_tool_fail(err, NULL, "Not a file or directory: %s", place->path);
    const char *path = strcmp(place->path, ".") == 0 ? "" : place->path;
    int status = S_ISDIR(meta.st_mode) ? walk_from(&walking, path, 0, NULL, place->fd, err)
                                       : visit_file(&walking, place->path, place->fd, err);
    if (status < 0)
        return -1;
    *ret = result;
    return 0;
}
