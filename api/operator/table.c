// meta.k8s.io/v1 Table: the columns come from the kinds' field tables.
#include "api/operator/internal.h"
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

static json_t *columns_of(enum kind kind)
{
    json_t *columns = json_array();
    json_array_append_new(
        columns, make_column("Name", "string", "name", "Name, unique among the objects of the kind.", 0));
    each_column(kind, NULL, NULL, add_column, columns);
    json_array_append_new(columns, make_column("Age", "string", "", "Time since it was made.", 0));
    return columns;
}

static json_t *row_of(const struct record *record, struct wall_time now, const char *include_object)
{
    CLEANUP_JSON json_t *object = record_to_json(record);
    json_t *cells = json_array(), *row = json_object();
    char age[AGE_TEXT_SIZE];
    json_array_append_new(cells, json_from_text(record->meta.name));
    each_column(record->kind, json_object_get(object, "spec"), json_object_get(object, "status"), add_cell,
                cells);
    age_format(now.ms - record->meta.created_at.ms, age);
    json_array_append_new(cells, json_from_text(age));
    json_object_set_new(row, "cells", cells);
    if (include_object && strcmp(include_object, "Object") == 0)
        json_object_set(row, "object", object);
    else if (!include_object || strcmp(include_object, "None") != 0)
        json_object_set_new(row, "object",
                            json_pack("{s:s, s:s, s:O}", "kind", "PartialObjectMetadata", "apiVersion",
                                      "meta.k8s.io/v1", "metadata", json_object_get(object, "metadata")));
    return row;
}

json_t *table_of_records(enum kind kind, struct record *const *records, size_t count, int64_t revision,
                         struct wall_time now, const char *include_object)
{
    CLEANUP_FREE char *version = mem_format("%" PRId64, revision);
    json_t *rows = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(rows, row_of(records[i], now, include_object));
    return json_pack("{s:s, s:s, s:{s:s}, s:o, s:o}", "kind", "Table", "apiVersion", "meta.k8s.io/v1",
                     "metadata", "resourceVersion", version, "columnDefinitions", columns_of(kind), "rows",
                     rows);
}
