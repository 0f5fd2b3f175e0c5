// meta.k8s.io/v1 Table: the columns come from the kinds' field tables.
#include "api/operator/rendering.h"
#include "controller/base/memory.h"
#include "controller/fields/fields.h"
#include "schemas/kinds/tables.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

// The phase stands first among the columns, behind the name: it is what people look for.
typedef void column_fn(const struct field *field, struct json_span from, void *arg);

static void each_of(const struct field_table *table, struct json_span from, bool is_phase, column_fn *fn,
                    void *arg)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->fields[i].column && (strcmp(table->fields[i].name, "phase") == 0) == is_phase)
            fn(&table->fields[i], from, arg);
}

static void each_column(enum kind kind, struct json_span spec, struct json_span status, column_fn *fn, void *arg)
{
    each_of(kind_status_table(kind), status, true, fn, arg);
    each_of(kind_spec_table(kind), spec, false, fn, arg);
    each_of(kind_status_table(kind), status, false, fn, arg);
}

static void add_column(const struct field *field, struct json_span from, void *columns)
{
    (void)from;
    json_array_append_new(columns, make_column(field->column, is_number(field) ? "integer" : "string", "",
                                               field->doc, field->column_priority));
}

// As it stands in the object; what is neither text nor number as text.
static void put_cell(const struct field *field, struct json_span from, void *arg)
{
    struct buffer *to = arg;
    struct json_span value = json_member(from, field->name);
    buffer_append_char(to, ',');
    if (json_span_is_string(value) || json_span_is_integer(value)) {
        json_put_span(to, value);
    } else if (value.at && !json_span_is(value, "null")) {
        CLEANUP_FREE char *text = mem_strndup(value.at, value.len);
        json_put_string(to, text);
    } else {
        buffer_append_text(to, field->column_empty ? field->column_empty : is_number(field) ? "null" : "\"<none>\"");
    }
}

json_t *age_cell(const char *text, struct wall_time now)
{
    struct wall_time at;
    char age[AGE_TEXT_SIZE];
    if (!text || wall_time_parse(text, &at) < 0)
        return json_string("<unknown>");
    age_format(now.ms - at.ms, age);
    return json_string(age);
}

// ---- kinds: the field tables say what is shown
static json_t *kind_columns(enum kind kind)
{
    json_t *columns = json_array();
    json_array_append_new(
        columns, make_column("Name", "string", "name", "Name, unique among the objects of the kind.", 0));
    each_column(kind, (struct json_span){0}, (struct json_span){0}, add_column, columns);
    json_array_append_new(columns, make_column("Age", "string", "", "Time since it was made.", 0));
    return columns;
}

static void put_kind_cells(struct buffer *to, enum kind kind, struct json_span image, struct wall_time now)
{
    struct json_span meta = image_meta(image), name = json_member(meta, "name");
    CLEANUP_FREE char *made_at = json_span_to_text(json_member(meta, "creationTimestamp"));
    CLEANUP_JSON json_t *age = age_cell(made_at, now);
    json_put_span(to, json_span_is_string(name) ? name : (struct json_span){"\"\"", 2});
    each_column(kind, json_member(image, "spec"), json_member(image, "status"), put_cell, to);
    buffer_append_char(to, ',');
    json_put_string(to, json_string_value(age));
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
    buffer_append_text(to, "{\"cells\":[");
    if (resource->columns)
        put_own_cells(to, resource, image, now);
    else
        put_kind_cells(to, resource->record_kind, image, now);
    buffer_append_char(to, ']');
    if (include != INCLUDE_NONE)
        buffer_append_text(to, ",\"object\":");
    if (include == INCLUDE_OBJECT)
        json_put_span(to, image);
    else if (include == INCLUDE_METADATA)
        metadata_put(to, image);
    buffer_append_char(to, '}');
}

void table_put_columns(struct buffer *to, const struct resource *resource)
{
    CLEANUP_JSON json_t *columns = resource->columns ? own_columns(resource) : kind_columns(resource->record_kind);
    CLEANUP_FREE char *text = json_to_text(columns);
    buffer_append_text(to, text);
}
