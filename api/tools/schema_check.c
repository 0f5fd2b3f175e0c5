#include "api/tools/schema_check.h"
#include "api/tools/schema_words.h"
#include "controller/base/memory.h"
#include <math.h>
#include <string.h>

#define WHOLE_MAX 9007199254740992.0 // beyond it not every whole number is a double

struct check {
    enum schema_use use;
    size_t values; // seen
    struct error *err;
};

static int check_value(struct check *check, json_t *value, const struct schema_place *at);

// ---- types ------------------------------------------------------------------------------------------------
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

static bool fits_type(const json_t *type, const json_t *value)
{
    size_t i;
    json_t *word;
    if (!type || (json_is_string(type) && has_type(value, json_string_value(type))))
        return true;
    json_array_foreach(type, i, word) if (has_type(value, json_string_value(word))) return true;
    return false;
}

static bool wants_integer(const json_t *schema)
{
    const json_t *type = json_object_get(schema, "type");
    size_t i;
    json_t *word;
    if (json_is_string(type))
        return strcmp(json_string_value(type), "integer") == 0;
    json_array_foreach(type, i, word) if (strcmp(json_string_value(word), "integer") == 0) return true;
    return false;
}

// JSON Schema calls 5.0 an integer. NULL: there is nothing to put in the value's place.
static json_t *whole_number(const json_t *schema, const json_t *value)
{
    double number = json_real_value(value);
    if (!json_is_real(value) || !wants_integer(schema) || number != trunc(number) || fabs(number) > WHOLE_MAX)
        return NULL;
    return json_integer((json_int_t)number);
}

// ---- scalars ----------------------------------------------------------------------------------------------
static bool fits_enum(const json_t *allowed, const json_t *value)
{
    size_t i;
    json_t *one;
    json_array_foreach(allowed, i, one) if (json_equal(one, value)) return true;
    return !allowed;
}

static bool fits_length(const json_t *schema, const json_t *text)
{
    const json_t *min = json_object_get(schema, "minLength"), *max = json_object_get(schema, "maxLength");
    const char *bytes = json_string_value(text);
    json_int_t count = 0;
    if (!min && !max)
        return true;
    for (size_t i = 0; i < json_string_length(text); i++)
        count += ((unsigned char)bytes[i] & 0xC0) != 0x80;
    return (!min || count >= json_integer_value(min)) && (!max || count <= json_integer_value(max));
}

static bool fits_range(const json_t *schema, const json_t *number)
{
    const json_t *min = json_object_get(schema, "minimum"), *max = json_object_get(schema, "maximum");
    return (!min || json_number_value(number) >= json_number_value(min)) &&
           (!max || json_number_value(number) <= json_number_value(max));
}

// ---- members and items ------------------------------------------------------------------------------------
static int check_member(struct check *check, const json_t *rule, json_t *object, const char *name,
                        json_t *member, const struct schema_place *at)
{
    const struct schema_place inner = {.up = at, .schema = rule, .name = name};
    json_t *whole = whole_number(rule, member);
    if (whole)
        json_object_set_new(object, name, whole);
    return check_value(check, whole ? whole : member, &inner);
}

// Members that `properties` does not name.
static int check_additional(struct check *check, json_t *object, const char *name, json_t *member,
                            const struct schema_place *at)
{
    const json_t *additional = json_object_get(at->schema, "additionalProperties");
    if (json_is_object(additional))
        return check_member(check, additional, object, name, member, at);
    if (!json_is_false(additional))
        return 0;
    if (check->use == SCHEMA_ARGUMENTS)
        return schema_fail_unknown(name, at, check->err);
    json_object_del(object, name);
    return 0;
}

static int check_object(struct check *check, json_t *object, const struct schema_place *at)
{
    const json_t *properties = json_object_get(at->schema, "properties");
    const char *name;
    json_t *member, *word;
    void *next;
    size_t i;
    json_array_foreach(json_object_get(at->schema, "required"), i, word)
    {
        if (!json_object_get(object, json_string_value(word)))
            return schema_fail_missing(json_string_value(word), at, check->err);
    }
    json_object_foreach_safe(object, next, name, member)
    {
        const json_t *rule = json_object_get(properties, name);
        if (rule ? check_member(check, rule, object, name, member, at) < 0
                 : check_additional(check, object, name, member, at) < 0)
            return -1;
    }
    return 0;
}

static int check_array(struct check *check, json_t *array, const struct schema_place *at)
{
    struct schema_place inner = {.up = at, .schema = json_object_get(at->schema, "items")};
    json_t *item;
    if (!inner.schema)
        return 0;
    json_array_foreach(array, inner.index, item)
    {
        json_t *whole = whole_number(inner.schema, item);
        if (whole)
            json_array_set_new(array, inner.index, whole);
        if (check_value(check, whole ? whole : item, &inner) < 0)
            return -1;
    }
    return 0;
}

static bool fits_alone(const json_t *schema, const json_t *value)
{
    if (!fits_type(json_object_get(schema, "type"), value) ||
        !fits_enum(json_object_get(schema, "enum"), value))
        return false;
    if (json_is_string(value))
        return fits_length(schema, value);
    return !json_is_number(value) || fits_range(schema, value);
}

static int check_value(struct check *check, json_t *value, const struct schema_place *at)
{
    if (++check->values > SCHEMA_VALUES_MAX)
        return error_set(check->err, ERROR_TOO_LARGE, "ask for less at once", "more than %d values",
                         SCHEMA_VALUES_MAX);
    if (!fits_alone(at->schema, value))
        return schema_fail_misfit(value, at, check->err);
    if (json_is_object(value))
        return check_object(check, value, at);
    return json_is_array(value) ? check_array(check, value, at) : 0;
}

int schema_check(const json_t *schema, json_t *value, enum schema_use use, struct error *err)
{
    struct check check = {.use = use, .err = err};
    const struct schema_place top = {.schema = schema};
    return check_value(&check, value, &top);
}
