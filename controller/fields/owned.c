#include "controller/fields/owned.h"
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include <string.h>

static bool is_same(const json_t *a, const json_t *b)
{
    return a && b && json_equal(a, b);
}

// Sets set[prefix + name] = child unless child is empty. Takes child.
static void put(json_t *set, const char *prefix, const char *name, json_t *child, bool is_leaf)
{
    CLEANUP_FREE char *key = mem_format("%s%s", prefix, name);
    if (is_leaf || json_object_size(child))
        json_object_set_new(set, key, child);
    else
        json_decref(child);
}

// The name of an item in a set: its JSON text behind the prefix. Takes value.
static void put_item(json_t *set, const char *prefix, json_t *value, json_t *child)
{
    CLEANUP_JSON json_t *name = value;
    CLEANUP_FREE char *text = json_to_text(name);
    put(set, prefix, text, child, true);
}

json_t *owned_diff_map(const json_t *from, const json_t *to)
{
    json_t *set = json_object();
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)to, key, value) if (!json_is_null(value) && !is_same(json_object_get(from, key), value))
        put(set, "f:", key, json_object(), true);
    return set;
}

static const json_t *item_of(const json_t *list, const char *key, const char *value)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        const char *other = json_get_text(item, key);
        if (other && strcmp(other, value) == 0)
            return item;
    }
    return NULL;
}

static json_t *diff_list(const struct field *field, const json_t *from, const json_t *to)
{
    json_t *set = json_object();
    for (size_t i = 0; i < json_array_size(to); i++) {
        const json_t *item = json_array_get(to, i);
        const char *value = json_get_text(item, field->key);
        if (!value)
            continue;
        const json_t *before = item_of(from, field->key, value);
        json_t *child = owned_diff(field->fields, before, item);
        if (!before)
            json_object_set_new(child, ".", json_object());
        if (json_object_size(child))
            put_item(set, "k:", json_pack("{s:s}", field->key, value), child);
        else
            json_decref(child);
    }
    return set;
}

static bool has_item(const json_t *list, const json_t *item)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), item))
            return true;
    return false;
}

static json_t *diff_set(const json_t *from, const json_t *to)
{
    json_t *set = json_object();
    for (size_t i = 0; i < json_array_size(to); i++)
        if (!has_item(from, json_array_get(to, i)))
            put_item(set, "v:", json_incref(json_array_get(to, i)), json_object());
    return set;
}

static json_t *diff_field(const struct field *field, const json_t *from, const json_t *to, bool *ret_leaf)
{
    *ret_leaf = false;
    if (field->type == FIELD_OBJECT)
        return owned_diff(field->fields, from, to);
    if (field->type == FIELD_TEXT_MAP)
        return owned_diff_map(from, to);
    if (field->type == FIELD_LIST && field->key)
        return diff_list(field, from, to);
    if (field->type == FIELD_TEXT_LIST && field->is_set)
        return diff_set(from, to);
    *ret_leaf = true;
    return json_object();
}

json_t *owned_diff(const struct field_table *table, const json_t *from, const json_t *to)
{
    json_t *set = json_object();
    for (size_t i = 0; i < table->count; i++) {
        const struct field *field = &table->fields[i];
        const json_t *before = json_object_get(from, field->name), *after = json_object_get(to, field->name);
        if (!after || json_is_null(after) || is_same(before, after))
            continue;
        bool is_leaf;
        json_t *child = diff_field(field, before, after, &is_leaf);
        put(set, "f:", field->name, child, is_leaf);
    }
    return set;
}

json_t *owned_all(const struct field_table *table, const json_t *json)
{
    return owned_diff(table, NULL, json);
}
