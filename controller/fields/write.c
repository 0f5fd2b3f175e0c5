// Struct → JSON.
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include "controller/fields/values.h"
#include "controller/fields/write.h"
#include "schemas/kinds/kinds.h"
#include <stdio.h>
#include <string.h>

// Milliseconds are kept where there are any: a status read back equals the one that was written.
json_t *time_to_json(struct wall_time time)
{
    char text[WALL_TIME_TEXT_SIZE];
    wall_time_format(time, text);
    int fraction_ms = (int)(time.ms % 1000);
    if (fraction_ms > 0) {
        char *zone = strchr(text, 'Z');
        snprintf(zone, sizeof(text) - (size_t)(zone - text), ".%03dZ", fraction_ms);
    }
    return json_string(text);
}

json_t *text_list_to_json(const struct text_list *list)
{
    json_t *array = json_array();
    for (size_t i = 0; i < list->count; i++)
        json_array_append_new(array, json_from_text(list->items[i]));
    return array;
}

json_t *text_map_to_json(const struct text_map *map)
{
    json_t *object = json_object();
    for (size_t i = 0; i < map->count; i++)
        json_object_set_new(object, map->items[i].key, json_from_text(map->items[i].value));
    return object;
}

static bool is_always_shown(const struct field *field)
{
    return field->is_required || field->default_json;
}

static json_t *write_text(const struct field *field, const void *at)
{
    (void)field;
    const char *text = *(char *const *)at;
    return text ? json_from_text(text) : NULL;
}

static json_t *write_bool(const struct field *field, const void *at)
{
    bool value = *(const bool *)at;
    return value || is_always_shown(field) ? json_boolean(value) : NULL;
}

static json_t *write_int(const struct field *field, const void *at)
{
    int64_t value = *(const int64_t *)at;
    return value || is_always_shown(field) ? json_integer(value) : NULL;
}

static json_t *write_quantity(const struct field *field, const void *at)
{
    int64_t value = *(const int64_t *)at;
    char text[QUANTITY_TEXT_SIZE];
    quantity_format(value, text);
    return value || is_always_shown(field) ? json_string(text) : NULL;
}

static json_t *write_milli(const struct field *field, const void *at)
{
    int64_t value = *(const int64_t *)at;
    char text[QUANTITY_TEXT_SIZE];
    milli_format(value, text);
    return value || is_always_shown(field) ? json_string(text) : NULL;
}

static json_t *write_enum(const struct field *field, const void *at)
{
    const char *word = field->words[*(const int *)at];
    return *word ? json_string(word) : NULL;
}

static json_t *write_time(const struct field *field, const void *at)
{
    (void)field;
    struct wall_time time = *(const struct wall_time *)at;
    return time.ms ? time_to_json(time) : NULL;
}

// An object has no presence of its own: one in which nothing is set is absent.
static bool is_unset(const struct field_table *table, const void *at)
{
    CLEANUP_FREE void *unset = mem_alloc(table->size);
    return fields_equal(table, at, unset);
}

static json_t *write_object(const struct field *field, const void *at)
{
    return field->is_required || !is_unset(field->fields, at) ? fields_to_json(field->fields, at) : NULL;
}

static json_t *write_list(const struct field *field, const void *at)
{
    const struct any_list *list = at;
    if (!list->count)
        return NULL;
    json_t *array = json_array();
    for (size_t i = 0; i < list->count; i++)
        json_array_append_new(array, fields_to_json(field->fields, list->items + i * field->fields->size));
    return array;
}

static json_t *write_text_list(const struct field *field, const void *at)
{
    (void)field;
    const struct text_list *list = at;
    return list->count ? text_list_to_json(list) : NULL;
}

static json_t *write_text_map(const struct field *field, const void *at)
{
    (void)field;
    const struct text_map *map = at;
    return map->count ? text_map_to_json(map) : NULL;
}

static json_t *write_json(const struct field *field, const void *at)
{
    (void)field;
    return json_deep_copy(*(json_t *const *)at);
}

static json_t *(*const writers[])(const struct field *field, const void *at) = {
    [FIELD_TEXT] = write_text,           [FIELD_BOOL] = write_bool,         [FIELD_INT] = write_int,
    [FIELD_QUANTITY] = write_quantity,   [FIELD_MILLI] = write_milli,       [FIELD_ENUM] = write_enum,
    [FIELD_TIME] = write_time,           [FIELD_OBJECT] = write_object,     [FIELD_LIST] = write_list,
    [FIELD_TEXT_LIST] = write_text_list, [FIELD_TEXT_MAP] = write_text_map, [FIELD_JSON] = write_json,
};

json_t *fields_to_json(const struct field_table *table, const void *from)
{
    json_t *object = json_object();
    for (size_t i = 0; i < table->count; i++) {
        const struct field *field = &table->fields[i];
        json_t *value = writers[field->type](field, FIELD_AT(from, field));
        if (value)
            json_object_set_new(object, field->name, value);
    }
    return object;
}
