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
typedef void column_fn(const struct field *field, const json_t *from, void *arg);

static void each_of(const struct field_table *table, const json_t *from, bool is_phase, column_fn *fn,
                    void *arg)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->fields[i].column && (strcmp(table->fields[i].name, "phase") == 0) == is_phase)
            fn(&table->fields[i], from, arg);
}

static void each_column(enum kind kind, const json_t *spec, const json_t *status, column_fn *fn, void *arg)
{
    each_of(kind_status_table(kind), status, true, fn, arg);
    each_of(kind_spec_table(kind), spec, false, fn, arg);
    each_of(kind_status_table(kind), status, false, fn, arg);
}

static void add_column(const struct field *field, const json_t *from, void *columns)
{
    (void)from;
    json_array_append_new(columns, make_column(field->column, is_number(field) ? "integer" : "string", "",
                                               field->doc, field->column_priority));
}

static void add_cell(const struct field *field, const json_t *from, void *cells)
{
    json_t *value = json_object_get(from, field->name);
    if (json_is_string(value) || json_is_integer(value))
        json_array_append(cells, value);
    else if (value && !json_is_null(value)) {
        CLEANUP_FREE char *text = json_to_text(value);
        json_array_append_new(cells, json_from_text(text));
    } else {
        json_array_append_new(cells, is_number(field) ? json_null() : json_string(""));
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
    each_column(kind, NULL, NULL, add_column, columns);
    json_array_append_new(columns, make_column("Age", "string", "", "Time since it was made.", 0));
    return columns;
}

static json_t *kind_cells(enum kind kind, const json_t *image, struct wall_time now)
{
    json_t *cells = json_array();
    json_array_append_new(cells, json_string(image_name(image)));
    each_column(kind, json_object_get(image, "spec"), json_object_get(image, "status"), add_cell, cells);
    json_array_append_new(cells, age_cell(json_get_text(image_meta(image), "creationTimestamp"), now));
    return cells;
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

static json_t *own_cells(const struct resource *resource, const json_t *image, struct wall_time now)
{
    json_t *cells = json_array();
    for (size_t i = 0; i < resource->column_count; i++)
        json_array_append_new(cells, resource->columns[i].cell(image, now));
    return cells;
}

static json_t *row_of(const struct resource *resource, json_t *image, enum rendering_include include,
                      struct wall_time now)
{
    json_t *cells =
        resource->columns ? own_cells(resource, image, now) : kind_cells(resource->record_kind, image, now);
    json_t *row = json_pack("{s:o}", "cells", cells);
    if (include == INCLUDE_OBJECT)
        json_object_set(row, "object", image);
    else if (include == INCLUDE_METADATA)
        json_object_set_new(row, "object", metadata_of(image));
    return row;
}

json_t *table_make(const struct resource *resource, json_t *items, enum rendering_include include,
                   struct wall_time now, bool has_columns)
{
    json_t *rows = json_array(), *image, *columns;
    size_t i;
    json_array_foreach(items, i, image) json_array_append_new(rows, row_of(resource, image, include, now));
    columns = !has_columns        ? json_array()
              : resource->columns ? own_columns(resource)
                                  : kind_columns(resource->record_kind);
    return json_pack("{s:s, s:s, s:o, s:o}", "kind", "Table", "apiVersion", "meta.k8s.io/v1",
                     "columnDefinitions", columns, "rows", rows);
}
