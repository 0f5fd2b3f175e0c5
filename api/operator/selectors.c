#include "api/operator/selectors.h"
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/record.h"
#include "controller/record_names.h"
#include <errno.h>
#include <string.h>

void selector_clear(struct selector *selector)
{
    for (size_t i = 0; i < selector->count; i++) {
        free(selector->terms[i].key);
        text_list_clear(&selector->terms[i].values);
    }
    free(selector->terms);
    *selector = (struct selector){0};
}

static struct selector_term *add_term(struct selector *selector, char *key, enum selector_operator op)
{
    selector->terms = mem_realloc_array(selector->terms, selector->count + 1, sizeof(*selector->terms));
    struct selector_term *term = &selector->terms[selector->count++];
    *term = (struct selector_term){.key = key, .op = op};
    return term;
}

// ---- reading
// --------------------------------------------------------------------------------------------------------
static void skip_blanks(const char **at)
{
    *at += strspn(*at, " \t");
}

static char *take_word(const char **at)
{
    skip_blanks(at);
    size_t len = strcspn(*at, " \t,=!()<>");
    char *word = mem_strndup(*at, len);
    *at += len;
    skip_blanks(at);
    return word;
}

static int word_wrong(const char *text, const char *at, const char *what, struct error *err)
{
    return error_set(err, ERROR_USAGE, "write it like: app=web,tier!=test,env in (dev,stage),owner,!legacy",
                     "labelSelector '%.100s': %s at '%.40s'", text, what, at);
}

static int check_key(const char *text, const char *key, struct error *err)
{
    if (name_is_qualified(key))
        return 0;
    return error_set(err, ERROR_USAGE, "write it like: app=web,tier!=test,env in (dev,stage),owner,!legacy",
                     "labelSelector '%.100s': '%.64s' is not a label's key", text, key);
}

static int take_values(const char *text, const char **at, struct selector_term *term, struct error *err)
{
    skip_blanks(at);
    if (*(*at) != '(')
        return word_wrong(text, *at, "'(' is missing", err);
    do {
        ++*at;
        CLEANUP_FREE char *value = take_word(at);
        text_list_add(&term->values, value);
    } while (**at == ',');
    if (**at != ')')
        return word_wrong(text, *at, "')' is missing", err);
    ++*at;
    skip_blanks(at);
    return 0;
}

static bool is_number(const char *text)
{
    char *end;
    errno = 0;
    strtoll(text, &end, 10);
    return *text && !*end && !errno;
}

static int take_bound(const char *text, const char **at, struct selector_term *term, struct error *err)
{
    term->op = *(*at)++ == '>' ? SELECTOR_GREATER : SELECTOR_LESS;
    const char *start = *at;
    CLEANUP_FREE char *value = take_word(at);
    text_list_add(&term->values, value);
    return is_number(value) ? 0 : word_wrong(text, start, "a whole number is expected", err);
}

// What follows a key: "=", "==", "!=", "<", ">", "in (…)", "notin (…)" or nothing.
static int take_operator(const char *text, const char **at, struct selector_term *term, struct error *err)
{
    if (**at == '=' || (**at == '!' && (*at)[1] == '=')) {
        term->op = **at == '!' ? SELECTOR_NOT_IN : SELECTOR_IN;
        *at += **at == '!' || (*at)[1] == '=' ? 2 : 1;
        CLEANUP_FREE char *value = take_word(at);
        text_list_add(&term->values, value);
        return 0;
    }
    if (**at == '<' || **at == '>')
        return take_bound(text, at, term, err);
    if (**at == ',' || !**at)
        return 0;
    const char *start = *at;
    CLEANUP_FREE char *word = take_word(at);
    if (strcmp(word, "in") != 0 && strcmp(word, "notin") != 0)
        return word_wrong(text, start, "an operator is expected", err);
    term->op = strcmp(word, "in") == 0 ? SELECTOR_IN : SELECTOR_NOT_IN;
    return take_values(text, at, term, err);
}

static int take_label_term(const char *text, const char **at, struct selector *selector, struct error *err)
{
    skip_blanks(at);
    bool is_absent = **at == '!';
    *at += is_absent;
    struct selector_term *term =
        add_term(selector, take_word(at), is_absent ? SELECTOR_ABSENT : SELECTOR_EXISTS);
    if (check_key(text, term->key, err) < 0 || (!is_absent && take_operator(text, at, term, err) < 0))
        return -1;
    bool is_bound = term->op == SELECTOR_GREATER || term->op == SELECTOR_LESS;
    for (size_t i = 0; i < term->values.count && !is_bound; i++)
        if (!name_is_label_value(term->values.items[i]))
            return word_wrong(text, term->values.items[i], "not a label's value", err);
    return 0;
}

static int check_size(const char *name, const char *text, size_t count, struct error *err)
{
    if (count <= SELECTOR_MAX_TERMS && strlen(text) <= SELECTOR_MAX_BYTES)
        return 0;
    return error_set(err, ERROR_USAGE, "ask for less at once", "%s has more than %d terms or %d bytes", name,
                     SELECTOR_MAX_TERMS, SELECTOR_MAX_BYTES);
}

static int parse_labels(const char *text, struct selector *selector, struct error *err)
{
    const char *at = text;
    skip_blanks(&at);
    while (*at) {
        if (check_size("labelSelector", text, selector->count + 1, err) < 0 ||
            take_label_term(text, &at, selector, err) < 0)
            return -1;
        if (!*at)
            return 0;
        if (*at != ',')
            return word_wrong(text, at, "',' is expected", err);
        at++;
        skip_blanks(&at);
        if (!*at)
            return word_wrong(text, at, "a term is missing", err);
    }
    return 0;
}

int selector_parse_labels(const char *text, struct selector *ret, struct error *err)
{
    CLEANUP(selector_clear) struct selector selector = {0};
    if (parse_labels(text ? text : "", &selector, err) < 0)
        return -1;
    *ret = selector;
    selector = (struct selector){0};
    return 0;
}

static int word_fields(const char *given, const char *const *fields, struct error *err)
{
    CLEANUP(buffer_free) struct buffer known = BUFFER_INIT(400);
    for (size_t i = 0; fields[i]; i++)
        buffer_format(&known, "%s%s", i ? ", " : "", fields[i]);
    error_set(err, ERROR_USAGE, NULL, "fieldSelector: '%.100s' cannot be selected by", given);
    return error_hint(err, "use FIELD=VALUE or FIELD!=VALUE with one of: %s", buffer_text(&known));
}

static int take_field_term(const char *text, size_t len, const char *const *fields, struct selector *selector,
                           struct error *err)
{
    CLEANUP_FREE char *term_text = mem_strndup(text, len);
    size_t key_len = strcspn(term_text, "=!");
    bool is_not = term_text[key_len] == '!';
    const char *value = term_text + key_len + is_not;
    if (*value != '=')
        return word_fields(term_text, fields, err);
    value += value[1] == '=' && !is_not ? 2 : 1;
    CLEANUP_FREE char *key = mem_strndup(term_text, key_len);
    for (size_t i = 0; fields[i]; i++)
        if (strcmp(fields[i], key) == 0) {
            struct selector_term *term =
                add_term(selector, TAKE_PTR(key), is_not ? SELECTOR_NOT_IN : SELECTOR_IN);
            text_list_add(&term->values, value);
            return 0;
        }
    return word_fields(key, fields, err);
}

int selector_parse_fields(const char *text, const char *const *fields, struct selector *ret,
                          struct error *err)
{
    CLEANUP(selector_clear) struct selector selector = {0};
    for (const char *at = text ? text : ""; *at; at += *at == ',') {
        size_t len = strcspn(at, ",");
        if (check_size("fieldSelector", text, selector.count + 1, err) < 0 ||
            take_field_term(at, len, fields, &selector, err) < 0)
            return -1;
        at += len;
    }
    *ret = selector;
    selector = (struct selector){0};
    return 0;
}

// ---- asking
// ---------------------------------------------------------------------------------------------------------
static bool is_beyond(const char *value, const char *bound, bool is_greater)
{
    if (!value || !is_number(value))
        return false;
    long long a = strtoll(value, NULL, 10), b = strtoll(bound, NULL, 10);
    return is_greater ? a > b : a < b;
}

static bool fits_term(const struct selector_term *term, const char *value)
{
    switch (term->op) {
    case SELECTOR_EXISTS:
        return value != NULL;
    case SELECTOR_ABSENT:
        return value == NULL;
    case SELECTOR_IN:
        return value && text_list_has(&term->values, value);
    case SELECTOR_NOT_IN:
        return !value || !text_list_has(&term->values, value);
    case SELECTOR_GREATER:
    case SELECTOR_LESS:
        return is_beyond(value, term->values.items[0], term->op == SELECTOR_GREATER);
    }
    return false;
}

bool selector_fits(const struct selector *selector, const char *(*get)(const void *arg, const char *key),
                   const void *arg)
{
    for (size_t i = 0; i < selector->count; i++)
        if (!fits_term(&selector->terms[i], get(arg, selector->terms[i].key)))
            return false;
    return true;
}

static const char *get_label(const void *labels, const char *key)
{
    return text_map_get(labels, key);
}

bool selector_fits_labels(const struct selector *selector, const struct text_map *labels)
{
    return selector_fits(selector, get_label, labels);
}

const char *selector_wanted(const struct selector *selector, const char *field)
{
    for (size_t i = 0; i < selector->count; i++) {
        const struct selector_term *term = &selector->terms[i];
        if (term->op == SELECTOR_IN && strcmp(term->key, field) == 0)
            return term->values.items[0];
    }
    return NULL;
}
