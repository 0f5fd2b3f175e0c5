#include "api/guest/glob.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <stdlib.h>
#include <string.h>

#define MAX_STEPS 20000

static bool match(const char *start, const char *p, const char *s, int *steps);

// "[a-z]" or "[!a-z]" at p. *ret_end is behind it; NULL if it is not closed (then '[' is itself).
static bool match_class(const char *p, unsigned char c, const char **ret_end)
{
    const char *at = p + 1;
    bool is_negated = *at == '!' || *at == '^', is_in = false;
    at += is_negated;
    for (bool is_first = true; *at && (*at != ']' || is_first); is_first = false) {
        at += *at == '\\' && at[1];
        unsigned char low = (unsigned char)*at++, high = low;
        if (at[0] == '-' && at[1] && at[1] != ']') {
            at += 1 + (at[1] == '\\' && at[2]);
            high = (unsigned char)*at++;
        }
        is_in |= c >= low && c <= high;
    }
    *ret_end = *at == ']' ? at + 1 : NULL;
    return is_in != is_negated;
}

static bool match_star(const char *start, const char *p, const char *s, int *steps)
{
    for (;; s++) {
        if (match(start, p, s, steps))
            return true;
        if (!*s || *s == '/')
            return false;
    }
}

// "**/" as a whole part: none or more parts.
static bool match_parts(const char *start, const char *rest, const char *s, int *steps)
{
    for (;;) {
        if (match(start, rest, s, steps))
            return true;
        s = strchr(s, '/');
        if (!s)
            return false;
        s++;
    }
}

static size_t char_len(const char *s)
{
    size_t n = utf8_char_len(s, strnlen(s, 4), NULL);
    return n ? n : 1;
}

static bool match(const char *start, const char *p, const char *s, int *steps)
{
    while (*p) {
        if (--*steps < 0)
            return false;
        bool is_part_start = p == start || p[-1] == '/';
        const char *end = NULL;
        if (is_part_start && strncmp(p, "**/", 3) == 0)
            return match_parts(start, p + 3, s, steps);
        if (is_part_start && strcmp(p, "**") == 0)
            return *s != '\0';
        if (*p == '*') {
            while (*p == '*')
                p++;
            return match_star(start, p, s, steps);
        }
        if (!*s)
            return false;
        if (*p == '?' && *s != '/') {
            p++;
            s += char_len(s);
        } else if (*p == '[' && *s != '/' && match_class(p, (unsigned char)*s, &end) && end) {
            p = end;
            s++;
        } else if (end || *p == '?') {
            return false;
        } else {
            p += *p == '\\' && p[1];
            if (*p++ != *s++)
                return false;
        }
    }
    return !*s;
}

bool glob_match(const char *pattern, const char *path)
{
    int steps = MAX_STEPS;
    return match(pattern, pattern, path, &steps);
}

// The end of the brace group that opens at text, or NULL.
static const char *group_end(const char *text)
{
    int depth = 0;
    for (; *text; text++) {
        if (*text == '\\' && text[1])
            text++;
        else if (*text == '{')
            depth++;
        else if (*text == '}' && --depth == 0)
            return text;
    }
    return NULL;
}

static const char *alternative_end(const char *text, const char *end)
{
    int depth = 0;
    for (; text < end; text++) {
        if (*text == '{')
            depth++;
        else if (*text == '}')
            depth--;
        else if (*text == ',' && depth == 0)
            break;
    }
    return text;
}

static bool expand(const char *text, struct glob *glob, int depth)
{
    const char *open = strchr(text, '{'), *close = open ? group_end(open) : NULL;
    if (!close || depth > 8) {
        if (glob->count == GLOB_MAX_ALTERNATIVES)
            return false;
        glob->patterns[glob->count++] = mem_strdup(text);
        return true;
    }
    for (const char *at = open + 1;;) {
        const char *end = alternative_end(at, close);
        char *one = mem_format("%.*s%.*s%s", (int)(open - text), text, (int)(end - at), at, close + 1);
        bool is_good = expand(one, glob, depth + 1);
        free(one);
        if (!is_good)
            return false;
        if (end == close)
            return true;
        at = end + 1;
    }
}

bool glob_compile(const char *text, struct glob *ret)
{
    *ret = (struct glob){.is_negated = *text == '!'};
    text += ret->is_negated;
    if (expand(text, ret, 0))
        return true;
    glob_free(ret);
    return false;
}

bool glob_accepts(const struct glob *glob, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    bool is_match = false;
    for (size_t i = 0; i < glob->count && !is_match; i++) {
        const char *pattern = glob->patterns[i];
        if (strchr(pattern, '/'))
            is_match = glob_match(pattern + (*pattern == '/'), path);
        else
            is_match = glob_match(pattern, name);
    }
    return is_match != glob->is_negated;
}

void glob_free(struct glob *glob)
{
    for (size_t i = 0; i < glob->count; i++)
        free(glob->patterns[i]);
    glob->count = 0;
}
