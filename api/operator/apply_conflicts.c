// Whose fields an apply would change, in the words that kubectl's users know.
#include "api/operator/apply_conflicts.h"
#include "api/operator/apply.h"
#include "api/operator/body.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include "controller/fields/owned.h"
#include "schemas/kinds/tables.h"
#include <string.h>

#define CAUSE_CONFLICT "FieldManagerConflict"

void conflicts_clear(struct conflicts *conflicts)
{
    json_decref(conflicts->entries);
    json_decref(conflicts->sets);
}

struct conflicts conflicts_find(const json_t *others, const json_t *changed)
{
    struct conflicts conflicts = {json_array(), json_array()};
    size_t i;
    json_t *entry;
    json_array_foreach((json_t *)others, i, entry)
    {
        json_t *both = owned_intersect(json_object_get(entry, "fieldsV1"), changed);
        if (json_object_size(both)) {
            json_array_append(conflicts.entries, entry);
            json_array_append(conflicts.sets, both);
        }
        json_decref(both);
    }
    return conflicts;
}

void conflicts_subtract(struct conflicts *conflicts, const json_t *allowed)
{
    for (size_t i = json_array_size(conflicts->sets); i-- > 0;) {
        json_t *set = json_array_get(conflicts->sets, i);
        owned_subtract(set, allowed);
        if (json_object_size(set))
            continue;
        json_array_remove(conflicts->sets, i);
        json_array_remove(conflicts->entries, i);
    }
}

static char *word_manager(const json_t *entry)
{
    const char *operation = json_get_text(entry, "operation"), *subresource = json_get_text(entry, "subresource");
    const char *manager = json_get_text(entry, "manager"), *version = json_get_text(entry, "apiVersion");
    const char *time = json_get_text(entry, "time");
    if (operation && strcmp(operation, "Apply") == 0)
        return mem_format("\"%s\"", manager);
    return mem_format("\"%s\"%s%s%s using %s%s%s", manager, subresource ? " with subresource \"" : "", subresource ? subresource : "",
                      subresource ? "\"" : "", version ? version : API_GROUP "/" API_VERSION, time ? " at " : "", time ? time : "");
}

static size_t put_conflict(struct buffer *text, const json_t *entry, const json_t *set, json_t *causes)
{
    CLEANUP_FREE char *manager = word_manager(entry);
    CLEANUP_JSON json_t *paths = owned_paths(set, APPLY_CONFLICTS_MAX);
    size_t i;
    json_t *path;
    buffer_format(text, "%sconflicts with %s:", text->len ? "\n" : "", manager);
    json_array_foreach(paths, i, path)
    {
        body_add_cause(causes, json_string_value(path), CAUSE_CONFLICT, "conflict with %s", manager);
        buffer_format(text, "\n- %s", json_string_value(path));
    }
    return json_array_size(paths);
}

int conflicts_to_error(const struct conflicts *conflicts, json_t *causes, struct error *err)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(sizeof(err->message) - 100);
    size_t count = 0, i;
    json_t *entry;
    json_array_foreach(conflicts->entries, i, entry) count += put_conflict(&text, entry, json_array_get(conflicts->sets, i), causes);
    const char *hint = "leave these fields out, give them the value that they have, or apply with force";
    if (count != 1)
        return error_set(err, ERROR_CONFLICT, hint, "Apply failed with %zu conflicts: %s", count, buffer_text(&text));
    const json_t *only = json_array_get(causes, json_array_size(causes) - 1);
    return error_set(err, ERROR_CONFLICT, hint, "Apply failed with 1 conflict: %s: %s", json_get_text(only, "message"),
                     json_get_text(only, "field"));
}
