// Objects and field sets: what an apply makes of an object.
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/fields/owned.h"
#include "controller/fields/values.h"
#include <string.h>

static bool is_keyed(const struct field *field)
{
    return field->type == FIELD_LIST && field->key;
}

static bool is_text_set(const struct field *field)
{
    return field->type == FIELD_TEXT_LIST && field->is_set;
}

static size_t find_item(const json_t *list, const char *key, const char *value)
{
    size_t i = 0;
    for (; i < json_array_size(list); i++) {
        const char *other = json_get_text(json_array_get(list, i), key);
        if (other && value && strcmp(other, value) == 0)
            break;
    }
    return i;
}

static bool has_value(const json_t *list, const json_t *value)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), value))
            return true;
    return false;
}

// ---- merging
// -----------------------------------------------------------------------------------------------------------
static json_t *merge_list(const struct field *field, const json_t *live, const json_t *config)
{
    json_t *merged = json_copy((json_t *)live);
    for (size_t i = 0; i < json_array_size(config); i++) {
        json_t *item = json_array_get(config, i);
        size_t at = find_item(merged, field->key, json_get_text(item, field->key));
        if (at == json_array_size(merged))
            json_array_append(merged, item);
        else
            json_array_set_new(merged, at, owned_merge(field->fields, json_array_get(merged, at), item));
    }
    return merged;
}

static json_t *merge_set(const json_t *live, const json_t *config)
{
    json_t *merged = json_copy((json_t *)live);
    for (size_t i = 0; i < json_array_size(config); i++)
        if (!has_value(merged, json_array_get(config, i)))
            json_array_append(merged, json_array_get(config, i));
    return merged;
}

static json_t *merge_map(const json_t *live, const json_t *config)
{
    json_t *merged = json_copy((json_t *)live), *value;
    const char *key;
    json_object_foreach((json_t *)config, key, value) if (!json_is_null(value)) json_object_set(merged, key, value);
    return merged;
}

static json_t *merge_value(const struct field *field, const json_t *live, json_t *config)
{
    if (!live || !field || json_typeof(live) != json_typeof(config))
        return json_incref(config);
    if (field->type == FIELD_OBJECT)
        return owned_merge(field->fields, live, config);
    if (field->type == FIELD_TEXT_MAP)
        return merge_map(live, config);
    if (is_keyed(field))
        return merge_list(field, live, config);
    return is_text_set(field) ? merge_set(live, config) : json_incref(config);
}

json_t *owned_merge(const struct field_table *table, const json_t *live, const json_t *config)
{
    json_t *merged = json_is_object(live) ? json_copy((json_t *)live) : json_object(), *value;
    const char *name;
    if (!json_is_object(config)) {
        json_decref(merged);
        return json_incref((json_t *)config);
    }
    json_object_foreach((json_t *)config, name, value)
    {
        const struct field *field = field_by_name(table, name, strlen(name));
        if (!json_is_null(value))
            json_object_set_new(merged, name, merge_value(field, json_object_get(live, name), value));
    }
    return merged;
}

// ---- removing
// ----------------------------------------------------------------------------------------------------------
static bool is_leaf(const json_t *node)
{
    return json_object_size(node) == 0;
}

static char *item_name(const struct field *field, json_t *item)
{
    CLEANUP_JSON json_t *name = is_keyed(field) ? json_pack("{s:O?}", field->key, json_object_get(item, field->key)) : json_incref(item);
    CLEANUP_FREE char *text = json_to_text(name);
    return mem_format("%s%s", is_keyed(field) ? "k:" : "v:", text);
}

// What is left of a keyed item: NULL if it goes as a whole. Its key stays as long as it does.
static json_t *item_without(const struct field *field, json_t *item, const json_t *node)
{
    json_t *copy = json_copy(item);
    owned_remove(field->fields, copy, node);
    json_object_del(copy, field->key);
    bool goes = is_leaf(node) || (json_object_get(node, ".") && !json_object_size(copy));
    if (goes) {
        json_decref(copy);
        return NULL;
    }
    json_object_set(copy, field->key, json_object_get(item, field->key));
    return copy;
}

static json_t *remove_items(const struct field *field, const json_t *list, const json_t *set)
{
    json_t *kept = json_array();
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *item = json_array_get(list, i);
        CLEANUP_FREE char *key = item_name(field, item);
        const json_t *node = json_object_get(set, key);
        json_t *left = !node ? json_incref(item) : is_keyed(field) ? item_without(field, item, node) : NULL;
        if (left)
            json_array_append_new(kept, left);
    }
    return kept;
}

static json_t *remove_keys(const json_t *map, const json_t *set)
{
    json_t *kept = json_copy((json_t *)map), *value;
    const char *key;
    json_object_foreach((json_t *)set, key, value) if (strncmp(key, "f:", 2) == 0) json_object_del(kept, key + 2);
    return kept;
}

static bool is_empty(const json_t *value)
{
    return json_is_object(value) ? !json_object_size(value) : json_is_array(value) && !json_array_size(value);
}

static json_t *without(const struct field *field, json_t *value, const json_t *node)
{
    if (is_leaf(node))
        return NULL;
    if (field->type == FIELD_TEXT_MAP)
        return remove_keys(value, node);
    if (is_keyed(field) || is_text_set(field))
        return remove_items(field, value, node);
    if (field->type != FIELD_OBJECT)
        return NULL;
    json_t *copy = json_copy(value);
    owned_remove(field->fields, copy, node);
    return copy;
}

void owned_remove(const struct field_table *table, json_t *json, const json_t *set)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct field *field = &table->fields[i];
        CLEANUP_FREE char *key = mem_format("f:%s", field->name);
        const json_t *node = json_object_get(set, key);
        json_t *value = json_object_get(json, field->name);
        if (!node || !value)
            continue;
        CLEANUP_JSON json_t *left = without(field, value, node);
        if (left && !is_empty(left))
            json_object_set(json, field->name, left);
        else
            json_object_del(json, field->name);
    }
}

// ---- one form for every value
// ------------------------------------------------------------------------------------------
static json_t *normalize_field(const struct field *field, json_t *value)
{
    const struct field one = *field;
    const struct field_table table = {.size = field->offset + 64, .fields = &one, .count = 1};
    CLEANUP_JSON json_t *wrapped = json_object();
    CLEANUP_FREE void *scratch = mem_alloc(table.size);
    json_object_set(wrapped, field->name, value);
    if (fields_from_json(&table, wrapped, scratch, false, "", NULL, NULL) < 0)
        return json_incref(value);
    CLEANUP_JSON json_t *written = fields_to_json(&table, scratch);
    json_t *normal = json_object_get(written, field->name);
    fields_clear(&table, scratch);
    return json_incref(normal ? normal : value);
}

static json_t *normalize_value(const struct field *field, json_t *value)
{
    if (field->type == FIELD_OBJECT)
        return owned_normalize(field->fields, value);
    if (!is_keyed(field))
        return field->type == FIELD_TEXT_MAP ? json_incref(value) : normalize_field(field, value);
    if (!json_is_array(value))
        return json_incref(value);
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(value); i++)
        json_array_append_new(list, owned_normalize(field->fields, json_array_get(value, i)));
    return list;
}

json_t *owned_normalize(const struct field_table *table, const json_t *json)
{
    json_t *normal = json_copy((json_t *)json), *value;
    const char *name;
    if (!json_is_object(json))
        return normal;
    json_object_foreach((json_t *)json, name, value)
    {
        const struct field *field = field_by_name(table, name, strlen(name));
        if (field && !json_is_null(value))
            json_object_set_new(normal, name, normalize_value(field, value));
    }
    return normal;
}
