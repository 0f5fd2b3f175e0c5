// The YAML 1.2 core schema: null, booleans, integers, floats; everything else is a string. `yes`, `on`,
// `1:30` and dates are strings.
#include "controller/yaml/yaml.h"
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_one_of(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(text, words[i]) == 0)
            return true;
    return false;
}

#define IS_ONE_OF(text, ...)                                                                                 \
    is_one_of(text, (const char *const[]){__VA_ARGS__}, ARRAY_LEN(((const char *const[]){__VA_ARGS__})))

static const char *skip_sign(const char *text)
{
    return *text == '-' || *text == '+' ? text + 1 : text;
}

// The base of an integer, 0 if it is none.
static int integer_base(const char *text)
{
    const char *digits = skip_sign(text);
    if (*digits && strspn(digits, "0123456789") == strlen(digits))
        return 10;
    if (strncmp(text, "0o", 2) == 0 && text[2] && strspn(text + 2, "01234567") == strlen(text + 2))
        return 8;
    if (strncmp(text, "0x", 2) == 0 && text[2] &&
        strspn(text + 2, "0123456789abcdefABCDEF") == strlen(text + 2))
        return 16;
    return 0;
}

// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
static bool is_float(const char *text)
{
    const char *p = skip_sign(text);
    size_t whole = strspn(p, "0123456789"), fraction = 0;
    p += whole;
    if (*p == '.') {
        fraction = strspn(p + 1, "0123456789");
        p += 1 + fraction;
    }
    if (!whole && !fraction)
        return false;
    if (*p == 'e' || *p == 'E') {
        p = skip_sign(p + 1);
        size_t digits = strspn(p, "0123456789");
        if (!digits)
            return false;
        p += digits;
    }
    return !*p;
}

static int resolve_integer(const char *text, int base, json_t **ret, const char **ret_wrong)
{
    errno = 0;
    long long value = strtoll(base == 10 ? text : text + 2, NULL, base);
    if (errno == ERANGE) {
        *ret_wrong = "the integer is too large; put it in quotes if it is text";
        return -1;
    }
    *ret = json_integer(value);
    return 0;
}

static int resolve_float(const char *text, json_t **ret, const char **ret_wrong)
{
    double value = strtod(text, NULL);
    if (!isfinite(value)) {
        *ret_wrong = "the number is too large; put it in quotes if it is text";
        return -1;
    }
    *ret = json_real(value);
    return 0;
}

static bool is_not_finite(const char *text)
{
    const char *p = skip_sign(text);
    return IS_ONE_OF(p, ".inf", ".Inf", ".INF") || IS_ONE_OF(text, ".nan", ".NaN", ".NAN");
}

int yaml_resolve_plain(const char *text, json_t **ret, const char **ret_wrong)
{
    int base = integer_base(text);
    if (base)
        return resolve_integer(text, base, ret, ret_wrong);
    if (is_float(text))
        return resolve_float(text, ret, ret_wrong);
    if (is_not_finite(text)) {
        *ret_wrong = "infinite numbers and NaN are not allowed; put it in quotes if it is text";
        return -1;
    }
    if (IS_ONE_OF(text, "", "~", "null", "Null", "NULL"))
        *ret = json_null();
    else if (IS_ONE_OF(text, "true", "True", "TRUE"))
        *ret = json_true();
    else if (IS_ONE_OF(text, "false", "False", "FALSE"))
        *ret = json_false();
    else
        *ret = json_string(text);
    return 0;
}

// ---- tags -----------------------------------------------------------------------------------------------------------
#define CORE "tag:yaml.org,2002:"

static bool is_core(const char *tag, const char *name)
{
    return strncmp(tag, CORE, strlen(CORE)) == 0 && strcmp(tag + strlen(CORE), name) == 0;
}

bool yaml_is_tag_of(const char *tag, bool is_list)
{
    return !tag || strcmp(tag, "!") == 0 || is_core(tag, is_list ? "seq" : "map");
}

static bool is_any_number(const json_t *value)
{
    return json_is_number(value);
}
static bool is_integer(const json_t *value)
{
    return json_is_integer(value);
}
static bool is_boolean(const json_t *value)
{
    return json_is_boolean(value);
}
static bool is_null(const json_t *value)
{
    return json_is_null(value);
}

static int resolve_tagged(const char *text, const char *tag, json_t **ret, const char **ret_wrong)
{
    static const struct {
        const char *name;
        bool (*fits)(const json_t *value);
        const char *wrong;
    } tags[] = {
        {"int", is_integer, "is tagged !!int and is no whole number"},
        {"float", is_any_number, "is tagged !!float and is no number"},
        {"bool", is_boolean, "is tagged !!bool and is neither true nor false"},
        {"null", is_null, "is tagged !!null and is not null"},
    };
    CLEANUP_JSON json_t *value = NULL;
    *ret_wrong = "has a tag that is not allowed";
    for (size_t i = 0; i < ARRAY_LEN(tags); i++) {
        if (!is_core(tag, tags[i].name))
            continue;
        if (yaml_resolve_plain(text, &value, ret_wrong) < 0)
            return -1;
        *ret_wrong = tags[i].wrong;
        if (!tags[i].fits(value))
            return -1;
        *ret = json_is_integer(value) && tags[i].fits == is_any_number ? json_real((double)json_integer_value(value)) : TAKE_PTR(value);
        return 0;
    }
    return -1;
}

int yaml_resolve_scalar(const char *text, size_t len, bool is_plain, const char *tag, json_t **ret, const char **ret_wrong)
{
    if (tag && strcmp(tag, "!") != 0 && !is_core(tag, "str"))
        return resolve_tagged(text, tag, ret, ret_wrong);
    if (is_plain && !tag)
        return yaml_resolve_plain(text, ret, ret_wrong);
    *ret = json_stringn(text, len);
    return 0;
}
