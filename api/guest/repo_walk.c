// The walk for the repository map: directory by directory, those near the root first, so that a bound cuts
// off what lies deep. Symbolic links, FIFOs, sockets and devices are not entered and not opened.
#include "api/guest/blocked.h"
#include "api/guest/collate.h"
#include "api/guest/directory.h"
#include "api/guest/repo_internal.h"
#include "api/guest/scan.h"
#include "api/guest/text.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include <dirent.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SEEN 60000                     // files that are kept in mind, binary ones included
#define MAX_QUEUE_BYTES (8 * 1024 * 1024)  // paths of directories and files
#define MAX_NAMES_BYTES (12 * 1024 * 1024) // of symbols and imports
#define MAX_WALK_MS 15000
#define HEAD_BYTES 8192 // enough to tell text from binary

struct walk {
    struct tool_call *call;
    struct repo *old, *to;
    size_t old_count, room, reads;
    char **queue; // directories still to read
    size_t queue_next, queue_count, queue_room;
    size_t path_bytes, name_bytes, symbols, texts;
    size_t large, unreadable, unanalyzed;
    int64_t deadline_ms;
    bool is_full, is_late;
};

static bool should_stop(struct walk *walk)
{
    walk->is_late |= boot_time_now().ms >= walk->deadline_ms;
    return walk->is_full || walk->is_late || atomic_load(walk->call->is_cancelled);
}

static bool has_room_for(struct walk *walk, const char *path)
{
    walk->path_bytes += strlen(path) + 1;
    if (walk->path_bytes > MAX_QUEUE_BYTES || walk->to->count >= MAX_SEEN || walk->texts >= REPO_MAX_FILES)
        walk->is_full = true;
    return !walk->is_full;
}

static void add_directory(struct walk *walk, char *path)
{
    if (!has_room_for(walk, path)) {
        free(path);
        return;
    }
    if (walk->queue_count == walk->queue_room) {
        walk->queue_room = walk->queue_room ? 2 * walk->queue_room : 64;
        walk->queue = mem_realloc_array(walk->queue, walk->queue_room, sizeof(char *));
    }
    walk->queue[walk->queue_count++] = path;
}

static int by_path(const void *key, const void *at)
{
    return collate_names(key, ((const struct repo_file *)at)->path);
}

// The old map has its text files sorted, and behind them the binary ones sorted.
static struct repo_file *find_old(const struct walk *walk, const struct repo_file *file)
{
    struct repo_file *files = walk->old->files;
    size_t texts = walk->old_count, total = walk->old->count;
    struct repo_file *found = texts ? bsearch(file->path, files, texts, sizeof(*files), by_path) : NULL;
    if (!found && total > texts)
        found = bsearch(file->path, files + texts, total - texts, sizeof(*files), by_path);
    return found && found->size == file->size && found->mtime_ns == file->mtime_ns &&
                   found->ctime_ns == file->ctime_ns
               ? found
               : NULL;
}

static bool should_analyze(struct walk *walk, const struct repo_file *file)
{
    if (!language_is_code(file->class.language) || file->class.role == ROLE_GENERATED)
        return false;
    if (walk->to->analyzed < REPO_MAX_ANALYZED &&
        walk->to->scanned_bytes + (size_t)file->size <= REPO_MAX_SCANNED_BYTES &&
        walk->symbols < REPO_MAX_SYMBOLS && walk->name_bytes < MAX_NAMES_BYTES)
        return true;
    walk->unanalyzed++;
    return false;
}

// False if it cannot be read, or has grown over the limit.
static bool read_file(struct walk *walk, int dir, const char *name, struct repo_file *file, bool is_whole)
{
    CLEANUP(buffer_free) struct buffer bytes = BUFFER_INIT(REPO_MAX_FILE_BYTES);
    CLEANUP_CLOSE int fd =
        fs_openat2(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    struct stat meta;
    walk->reads++;
    if (fd < 0 || fstat(fd, &meta) < 0 || !S_ISREG(meta.st_mode)) // it may be another one by now
        return false;
    if (is_whole) {
        if (fs_read_all(fd, &bytes, NULL) < 0)
            return false;
    } else {
        char *at = buffer_reserve(&bytes, HEAD_BYTES);
        ssize_t n = read(fd, at, HEAD_BYTES);
        if (n < 0)
            return false;
        bytes.len = (size_t)n;
    }
    file->is_text = !text_is_binary(buffer_text(&bytes), bytes.len);
    file->has_facts = is_whole && file->is_text;
    if (file->has_facts)
        scan_source(file->class.language, bytes.data, bytes.len, &file->facts);
    return true;
}

static void take_old(struct repo_file *old, struct repo_file *file)
{
    file->is_text = old->is_text;
    file->has_facts = old->has_facts;
    file->is_by_ctags = old->is_by_ctags;
    file->was_given_to_ctags = old->was_given_to_ctags;
    file->facts = old->facts;
    old->facts = (struct facts){0};
    old->size = -1; // nobody takes it twice
}

static void forget_facts(struct repo_file *file)
{
    facts_free(&file->facts);
    file->has_facts = file->is_by_ctags = file->was_given_to_ctags = false;
}

static void add_file(struct walk *walk, struct repo_file *file)
{
    if (file->has_facts) {
        walk->to->analyzed++;
        walk->to->scanned_bytes += (size_t)file->size;
        walk->symbols += file->facts.symbol_count;
        walk->name_bytes += file->facts.bytes;
    }
    walk->texts += file->is_text;
    if (walk->to->count == walk->room) {
        walk->room = walk->room ? 2 * walk->room : 256;
        walk->to->files = mem_realloc_array(walk->to->files, walk->room, sizeof(struct repo_file));
    }
    walk->to->files[walk->to->count++] = *file;
}

static int64_t nanoseconds(struct timespec time)
{
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void visit_file(struct walk *walk, int dir, const char *name, char *path)
{
    struct stat meta;
    struct repo_file file = {.path = path};
    bool is_there = fstatat(dir, name, &meta, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(meta.st_mode);
    if (!is_there || meta.st_size > REPO_MAX_FILE_BYTES || !has_room_for(walk, path)) {
        walk->large += is_there && meta.st_size > REPO_MAX_FILE_BYTES;
        free(path);
        return;
    }
    file.size = meta.st_size;
    file.mtime_ns = nanoseconds(meta.st_mtim);
    file.ctime_ns = nanoseconds(meta.st_ctim);
    file.class = file_classify(path);
    struct repo_file *old = find_old(walk, &file);
    if (old)
        take_old(old, &file);
    bool is_known = old != NULL, is_wanted = (!is_known || file.is_text) && should_analyze(walk, &file);
    if (file.has_facts && !is_wanted)
        forget_facts(&file);
    if ((!is_known || (is_wanted && !file.has_facts)) && !read_file(walk, dir, name, &file, is_wanted)) {
        walk->unreadable++;
        repo_file_free(&file);
        return;
    }
    add_file(walk, &file);
}

static void visit_entry(struct walk *walk, int dir, const char *dir_path, const struct directory_entry *entry)
{
    if (entry->type != DT_DIR && entry->type != DT_REG)
        return;
    char *path = *dir_path ? mem_format("%s/%s", dir_path, entry->name) : mem_strdup(entry->name);
    if (blocked_path(path))
        free(path);
    else if (entry->type == DT_DIR)
        add_directory(walk, path);
    else
        visit_file(walk, dir, entry->name, path);
}

static void visit_directory(struct walk *walk, const char *path)
{
    CLEANUP_CLOSE int fd =
        workspace_open_real(walk->call->workspace, *path ? path : ".", O_RDONLY | O_DIRECTORY);
    CLEANUP_DIRECTORY struct directory directory = {0};
    if (fd < 0 || directory_read(fd, false, &directory) < 0) {
        walk->unreadable++;
        return;
    }
    walk->to->is_truncated |= directory.is_cut;
    if (directory.is_cut)
        repo_warn(walk->to, "%.200s has more than %d names: the others were left out", *path ? path : ".",
                  DIRECTORY_MAX_NAMES);
    for (size_t i = 0; i < directory.count && !should_stop(walk); i++)
        visit_entry(walk, fd, path, &directory.entries[i]);
}

static void warn(struct walk *walk)
{
    struct repo *to = walk->to;
    if (walk->is_full)
        repo_warn(
            to,
            "the workspace has more files than the %d of the inventory: those that lie deepest were left out",
            REPO_MAX_FILES);
    if (walk->is_late)
        repo_warn(
            to,
            "stopped at the time limit: not every directory was looked at; ask again, what was read is kept");
    if (walk->unanalyzed)
        repo_warn(to, "%zu source files were not scanned: the limits are %d files, %d bytes, %d symbols",
                  walk->unanalyzed, REPO_MAX_ANALYZED, REPO_MAX_SCANNED_BYTES, REPO_MAX_SYMBOLS);
    if (walk->large)
        repo_warn(to, "%zu files larger than %d bytes were left out", walk->large, REPO_MAX_FILE_BYTES);
    if (walk->unreadable)
        repo_warn(to, "%zu files and directories could not be read", walk->unreadable);
    to->is_truncated |= walk->is_full || walk->is_late || walk->unanalyzed;
}

void repo_walk(struct tool_call *call, struct repo *old, struct repo *to, size_t *ret_reads)
{
    struct walk walk = {.call = call, .old = old, .to = to, .deadline_ms = boot_time_now().ms + MAX_WALK_MS};
    while (walk.old_count < old->count && old->files[walk.old_count].is_text)
        walk.old_count++;
    add_directory(&walk, mem_strdup(""));
    while (walk.queue_next < walk.queue_count) {
        CLEANUP_FREE char *path = walk.queue[walk.queue_next++];
        if (!should_stop(&walk))
            visit_directory(&walk, path);
    }
    free(walk.queue);
    warn(&walk);
    *ret_reads = walk.reads;
}
