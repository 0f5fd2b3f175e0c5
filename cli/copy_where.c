#include "cli/copy_where.h"
#include "cli/copy_inside.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <string.h>

#define ANSWER_MAX_BYTES 8192

void copy_place_clear(struct copy_place *place)
{
    free(place->sandbox);
    free(place->path);
    *place = (struct copy_place){0};
}

int copy_place_parse(const char *text, struct copy_place *ret, struct error *err)
{
    const char *colon = strchr(text, ':'), *slash = strchr(text, '/');
    bool is_host = text[0] == '.' || text[0] == '/' || !colon || (slash && slash < colon);
    const char *path = is_host ? text : colon + 1;
    if (!is_host && colon == text)
        return error_set(err, ERROR_USAGE, "write SANDBOX:PATH, or ./NAME for a file whose name has a colon", "there is no sandbox before the colon in '%.200s'", text);
    if (!path[0])
        return error_set(err, ERROR_USAGE, "write SANDBOX:. for its workspace", "there is no path in '%.200s'", text);
    *ret = (struct copy_place){.sandbox = is_host ? NULL : mem_strndup(text, (size_t)(colon - text)), .path = mem_strdup(path)};
    return 0;
}

bool copy_place_is_stream(const struct copy_place *place)
{
    return !place->sandbox && strcmp(place->path, "-") == 0;
}

void copy_name_clear(struct copy_name *name)
{
    free(name->directory);
    free(name->name);
    *name = (struct copy_name){0};
}

void copy_name_split(const char *path, struct copy_name *ret)
{
    size_t len = strlen(path), end = len;
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    CLEANUP_FREE char *name = mem_strndup(path + start, end - start);
    bool is_content = !name[0] || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, "/") == 0;
    *ret = (struct copy_name){.ends_in_slash = end < len, .means_content = is_content};
    ret->name = is_content ? mem_strdup("") : TAKE_PTR(name);
    ret->directory = is_content ? mem_strdup(path) : start ? mem_strndup(path, start) : mem_strdup(".");
}

// ---- a look inside ----------------------------------------------------------------------------------------------------------
static const char look[] = "command -v tar >/dev/null || exit 127\n"
                           "p=$1\n"
                           "if [ \"$3\" = follow ]; then p=$(readlink -f -- \"$1\") || exit 3; fi\n"
                           "if [ -d \"$p\" ] && { [ \"$3\" = target ] || [ ! -L \"$p\" ]; }; then echo directory\n"
                           "elif [ -e \"$p\" ] || [ -L \"$p\" ]; then echo file\n"
                           "elif [ -d \"$2\" ]; then echo nothing\n"
                           "else echo noparent; fi\n"
                           "printf %s \"$p\"\n";

static int read_answer(struct inside *inside, struct buffer *answer, struct error *err)
{
    char bytes[1024];
    ssize_t n;
    while ((n = inside_read(inside, bytes, sizeof(bytes), err)) > 0)
        if (buffer_append(answer, bytes, (size_t)n) < 0)
            return error_set(err, ERROR_TOO_LARGE, NULL, "the sandbox's answer about a path is too long");
    return (int)n;
}

static int take_answer(const char *text, const struct copy_place *place, enum copy_kind *ret, char **ret_resolved, struct error *err)
{
    static const char *const words[] = {[COPY_NOTHING] = "nothing\n", [COPY_NO_PARENT] = "noparent\n", [COPY_FILE] = "file\n", [COPY_DIRECTORY] = "directory\n"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        size_t len = strlen(words[i]);
        if (strncmp(text, words[i], len) != 0)
            continue;
        *ret = (enum copy_kind)i;
        if (ret_resolved)
            *ret_resolved = mem_strdup(text + len);
        return 0;
    }
    error_set(err, ERROR_UNAVAILABLE, NULL, "the sandbox %s does not tell what is at %s", place->sandbox, place->path);
    return error_hint(err, "look with: chat2shell exec %s -- ls", place->sandbox);
}

static int end_look(struct inside *inside, const struct copy_place *place, struct error *err)
{
    int exit_code;
    if (inside_wait(inside, &exit_code, err) < 0)
        return -1;
    if (exit_code == 127)
        return error_set(err, ERROR_UNSUPPORTED, "install it there (apt install tar), or use exec with cat", "there is no tar in the sandbox %s, and cp needs one", place->sandbox);
    if (exit_code) {
        CLEANUP_FREE char *words = utf8_to_printable(buffer_text(&inside->words), inside->words.len, false);
        return error_set(err, ERROR_NOT_FOUND, NULL, "cannot look at %s in the sandbox %s%s%.300s", place->path, place->sandbox, words[0] ? ": " : "", words);
    }
    return 0;
}

int copy_look_inside(const struct rest *rest, const struct copy_place *place, bool follows, enum copy_kind *ret, char **ret_resolved, struct error *err)
{
    CLEANUP(copy_name_clear) struct copy_name name = {0};
    CLEANUP_FREE char *label = mem_format("cp: look at %s", place->path);
    CLEANUP(inside_clear) struct inside inside = INSIDE_INIT;
    CLEANUP(buffer_free) struct buffer answer = BUFFER_INIT(ANSWER_MAX_BYTES);
    copy_name_split(place->path, &name);
    // A target that is a link to a directory is that directory; a source that is a link is a link.
    const char *const argv[] = {"sh", "-c", look, "sh", place->path, name.directory, ret_resolved ? follows ? "follow" : "source" : "target", NULL};
    if (inside_start(&inside, rest, place->sandbox, label, argv, INSIDE_OUTPUT, err) < 0)
        return -1;
    int r = read_answer(&inside, &answer, err);
    if (end_look(&inside, place, r < 0 ? NULL : err) < 0 || r < 0)
        return -1;
    return take_answer(buffer_text(&answer), place, ret, ret_resolved, err);
}
