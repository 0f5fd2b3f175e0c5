// What a file imports, as written. Only what can lead to a file of the workspace is kept.
#include "api/guest/scan.h"
#include "controller/base/cleanup.h"
#include <ctype.h>
#include <string.h>

static bool has_words_before(const char *start, const char *at, const char *const *words, size_t count)
{
    while (at > start && strchr(" \t(", at[-1]))
        at--;
    const char *end = at;
    while (at > start && isalpha((unsigned char)at[-1]))
        at--;
    for (size_t i = 0; i < count; i++)
        if (strlen(words[i]) == (size_t)(end - at) && memcmp(words[i], at, (size_t)(end - at)) == 0)
            return true;
    return false;
}

// A quoted path that begins with a dot, behind from, import or require.
static void scan_script(const struct scan_line *line, struct facts *to)
{
    static const char *const words[] = {"from", "import", "require"};
    const char *end = line->at + line->len;
    for (const char *at = line->at; (at = memchr(at, '.', (size_t)(end - at))); at++) {
        if (at == line->at || !strchr("'\"`", at[-1]) ||
            !has_words_before(line->at, at - 1, words, ARRAY_LEN(words)))
            continue;
        const char *stop = memchr(at, at[-1], (size_t)(end - at));
        if (!stop)
            return;
        facts_add_import(to, at, (size_t)(stop - at));
        at = stop;
    }
}

static const char *after_word(const char *at, const char *end, const char *word)
{
    size_t len = strlen(word);
    at = scan_skip_blanks(at, end);
    return (size_t)(end - at) > len && memcmp(at, word, len) == 0 && (at[len] == ' ' || at[len] == '\t')
               ? scan_skip_blanks(at + len, end)
               : NULL;
}

static void scan_c_include(const struct scan_line *line, struct facts *to)
{
    const char *end = line->at + line->len, *at = scan_skip_blanks(line->at, end);
    if (at == end || *at != '#')
        return;
    at = scan_skip_blanks(at + 1, end);
    if (end - at < 9 || memcmp(at, "include", 7) != 0)
        return;
    at = scan_skip_blanks(at + 7, end);
    const char *stop = at < end && *at == '"' ? memchr(at + 1, '"', (size_t)(end - at - 1)) : NULL;
    if (stop)
        facts_add_import(to, at + 1, (size_t)(stop - at - 1));
}

static const char *python_module_end(const char *at, const char *end)
{
    while (at < end && (isalnum((unsigned char)*at) || *at == '_' || *at == '.'))
        at++;
    return at;
}

// "from .a import b": ".a"; "from . import b, c": ".b", ".c"; "import a.b, c": "a.b", "c".
static void scan_python(const struct scan_line *line, struct facts *to)
{
    const char *end = line->at + line->len, *names = after_word(line->at, end, "import"), *prefix = NULL;
    const char *module = after_word(line->at, end, "from");
    size_t dots = 0;
    if (module) {
        const char *stop = python_module_end(module, end);
        dots = strspn(module, "."); // the line's end or another character stops it
        names = after_word(stop, end, "import");
        if (!names)
            return;
        if (dots < (size_t)(stop - module)) {
            facts_add_import(to, module, (size_t)(stop - module));
            return;
        }
        prefix = module;
    }
    for (int i = 0; names && names < end && i < 32; i++) {
        const char *stop = python_module_end(names, end);
        char text[FACTS_MAX_IMPORT];
        size_t len = (size_t)(stop - names);
        if (len && dots + len < sizeof(text)) {
            memcpy(text, prefix ? prefix : "", dots);
            memcpy(text + dots, names, len);
            facts_add_import(to, text, dots + len);
        }
        const char *comma = memchr(stop, ',', (size_t)(end - stop));
        names = comma ? scan_skip_blanks(comma + 1, end) : NULL;
    }
}

static void scan_rust(const struct scan_line *line, struct facts *to)
{
    const char *end = line->at + line->len, *at = after_word(line->at, end, "pub");
    at = after_word(at ? at : line->at, end, "mod");
    size_t len = at ? scan_word_len(at, end) : 0;
    const char *rest = at ? scan_skip_blanks(at + len, end) : NULL;
    if (len && rest < end && *rest == ';')
        facts_add_import(to, at, len);
}

static void scan_shell(const struct scan_line *line, struct facts *to)
{
    const char *end = line->at + line->len, *at = after_word(line->at, end, ".");
    if (!at)
        at = after_word(line->at, end, "source");
    if (!at || at == end)
        return;
    bool is_quoted = *at == '"' || *at == '\'';
    const char *stop = at + is_quoted;
    while (stop < end && (is_quoted ? *stop != *at : !strchr(" \t;&|", *stop)))
        stop++;
    size_t len = (size_t)(stop - at) - is_quoted;
    if (!memchr(at, '$', (size_t)(stop - at)))
        facts_add_import(to, at + is_quoted, len);
}

void scan_import_line(enum language language, const struct scan_line *line, struct facts *to)
{
    static void (*const scanners[LANGUAGE_COUNT])(const struct scan_line *line, struct facts *to) = {
        [LANGUAGE_JAVASCRIPT] = scan_script, [LANGUAGE_TYPESCRIPT] = scan_script,
        [LANGUAGE_C] = scan_c_include,       [LANGUAGE_CPP] = scan_c_include,
        [LANGUAGE_PYTHON] = scan_python,     [LANGUAGE_RUST] = scan_rust,
        [LANGUAGE_SHELL] = scan_shell,
    };
    if (scanners[language])
        scanners[language](line, to);
}
