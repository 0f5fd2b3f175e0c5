// What needs no asking, seen from here: objects that are as the manifest says already, and owned as an apply would leave them. It is
// what the daemon would find, by the same field tables; in doubt it is asked.
#include "cli/apply.h"
#include "cli/objects.h"
#include "controller/base/json.h"
#include "controller/fields/owned.h"
#include "controller/record_names.h"
#include "schemas/kinds/tables.h"
#include <string.h>

#define MANAGER_KUBECTL "kubectl" // has notes of its own in the object, which the daemon keeps

static void put_part(json_t *to, const char *key, json_t *part)
{
    if (json_object_size(part) || json_array_size(part))
        json_object_set(to, key, part);
}

// What field managers own of an object or a manifest.
static json_t *owned_part(enum kind kind, const json_t *object)
{
    const json_t *given = json_object_get(object, "metadata");
    json_t *spec = json_object_get(object, "spec"), *value;
    CLEANUP_JSON json_t *part = json_pack("{s:{}}", "metadata"), *annotations = json_object(), *finalizers = json_array();
    json_t *metadata = json_object_get(part, "metadata");
    const char *key;
    size_t i;
    json_object_foreach(json_object_get(given, "annotations"), key, value) if (!name_is_own(key)) json_object_set(annotations, key, value);
    json_array_foreach(json_object_get(given, "finalizers"), i, value) if (!json_is_string(value) || !name_is_own(json_string_value(value))) json_array_append(finalizers, value);
    put_part(metadata, "labels", json_object_get(given, "labels"));
    put_part(metadata, "annotations", annotations);
    put_part(metadata, "finalizers", finalizers);
    put_part(metadata, "ownerReferences", json_object_get(given, "ownerReferences"));
    if (json_is_object(spec))
        json_object_set(part, "spec", spec);
    return owned_normalize(kind_owned_table(kind), part);
}

static const json_t *applied_set(const json_t *object, const char *manager)
{
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(json_object_get(object, "metadata"), "managedFields"), i, entry)
    {
        const char *operation = json_get_text(entry, "operation"), *name = json_get_text(entry, "manager");
        if (operation && name && strcmp(operation, "Apply") == 0 && strcmp(name, manager) == 0 && !json_object_get(entry, "subresource"))
            return json_object_get(entry, "fieldsV1");
    }
    return NULL;
}

// Would its owners be the same afterwards? Either it applied just these fields before, or the manifest is what was printed.
static bool keeps_owners(const struct apply *apply, const struct apply_item *item, const json_t *set)
{
    const json_t *before = applied_set(item->before, apply->manager);
    json_t *printed = json_object_get(json_object_get(item->wanted, "metadata"), "creationTimestamp");
    if (!printed || !json_equal(printed, json_object_get(json_object_get(item->before, "metadata"), "creationTimestamp")))
        return before && json_equal(before, set);
    CLEANUP_JSON json_t *abandoned = before ? json_deep_copy(before) : json_object();
    owned_subtract(abandoned, set);
    return !json_object_size(abandoned);
}

bool apply_changes_nothing(const struct apply_item *item)
{
    enum kind kind = item->from->info->kind;
    const struct field_table *table = kind_owned_table(kind);
    CLEANUP_JSON json_t *live = owned_part(kind, item->before), *config = owned_part(kind, item->wanted);
    CLEANUP_JSON json_t *merged = owned_merge(table, live, config), *changed = owned_diff(table, live, merged);
    return !json_object_size(changed);
}

bool apply_is_settled(const struct apply *apply, const struct apply_item *item)
{
    enum kind kind = item->from->info->kind;
    if (!item->before || json_object_get(json_object_get(item->before, "metadata"), "deletionTimestamp") || strcmp(apply->manager, MANAGER_KUBECTL) == 0)
        return false;
    CLEANUP_JSON json_t *config = owned_part(kind, item->wanted), *set = owned_all(kind_owned_table(kind), config);
    return apply_changes_nothing(item) && keeps_owners(apply, item, set);
}

// A managed workspace refers to nothing that could be refused: what is left to refuse it, a full disk, is no mistake of the input.
bool apply_is_safe(const struct apply_item *item)
{
    const char *mode = json_get_text(json_object_get(item->wanted, "spec"), "mode");
    return !item->before && item->from->info->kind == KIND_WORKSPACE && (!mode || strcmp(mode, "managed") == 0);
}
