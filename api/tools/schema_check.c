#include "api/tools/schema_check.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include <string.h>

// Where in the value: "arguments" at the top, "sandbox.id" below.
static const char *shown(const char *path)
{
    return *path ? path : "arguments";
}

static bool has_type(const json_t *value, const char *type)
{
    static const struct {
        const char *word;
        json_type type;
    } table[] = {{"object", JSON_OBJECT},   {"array", JSON_ARRAY}, {"string", JSON_STRING},
                 {"integer", JSON_INTEGER}, {"null", JSON_NULL},   {"number", JSON_REAL}};
    if (strcmp(type, "boolean") == 0)
        return json_is_boolean(value);
    if (strcmp(type, "number") == 0 && json_is_integer(value))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (strcmp(table[i].word, type) == 0)
            return json_typeof(value) == table[i].type;
    return false;
}

static int check_type(const json_t *type, const json_t *value, const char *path, struct error *err)
{
    if (json_is_string(type)) {
        const char *word = json_string_value(type);
        if (has_type(value, word))
            return 0;
        return error_set(err, ERROR_INVALID, NULL, "%s must be %s %s", shown(path),
                         strchr("aeio", word[0]) ? "an" : "a", word);
    }
    CLEANUP(buffer_free) struct buffer words = BUFFER_INIT(256);
    size_t i;
    json_t *word;
    json_array_foreach(type, i, word)
    {
        if (has_type(value, json_string_value(word)))
            return 0;
        buffer_format(&words, "%s%s", i ? " or " : "", json_string_value(word));
    }
    return error_set(err, ERROR_INVALID, NULL, "%s must be %s", shown(path), buffer_text(&words));
}

static int check_enum(const json_t *allowed, const json_t *value, const char *path, struct error *err)
{
    CLEANUP(buffer_free) struct buffer words = BUFFER_INIT(512);
    size_t i;
    json_t *one;
    json_array_foreach(allowed, i, one)
    {
        if (json_equal(one, value))
            return 0;
        buffer_format(&words, "%s%s", i ? ", " : "", json_string_value(one) ? json_string_value(one) : "?");
    }
    return error_set(err, ERROR_INVALID, NULL, "%s must be one of: %s", shown(path), buffer_text(&words));
}

static size_t count_characters(const json_t *text)
{
    const char *bytes = json_string_value(text);
    size_t count = 0;
    for (size_t i = 0; i < json_string_length(text); i++)
        count += ((unsigned char)bytes[i] & 0xC0) != 0x80;
    return count;
}

static int check_length(const json_t *schema, const json_t *text, const char *path, struct error *err)
{
    const json_t *min = json_object_get(schema, "minLength"), *max = json_object_get(schema, "maxLength");
    json_int_t count = (json_int_t)count_characters(text);
    if (min && count < json_integer_value(min))
        return count ? error_set(err, ERROR_INVALID, NULL, "%s must have at least %lld characters",
                                 shown(path), json_integer_value(min))
                     : error_set(err, ERROR_INVALID, NULL, "%s must not be empty", shown(path));
    if (max && count > json_integer_value(max))
        return error_set(err, ERROR_INVALID, NULL, "%s must have at most %lld characters", shown(path),
                         json_integer_value(max));
    return 0;
}

static int check_range(const json_t *schema, const json_t *number, const char *path, struct error *err)
{
    const json_t *min = json_object_get(schema, "minimum"), *max = json_object_get(schema, "maximum");
    if (min && json_number_value(number) < json_number_value(min))
        return error_set(err, ERROR_INVALID, NULL, "%s must be at least %lld", shown(path),
                         json_integer_value(min));
    if (max && json_number_value(number) > json_number_value(max))
        return error_set(err, ERROR_INVALID, NULL, "%s must be at most %lld", shown(path),
                         json_integer_value(max));
    return 0;
}

static int check(const json_t *schema, const json_t *value, const char *path, struct error *err);

static char *join_names(const json_t *properties)
{
    struct buffer names = BUFFER_INIT(512);
    const char *key;
    json_t *ignored;
    json_object_foreach((json_t *)properties, key, ignored)
        buffer_format(&names, "%s%s", names.len ? ", " : "", key);
    if (!names.len)
        buffer_append_text(&names, "none");
    return buffer_take_string(&names);
}

static int check_members(const json_t *schema, const json_t *object, const char *path, struct error *err)
{
    const json_t *properties = json_object_get(schema, "properties");
    bool is_closed = json_is_false(json_object_get(schema, "additionalProperties"));
    const char *key;
    json_t *member;
    json_object_foreach((json_t *)object, key, member)
    {
        const json_t *rule = json_object_get(properties, key);
        CLEANUP_FREE char *at = mem_format("%s%s%.64s", path, *path ? "." : "", key);
        if (rule && check(rule, member, at, err) < 0)
            return -1;
        if (rule || !is_closed)
            continue;
        CLEANUP_FREE char *names = join_names(properties);
        error_set(err, ERROR_INVALID, NULL, "unknown argument %s", at);
        return error_hint(err, "leave it out; accepted are: %s", names);
    }
    return 0;
}

static int check_object(const json_t *schema, const json_t *object, const char *path, struct error *err)
{
    size_t i;
    json_t *name;
    json_array_foreach(
        json_object_get(schema, "required"), i,
        name) if (!json_object_get(object,
                                   json_string_value(name))) return error_set(err, ERROR_INVALID, NULL,
                                                                              "%s%s%s is required", path,
                                                                              *path ? "." : "",
                                                                              json_string_value(name));
    return check_members(schema, object, path, err);
}

static int check_array(const json_t *schema, const json_t *array, const char *path, struct error *err)
{
    const json_t *items = json_object_get(schema, "items");
    size_t i;
    json_t *one;
    json_array_foreach(array, i, one)
    {
        CLEANUP_FREE char *at = mem_format("%s[%zu]", path, i);
        if (items && check(items, one, at, err) < 0)
            return -1;
    }
    return 0;
}

static int check(const json_t *schema, const json_t *value, const char *path, struct error *err)
{
    const json_t *type = json_object_get(schema, "type"), *allowed = json_object_get(schema, "enum");
    if (type && check_type(type, value, path, err) < 0)
        return -1;
    if (allowed && check_enum(allowed, value, path, err) < 0)
        return -1;
    if (json_is_string(value))
        return check_length(schema, value, path, err);
    if (json_is_number(value))
        return check_range(schema, value, path, err);
    if (json_is_object(value))
        return check_object(schema, value, path, err);
    return json_is_array(value) ? check_array(schema, value, path, err) : 0;
}

int schema_check(const json_t *schema, const json_t *value, struct error *err)
{
    return check(schema, value, "", err);
}

// ---- the schemas themselves -------------------------------------------------------------------------------
static bool is_type_word(const json_t *word)
{
    static const char *const words[] = {"object", "array", "string", "integer", "number", "boolean", "null"};
    for (size_t i = 0; json_is_string(word) && i < ARRAY_LEN(words); i++)
        if (strcmp(words[i], json_string_value(word)) == 0)
            return true;
    return false;
}

static bool is_type(const json_t *type)
{
    if (!json_is_array(type))
        return is_type_word(type);
    size_t i;
    json_t *word;
    json_array_foreach(type, i, word) if (!is_type_word(word)) return false;
    return json_array_size(type) > 0;
}

static bool is_keyword_value(const char *keyword, const json_t *value)
{
    static const char *const integers[] = {"minimum", "maximum", "minLength", "maxLength"};
    static const char *const texts[] = {"title", "description"};
    static const char *const lists[] = {"enum", "required"};
    for (size_t i = 0; i < ARRAY_LEN(integers); i++)
        if (strcmp(integers[i], keyword) == 0)
            return json_is_integer(value);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (strcmp(texts[i], keyword) == 0)
            return json_is_string(value);
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        if (strcmp(lists[i], keyword) == 0)
            return json_is_array(value);
    if (strcmp(keyword, "type") == 0)
        return is_type(value);
    if (strcmp(keyword, "additionalProperties") == 0)
        return json_is_boolean(value);
    if (strcmp(keyword, "properties") == 0 || strcmp(keyword, "items") == 0)
        return json_is_object(value);
    return strcmp(keyword, "default") == 0;
}

int schema_check_keywords(const json_t *schema, struct error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)schema, key, value)
    {
        if (!is_keyword_value(key, value))
            return error_set(err, ERROR_UNSUPPORTED, NULL,
                             "schema keyword \"%s\" or its value is not understood", key);
        if (strcmp(key, "items") == 0 && schema_check_keywords(value, err) < 0)
            return error_context(err, "items");
        if (strcmp(key, "properties") != 0)
            continue;
        const char *name;
        json_t *property;
        json_object_foreach(value, name, property)
        {
            if (!json_is_object(property) || schema_check_keywords(property, err) < 0)
                return error_context(err, "%s", name);
        }
    }
    return 0;
}
