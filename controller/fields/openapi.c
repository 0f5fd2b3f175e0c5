// Tables → JSON Schema of OpenAPI v3, with Kubernetes' extensions for lists and quantities.
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/fields/values.h"
#include <string.h>

typedef void describer(const struct field *field, json_t *schema);

static void set_type(json_t *schema, const char *type, const char *format)
{
    json_set_text(schema, "type", type);
    json_set_text(schema, "format", format);
}

static void describe_text(const struct field *field, json_t *schema)
{
    set_type(schema, "string", NULL);
    json_object_set_new(schema, "maxLength", json_integer(field->max ? field->max : FIELDS_TEXT_MAX));
    if (field->is_required)
        json_object_set_new(schema, "minLength", json_integer(1));
    json_set_text(schema, "pattern", field->pattern);
}

static void describe_bool(const struct field *field, json_t *schema)
{
    (void)field;
    set_type(schema, "boolean", NULL);
}

static void describe_int(const struct field *field, json_t *schema)
{
    set_type(schema, "integer", "int64");
    if (field->max <= field->min)
        return;
    json_object_set_new(schema, "minimum", json_integer(field->min));
    if (field->max < INT64_MAX)
        json_object_set_new(schema, "maximum", json_integer(field->max));
}

static bool is_bounded(const struct field *field)
{
    return field->max > field->min;
}

// A number or its text, by Kubernetes' own name for that. Numbers have bounds as numbers; in words they hold for both.
static void describe_number_or_text(const struct field *field, json_t *schema, const char *pattern, void (*format)(int64_t, char *))
{
    char min[QUANTITY_TEXT_SIZE], max[QUANTITY_TEXT_SIZE];
    json_object_set_new(schema, "allOf", json_pack("[{s:s}]", "$ref", OPENAPI_REFERENCES OPENAPI_QUANTITY));
    json_set_text(schema, "pattern", pattern);
    if (!is_bounded(field))
        return;
    format(field->min, min);
    format(field->max, max);
    CLEANUP_FREE char *doc = mem_format("%s From %s to %s.", json_get_text(schema, "description"), min, max);
    json_set_text(schema, "description", doc);
}

static void set_bounds(json_t *schema, json_t *min, json_t *max)
{
    json_object_set_new(schema, "minimum", min);
    json_object_set_new(schema, "maximum", max);
}

static void describe_quantity(const struct field *field, json_t *schema)
{
    describe_number_or_text(field, schema, "^([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([KMGTPE]i|[kMGTPE])?$", quantity_format);
    if (is_bounded(field))
        set_bounds(schema, json_integer(field->min), json_integer(field->max));
}

static void describe_milli(const struct field *field, json_t *schema)
{
    describe_number_or_text(field, schema, "^([0-9]+(\\.[0-9]*)?|\\.[0-9]+)m?$", milli_format);
    if (is_bounded(field))
        set_bounds(schema, json_real((double)field->min / 1000), json_real((double)field->max / 1000));
}

static void describe_enum(const struct field *field, json_t *schema)
{
    json_t *words = json_array();
    for (const char *const *word = field->words; *word; word++)
        json_array_append_new(words, json_string(*word));
    set_type(schema, "string", NULL);
    json_object_set_new(schema, "enum", words);
}

static void describe_time(const struct field *field, json_t *schema)
{
    (void)field;
    set_type(schema, "string", "date-time");
}

static void describe_object(const struct field *field, json_t *schema)
{
    CLEANUP_JSON json_t *object = fields_to_openapi(field->fields);
    json_object_update_missing(schema, object);
}

static void describe_list(const struct field *field, json_t *schema)
{
    set_type(schema, "array", NULL);
    json_object_set_new(schema, "maxItems", json_integer(FIELDS_LIST_MAX));
    json_object_set_new(schema, "items", fields_to_openapi(field->fields));
    json_set_text(schema, "x-kubernetes-list-type", field->key ? "map" : "atomic");
    if (field->key)
        json_object_set_new(schema, "x-kubernetes-list-map-keys", json_pack("[s]", field->key));
}

static void describe_text_list(const struct field *field, json_t *schema)
{
    json_t *items = json_object();
    set_type(schema, "array", NULL);
    if (field->words)
        describe_enum(field, items);
    else
        describe_text(field, items);
    json_object_del(items, "minLength"); // is_required is about the list
    if (field->is_required)
        json_object_set_new(schema, "minItems", json_integer(1));
    json_object_set_new(schema, "maxItems", json_integer(field->max_items ? field->max_items : FIELDS_LIST_MAX));
    json_object_set_new(schema, "items", items);
    json_set_text(schema, "x-kubernetes-list-type", field->is_set ? "set" : "atomic");
}

static void describe_text_map(const struct field *field, json_t *schema)
{
    set_type(schema, "object", NULL);
    json_object_set_new(schema, "additionalProperties",
                        json_pack("{s:s, s:I}", "type", "string", "maxLength",
                                  (json_int_t)(field->max ? field->max : FIELDS_TEXT_MAX)));
}

static void describe_json(const struct field *field, json_t *schema)
{
    (void)field;
    json_object_set_new(schema, "x-kubernetes-preserve-unknown-fields", json_true());
}

static describer *const describers[] = {
    [FIELD_TEXT] = describe_text,         [FIELD_BOOL] = describe_bool,
    [FIELD_INT] = describe_int,           [FIELD_QUANTITY] = describe_quantity,
    [FIELD_MILLI] = describe_milli,       [FIELD_ENUM] = describe_enum,
    [FIELD_TIME] = describe_time,         [FIELD_OBJECT] = describe_object,
    [FIELD_LIST] = describe_list,         [FIELD_TEXT_LIST] = describe_text_list,
    [FIELD_TEXT_MAP] = describe_text_map, [FIELD_JSON] = describe_json,
};

static json_t *field_schema(const struct field *field)
{
    json_t *schema = json_object();
    CLEANUP_FREE char *doc = mem_format("%s%s", field->doc, field->is_immutable ? " Cannot be changed." : "");
    json_set_text(schema, "description", doc);
    describers[field->type](field, schema);
    if (field->is_immutable)
        json_object_set_new(schema, "x-kubernetes-validations",
                            json_pack("[{s:s, s:s}]", "rule", "self == oldSelf", "message", "cannot be changed"));
    json_t *value = NULL;
    if (field->default_json &&
        json_parse(field->default_json, strlen(field->default_json), &value, NULL) == 0)
        json_object_set_new(schema, "default", value);
    return schema;
}

json_t *fields_to_openapi(const struct field_table *table)
{
    json_t *properties = json_object(), *required = json_array();
    for (size_t i = 0; i < table->count; i++) {
        const struct field *field = &table->fields[i];
        json_object_set_new(properties, field->name, field_schema(field));
        if (field->is_required && !field->default_json)
            json_array_append_new(required, json_string(field->name));
    }
    json_t *schema =
        json_pack("{s:s, s:s, s:o}", "type", "object", "description", table->doc, "properties", properties);
    if (table->rule)
        json_object_set_new(schema, "x-kubernetes-validations", json_pack("[{s:s, s:s}]", "rule", table->rule, "message", table->rule_doc));
    if (json_array_size(required))
        json_object_set(schema, "required", required);
    json_decref(required);
    return schema;
}
