// managedFields: who set which field, as Kubernetes keeps it for every write with operation Update.
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/fields/owned.h"
#include "controller/fields/write.h"
#include "controller/record.h"
#include "schemas/kinds/tables.h"
#include <string.h>

#define MAX_UPDATE_MANAGERS 32
#define ANCIENT_MANAGER "ancient-changes"

static void put_set(json_t *to, const char *key, json_t *set)
{
    if (json_object_size(set))
        json_object_set(to, key, set);
    json_decref(set);
}

static json_t *diff_maps(const struct text_map *from, const struct text_map *to)
{
    CLEANUP_JSON json_t *before = from ? text_map_to_json(from) : NULL;
    CLEANUP_JSON json_t *after = text_map_to_json(to);
    return owned_diff_map(before, after);
}

// The owned leaves of `to` that `from` (NULL: nothing) does not have with the same value.
static json_t *diff_records(const struct record *from, const struct record *to)
{
    CLEANUP_JSON json_t *before = from ? record_spec_to_json(from) : NULL;
    CLEANUP_JSON json_t *after = record_spec_to_json(to);
    json_t *set = json_object(), *metadata = json_object();
    put_set(metadata, "f:labels", diff_maps(from ? &from->meta.labels : NULL, &to->meta.labels));
    put_set(metadata, "f:annotations",
            diff_maps(from ? &from->meta.annotations : NULL, &to->meta.annotations));
    put_set(set, "f:metadata", metadata);
    put_set(set, "f:spec", owned_diff(kind_spec_table(to->kind), before, after));
    return set;
}

static bool is_update(const json_t *entry)
{
    const char *operation = json_get_text(entry, "operation");
    return operation && strcmp(operation, "Update") == 0;
}

static bool is_update_by(const json_t *entry, const char *manager)
{
    const char *name = json_get_text(entry, "manager");
    return is_update(entry) && name && strcmp(name, manager) == 0;
}

static void stamp(json_t *entry, struct wall_time now)
{
    char text[WALL_TIME_TEXT_SIZE];
    wall_time_format(now, text);
    json_set_text(entry, "time", text);
}

static json_t *entry_of(json_t *entries, const char *manager)
{
    for (size_t i = 0; i < json_array_size(entries); i++)
        if (is_update_by(json_array_get(entries, i), manager))
            return json_array_get(entries, i);
    json_t *entry =
        json_pack("{s:o, s:s, s:s, s:s, s:{}}", "manager", json_from_text(manager), "operation", "Update",
                  "apiVersion", API_GROUP "/" API_VERSION, "fieldsType", "FieldsV1", "fieldsV1");
    json_array_append_new(entries, entry);
    return entry;
}

// What changed belongs to whoever changed it: all others lose it, appliers too.
static void take_from_all(json_t *entries, const json_t *touched)
{
    for (size_t i = json_array_size(entries); i-- > 0;) {
        json_t *fields = json_object_get(json_array_get(entries, i), "fieldsV1");
        owned_subtract(fields, touched);
        if (!json_object_size(fields))
            json_array_remove(entries, i);
    }
}

static size_t count_updates(const json_t *entries)
{
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(entries); i++)
        count += is_update(json_array_get(entries, i));
    return count;
}

// RFC 3339 in UTC sorts as text; an entry without time is oldest.
static bool is_older(const json_t *a, const json_t *b)
{
    const char *x = json_get_text(a, "time"), *y = json_get_text(b, "time");
    return strcmp(x ? x : "", y ? y : "") < 0;
}

static size_t find_oldest_update(const json_t *entries, const json_t *except)
{
    size_t oldest = SIZE_MAX;
    for (size_t i = 0; i < json_array_size(entries); i++) {
        const json_t *entry = json_array_get(entries, i);
        if (entry == except || !is_update(entry) || is_update_by(entry, ANCIENT_MANAGER))
            continue;
        if (oldest == SIZE_MAX || is_older(entry, json_array_get(entries, oldest)))
            oldest = i;
    }
    return oldest;
}

static void merge_oldest(json_t *entries, const json_t *except)
{
    size_t at = find_oldest_update(entries, except);
    if (at == SIZE_MAX)
        return;
    CLEANUP_JSON json_t *old = json_incref(json_array_get(entries, at));
    json_array_remove(entries, at);
    json_t *ancient = entry_of(entries, ANCIENT_MANAGER);
    owned_add(json_object_get(ancient, "fieldsV1"), json_object_get(old, "fieldsV1"));
    json_object_set(ancient, "time", json_object_get(old, "time"));
}

static void bound_managers(json_t *entries, const json_t *newest)
{
    while (count_updates(entries) > MAX_UPDATE_MANAGERS)
        merge_oldest(entries, newest);
}

void record_touch_managed(struct record *record, const struct record *before, const char *manager,
                          struct wall_time now)
{
    CLEANUP_JSON json_t *changed = diff_records(before, record);
    CLEANUP_JSON json_t *touched = before ? diff_records(record, before) : json_object();
    owned_add(touched, changed);
    if (!json_object_size(touched))
        return;
    if (!record->meta.managed_fields)
        record->meta.managed_fields = json_array();
    json_t *entries = record->meta.managed_fields;
    take_from_all(entries, touched);
    if (!json_object_size(changed))
        return;
    json_t *mine = entry_of(entries, manager);
    owned_add(json_object_get(mine, "fieldsV1"), changed);
    stamp(mine, now);
    bound_managers(entries, mine);
}
