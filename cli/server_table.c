#include "cli/server_table.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include "controller/fields/fields.h"
#include <stdlib.h>
#include <string.h>

#define LABELS_MAX_BYTES (256 * 1024)

static const json_t *labels_of(const json_t *row)
{
    return json_object_get(json_object_get(json_object_get(row, "object"), "metadata"), "labels");
}

static void add_heading(json_t *table, const char *name)
{
    json_t *columns = json_object_get(table, "columnDefinitions");
    if (json_array_size(columns)) // an event of a watch may come without
        json_array_append_new(columns, json_pack("{s:s, s:s, s:i}", "name", name, "type", "string", "priority", 0));
}

void server_table_add_label(json_t *table, const char *key)
{
    const char *slash = strrchr(key, '/');
    json_t *row;
    size_t i;
    add_heading(table, slash ? slash + 1 : key);
    json_array_foreach(json_object_get(table, "rows"), i, row)
        json_array_append_new(json_object_get(row, "cells"), json_from_text(json_get_text(labels_of(row), key)));
}

static json_t *word_labels(const json_t *labels)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(LABELS_MAX_BYTES);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)labels, key, value)
        buffer_format(&text, "%s%s=%s", text.len ? "," : "", key, json_is_string(value) ? json_string_value(value) : "");
    return json_from_text(buffer_text(&text));
}

void server_table_add_labels(json_t *table)
{
    json_t *row;
    size_t i;
    add_heading(table, "Labels");
    json_array_foreach(json_object_get(table, "rows"), i, row)
        json_array_append_new(json_object_get(row, "cells"), word_labels(labels_of(row)));
}

void server_table_add_word(json_t *table, const char *heading, const char *word)
{
    json_t *columns = json_object_get(table, "columnDefinitions"), *row;
    size_t i;
    if (json_array_size(columns))
        json_array_insert_new(columns, 0, json_pack("{s:s, s:s, s:i}", "name", heading, "type", "string", "priority", 0));
    json_array_foreach(json_object_get(table, "rows"), i, row)
        json_array_insert_new(json_object_get(row, "cells"), 0, json_string(word));
}

void server_table_qualify(json_t *table, const char *singular)
{
    json_t *row;
    size_t i;
    json_array_foreach(json_object_get(table, "rows"), i, row)
    {
        const char *name = json_get_text(json_object_get(json_object_get(row, "object"), "metadata"), "name");
        CLEANUP_FREE char *whole = mem_format("%s/%s", singular, name ? name : "");
        json_t *cells = json_object_get(row, "cells"), *first = json_array_get(cells, 0);
        if (name && json_is_string(first) && strcmp(json_string_value(first), name) == 0)
            json_array_set_new(cells, 0, json_from_text(whole));
    }
}

void server_table_append(json_t *table, const json_t *more)
{
    json_array_extend(json_object_get(table, "rows"), json_object_get(more, "rows"));
}

// ---- order --------------------------------------------------------------------------------------------------------------
struct sorted {
    json_t *item; // a reference
    json_t *key;  // borrowed; NULL: none
    size_t index;
};

// What is a number, or reads as one: "512Mi", "1.5", "500m".
static bool read_number(const json_t *value, double *ret)
{
    int64_t whole;
    if (json_is_number(value)) {
        *ret = json_number_value(value);
        return true;
    }
    if (!json_is_string(value))
        return false;
    if (quantity_parse(json_string_value(value), &whole) == 0) {
        *ret = (double)whole;
        return true;
    }
    if (milli_parse(json_string_value(value), &whole) < 0)
        return false;
    *ret = (double)whole / 1000;
    return true;
}

static int compare_keys(const json_t *a, const json_t *b)
{
    double left, right;
    bool is_left = read_number(a, &left), is_right = read_number(b, &right);
    if (is_left && is_right)
        return (left > right) - (left < right);
    if (is_left != is_right)
        return is_left ? -1 : 1; // numbers before text: one order for all
    CLEANUP_FREE char *left_text = path_value_text(a);
    CLEANUP_FREE char *right_text = path_value_text(b);
    return strcmp(left_text, right_text);
}

static int compare(const void *left, const void *right)
{
    const struct sorted *a = left, *b = right;
    int order = a->key && b->key ? compare_keys(a->key, b->key) : (a->key != NULL) - (b->key != NULL);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

static int find_key(json_t *object, const struct json_expression *by, json_t **ret, struct error *err)
{
    CLEANUP(path_values_free) struct path_values values = {0};
    if (json_expression_find(by, object, &values, err) < 0)
        return -1;
    *ret = values.count ? values.items[0] : NULL;
    return 0;
}

static int sort(json_t *items, const char *member, const struct json_expression *by, struct error *err)
{
    size_t count = json_array_size(items);
    CLEANUP_FREE struct sorted *sorted = mem_alloc((count + 1) * sizeof(*sorted));
    int r = 0;
    for (size_t i = 0; i < count && r == 0; i++) {
        sorted[i] = (struct sorted){.item = json_array_get(items, i), .index = i};
        r = find_key(member ? json_object_get(sorted[i].item, member) : sorted[i].item, by, &sorted[i].key, err);
    }
    if (r < 0)
        return -1;
    qsort(sorted, count, sizeof(*sorted), compare);
    CLEANUP_JSON json_t *ordered = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append(ordered, sorted[i].item);
    json_array_clear(items);
    json_array_extend(items, ordered);
    return 0;
}

int server_table_sort(json_t *table, const struct json_expression *by, struct error *err)
{
    return sort(json_object_get(table, "rows"), "object", by, err);
}

int server_items_sort(json_t *items, const struct json_expression *by, struct error *err)
{
    return sort(items, NULL, by, err);
}
