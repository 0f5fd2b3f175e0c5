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
    struct json_span in; // an image, or its labels
    char *text;          // the last answer
};

static void view_clear(struct view *view)
{
    free(view->text);
}

static const char *keep(struct view *view, char *text)
{
    free(view->text);
    return view->text = text;
}

static const char *value_text(struct view *view, struct json_span value)
{
    if (json_span_is_string(value))
        return keep(view, json_span_to_text(value));
    bool is_shown = json_span_is_integer(value) || json_span_is(value, "true") || json_span_is(value, "false");
    return is_shown ? keep(view, mem_strndup(value.at, value.len)) : "";
}

static const char *get_field(const void *arg, const char *path)
{
    struct view *view = (struct view *)arg;
    struct json_span at = view->in;
    char name[64];
    while (at.at && *path) {
        size_t len = strcspn(path, ".");
        snprintf(name, sizeof(name), "%.*s", (int)len, path);
        at = json_member(at, name);
        path += len + (path[len] == '.');
    }
    return value_text(view, at);
}

static const char *get_label(const void *arg, const char *key)
{
    struct view *view = (struct view *)arg;
    return keep(view, json_span_to_text(json_member(view->in, key))); // NULL: not there
}

bool image_fits(struct json_span image, const struct selector *labels, const struct selector *fields)
{
    CLEANUP(view_clear) struct view of_labels = {0};
    CLEANUP(view_clear) struct view of_fields = {.in = image};
    if (labels->count)
        of_labels.in = json_member(image_meta(image), "labels");
    return selector_fits(labels, get_label, &of_labels) && selector_fits(fields, get_field, &of_fields);
}
