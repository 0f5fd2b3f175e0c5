// Paths: text → steps.
#include "cli/printers/jsonpath_internal.h"
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX_BYTES 9 // of an index
#define FILTERS_MAX 8

int path_refuse(const struct path_scanner *scanner, struct error *err, const char *why)
{
    CLEANUP_FREE char *text = utf8_to_printable(scanner->text, strlen(scanner->text), false);
    return error_set(err, ERROR_USAGE, "forms: {.a.b}, {.list[0]}, {.list[*].a}, {.list[?(@.a==\"b\")].c}, {range .items[*]}…{end}",
                     "%s at character %zu of %.200s", why, (size_t)(scanner->at - scanner->text) + 1, text);
}

void path_skip_blanks(struct path_scanner *scanner)
{
    while (scanner->at < scanner->end && (*scanner->at == ' ' || *scanner->at == '\t'))
        scanner->at++;
}

static char peek(const struct path_scanner *scanner)
{
    return scanner->at < scanner->end ? *scanner->at : '\0';
}

static bool take(struct path_scanner *scanner, char c)
{
    path_skip_blanks(scanner);
    if (peek(scanner) != c)
        return false;
    scanner->at++;
    return true;
}

// ---- words, texts, numbers ----------------------------------------------------------------------------------------------
static char unescape(char c)
{
    return c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
}

int path_scan_quoted(struct path_scanner *scanner, char **ret, struct error *err)
{
    char quote = *scanner->at++;
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(JSONPATH_MAX_BYTES);
    while (scanner->at < scanner->end && *scanner->at != quote) {
        if (*scanner->at == '\\' && scanner->at + 1 < scanner->end) {
            scanner->at++;
            buffer_append_char(&text, unescape(*scanner->at++));
        } else {
            buffer_append_char(&text, *scanner->at++);
        }
    }
    if (peek(scanner) != quote)
        return path_refuse(scanner, err, "a closing quote is missing");
    scanner->at++;
    *ret = buffer_take_string(&text);
    return 0;
}

static bool is_word_char(char c)
{
    return c && !strchr(" \t.,[]{}()?@'\"=<>!*:|&$", c);
}

// "\." in a word is a dot that belongs to it.
static int scan_word(struct path_scanner *scanner, char **ret, struct error *err)
{
    CLEANUP(buffer_free) struct buffer word = BUFFER_INIT(JSONPATH_MAX_BYTES);
    while (is_word_char(peek(scanner))) {
        if (*scanner->at == '\\' && scanner->at + 1 < scanner->end)
            scanner->at++;
        buffer_append_char(&word, *scanner->at++);
    }
    if (!word.len)
        return path_refuse(scanner, err, "a field's name is missing");
    *ret = buffer_take_string(&word);
    return 0;
}

static int scan_integer(struct path_scanner *scanner, long *ret, struct error *err)
{
    const char *from = scanner->at;
    bool is_negative = take(scanner, '-');
    long value = 0;
    size_t digits = 0;
    for (; peek(scanner) >= '0' && peek(scanner) <= '9' && digits <= NUMBER_MAX_BYTES; digits++)
        value = value * 10 + (*scanner->at++ - '0');
    if (!digits || digits > NUMBER_MAX_BYTES) {
        scanner->at = from;
        return path_refuse(scanner, err, digits ? "the index is too large" : "an index, * or ?( is expected");
    }
    *ret = is_negative ? -value : value;
    return 0;
}

// ---- filters ------------------------------------------------------------------------------------------------------------
static enum path_operator scan_operator(struct path_scanner *scanner)
{
    static const struct {
        const char *text;
        enum path_operator op;
    } operators[] = {{"==", PATH_EQUAL},     {"!=", PATH_NOT_EQUAL}, {"<=", PATH_LESS_EQUAL},
                     {">=", PATH_GREATER_EQUAL}, {"<", PATH_LESS},       {">", PATH_GREATER}};
    path_skip_blanks(scanner);
    for (size_t i = 0; i < ARRAY_LEN(operators); i++) {
        size_t len = strlen(operators[i].text);
        if ((size_t)(scanner->end - scanner->at) >= len && memcmp(scanner->at, operators[i].text, len) == 0) {
            scanner->at += len;
            return operators[i].op;
        }
    }
    return PATH_IS_THERE;
}

static int scan_literal(struct path_scanner *scanner, json_t **ret, struct error *err)
{
    CLEANUP_FREE char *text = NULL;
    path_skip_blanks(scanner);
    if (peek(scanner) == '"' || peek(scanner) == '\'') {
        if (path_scan_quoted(scanner, &text, err) < 0)
            return -1;
        *ret = json_from_text(text);
        return 0;
    }
    const char *from = scanner->at;
    while (peek(scanner) && !strchr(" )]}", peek(scanner)))
        scanner->at++;
    if (json_parse(from, (size_t)(scanner->at - from), ret, NULL) == 0)
        return 0;
    scanner->at = from;
    return path_refuse(scanner, err, "a text in quotes, a number, true or false is expected");
}

static void filter_free(struct path_filter *filter)
{
    if (!filter)
        return;
    json_expression_free(&filter->left);
    json_decref(filter->right);
    free(filter);
}

static void filter_cleanup(struct path_filter **filter)
{
    filter_free(*filter);
}

static int scan_filter(struct path_scanner *scanner, struct path_step *step, struct error *err)
{
    CLEANUP(filter_cleanup) struct path_filter *filter = mem_alloc(sizeof(*filter));
    if (!take(scanner, '('))
        return path_refuse(scanner, err, "a ( is missing");
    if (!take(scanner, '@'))
        return path_refuse(scanner, err, "a filter begins with @");
    if (scanner->depth == FILTERS_MAX)
        return path_refuse(scanner, err, "too many filters stand in each other");
    scanner->depth++;
    if (path_scan(scanner, &filter->left, err) < 0)
        return -1;
    scanner->depth--;
    filter->op = scan_operator(scanner);
    if (filter->op != PATH_IS_THERE && scan_literal(scanner, &filter->right, err) < 0)
        return -1;
    if (!take(scanner, ')'))
        return path_refuse(scanner, err, "a ) is missing");
    step->type = STEP_FILTER;
    step->filter = TAKE_PTR(filter);
    return 0;
}

// ---- steps --------------------------------------------------------------------------------------------------------------
static int scan_slice_step(struct path_scanner *scanner, struct path_step *step, struct error *err)
{
    if (!take(scanner, ':'))
        return 0;
    path_skip_blanks(scanner);
    if (scan_integer(scanner, &step->by, err) < 0)
        return -1;
    return step->by > 0 ? 0 : path_refuse(scanner, err, "the step of a slice is 1 or more");
}

static int scan_slice(struct path_scanner *scanner, struct path_step *step, struct error *err)
{
    step->type = STEP_SLICE;
    path_skip_blanks(scanner);
    bool has_from = peek(scanner) != ':';
    if (has_from && scan_integer(scanner, &step->from, err) < 0)
        return -1;
    if (!take(scanner, ':')) {
        step->is_index = true;
        return 0;
    }
    path_skip_blanks(scanner);
    step->has_to = peek(scanner) != ']' && peek(scanner) != ':' && peek(scanner) != ',';
    if (step->has_to && scan_integer(scanner, &step->to, err) < 0)
        return -1;
    return scan_slice_step(scanner, step, err);
}

static int scan_bracket_part(struct path_scanner *scanner, struct path_step *step, struct error *err)
{
    path_skip_blanks(scanner);
    if (peek(scanner) == '\'' || peek(scanner) == '"') {
        step->is_quoted = true;
        return path_scan_quoted(scanner, &step->name, err); // a FIELD
    }
    if (take(scanner, '*')) {
        step->type = STEP_ALL;
        return 0;
    }
    return take(scanner, '?') ? scan_filter(scanner, step, err) : scan_slice(scanner, step, err);
}

// The first part has been read into the step: it moves into the union.
static int scan_union(struct path_scanner *scanner, struct path_step *step, struct error *err)
{
    struct path_step *first = mem_alloc(sizeof(*first));
    *first = *step;
    *step = (struct path_step){.type = STEP_UNION, .parts = first, .part_count = 1};
    while (take(scanner, ',')) {
        if (step->part_count == JSONPATH_MAX_STEPS)
            return path_refuse(scanner, err, "the brackets hold too much");
        step->parts = mem_realloc_array(step->parts, step->part_count + 1, sizeof(*step->parts));
        step->parts[step->part_count] = (struct path_step){0};
        if (scan_bracket_part(scanner, &step->parts[step->part_count++], err) < 0)
            return -1;
    }
    return 0;
}

static int scan_bracket(struct path_scanner *scanner, struct path_step *step, struct error *err)
{
    if (scan_bracket_part(scanner, step, err) < 0)
        return -1;
    path_skip_blanks(scanner);
    if (peek(scanner) == ',' && scan_union(scanner, step, err) < 0)
        return -1;
    return take(scanner, ']') ? 0 : path_refuse(scanner, err, "a ] is missing");
}

static int scan_dotted(struct path_scanner *scanner, struct path_step *step, struct error *err)
{
    if (peek(scanner) == '*') {
        scanner->at++;
        step->type = STEP_ALL;
        return 0;
    }
    step->type = STEP_FIELD;
    return scan_word(scanner, &step->name, err);
}

// "." alone is the object itself; ".[" is "["; ".." goes down to everything below.
static int scan_step(struct path_scanner *scanner, struct json_expression *to, struct error *err)
{
    struct path_step *step = &to->steps[to->count];
    if (*scanner->at == '[') {
        scanner->at++;
        to->count++;
        return scan_bracket(scanner, step, err);
    }
    scanner->at++;
    if (peek(scanner) == '.') {
        step->type = STEP_BELOW;
        to->count++;
        return 0;
    }
    if (peek(scanner) == '[' || (!is_word_char(peek(scanner)) && peek(scanner) != '*' && !to->count))
        return 0;
    to->count++;
    return scan_dotted(scanner, step, err);
}

static int scan_steps(struct path_scanner *scanner, struct json_expression *to, struct error *err)
{
    while (peek(scanner) == '.' || peek(scanner) == '[') {
        if (to->count == JSONPATH_MAX_STEPS)
            return path_refuse(scanner, err, "the path has too many steps");
        if (scan_step(scanner, to, err) < 0)
            return -1;
    }
    return 0;
}

int path_scan(struct path_scanner *scanner, struct json_expression *ret, struct error *err)
{
    struct json_expression made = {0};
    if (scan_steps(scanner, &made, err) < 0) {
        json_expression_free(&made);
        return -1;
    }
    *ret = made;
    return 0;
}

static void steps_free(struct path_step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(steps[i].name);
        filter_free(steps[i].filter);
        steps_free(steps[i].parts, steps[i].part_count);
        free(steps[i].parts);
    }
}

void json_expression_free(struct json_expression *expression)
{
    steps_free(expression->steps, expression->count);
    *expression = (struct json_expression){0};
}

int json_expression_parse(const char *text, struct json_expression *ret, struct error *err)
{
    size_t len = strlen(text);
    bool has_braces = len >= 2 && text[0] == '{' && text[len - 1] == '}';
    CLEANUP_FREE char *bare = mem_strndup(text + has_braces, len - 2 * (size_t)has_braces);
    const char *from = bare[0] == '$' ? bare + 1 : bare;
    CLEANUP_FREE char *dotted = mem_format("%s%s", *from == '.' || *from == '[' ? "" : ".", from);
    struct path_scanner scanner = {dotted, dotted, dotted + strlen(dotted), 0};
    struct json_expression made = {0};
    if (len > JSONPATH_MAX_BYTES)
        return error_set(err, ERROR_USAGE, "use a shorter one", "a path is longer than %d bytes", JSONPATH_MAX_BYTES);
    if (path_scan(&scanner, &made, err) < 0)
        return -1;
    if (scanner.at == scanner.end) {
        *ret = made;
        return 0;
    }
    json_expression_free(&made);
    return path_refuse(&scanner, err, "the path does not go on like this");
}
