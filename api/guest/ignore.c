#include "api/guest/ignore.h"
#include "api/guest/glob.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <linux/openat2.h>
#include <string.h>

#define MAX_FILE_BYTES (256 * 1024)
#define MAX_RULES 10000

static size_t rule_len(const char *line, size_t len)
{
    if (len && line[len - 1] == '\r')
        len--;
    while (len && line[len - 1] == ' ' && !(len >= 2 && line[len - 2] == '\\'))
        len--;
    return len;
}

static void add_rule(struct ignore_level *level, const char *line, size_t len)
{
    struct ignore_rule rule = {0};
    len = rule_len(line, len);
    if (!len || *line == '#' || level->count == MAX_RULES)
        return;
    rule.is_negated = *line == '!';
    line += rule.is_negated;
    len -= rule.is_negated;
    if (len && line[len - 1] == '/') {
        rule.is_for_directories = true;
        len--;
    }
    rule.is_anchored = memchr(line, '/', len) != NULL;
    if (len && *line == '/') {
        line++;
        len--;
    }
    if (!len)
        return;
    rule.pattern = mem_strndup(line, len);
    level->rules = mem_realloc_array(level->rules, level->count + 1, sizeof(rule));
    level->rules[level->count++] = rule;
}

void ignore_parse(struct ignore_level *level, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        add_rule(level, text, len);
        text += len + (text[len] == '\n');
    }
}

static void read_file(struct ignore_level *level, int dir_fd, const char *name)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(MAX_FILE_BYTES);
    CLEANUP_CLOSE int fd =
        fs_openat2(dir_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    struct stat meta;
    if (fd >= 0 && fstat(fd, &meta) == 0 && S_ISREG(meta.st_mode) && fs_read_all(fd, &text, NULL) == 0)
        ignore_parse(level, buffer_text(&text));
}

void ignore_read(struct ignore_level *level, const struct ignore_level *parent, int dir_fd,
                 const char *dir_path)
{
    *level = (struct ignore_level){.parent = parent, .base_len = *dir_path ? strlen(dir_path) + 1 : 0};
    if (!*dir_path)
        read_file(level, dir_fd, ".git/info/exclude");
    read_file(level, dir_fd, ".gitignore");
    read_file(level, dir_fd, ".ignore");
}

void ignore_free(struct ignore_level *level)
{
    for (size_t i = 0; i < level->count; i++)
        free(level->rules[i].pattern);
    free(level->rules);
    level->rules = NULL;
    level->count = 0;
}

bool ignore_hides(const struct ignore_level *level, const char *path, bool is_directory)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (; level; level = level->parent) {
        for (size_t i = level->count; i > 0; i--) {
            const struct ignore_rule *rule = &level->rules[i - 1];
            if (rule->is_for_directories && !is_directory)
                continue;
            if (glob_match(rule->pattern, rule->is_anchored ? path + level->base_len : name))
                return !rule->is_negated;
        }
    }
    return false;
}
