#include "controller/config_path.h"
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int config_path_home(char **ret, struct error *err)
{
    const char *home = getenv("HOME");
    char room[4096];
    struct passwd entry, *found = NULL;
    if (!home || home[0] != '/') {
        getpwuid_r(getuid(), &entry, room, sizeof(room), &found);
        home = found ? found->pw_dir : NULL;
    }
    if (!home || home[0] != '/')
        return error_set(err, ERROR_INVALID, "set HOME, or give absolute paths in the CHAT2SHELL_ variables",
                         "there is no home directory for ~");
    *ret = mem_strdup(home);
    return 0;
}

static bool has_control_character(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return true;
    return false;
}

static int expand_home(const char *text, char **ret, struct error *err)
{
    if (text[0] != '~') {
        *ret = mem_strdup(text);
        return 0;
    }
    if (text[1] && text[1] != '/')
        return error_set(err, ERROR_INVALID, "write ~/ for your own home directory, or an absolute path",
                         "'%s' names another user's home directory", text);
    CLEANUP_FREE char *home = NULL;
    if (config_path_home(&home, err) < 0)
        return -1;
    *ret = mem_format("%s%s", home, text + 1);
    return 0;
}

// Appends the components of path to `to`, each behind a slash. Fails on "..".
static int join_components(struct buffer *to, const char *path, struct error *err)
{
    CLEANUP_FREE char *copy = mem_strdup(path);
    char *rest = copy;
    for (char *part; (part = strsep(&rest, "/"));) {
        if (!part[0] || strcmp(part, ".") == 0)
            continue;
        if (strcmp(part, "..") == 0)
            return error_set(err, ERROR_INVALID, "write the path without '..'", "'%s' contains '..'", path);
        buffer_append_char(to, '/');
        buffer_append_text(to, part);
    }
    return 0;
}

int config_path_clean(const char *text, char **ret, struct error *err)
{
    if (strlen(text) > CONFIG_PATH_MAX || has_control_character(text) || !utf8_is_valid(text, strlen(text)))
        return error_set(err, ERROR_INVALID, "give a path of plain characters",
                         "is longer than %d bytes or contains control characters", CONFIG_PATH_MAX);
    CLEANUP_FREE char *expanded = NULL;
    if (expand_home(text, &expanded, err) < 0)
        return -1;
    if (expanded[0] != '/')
        return error_set(err, ERROR_INVALID, "begin it with / or ~/", "'%s' is not an absolute path", text);
    CLEANUP(buffer_free) struct buffer clean = BUFFER_INIT(2 * CONFIG_PATH_MAX + 4096);
    if (join_components(&clean, expanded, err) < 0)
        return -1;
    *ret = clean.len ? buffer_take_string(&clean) : mem_strdup("/");
    return 0;
}

char *config_path_resolve(const char *path)
{
    CLEANUP_FREE char *existing = mem_strdup(path);
    for (;;) {
        char *resolved = realpath(existing, NULL);
        if (resolved) {
            const char *rest = path + strlen(existing);
            const char *head = strcmp(resolved, "/") == 0 && rest[0] == '/' ? "" : resolved;
            char *joined = mem_format("%s%s", head, rest);
            free(resolved);
            return joined;
        }
        char *slash = strrchr(existing, '/');
        if (!slash || slash == existing)
            return mem_strdup(path);
        *slash = '\0';
    }
}

char *config_path_resolve_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return mem_strdup(path);
    CLEANUP_FREE char *parent = mem_strndup(path, (size_t)(slash - path));
    CLEANUP_FREE char *resolved = config_path_resolve(parent);
    return mem_format("%s%s", strcmp(resolved, "/") == 0 ? "" : resolved, slash);
}

static bool is_in_or_equal(const char *path, const char *dir)
{
    return strcmp(path, dir) == 0 || fs_is_below(path, dir);
}

bool config_path_overlaps(const char *a, const char *b)
{
    CLEANUP_FREE char *real_a = config_path_resolve(a);
    CLEANUP_FREE char *real_b = config_path_resolve(b);
    return is_in_or_equal(a, b) || is_in_or_equal(b, a) || is_in_or_equal(real_a, real_b) ||
           is_in_or_equal(real_b, real_a);
}
