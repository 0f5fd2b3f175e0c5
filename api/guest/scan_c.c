// Function definitions of C and C++: they begin at the left edge, and a "{" follows their parameters.
#include "api/guest/scan.h"
#include "controller/base/cleanup.h"
#include <ctype.h>
#include <string.h>

#define MAX_PENDING_LINES 16 // parameters of one function

static bool is_word(const char *word, size_t len, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(words[i]) == len && memcmp(words[i], word, len) == 0)
            return true;
    return false;
}

// No function is called so, and no definition begins so.
static bool is_keyword(const char *word, size_t len)
{
    static const char *const words[] = {"if",      "for",   "while", "switch", "return",  "sizeof",
                                        "else",    "do",    "case",  "goto",   "typedef", "using",
                                        "defined", "catch", "new",   "delete", "throw"};
    return is_word(word, len, words, ARRAY_LEN(words));
}

static bool is_attribute(const char *word, size_t len)
{
    static const char *const words[] = {"__attribute__", "__declspec", "_Alignas", "alignas", "__asm__"};
    return is_word(word, len, words, ARRAY_LEN(words));
}

static const char *word_before(const char *start, const char *at, size_t *ret_len)
{
    while (at > start && (at[-1] == ' ' || at[-1] == '\t'))
        at--;
    const char *end = at;
    while (at > start && (isalnum((unsigned char)at[-1]) || at[-1] == '_' || (unsigned char)at[-1] >= 0x80))
        at--;
    *ret_len = (size_t)(end - at);
    return at;
}

static const char *close_of(const char *at, const char *end)
{
    int depth = 0;
    for (; at < end; at++) {
        depth += (*at == '(') - (*at == ')');
        if (!depth)
            return at + 1;
    }
    return end;
}

// The name before the parameters, or NULL. *ret_rest is what stands from there on.
static const char *function_name(const struct scan_line *line, bool is_after_type, size_t *ret_len,
                                 const char **ret_rest)
{
    const char *start = line->at, *end = start + line->len, *from = start;
    if (!isalpha((unsigned char)*start) && *start != '_')
        return NULL;
    if (is_keyword(start, scan_word_len(start, end)))
        return NULL;
    for (const char *paren; (paren = memchr(from, '(', (size_t)(end - from))); from = close_of(paren, end)) {
        const char *name = word_before(start, paren, ret_len);
        if (*ret_len && is_attribute(name, *ret_len))
            continue;
        bool is_alone = name == start && !is_after_type; // a macro, or a call
        if (!*ret_len || is_alone || isdigit((unsigned char)*name) || is_keyword(name, *ret_len) ||
            memchr(start, '=', (size_t)(name - start)))
            return NULL;
        *ret_rest = paren;
        return name;
    }
    return NULL;
}

static char last_char(const char *at, const char *end)
{
    while (end > at && isspace((unsigned char)end[-1]))
        end--;
    return end > at ? end[-1] : '\0';
}

static void add(const struct scan_c *pending, struct facts *to)
{
    facts_add_symbol(to, SYMBOL_FUNCTION, pending->name, pending->name_len, pending->number, false);
}

// True if the line belongs to the pending function.
static bool go_on(struct scan_c *pending, const struct scan_line *line, struct facts *to)
{
    const char *end = line->at + line->len;
    bool is_indented = *line->at == ' ' || *line->at == '\t';
    if (*line->at == '{' || (is_indented && last_char(line->at, end) == '{')) {
        add(pending, to);
        pending->name = NULL;
        return true;
    }
    if (!is_indented || last_char(line->at, end) == ';' || ++pending->lines > MAX_PENDING_LINES)
        pending->name = NULL;
    return is_indented;
}

static bool is_type_only(const struct scan_line *line)
{
    const char *end = line->at + line->len;
    for (const char *at = line->at; at < end; at++)
        if (!isalnum((unsigned char)*at) && !strchr("_ *\t:<>", *at))
            return false;
    return isalpha((unsigned char)*line->at) || *line->at == '_';
}

static struct scan_line without_comment(const struct scan_line *line)
{
    const char *comment = memmem(line->at, line->len, "//", 2);
    struct scan_line code = *line;
    if (comment)
        code.len = (size_t)(comment - line->at);
    return code;
}

void scan_c_line(struct scan_c *pending, const struct scan_line *whole, struct facts *to)
{
    const struct scan_line code = without_comment(whole), *line = &code;
    if (!line->len)
        return;
    if (pending->name && go_on(pending, line, to))
        return;
    const char *rest, *end = line->at + line->len;
    size_t len;
    const char *name = function_name(line, pending->is_after_type, &len, &rest);
    *pending = (struct scan_c){.is_after_type = is_type_only(line)};
    if (!name)
        return;
    struct scan_c found = {.name = name, .name_len = len, .number = line->number};
    if (memchr(rest, '{', (size_t)(end - rest)))
        add(&found, to);
    else if (last_char(rest, end) != ';')
        *pending = found;
}
