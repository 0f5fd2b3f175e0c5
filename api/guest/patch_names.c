#include "api/guest/patch_names.h"
#include "api/guest/git_quote.h"
#include "api/guest/tool.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <stdlib.h>
#include <string.h>

struct line {
    const char *at;
    size_t len; // without the newline
};

struct scan {
    const char *at, *end;
    struct patch_names *names;
    size_t old_left, new_left; // lines that the hunk still has
    bool is_in_git_header, has_header;
    bool has_too_many;
};

void patch_names_free(struct patch_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->names[i]);
    free(names->names);
    *names = (struct patch_names){0};
}

static bool next_line(struct scan *scan, struct line *line)
{
    if (scan->at >= scan->end)
        return false;
    const char *newline = memchr(scan->at, '\n', (size_t)(scan->end - scan->at));
    line->at = scan->at;
    line->len = (size_t)((newline ? newline : scan->end) - scan->at);
    scan->at = newline ? newline + 1 : scan->end;
    return true;
}

static bool starts(const struct line *line, const char *prefix)
{
    size_t len = strlen(prefix);
    return line->len >= len && memcmp(line->at, prefix, len) == 0;
}

static struct line behind(const struct line *line, size_t len)
{
    return (struct line){line->at + len, line->len - len};
}

static void add_name(struct scan *scan, char *name) // takes name
{
    struct patch_names *names = scan->names;
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->names[i], name) == 0) {
            free(name);
            return;
        }
    }
    if (names->count == PATCH_MAX_NAMES) {
        scan->has_too_many = true;
        free(name);
        return;
    }
    names->names = mem_realloc_array(names->names, names->count + 1, sizeof(char *));
    names->names[names->count++] = name;
}

// The name at the start of text: quoted, or up to a tab or another blank that is no space.
static char *read_name(const struct line *text)
{
    char *name = NULL;
    if (text->len && text->at[0] == '"' && git_unquote(text->at, text->len, &name))
        return name;
    size_t len = 0;
    while (len < text->len && text->at[len] && !strchr("\t\r\v\f", text->at[len]))
        len++;
    return mem_strndup(text->at, len);
}

static const char *without_first_part(const char *name)
{
    const char *slash = strchr(name, '/');
    return slash ? slash + 1 : name;
}

static void add_header_name(struct scan *scan, const struct line *text)
{
    CLEANUP_FREE char *name = read_name(text);
    scan->has_header = true;
    if (!*name || strcmp(name, "/dev/null") == 0)
        return;
    scan->names->has_stated = true;
    add_name(scan, mem_strdup(without_first_part(name)));
}

// "a/X b/X": both halves are the same name, or rename lines follow and say it.
static char *name_of_halves(const struct line *text)
{
    CLEANUP_FREE char *first = NULL;
    size_t used = text->len && text->at[0] == '"' ? git_unquote(text->at, text->len, &first) : 0;
    if (used)
        return mem_strdup(without_first_part(first));
    for (size_t i = 1; i + 1 < text->len; i++) {
        if (text->at[i] != ' ')
            continue;
        struct line rest = behind(text, i + 1);
        CLEANUP_FREE char *left = mem_strndup(text->at, i);
        CLEANUP_FREE char *right = read_name(&rest);
        if (strcmp(without_first_part(left), without_first_part(right)) == 0)
            return mem_strdup(without_first_part(left));
    }
    return NULL;
}

static bool has_mode(const struct line *line, const char *mode)
{
    static const char *const prefixes[] = {"old mode ", "new mode ", "new file mode ", "deleted file mode "};
    size_t len = strlen(mode);
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
        if (starts(line, prefixes[i]) && line->len >= strlen(prefixes[i]) + len &&
            memcmp(line->at + strlen(prefixes[i]), mode, len) == 0)
            return true;
    return starts(line, "index ") && memcmp(line->at + line->len - len, mode, len) == 0;
}

static void scan_git_line(struct scan *scan, const struct line *line)
{
    static const char *const names[] = {"rename from ", "rename to ", "rename old ",
                                        "rename new ",  "copy from ", "copy to "};
    scan->names->has_symlink |= has_mode(line, "120000");
    scan->names->has_submodule |= has_mode(line, "160000");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (!starts(line, names[i]))
            continue;
        struct line rest = behind(line, strlen(names[i]));
        scan->names->has_stated = true;
        add_name(scan, read_name(&rest));
    }
    if (starts(line, "--- ") || starts(line, "+++ ")) {
        struct line rest = behind(line, 4);
        add_header_name(scan, &rest);
    }
}

// "@@ -s[,n] +s[,n] @@"
static size_t read_count(const char **at, const char *end, char mark)
{
    size_t values[2] = {0, 1};
    if (*at >= end || **at != mark)
        return 0;
    ++*at;
    for (int i = 0; i < 2; i++) {
        if (i && (*at >= end || **at != ','))
            break;
        *at += i;
        for (values[i] = 0; *at < end && **at >= '0' && **at <= '9' && values[i] < 100000000; ++*at)
            values[i] = values[i] * 10 + (size_t)(**at - '0');
    }
    return values[1];
}

static void start_hunk(struct scan *scan, const struct line *line)
{
    const char *at = line->at + 3, *end = line->at + line->len;
    scan->old_left = read_count(&at, end, '-');
    at += at < end && *at == ' ';
    scan->new_left = read_count(&at, end, '+');
    scan->is_in_git_header = false;
}

// False: this line is none of the hunk, which is broken.
static bool take_hunk_line(struct scan *scan, const struct line *line)
{
    char mark = line->len ? line->at[0] : ' ';
    bool is_old = mark == '-' || mark == ' ', is_new = mark == '+' || mark == ' ';
    if (mark == '\\')
        return true;
    if ((!is_old && !is_new) || (is_old && !scan->old_left) || (is_new && !scan->new_left))
        return false;
    scan->old_left -= is_old;
    scan->new_left -= is_new;
    scan->names->deletions += is_old && !is_new;
    scan->names->additions += is_new && !is_old;
    return true;
}

// Outside a hunk and a git header only "--- " with "+++ " right behind it is a header.
static void scan_plain_line(struct scan *scan, const struct line *line)
{
    struct scan ahead = *scan;
    struct line second;
    if (!starts(line, "--- ") || !next_line(&ahead, &second) || !starts(&second, "+++ "))
        return;
    struct line names[] = {behind(line, 4), behind(&second, 4)};
    scan->at = ahead.at;
    add_header_name(scan, &names[0]);
    add_header_name(scan, &names[1]);
}

static void scan_line(struct scan *scan, const struct line *line)
{
    if (scan->old_left || scan->new_left) {
        if (take_hunk_line(scan, line))
            return;
        scan->old_left = scan->new_left = 0;
    }
    if (starts(line, "diff --git ")) {
        struct line rest = behind(line, strlen("diff --git "));
        char *name = name_of_halves(&rest);
        scan->is_in_git_header = true;
        if (name)
            add_name(scan, name);
    } else if (starts(line, "@@ -") && scan->has_header) {
        start_hunk(scan, line);
    } else if (scan->is_in_git_header) {
        scan_git_line(scan, line);
    } else {
        scan_plain_line(scan, line);
    }
}

int patch_names_scan(const char *patch, size_t len, struct patch_names *ret, struct error *err)
{
    CLEANUP_PATCH_NAMES struct patch_names names = {0};
    struct scan scan = {.at = patch, .end = patch + len, .names = &names};
    for (struct line line; !scan.has_too_many && next_line(&scan, &line);)
        scan_line(&scan, &line);
    if (scan.has_too_many)
        return guest_tool_fail(err, "apply it in parts", "Patch names more than %d files.", PATCH_MAX_NAMES);
    *ret = names;
    names = (struct patch_names){0};
    return 0;
}

void patch_names_count(const char *patch, size_t len, size_t *ret_additions, size_t *ret_deletions)
{
    CLEANUP_PATCH_NAMES struct patch_names names = {0};
    struct scan scan = {.at = patch, .end = patch + len, .names = &names};
    for (struct line line; next_line(&scan, &line);)
        scan_line(&scan, &line);
    *ret_additions = names.additions;
    *ret_deletions = names.deletions;
}
