// What every field type owns: copies, ends and comparisons of struct members, by one table.
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include "controller/fields/values.h"
#include "schemas/kinds/kinds.h"
#include <stdlib.h>
#include <string.h>

struct value_ops {
    void (*copy)(const struct field *field, const void *from, void *to);
    void (*clear)(const struct field *field, void *at);
    bool (*equal)(const struct field *field, const void *a, const void *b);
};

static bool text_equal(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void copy_text(const struct field *field, const void *from, void *to)
{
    (void)field;
    *(char **)to = mem_strdup_or_null(*(char *const *)from);
}

static void clear_text(const struct field *field, void *at)
{
    (void)field;
    free(*(char **)at);
}

static bool equal_text(const struct field *field, const void *a, const void *b)
{
    (void)field;
    return text_equal(*(char *const *)a, *(char *const *)b);
}

static size_t plain_size(enum field_type type)
{
    switch (type) {
    case FIELD_BOOL:
        return sizeof(bool);
    case FIELD_ENUM:
        return sizeof(int);
    case FIELD_TIME:
        return sizeof(struct wall_time);
    default:
        return sizeof(int64_t);
    }
}

static void copy_plain(const struct field *field, const void *from, void *to)
{
    memcpy(to, from, plain_size(field->type));
}

static void clear_plain(const struct field *field, void *at)
{
    memset(at, 0, plain_size(field->type));
}

static bool equal_plain(const struct field *field, const void *a, const void *b)
{
    return memcmp(a, b, plain_size(field->type)) == 0;
}

static void copy_object(const struct field *field, const void *from, void *to)
{
    fields_copy(field->fields, from, to);
}

static void clear_object(const struct field *field, void *at)
{
    fields_clear(field->fields, at);
}

static bool equal_object(const struct field *field, const void *a, const void *b)
{
    return fields_equal(field->fields, a, b);
}

static void copy_list(const struct field *field, const void *from, void *to)
{
    const struct any_list *old = from;
    size_t size = field->fields->size;
    struct any_list copy = {.count = old->count};
    if (old->count)
        copy.items = mem_alloc(old->count * size);
    for (size_t i = 0; i < old->count; i++)
        fields_copy(field->fields, old->items + i * size, copy.items + i * size);
    *(struct any_list *)to = copy;
}

static void clear_list(const struct field *field, void *at)
{
    struct any_list *list = at;
    for (size_t i = 0; i < list->count; i++)
        fields_clear(field->fields, list->items + i * field->fields->size);
    free(list->items);
}

static bool equal_list(const struct field *field, const void *a, const void *b)
{
    const struct any_list *x = a, *y = b;
    size_t size = field->fields->size;
    if (x->count != y->count)
        return false;
    for (size_t i = 0; i < x->count; i++)
        if (!fields_equal(field->fields, x->items + i * size, y->items + i * size))
            return false;
    return true;
}

static void copy_text_list(const struct field *field, const void *from, void *to)
{
    (void)field;
    const struct text_list *old = from;
    struct text_list copy = {.count = old->count};
    if (old->count)
        copy.items = mem_alloc(old->count * sizeof(*copy.items));
    for (size_t i = 0; i < old->count; i++)
        copy.items[i] = mem_strdup(old->items[i]);
    *(struct text_list *)to = copy;
}

static void clear_text_list(const struct field *field, void *at)
{
    (void)field;
    struct text_list *list = at;
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
}

static bool equal_text_list(const struct field *field, const void *a, const void *b)
{
    (void)field;
    const struct text_list *x = a, *y = b;
    if (x->count != y->count)
        return false;
    for (size_t i = 0; i < x->count; i++)
        if (strcmp(x->items[i], y->items[i]) != 0)
            return false;
    return true;
}

static void copy_text_map(const struct field *field, const void *from, void *to)
{
    (void)field;
    const struct text_map *old = from;
    struct text_map copy = {.count = old->count};
    if (old->count)
        copy.items = mem_alloc(old->count * sizeof(*copy.items));
    for (size_t i = 0; i < old->count; i++)
        copy.items[i] = (struct text_pair){mem_strdup(old->items[i].key), mem_strdup(old->items[i].value)};
    *(struct text_map *)to = copy;
}

static void clear_text_map(const struct field *field, void *at)
{
    (void)field;
    struct text_map *map = at;
    for (size_t i = 0; i < map->count; i++) {
        free(map->items[i].key);
        free(map->items[i].value);
    }
    free(map->items);
}

static bool equal_text_map(const struct field *field, const void *a, const void *b)
{
    (void)field;
    const struct text_map *x = a, *y = b;
    if (x->count != y->count)
        return false;
    for (size_t i = 0; i < x->count; i++)
        if (strcmp(x->items[i].key, y->items[i].key) != 0 ||
            strcmp(x->items[i].value, y->items[i].value) != 0)
            return false;
    return true;
}

// Copies are deep: a record's JSON is never shared between threads (jansson's counts are not the only state).
static void copy_json(const struct field *field, const void *from, void *to)
{
    (void)field;
    *(json_t **)to = json_deep_copy(*(json_t *const *)from);
}

static void clear_json(const struct field *field, void *at)
{
    (void)field;
    json_decref(*(json_t **)at);
}

static bool equal_json(const struct field *field, const void *a, const void *b)
{
    (void)field;
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    return x && y ? json_equal(x, y) : x == y;
}

static const struct value_ops ops[] = {
    [FIELD_TEXT] = {copy_text, clear_text, equal_text},
    [FIELD_BOOL] = {copy_plain, clear_plain, equal_plain},
    [FIELD_INT] = {copy_plain, clear_plain, equal_plain},
    [FIELD_QUANTITY] = {copy_plain, clear_plain, equal_plain},
    [FIELD_MILLI] = {copy_plain, clear_plain, equal_plain},
    [FIELD_ENUM] = {copy_plain, clear_plain, equal_plain},
    [FIELD_TIME] = {copy_plain, clear_plain, equal_plain},
    [FIELD_OBJECT] = {copy_object, clear_object, equal_object},
    [FIELD_LIST] = {copy_list, clear_list, equal_list},
    [FIELD_TEXT_LIST] = {copy_text_list, clear_text_list, equal_text_list},
    [FIELD_TEXT_MAP] = {copy_text_map, clear_text_map, equal_text_map},
    [FIELD_JSON] = {copy_json, clear_json, equal_json},
};

bool field_equal(const struct field *field, const void *a, const void *b)
{
    return ops[field->type].equal(field, FIELD_AT(a, field), FIELD_AT(b, field));
}

void fields_copy(const struct field_table *table, const void *from, void *to)
{
    memset(to, 0, table->size);
    for (size_t i = 0; i < table->count; i++) {
        const struct field *field = &table->fields[i];
        ops[field->type].copy(field, FIELD_AT(from, field), (char *)to + field->offset);
    }
}

void fields_clear(const struct field_table *table, void *at)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct field *field = &table->fields[i];
        ops[field->type].clear(field, (char *)at + field->offset);
    }
    memset(at, 0, table->size);
}

bool fields_equal(const struct field_table *table, const void *a, const void *b)
{
    for (size_t i = 0; i < table->count; i++)
        if (!field_equal(&table->fields[i], a, b))
            return false;
    return true;
}
