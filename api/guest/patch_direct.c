#include "api/guest/patch_direct.h"
#include "api/guest/install.h"
#include "controller/base/memory.h"
#include <ctype.h>
#include <errno.h>
#include <string.h>

#define MAX_BYTES (16 * 1024 * 1024) // of all files together: they are in memory
#define GROWTH_BYTES (1024 * 1024)   // a patch is no longer than that

struct change {
    const struct patch_file *file;
    struct stat before;
    struct buffer old, new;
};

struct changes {
    struct change *list;
    size_t count, bytes;
};

static void free_changes(struct changes *changes)
{
    for (size_t i = 0; i < changes->count; i++) {
        buffer_free(&changes->list[i].old);
        buffer_free(&changes->list[i].new);
    }
    free(changes->list);
}

struct line {
    const char *at;
    size_t len; // without the line end
};

static bool take_line(const char **at, const char *end, struct line *ret)
{
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    if (!stop)
        return false;
    *ret = (struct line){*at, (size_t)(stop - *at)};
    *at = stop + 1;
    return true;
}

static bool starts_with(struct line line, const char *text)
{
    return line.len >= strlen(text) && memcmp(line.at, text, strlen(text)) == 0;
}

// The line is made of these pieces and nothing else.
static bool is_line(struct line line, const char *start, struct line name, const char *middle,
                    struct line again)
{
    CLEANUP_FREE char *text =
        mem_format("%s%.*s%s%.*s", start, (int)name.len, name.at, middle, (int)again.len, again.at);
    return strlen(text) == line.len && memcmp(text, line.at, line.len) == 0;
}

static bool is_plain_name(struct line name)
{
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.at[i] <= ' ' || name.at[i] == '"' || name.at[i] == '\\' || name.at[i] == 0x7f)
            return false;
    return name.len > 0;
}

// "index 12ab..34cd 100644": the mode, if it is there, must be the file's, or git has something to say.
static bool is_index_line_for(struct line line, mode_t mode)
{
    const char *at = line.at + strlen("index "), *end = line.at + line.len;
    while (at < end && (isxdigit((unsigned char)*at) || *at == '.'))
        at++;
    const char *wanted = mode & 0100 ? " 100755" : " 100644";
    return at == end || ((size_t)(end - at) == strlen(wanted) && memcmp(at, wanted, strlen(wanted)) == 0);
}

struct heading {
    struct line git, index, name; // git and index: at NULL if there is no such line
};

static bool take_heading(const char **at, const char *end, struct heading *ret)
{
    struct line line;
    *ret = (struct heading){0};
    if (!take_line(at, end, &line))
        return false;
    if (starts_with(line, "diff --git a/")) {
        ret->git = line;
        if (!take_line(at, end, &line))
            return false;
        if (starts_with(line, "index ")) {
            ret->index = line;
            if (!take_line(at, end, &line))
                return false;
        }
    }
    if (!starts_with(line, "--- a/"))
        return false;
    ret->name = (struct line){line.at + 6, line.len - 6};
    return is_plain_name(ret->name) && take_line(at, end, &line) &&
           is_line(line, "+++ b/", ret->name, "", (struct line){"", 0}) &&
           (!ret->git.at || is_line(ret->git, "diff --git a/", ret->name, " b/", ret->name));
}

static const struct patch_file *find_file(const struct patch_scratch *scratch, struct line name)
{
    for (size_t i = 0; i < scratch->count; i++) {
        const char *path = scratch->files[i].place.path;
        if (strlen(path) == name.len && memcmp(path, name.at, name.len) == 0)
            return &scratch->files[i];
    }
    return NULL;
}

static bool is_new(const struct changes *changes, const struct patch_file *file)
{
    for (size_t i = 0; i < changes->count; i++)
        if (changes->list[i].file == file)
            return false;
    return true;
}

static bool read_old(const struct workspace *workspace, struct changes *changes, struct change *change)
{
    CLEANUP_CLOSE int fd = workspace_open_real(workspace, change->file->place.real,
                                               O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &change->before) < 0 || !S_ISREG(change->before.st_mode) ||
        fs_read_all(fd, &change->old, NULL) < 0 || change->old.len > MAX_BYTES - changes->bytes)
        return false;
    changes->bytes += change->old.len;
    return !memchr(change->old.data, '\r', change->old.len);
}

static bool take_file(const struct patch_scratch *scratch, const struct workspace *workspace,
                      struct changes *changes, const char **at, const char *end)
{
    struct heading heading;
    if (!take_heading(at, end, &heading))
        return false;
    const struct patch_file *file = find_file(scratch, heading.name);
    if (!file || !is_new(changes, file))
        return false;
    struct change *change = &changes->list[changes->count++];
    *change = (struct change){
        .file = file, .old = BUFFER_INIT(MAX_BYTES), .new = BUFFER_INIT(MAX_BYTES + GROWTH_BYTES)};
    return read_old(workspace, changes, change) &&
           (!heading.index.at || is_index_line_for(heading.index, change->before.st_mode)) &&
           patch_direct_change(at, end, change->old.data, change->old.len, &change->new);
}

static bool has_rules_in(const struct workspace *workspace, const char *dir, size_t dir_len)
{
    CLEANUP_FREE char *path = mem_format("%.*s%s.gitattributes", (int)dir_len, dir, dir_len ? "/" : "");
    CLEANUP_FREE char *real = NULL;
    return workspace_resolve(workspace, path, &real) == 0;
}

static bool has_rules(const struct patch_scratch *scratch, const struct workspace *workspace)
{
    const char *last = "";
    size_t last_len = 0;
    if (has_rules_in(workspace, "", 0))
        return true;
    for (size_t i = 0; i < scratch->count; i++) {
        const char *path = scratch->files[i].place.path, *end = strrchr(path, '/');
        size_t len = end ? (size_t)(end - path) : 0;
        if (len == last_len && memcmp(path, last, len) == 0)
            continue; // as for the file before
        for (const char *slash = path; (slash = strchr(slash, '/')); slash++)
            if (has_rules_in(workspace, path, (size_t)(slash - path)))
                return true;
        last = path;
        last_len = len;
    }
    return false;
}

static int put_in_place(const struct changes *changes, const struct workspace *workspace, struct error *err)
{
    CLEANUP_FREE struct install_item *items = mem_alloc(changes->count * sizeof(struct install_item));
    for (size_t i = 0; i < changes->count; i++) {
        const struct change *change = &changes->list[i];
        items[i] = (struct install_item){.path = change->file->place.path,
                                         .real = change->file->place.real,
                                         .before = &change->before,
                                         .mode = change->before.st_mode & 07777,
                                         .bytes = change->new.data,
                                         .len = change->new.len};
    }
    return install_all(workspace, items, changes->count, err);
}

int patch_direct_apply(const struct patch_scratch *scratch, const struct workspace *workspace,
                       const char *patch, size_t len, size_t *ret_changed, struct error *err)
{
    const char *end = patch + len;
    CLEANUP(free_changes)
    struct changes changes = {.list = mem_alloc((scratch->count + 1) * sizeof(struct change))};
    if (memchr(patch, '\r', len))
        return 0;
    while (patch < end)
        if (!take_file(scratch, workspace, &changes, &patch, end))
            return 0;
    if (changes.count != scratch->count || has_rules(scratch, workspace))
        return 0;
    if (put_in_place(&changes, workspace, err) < 0)
        return -1;
    *ret_changed = changes.count;
    return 1;
}
