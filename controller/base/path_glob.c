#include "controller/base/path_glob.h"
#include "controller/base/utf8.h"
#include <stdint.h>
#include <string.h>

struct span { // one component
    const char *at;
    size_t len;
};

// The component behind the slash at `from`; its end is a slash or the text's.
static struct span span_at(const char *from)
{
    return (struct span){from + 1, strcspn(from + 1, "/")};
}

static const char *span_end(struct span span)
{
    return span.at + span.len;
}

static bool is_deep(struct span span)
{
    return span.len == 2 && memcmp(span.at, "**", 2) == 0;
}

// ---- checking -----------------------------------------------------------------------------------------------------------
static const char *check_span(struct span span)
{
    if (!span.len)
        return "must not contain an empty component, nor end with '/'";
    if ((span.len == 1 && span.at[0] == '.') || (span.len == 2 && memcmp(span.at, "..", 2) == 0))
        return "must not contain '.' or '..' components";
    if (!is_deep(span) && memmem(span.at, span.len, "**", 2))
        return "'**' must be a whole component, like in /a/**/b";
    return NULL;
}

static const char *check_characters(const char *glob)
{
    for (const unsigned char *c = (const unsigned char *)glob; *c; c++)
        if (*c < 0x20 || *c == 0x7f)
            return "must not contain control characters";
    return strpbrk(glob, "[]{}\\") ? "must not contain '[', ']', '{', '}' or '\\': write a glob for each case, and '?' for such a character" : NULL;
}

const char *path_glob_check(const char *glob)
{
    if (glob[0] != '/')
        return "must be an absolute path";
    if (strlen(glob) > PATH_GLOB_MAX_BYTES)
        return "must be no more than 1024 bytes";
    const char *wrong = check_characters(glob);
    for (const char *at = glob; *at == '/' && !wrong; at = span_end(span_at(at)))
        wrong = check_span(span_at(at));
    return wrong;
}

size_t path_glob_fixed_len(const char *glob)
{
    const char *at = glob;
    while (*at == '/') {
        struct span span = span_at(at);
        if (memchr(span.at, '*', span.len) || memchr(span.at, '?', span.len))
            break;
        at = span_end(span);
    }
    return (size_t)(at - glob);
}

// ---- matching -----------------------------------------------------------------------------------------------------------
static size_t character_len(const char *at, size_t len)
{
    size_t bad, good = utf8_char_len(at, len, &bad);
    return good ? good : bad;
}

// The last * takes one character more each time the rest does not fit: an earlier one never has to.
static bool matches_span(struct span glob, struct span name)
{
    size_t g = 0, n = 0, star = SIZE_MAX, retry = 0;
    while (n < name.len) {
        if (g < glob.len && glob.at[g] == '*') {
            star = g++;
            retry = n;
        } else if (g < glob.len && glob.at[g] == '?') {
            g++;
            n += character_len(name.at + n, name.len - n);
        } else if (g < glob.len && glob.at[g] == name.at[n]) {
            g++;
            n++;
        } else if (star != SIZE_MAX) {
            g = star + 1;
            n = retry += character_len(name.at + retry, name.len - retry);
        } else {
            return false;
        }
    }
    while (g < glob.len && glob.at[g] == '*')
        g++;
    return g == glob.len;
}

// The same one level up: components are the characters, ** is the star.
bool path_glob_matches(const char *glob, const char *path)
{
    const char *g = glob, *p = path, *deep = NULL, *retry = NULL;
    while (*p == '/') {
        bool is_more = *g == '/';
        if (is_more && is_deep(span_at(g))) {
            deep = g = span_end(span_at(g));
            if (!*g)
                return true; // all that is left, which is something
            retry = p;
        } else if (is_more && matches_span(span_at(g), span_at(p))) {
            g = span_end(span_at(g));
            p = span_end(span_at(p));
        } else if (deep) {
            g = deep;
            p = retry = span_end(span_at(retry));
        } else {
            return false;
        }
    }
    return !*g && !*p;
}
