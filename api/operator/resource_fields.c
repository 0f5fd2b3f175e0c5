// Selecting among images. Which fields of a kind can be selected by, its field tables say.
#include "api/operator/resource.h"
#include "controller/base/memory.h"
#include "schemas/kinds/tables.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define FIELDS_MAX 32 // of one kind, the end included

// ---- the list of a kind's fields, made once
static const char *fields_of_kind[KIND_COUNT][FIELDS_MAX];
static pthread_once_t is_made = PTHREAD_ONCE_INIT;

static size_t add_marked(const struct field_table *table, const char *part, const char **to, size_t count)
{
    for (size_t i = 0; i < table->count && count < FIELDS_MAX - 1; i++)
        if (table->fields[i].is_selectable)
            to[count++] = mem_format("%s.%s", part, table->fields[i].name);
    return count;
}

static void make_lists(void)
{
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        const char **to = fields_of_kind[kind];
        size_t count = 0;
        to[count++] = "metadata.name";
        to[count++] = "metadata.uid";
        count = add_marked(kind_spec_table((enum kind)kind), "spec", to, count);
        add_marked(kind_status_table((enum kind)kind), "status", to, count);
    }
}

const char *const *resource_fields(const struct resource *resource)
{
    if (resource->fields)
        return resource->fields;
    pthread_once(&is_made, make_lists);
    return fields_of_kind[resource->record_kind];
}

// ---- values
struct view {
    const json_t *image;
    char number[32];
};

static const char *value_text(const json_t *value, char number[32])
{
    if (json_is_string(value))
        return json_string_value(value);
    if (json_is_integer(value)) {
        snprintf(number, 32, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return number;
    }
    return json_is_boolean(value) ? (json_is_true(value) ? "true" : "false") : "";
}

static const char *get_field(const void *arg, const char *path)
{
    struct view *view = (struct view *)arg;
    const json_t *at = view->image;
    char name[64];
    while (at && *path) {
        size_t len = strcspn(path, ".");
        snprintf(name, sizeof(name), "%.*s", (int)len, path);
        at = json_object_get(at, name);
        path += len + (path[len] == '.');
    }
    return value_text(at, view->number);
}

static const char *get_label(const void *arg, const char *key)
{
    return json_get_text(arg, key); // NULL: not there
}

bool image_fits(const json_t *image, const struct selector *labels, const struct selector *fields)
{
    const struct view view = {.image = image};
    return selector_fits(labels, get_label, json_object_get(image_meta(image), "labels")) &&
           selector_fits(fields, get_field, &view);
}
