// The schemas themselves: every keyword is one that schema_check obeys, with a value that it understands.
#include "api/tools/schema_check.h"
#include <string.h>

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

static bool is_texts(const json_t *list)
{
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one) if (!json_is_string(one)) return false;
    return json_array_size(list) > 0;
}

static bool is_count(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

static bool is_integer(const json_t *value)
{
    return json_is_integer(value);
}

static bool is_text(const json_t *value)
{
    return json_is_string(value);
}

static bool is_object(const json_t *value)
{
    return json_is_object(value);
}

static bool is_rule(const json_t *value)
{
    return json_is_boolean(value) || json_is_object(value);
}

static bool is_anything(const json_t *value)
{
    return value != NULL;
}

static bool is_keyword_value(const char *keyword, const json_t *value)
{
    static const struct {
        const char *keyword;
        bool (*is_value)(const json_t *value);
    } table[] = {
        {"type", is_type},         {"enum", is_texts},       {"required", is_texts},
        {"properties", is_object}, {"items", is_object},     {"minimum", is_integer},
        {"maximum", is_integer},   {"minLength", is_count},  {"maxLength", is_count},
        {"title", is_text},        {"description", is_text}, {"additionalProperties", is_rule},
        {"default", is_anything},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (strcmp(table[i].keyword, keyword) == 0)
            return table[i].is_value(value);
    return false;
}

static int check_properties(const json_t *properties, struct error *err)
{
    const char *name;
    json_t *property;
    json_object_foreach((json_t *)properties, name, property)
    {
        if (!json_is_object(property))
            return error_set(err, ERROR_UNSUPPORTED, NULL, "%s: a schema must be an object", name);
        if (schema_check_keywords(property, err) < 0)
            return error_context(err, "%s", name);
    }
    return 0;
}

int schema_check_keywords(const json_t *schema, struct error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)schema, key, value)
    {
        bool is_schema =
            strcmp(key, "items") == 0 || (strcmp(key, "additionalProperties") == 0 && json_is_object(value));
        if (!is_keyword_value(key, value))
            return error_set(err, ERROR_UNSUPPORTED, NULL,
                             "schema keyword \"%s\" or its value is not understood", key);
        if (is_schema && schema_check_keywords(value, err) < 0)
            return error_context(err, "%s", key);
        if (strcmp(key, "properties") == 0 && check_properties(value, err) < 0)
            return -1;
    }
    return 0;
}
