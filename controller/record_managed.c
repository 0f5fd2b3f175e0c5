// managedFields: who set which field, as Kubernetes keeps it.
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/fields/owned.h"
#include "controller/fields/write.h"
#include "controller/record.h"
#include "controller/record_names.h"
#include "schemas/kinds/tables.h"
#include <string.h>

#define MAX_UPDATE_MANAGERS 32
#define ANCIENT_MANAGER "ancient-changes"
#define MAX_GIVEN_MANAGERS 100
#define MANAGER_MAX_BYTES 128

static json_t *annotations_of(const struct text_map *map)
{
    json_t *object = json_object();
    for (size_t i = 0; i < map->count; i++)
        if (!name_is_own(map->items[i].key))
            json_set_text(object, map->items[i].key, map->items[i].value);
    return object;
}

static json_t *finalizers_of(const struct text_list *list)
{
    json_t *array = json_array();
    for (size_t i = 0; i < list->count; i++)
        if (!name_is_own(list->items[i]))
            json_array_append_new(array, json_from_text(list->items[i]));
    return array;
}

static void put_part(json_t *to, const char *key, json_t *part)
{
    if (json_object_size(part) || json_array_size(part))
        json_object_set(to, key, part);
    json_decref(part);
}

json_t *record_owned_json(const struct record *record)
{
    json_t *metadata = json_object(), *object = json_object();
    put_part(metadata, "labels", text_map_to_json(&record->meta.labels));
    put_part(metadata, "annotations", annotations_of(&record->meta.annotations));
    put_part(metadata, "finalizers", finalizers_of(&record->meta.finalizers));
    put_part(metadata, "ownerReferences", owners_to_json(&record->meta.owners));
    json_object_set_new(object, "metadata", metadata);
    json_object_set_new(object, "spec", record_spec_to_json(record));
    return object;
}

static bool is_text(const json_t *entry, const char *key, const char *wanted)
{
    const char *text = json_get_text(entry, key);
    return strcmp(text ? text : "", wanted) == 0;
}

static bool is_update(const json_t *entry)
{
    return is_text(entry, "operation", "Update");
}

// Of the object itself: a subresource's entries are managers of their own.
static bool is_by(const json_t *entry, const char *manager, const char *operation)
{
    return is_text(entry, "operation", operation) && is_text(entry, "manager", manager) && is_text(entry, "subresource", "");
}

static void stamp(json_t *entry, struct wall_time now)
{
    char text[WALL_TIME_TEXT_SIZE];
    wall_time_format(now, text);
    json_set_text(entry, "time", text);
}

static json_t *find_entry(const json_t *entries, const char *manager, const char *operation)
{
    for (size_t i = 0; i < json_array_size(entries); i++)
        if (is_by(json_array_get(entries, i), manager, operation))
            return json_array_get(entries, i);
    return NULL;
}

static json_t *entry_of(json_t *entries, const char *manager, const char *operation)
{
    json_t *entry = find_entry(entries, manager, operation);
    if (entry)
        return entry;
    entry = json_pack("{s:o, s:s, s:s, s:s, s:{}}", "manager", json_from_text(manager), "operation", operation,
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
        if (entry == except || !is_update(entry) || is_by(entry, ANCIENT_MANAGER, "Update"))
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
    json_t *ancient = entry_of(entries, ANCIENT_MANAGER, "Update");
    owned_add(json_object_get(ancient, "fieldsV1"), json_object_get(old, "fieldsV1"));
    json_object_set(ancient, "time", json_object_get(old, "time"));
}

static void bound_managers(json_t *entries, const json_t *newest)
{
    while (count_updates(entries) > MAX_UPDATE_MANAGERS)
        merge_oldest(entries, newest);
}

struct changes {
    json_t *changed, *touched; // what the record has now; and also what it has no more
};

static void changes_clear(struct changes *changes)
{
    json_decref(changes->changed);
    json_decref(changes->touched);
}

static struct changes find_changes(const struct record *before, const struct record *record)
{
    const struct field_table *table = kind_owned_table(record->kind);
    CLEANUP_JSON json_t *from = before ? record_owned_json(before) : NULL;
    CLEANUP_JSON json_t *to = record_owned_json(record);
    struct changes changes = {owned_diff(table, from, to), from ? owned_diff(table, to, from) : json_object()};
    owned_add(changes.touched, changes.changed);
    return changes;
}

static json_t *own_entries(struct record *record)
{
    if (!record->meta.managed_fields)
        record->meta.managed_fields = json_array();
    return record->meta.managed_fields;
}

void record_touch_managed(struct record *record, const struct record *before, const char *manager,
                          struct wall_time now)
{
    CLEANUP(changes_clear) struct changes changes = find_changes(before, record);
    if (!json_object_size(changes.touched))
        return;
    json_t *entries = own_entries(record);
    take_from_all(entries, changes.touched);
    if (!json_object_size(changes.changed))
        return;
    json_t *mine = entry_of(entries, manager, "Update");
    owned_add(json_object_get(mine, "fieldsV1"), changes.changed);
    stamp(mine, now);
    bound_managers(entries, mine);
}

static void drop_entry(json_t *entries, const json_t *entry)
{
    for (size_t i = 0; i < json_array_size(entries); i++)
        if (json_array_get(entries, i) == entry) {
            json_array_remove(entries, i);
            return;
        }
}

void record_apply_managed(struct record *record, const struct record *before, const char *manager,
                          const json_t *set, struct wall_time now)
{
    CLEANUP(changes_clear) struct changes changes = find_changes(before, record);
    json_t *entries = own_entries(record), *mine = find_entry(entries, manager, "Apply");
    bool is_same = before && !json_object_size(changes.touched) && mine && json_equal(json_object_get(mine, "fieldsV1"), set);
    if (is_same)
        return;
    if (mine)
        drop_entry(entries, mine);
    if (before)
        take_from_all(entries, changes.touched);
    if (!json_object_size(set))
        return;
    mine = entry_of(entries, manager, "Apply");
    json_object_set_new(mine, "fieldsV1", json_deep_copy(set));
    stamp(mine, now);
}

const json_t *record_applied_by(const struct record *record, const char *manager)
{
    return json_object_get(find_entry(record->meta.managed_fields, manager, "Apply"), "fieldsV1");
}

json_t *record_managed_by_others(const struct record *record, const char *manager)
{
    const json_t *entries = record->meta.managed_fields, *mine = find_entry(entries, manager, "Apply");
    json_t *others = json_array();
    for (size_t i = 0; i < json_array_size(entries); i++)
        if (json_array_get(entries, i) != mine)
            json_array_append(others, json_array_get(entries, i));
    return others;
}

// ---- what clients send
// -------------------------------------------------------------------------------------------------------
static bool is_valid_entry(const json_t *entry)
{
    const char *manager = json_get_text(entry, "manager");
    bool is_operation = is_text(entry, "operation", "Apply") || is_update(entry);
    return manager && *manager && strlen(manager) <= MANAGER_MAX_BYTES && is_operation &&
           is_text(entry, "apiVersion", API_GROUP "/" API_VERSION) && is_text(entry, "fieldsType", "FieldsV1") &&
           owned_is_valid(json_object_get(entry, "fieldsV1"));
}

static json_t *take_entry(const json_t *entry)
{
    static const char *const members[] = {"manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"};
    json_t *taken = json_object();
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        json_t *value = json_object_get(entry, members[i]);
        if (value && (json_is_string(value) || strcmp(members[i], "fieldsV1") == 0))
            json_object_set_new(taken, members[i], json_deep_copy(value));
    }
    return taken;
}

static bool is_reset(const json_t *given)
{
    return !json_array_size(given) || (json_array_size(given) == 1 && json_is_object(json_array_get(given, 0)) &&
                                       !json_object_size(json_array_get(given, 0)));
}

void record_set_managed(struct record *record, const json_t *given)
{
    CLEANUP_JSON json_t *entries = json_array();
    if (!json_is_array(given) || json_array_size(given) > MAX_GIVEN_MANAGERS)
        return;
    for (size_t i = 0; i < json_array_size(given) && !is_reset(given); i++) {
        const json_t *entry = json_array_get(given, i);
        if (!is_valid_entry(entry))
            return;
        json_array_append_new(entries, take_entry(entry));
    }
    json_decref(record->meta.managed_fields);
    record->meta.managed_fields = json_incref(entries);
}
