// Schemas as protobuf messages. The numbers are those of gnostic's openapiv2/OpenAPIv2.proto.
#include "api/operator/openapi_v2.h"
#include "controller/base/memory.h"
#include <stdint.h>
#include <string.h>

enum { DOCUMENT_SWAGGER = 1, DOCUMENT_INFO = 2, DOCUMENT_PATHS = 8, DOCUMENT_DEFINITIONS = 9 };
enum { INFO_TITLE = 1, INFO_VERSION = 2 };
enum { NAMED_NAME = 1, NAMED_VALUE = 2 }; // NamedSchema, NamedAny
enum { PROPERTIES_ONE = 1 };              // Definitions, Properties
enum { ANY_YAML = 2, LIST_VALUE = 1 };    // Any; TypeItem, ItemsItem, AdditionalPropertiesItem
enum {
    SCHEMA_REF = 1,
    SCHEMA_FORMAT = 2,
    SCHEMA_DESCRIPTION = 4,
    SCHEMA_REQUIRED = 19,
    SCHEMA_ENUM = 20,
    SCHEMA_ADDITIONAL = 21,
    SCHEMA_TYPE = 22,
    SCHEMA_ITEMS = 23,
    SCHEMA_PROPERTIES = 25,
    SCHEMA_EXTENSION = 31,
};
#define V3_REFERENCES "#/components/schemas/"
#define V2_REFERENCES "#/definitions/"

// ---- wire
static void put_varint(struct buffer *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        buffer_append_char(to, (char)(value | 0x80));
    buffer_append_char(to, (char)value);
}

static void put_bytes(struct buffer *to, unsigned number, const void *bytes, size_t len)
{
    put_varint(to, (uint64_t)number << 3 | 2);
    put_varint(to, len);
    buffer_append(to, bytes, len);
}

static void put_text(struct buffer *to, unsigned number, const char *text)
{
    if (text)
        put_bytes(to, number, text, strlen(text));
}

static void put_message(struct buffer *to, unsigned number, struct buffer *message)
{
    put_bytes(to, number, buffer_text(message), message->len);
}

static void put_any(struct buffer *to, unsigned number, const json_t *value)
{
    CLEANUP(buffer_free) struct buffer any = BUFFER_INIT(OPENAPI_V2_MAX);
    CLEANUP_FREE char *yaml = json_to_text(value); // JSON is YAML
    put_text(&any, ANY_YAML, yaml);
    put_message(to, number, &any);
}

// ---- schemas. Their depth is the field tables'.
static void write_schema(const json_t *schema, struct buffer *to);

static void put_schema(struct buffer *to, unsigned number, const json_t *schema)
{
    CLEANUP(buffer_free) struct buffer message = BUFFER_INIT(OPENAPI_V2_MAX);
    write_schema(schema, &message);
    put_message(to, number, &message);
}

static void put_wrapped(struct buffer *to, unsigned number, const json_t *schema)
{
    CLEANUP(buffer_free) struct buffer wrapper = BUFFER_INIT(OPENAPI_V2_MAX);
    put_schema(&wrapper, LIST_VALUE, schema);
    put_message(to, number, &wrapper);
}

static void put_named_schemas(struct buffer *to, unsigned number, const json_t *schemas)
{
    CLEANUP(buffer_free) struct buffer all = BUFFER_INIT(OPENAPI_V2_MAX);
    const char *name;
    json_t *schema;
    json_object_foreach((json_t *)schemas, name, schema)
    {
        CLEANUP(buffer_free) struct buffer named = BUFFER_INIT(OPENAPI_V2_MAX);
        put_text(&named, NAMED_NAME, name);
        put_schema(&named, NAMED_VALUE, schema);
        put_message(&all, PROPERTIES_ONE, &named);
    }
    put_message(to, number, &all);
}

static void put_type(struct buffer *to, const char *type)
{
    CLEANUP(buffer_free) struct buffer item = BUFFER_INIT(256);
    put_text(&item, LIST_VALUE, type);
    put_message(to, SCHEMA_TYPE, &item);
}

static void put_reference(struct buffer *to, const char *path)
{
    CLEANUP_FREE char *name = mem_format(V2_REFERENCES "%s", path + strlen(V3_REFERENCES));
    put_text(to, SCHEMA_REF, name);
}

static void put_extensions(struct buffer *to, const json_t *schema)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)schema, name, value)
    {
        CLEANUP(buffer_free) struct buffer named = BUFFER_INIT(OPENAPI_V2_MAX);
        if (strncmp(name, "x-kubernetes-", 13) != 0 || strcmp(name, "x-kubernetes-validations") == 0)
            continue;
        put_text(&named, NAMED_NAME, name);
        put_any(&named, NAMED_VALUE, value);
        put_message(to, SCHEMA_EXTENSION, &named);
    }
}

static void write_schema(const json_t *schema, struct buffer *to)
{
    const json_t *all_of = json_array_get(json_object_get(schema, "allOf"), 0);
    const char *reference = json_get_text(all_of ? all_of : schema, "$ref");
    size_t i;
    json_t *item;
    if (reference)
        put_reference(to, reference);
    put_text(to, SCHEMA_FORMAT, json_get_text(schema, "format"));
    put_text(to, SCHEMA_DESCRIPTION, json_get_text(schema, "description"));
    json_array_foreach(json_object_get(schema, "required"), i, item)
        put_text(to, SCHEMA_REQUIRED, json_string_value(item));
    json_array_foreach(json_object_get(schema, "enum"), i, item) put_any(to, SCHEMA_ENUM, item);
    if (json_object_get(schema, "additionalProperties"))
        put_wrapped(to, SCHEMA_ADDITIONAL, json_object_get(schema, "additionalProperties"));
    if (json_get_text(schema, "type"))
        put_type(to, json_get_text(schema, "type"));
    else if (json_object_get(schema, "anyOf")) // a number or its text
        put_type(to, "string");
    if (json_object_get(schema, "items"))
        put_wrapped(to, SCHEMA_ITEMS, json_object_get(schema, "items"));
    if (json_object_get(schema, "properties"))
        put_named_schemas(to, SCHEMA_PROPERTIES, json_object_get(schema, "properties"));
    put_extensions(to, schema);
}

void openapi_v2_write(const json_t *schemas, struct buffer *to)
{
    CLEANUP(buffer_free) struct buffer info = BUFFER_INIT(256), nothing = BUFFER_INIT(16);
    put_text(&info, INFO_TITLE, "chat2shell");
    put_text(&info, INFO_VERSION, "v" CHAT2SHELL_VERSION);
    put_text(to, DOCUMENT_SWAGGER, "2.0");
    put_message(to, DOCUMENT_INFO, &info);
    put_message(to, DOCUMENT_PATHS, &nothing);
    put_named_schemas(to, DOCUMENT_DEFINITIONS, schemas);
}
