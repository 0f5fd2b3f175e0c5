#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <string.h>

// jansson recurses up to 2048 levels; we stop earlier, before it allocates anything.
static bool is_too_deep(const char *bytes, size_t len)
{
    size_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < len; i++) {
        char c = bytes[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > JSON_MAX_DEPTH)
                return true;
        } else if ((c == ']' || c == '}') && depth) {
            depth--;
        }
    }
    return false;
}

static int parse(const char *bytes, size_t len, size_t flags, json_t **ret, struct error *err)
{
    if (is_too_deep(bytes, len))
        return error_set(err, ERROR_TOO_LARGE, "send a flatter document", "JSON is nested deeper than %d levels",
                         JSON_MAX_DEPTH);
    json_error_t jerr;
    json_t *value = json_loadb(bytes, len, flags | JSON_DECODE_ANY, &jerr);
    if (!value && json_error_code(&jerr) == json_error_duplicate_key)
        return error_set(err, ERROR_INVALID, "give each key once", "an object holds a key twice, at line %d, column %d",
                         jerr.line, jerr.column);
    if (!value)
        return error_set(err, ERROR_INVALID, "send one valid JSON text in UTF-8", "JSON is not valid at line %d, column %d: %s",
                         jerr.line, jerr.column, jerr.text);
    *ret = value;
    return 0;
}

int json_parse(const char *bytes, size_t len, json_t **ret, struct error *err)
{
    return parse(bytes, len, JSON_REJECT_DUPLICATES, ret, err);
}

int json_parse_last_counts(const char *bytes, size_t len, json_t **ret, struct error *err)
{
    return parse(bytes, len, 0, ret, err);
}

int json_parse_with_nul(const char *bytes, size_t len, json_t **ret, struct error *err)
{
    return parse(bytes, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, ret, err);
}

char *json_to_text(const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
    return text ? text : mem_strdup("null");
}

char *json_to_pretty_text(const json_t *value)
{
    char *text = json_dumps(value, JSON_INDENT(2) | JSON_ENCODE_ANY);
    return text ? text : mem_strdup("null");
}

json_t *json_from_bytes(const char *bytes, size_t len)
{
    if (utf8_is_valid(bytes, len))
        return json_stringn_nocheck(bytes, len);
    size_t valid_len;
    CLEANUP_FREE char *valid = utf8_to_valid(bytes, len, &valid_len);
    return json_stringn_nocheck(valid, valid_len);
}

json_t *json_from_text(const char *text)
{
    return text ? json_from_bytes(text, strlen(text)) : json_null();
}

const char *json_get_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

json_int_t json_get_int(const json_t *object, const char *key, json_int_t fallback)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? json_integer_value(value) : fallback;
}

bool json_get_bool(const json_t *object, const char *key, bool fallback)
{
    const json_t *value = json_object_get(object, key);
    return json_is_boolean(value) ? json_is_true(value) : fallback;
}

void json_set_text(json_t *object, const char *key, const char *text)
{
    if (text)
        json_object_set_new(object, key, json_from_text(text));
}
