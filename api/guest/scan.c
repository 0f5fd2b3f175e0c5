#include "api/guest/scan.h"
#include "controller/base/cleanup.h"
#include <ctype.h>
#include <string.h>

struct rule {
    const char *word;
    enum symbol_kind kind;
    const char *follow; // what may stand behind the name; '\n' is the line's end; NULL: anything
    bool is_at_edge;    // at the left edge only
};

struct grammar {
    enum language language;
    const char *modifiers; // between blanks
    const struct rule *rules;
};

static const struct rule script_rules[] = {{"function", SYMBOL_FUNCTION, "(<", false},
                                           {"class", SYMBOL_CLASS, "{<ei\n", false},
                                           {"interface", SYMBOL_INTERFACE, "{<e\n", false},
                                           {"enum", SYMBOL_ENUM, "{\n", false},
                                           {"type", SYMBOL_TYPE, "=<", false},
                                           {"const", SYMBOL_VARIABLE, "=:;,\n", true},
                                           {"let", SYMBOL_VARIABLE, "=:;,\n", true},
                                           {"var", SYMBOL_VARIABLE, "=:;,\n", true},
                                           {NULL}};
static const struct rule python_rules[] = {
    {"def", SYMBOL_FUNCTION, "([", false}, {"class", SYMBOL_CLASS, ":([", false}, {NULL}};
static const struct rule go_rules[] = {
    {"func", SYMBOL_FUNCTION, "([", false}, {"type", SYMBOL_TYPE, NULL, false}, {NULL}};
static const struct rule rust_rules[] = {{"fn", SYMBOL_FUNCTION, "(<", false},
                                         {"struct", SYMBOL_STRUCT, "{(;<w\n", false},
                                         {"enum", SYMBOL_ENUM, "{<w\n", false},
                                         {"trait", SYMBOL_TRAIT, "{<:w\n", false},
                                         {NULL}};
static const struct rule swift_rules[] = {
    {"func", SYMBOL_FUNCTION, "(<", false},       {"class", SYMBOL_CLASS, "{<:\n", false},
    {"struct", SYMBOL_STRUCT, "{<:\n", false},    {"enum", SYMBOL_ENUM, "{<:\n", false},
    {"protocol", SYMBOL_PROTOCOL, "{:\n", false}, {NULL}};
static const struct rule java_rules[] = {
    {"class", SYMBOL_CLASS, "{<:ei\n", false}, {"interface", SYMBOL_INTERFACE, "{<:e\n", false},
    {"enum", SYMBOL_ENUM, "{:i\n", false},     {"struct", SYMBOL_STRUCT, "{<:\n", false},
    {"record", SYMBOL_CLASS, "(<", false},     {NULL}};
static const struct rule c_rules[] = {
    {"struct", SYMBOL_STRUCT, "{\n", true}, {"enum", SYMBOL_ENUM, "{\n", true}, {NULL}};
static const struct rule cpp_rules[] = {{"class", SYMBOL_CLASS, "{:\n", false},
                                        {"struct", SYMBOL_STRUCT, "{:\n", false},
                                        {"enum", SYMBOL_ENUM, "{:\n", false},
                                        {NULL}};
static const struct rule shell_rules[] = {{"function", SYMBOL_FUNCTION, "({\n", false}, {NULL}};

static const struct grammar grammars[] = {
    {LANGUAGE_JAVASCRIPT, " export default async declare abstract ", script_rules},
    {LANGUAGE_TYPESCRIPT, " export default async declare abstract ", script_rules},
    {LANGUAGE_PYTHON, " async ", python_rules},
    {LANGUAGE_GO, " ", go_rules},
    {LANGUAGE_RUST, " pub async unsafe const extern default ", rust_rules},
    {LANGUAGE_SWIFT, " public private internal open fileprivate static final override indirect mutating ",
     swift_rules},
    {LANGUAGE_JAVA, " public private protected static final abstract sealed strictfp ", java_rules},
    {LANGUAGE_CSHARP,
     " public private protected internal static sealed abstract partial readonly ref unsafe new ",
     java_rules},
    {LANGUAGE_C, " typedef static ", c_rules},
    {LANGUAGE_CPP, " typedef static ", cpp_rules},
    {LANGUAGE_SHELL, " ", shell_rules},
};

const char *scan_skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    return at;
}

size_t scan_word_len(const char *at, const char *end)
{
    const char *start = at;
    if (at < end && isdigit((unsigned char)*at))
        return 0;
    while (at < end &&
           (isalnum((unsigned char)*at) || *at == '_' || *at == '$' || (unsigned char)*at >= 0x80))
        at++;
    return (size_t)(at - start);
}

static bool is_modifier(const struct grammar *grammar, const char *word, size_t len)
{
    const char *at = grammar->modifiers;
    while ((at = memmem(at, strlen(at), word, len))) {
        if (at[-1] == ' ' && at[len] == ' ') // modifiers begin and end with a blank, and no word does
            return true;
        at += len;
    }
    return false;
}

static const struct rule *find_rule(const struct grammar *grammar, const char *word, size_t len)
{
    for (const struct rule *rule = grammar->rules; rule->word; rule++)
        if (strlen(rule->word) == len && memcmp(rule->word, word, len) == 0)
            return rule;
    return NULL;
}

static const char *skip_group(const char *at, const char *end, char close)
{
    const char *stop = memchr(at, close, (size_t)(end - at));
    return stop ? stop + 1 : end;
}

// What may stand between words: pub(crate), extern "C", function*, func (receiver).
static const char *skip_between(const struct grammar *grammar, const char *at, const char *end)
{
    at = scan_skip_blanks(at, end);
    bool has_groups = grammar->language == LANGUAGE_RUST || grammar->language == LANGUAGE_GO;
    if (at < end && *at == '(' && has_groups)
        at = skip_group(at, end, ')');
    else if (at < end && *at == '"' && grammar->language == LANGUAGE_RUST)
        at = skip_group(at + 1, end, '"');
    else if (at < end && *at == '*' && grammar->rules == script_rules)
        at++;
    return scan_skip_blanks(at, end);
}

static bool may_follow(const struct rule *rule, const char *at, const char *end)
{
    at = scan_skip_blanks(at, end);
    return !rule->follow || strchr(rule->follow, at < end && *at ? *at : '\n');
}

static void scan_declaration(const struct grammar *grammar, const struct scan_line *line, struct facts *to)
{
    const char *end = line->at + line->len, *at = scan_skip_blanks(line->at, end);
    bool is_at_edge = at == line->at;
    const struct rule *rule = NULL;
    for (;;) {
        size_t len = scan_word_len(at, end);
        const struct rule *found = len ? find_rule(grammar, at, len) : NULL;
        if (found)
            rule = found; // "const enum", "class func", "enum class": the last one decides
        else if (!len || rule || !is_modifier(grammar, at, len))
            break;
        at = skip_between(grammar, at + len, end);
    }
    size_t len = scan_word_len(at, end);
    if (rule && len && (is_at_edge || !rule->is_at_edge) && may_follow(rule, at + len, end))
        facts_add_symbol(to, rule->kind, at, len, line->number, facts_is_exported(line->at, line->len));
}

static void scan_shell_function(const struct scan_line *line, struct facts *to)
{
    const char *end = line->at + line->len, *name = scan_skip_blanks(line->at, end), *at = name;
    while (at < end && (isalnum((unsigned char)*at) || strchr("_-:.", *at)))
        at++;
    const char *paren = scan_skip_blanks(at, end);
    if (at == name || end - paren < 2 || paren[0] != '(' || *scan_skip_blanks(paren + 1, end - 1) != ')')
        return;
    const char *rest = scan_skip_blanks(skip_group(paren, end, ')'), end);
    if (rest == end || *rest == '{' || *rest == '(' || *rest == '#')
        facts_add_symbol(to, SYMBOL_FUNCTION, name, (size_t)(at - name), line->number, false);
}

// Comments of several lines, for the languages that have /* */.
static bool is_in_comment(bool *in_comment, const struct scan_line *line)
{
    const char *end = line->at + line->len, *at = scan_skip_blanks(line->at, end);
    if (!*in_comment && (end - at < 2 || at[0] != '/' || at[1] != '*'))
        return false;
    const char *from = *in_comment ? at : at + 2;
    *in_comment = !memmem(from, (size_t)(end - from), "*/", 2);
    return true;
}

static void scan_line(const struct grammar *grammar, struct scan_c *pending, const struct scan_line *line,
                      struct facts *to)
{
    scan_import_line(grammar->language, line, to);
    scan_declaration(grammar, line, to);
    if (grammar->language == LANGUAGE_C || grammar->language == LANGUAGE_CPP)
        scan_c_line(pending, line, to);
    else if (grammar->language == LANGUAGE_SHELL)
        scan_shell_function(line, to);
}

void scan_source(enum language language, const char *text, size_t len, struct facts *to)
{
    const struct grammar *grammar = NULL;
    for (size_t i = 0; i < ARRAY_LEN(grammars); i++)
        if (grammars[i].language == language)
            grammar = &grammars[i];
    bool has_comments = language != LANGUAGE_PYTHON && language != LANGUAGE_SHELL, in_comment = false;
    struct scan_c pending = {0};
    const char *end = text + len;
    for (size_t number = 1; grammar && text < end; number++) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t line_len = (size_t)((stop ? stop : end) - text);
        struct scan_line line = {text, line_len < SCAN_MAX_LINE ? line_len : SCAN_MAX_LINE, number};
        if (line.len && line.at[line.len - 1] == '\r')
            line.len--;
        if (line.len && (!has_comments || !is_in_comment(&in_comment, &line)))
            scan_line(grammar, &pending, &line, to);
        text = stop ? stop + 1 : end;
    }
}
