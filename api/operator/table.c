// meta.k8s.io/v1 Table: the columns come from the kinds' field tables.
#include "api/operator/rendering.h"
#include "controller/base/memory.h"
#include "controller/fields/fields.h"
#include "schemas/kinds/tables.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COLUMNS_MAX 24 // of a kind

void age_format(int64_t ms, char text[AGE_TEXT_SIZE])
{
    int64_t s = ms < 0 ? 0 : ms / 1000, minutes = s / 60, hours = minutes / 60, days = hours / 24;
    if (s < 120)
        snprintf(text, AGE_TEXT_SIZE, "%" PRId64 "s", s);
    else if (minutes < 10 && s % 60)
        snprintf(text, AGE_TEXT_SIZE, "%" PRId64 "m%" PRId64 "s", minutes, s % 60);
    else if (minutes < 180)
        snprintf(text, AGE_TEXT_SIZE, "%" PRId64 "m", minutes);
    else if (hours < 8 && minutes % 60)
        snprintf(text, AGE_TEXT_SIZE, "%" PRId64 "h%" PRId64 "m", hours, minutes % 60);
    else if (hours < 48)
        snprintf(text, AGE_TEXT_SIZE, "%" PRId64 "h", hours);
    else
        snprintf(text, AGE_TEXT_SIZE, "%" PRId64 "d", days);
}

static json_t *make_column(const char *name, const char *type, const char *format, const char *doc,
                           int priority)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:i}", "name", name, "type", type, "format", format, "description",
                     doc, "priority", priority);
}

static bool is_number(const struct field *field)
{
    return field->type == FIELD_INT;
}

enum part { PART_META, PART_SPEC, PART_STATUS, PART_COUNT };
struct object_parts {
    struct json_span of[PART_COUNT];
};
struct column {
    const struct field *field;
    enum part part;
};

static struct object_parts split_object(struct json_span image)
{
    static const char *const names[PART_COUNT] = {[PART_META] = "metadata", [PART_SPEC] = "spec", [PART_STATUS] = "status"};
    struct object_parts parts;
    json_find_members(image, names, PART_COUNT, parts.of);
    return parts;
}

static size_t add_columns(const struct field_table *table, enum part part, bool is_phase, struct column *to, size_t count)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->fields[i].column && (strcmp(table->fields[i].name, "phase") == 0) == is_phase) {
            assert(count < COLUMNS_MAX);
            to[count++] = (struct column){&table->fields[i], part};
        }
    return count;
}

// The phase stands first among the columns, behind the name: it is what people look for.
static size_t columns_of(enum kind kind, struct column ret[COLUMNS_MAX])
{
    size_t count = add_columns(kind_status_table(kind), PART_STATUS, true, ret, 0);
    count = add_columns(kind_spec_table(kind), PART_SPEC, false, ret, count);
    return add_columns(kind_status_table(kind), PART_STATUS, false, ret, count);
}

// As it stands in the object; what is neither text nor number as text.
static void put_cell(struct buffer *to, const struct field *field, struct json_span value)
{
    if (json_span_is_string(value) || json_span_is_integer(value)) {
        json_put_span(to, value);
    } else if (value.at && !json_span_is(value, "null")) {
        CLEANUP_FREE char *text = mem_strndup(value.at, value.len);
        json_put_string(to, text);
    } else {
        buffer_append_text(to, field->column_empty ? field->column_empty : is_number(field) ? "null" : "\"<none>\"");
    }
}

static void format_age_of(const char *text, struct wall_time now, char age[AGE_TEXT_SIZE])
{
    struct wall_time at;
    if (text && wall_time_parse(text, &at) == 0)
        age_format(now.ms - at.ms, age);
    else
        snprintf(age, AGE_TEXT_SIZE, "<unknown>");
}

json_t *age_cell(const char *text, struct wall_time now)
{
    char age[AGE_TEXT_SIZE];
    format_age_of(text, now, age);
    return json_string(age);
}

// ---- kinds: the field tables say what is shown
static json_t *kind_columns(enum kind kind)
{
    struct column columns[COLUMNS_MAX];
    size_t count = columns_of(kind, columns);
    json_t *json = json_array();
    json_array_append_new(json, make_column("Name", "string", "name", "Name, unique among the objects of the kind.", 0));
    for (size_t i = 0; i < count; i++) {
        const struct field *field = columns[i].field;
        json_array_append_new(json, make_column(field->column, is_number(field) ? "integer" : "string", "", field->doc, field->column_priority));
    }
    json_array_append_new(json, make_column("Age", "string", "", "Time since it was made.", 0));
    return json;
}

// Each part of the object is looked through once.
static void put_fields(struct buffer *to, enum kind kind, const struct object_parts *object)
{
    struct column columns[COLUMNS_MAX];
    struct json_span values[PART_COUNT][COLUMNS_MAX];
    const char *names[COLUMNS_MAX];
    size_t count = columns_of(kind, columns);
    for (size_t i = 0; i < count; i++)
        names[i] = columns[i].field->name;
    for (size_t part = PART_SPEC; part < PART_COUNT; part++)
        json_find_members(object->of[part], names, count, values[part]);
    for (size_t i = 0; i < count; i++) {
        buffer_append_char(to, ',');
        put_cell(to, columns[i].field, values[columns[i].part][i]);
    }
}

static void put_kind_cells(struct buffer *to, enum kind kind, const struct object_parts *object, struct wall_time now)
{
    static const char *const names[] = {"name", "creationTimestamp"};
    struct json_span found[ARRAY_LEN(names)];
    char age[AGE_TEXT_SIZE];
    json_find_members(object->of[PART_META], names, ARRAY_LEN(names), found);
    CLEANUP_FREE char *made_at = json_span_to_text(found[1]);
    format_age_of(made_at, now, age);
    json_put_span(to, json_span_is_string(found[0]) ? found[0] : (struct json_span){"\"\"", 2});
    put_fields(to, kind, object);
    buffer_append_char(to, ',');
    json_put_string(to, age);
}

// ---- the others: their rows do
static json_t *own_columns(const struct resource *resource)
{
    json_t *columns = json_array();
    for (size_t i = 0; i < resource->column_count; i++) {
        const struct resource_column *column = &resource->columns[i];
        json_array_append_new(columns, make_column(column->name, column->type,
                                                   strcmp(column->name, "Name") == 0 ? "name" : "",
                                                   column->doc, column->priority));
    }
    return columns;
}

static void put_own_cells(struct buffer *to, const struct resource *resource, struct json_span image, struct wall_time now)
{
    CLEANUP_JSON json_t *object = NULL;
    json_parse(image.at, image.len, &object, NULL);
    for (size_t i = 0; i < resource->column_count; i++) {
        CLEANUP_JSON json_t *cell = resource->columns[i].cell(object, now);
        CLEANUP_FREE char *text = json_to_text(cell);
        if (i)
            buffer_append_char(to, ',');
        buffer_append_text(to, text);
    }
}

void table_put_row(struct buffer *to, const struct resource *resource, struct json_span image, enum rendering_include include,
                   struct wall_time now)
{
    const struct object_parts object = split_object(image);
    buffer_append_text(to, "{\"cells\":[");
    if (resource->columns)
        put_own_cells(to, resource, image, now);
    else
        put_kind_cells(to, resource->record_kind, &object, now);
    buffer_append_char(to, ']');
    if (include != INCLUDE_NONE)
        buffer_append_text(to, ",\"object\":");
    if (include == INCLUDE_OBJECT)
        json_put_span(to, image);
    else if (include == INCLUDE_METADATA)
        metadata_put(to, object.of[PART_META]);
    buffer_append_char(to, '}');
}

void table_put_columns(struct buffer *to, const struct resource *resource)
{
    CLEANUP_JSON json_t *columns = resource->columns ? own_columns(resource) : kind_columns(resource->record_kind);
    CLEANUP_FREE char *text = json_to_text(columns);
    buffer_append_text(to, text);
}
