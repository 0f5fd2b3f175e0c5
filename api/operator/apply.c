#include "api/operator/apply.h"
#include "api/operator/apply_conflicts.h"
#include "api/operator/body.h"
#include "controller/base/memory.h"
#include "controller/fields/owned.h"
#include "controller/fields/fields.h"
#include "schemas/kinds/tables.h"
#include <string.h>

// kubectl's own notes of client-side applies. Who moves to server-side applies under its name takes the fields along that
// these notes have, and keeps the notes right, so that there is a way back.
#define MANAGER_KUBECTL "kubectl"
#define NOTES_MAX_BYTES (128 * 1024)
#define ANNOTATION_LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

void applied_clear(struct applied *applied)
{
    json_decref(applied->object);
    json_decref(applied->set);
    free(applied->notes);
    *applied = (struct applied){0};
}

// ---- options
// ------------------------------------------------------------------------------------------------------------
bool call_is_forced(const struct call *call)
{
    const char *force = call->query[QUERY_FORCE];
    return force && (strcmp(force, "true") == 0 || strcmp(force, "1") == 0);
}

static int refuse_option(json_t *causes, const char *field, const char *reason, const char *message, struct error *err)
{
    body_add_cause(causes, field, reason, "%s", message);
    return error_set(err, ERROR_INVALID, NULL, "PatchOptions.meta.k8s.io \"\" is invalid: %s: %s", field, message);
}

int apply_check_options(const struct call *call, json_t *causes, struct error *err)
{
    const char *manager = call->query[QUERY_FIELD_MANAGER];
    if (call->patch != PATCH_APPLY)
        return call_is_forced(call) ? refuse_option(causes, "force", CAUSE_FORBIDDEN, "Forbidden: may not be specified for non-apply patch", err) : 0;
    if (!manager || !*manager)
        return refuse_option(causes, "fieldManager", CAUSE_REQUIRED, "Required value: is required for apply patch", err);
    const json_t *managed = json_object_get(json_object_get(call->body, "metadata"), "managedFields");
    if (managed && !json_is_null(managed))
        return error_set(err, ERROR_USAGE, "leave them out: who applies says what it owns by naming it", "metadata.managedFields must be nil");
    return 0;
}

// ---- the configuration
// -------------------------------------------------------------------------------------------------------
static bool is_own(const char *text)
{
    return strncmp(text, ANNOTATIONS_OWN_PREFIX, strlen(ANNOTATIONS_OWN_PREFIX)) == 0;
}

static json_t *own_left_out(const json_t *value)
{
    const char *key;
    json_t *item, *kept = json_is_object(value) ? json_object() : json_is_array(value) ? json_array() : json_deep_copy(value);
    size_t i;
    json_object_foreach((json_t *)value, key, item) if (!is_own(key)) json_object_set(kept, key, item);
    json_array_foreach((json_t *)value, i, item) if (!json_is_string(item) || !is_own(json_string_value(item))) json_array_append(kept, item);
    return kept;
}

// What the body names of the fields that managers own.
static json_t *config_of(enum kind kind, const json_t *body)
{
    static const struct {
        const char *name;
        bool has_own; // entries of the server's own, which nobody applies
    } parts[] = {{"labels", false}, {"annotations", true}, {"finalizers", true}, {"ownerReferences", false}};
    const json_t *given = json_object_get(body, "metadata"), *spec = json_object_get(body, "spec");
    CLEANUP_JSON json_t *config = json_object();
    json_t *metadata = json_object();
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        json_t *value = json_object_get(given, parts[i].name);
        if (value && !json_is_null(value))
            json_object_set_new(metadata, parts[i].name, parts[i].has_own ? own_left_out(value) : json_incref(value));
    }
    json_object_set_new(config, "metadata", metadata);
    if (spec && !json_is_null(spec))
        json_object_set(config, "spec", (json_t *)spec);
    return owned_normalize(kind_owned_table(kind), config);
}

json_t *apply_set_of(enum kind kind, const json_t *body)
{
    CLEANUP_JSON json_t *config = config_of(kind, body);
    return owned_all(kind_owned_table(kind), config);
}

// ---- client-side applies
// -----------------------------------------------------------------------------------------------------------
static json_t *read_notes(enum kind kind, const struct record *current)
{
    const char *text = text_map_get(&current->meta.annotations, ANNOTATION_LAST_APPLIED);
    CLEANUP_JSON json_t *notes = NULL;
    if (!text || json_parse(text, strlen(text), &notes, NULL) < 0 || !json_is_object(notes))
        return NULL;
    return config_of(kind, notes);
}

// Fields of the notes that still have the value noted: kubectl set them, whatever name they are managed under.
static json_t *fields_of_notes(enum kind kind, const struct record *current, const json_t *live)
{
    const struct field_table *table = kind_owned_table(kind);
    CLEANUP_JSON json_t *notes = read_notes(kind, current);
    if (!notes)
        return json_object();
    json_t *allowed = owned_all(table, notes);
    CLEANUP_JSON json_t *different = owned_diff(table, live, notes);
    owned_subtract(allowed, different);
    return allowed;
}

static json_t *notes_to_write(const json_t *body)
{
    json_t *notes = json_deep_copy(body), *metadata = json_object_get(notes, "metadata");
    json_object_del(metadata, "managedFields");
    json_object_del(json_object_get(metadata, "annotations"), ANNOTATION_LAST_APPLIED);
    return notes;
}

static char *renew_notes(const struct call *call, const struct record *current, const json_t *object)
{
    const char *text = text_map_get(&current->meta.annotations, ANNOTATION_LAST_APPLIED);
    const json_t *annotations = json_object_get(json_object_get(object, "metadata"), "annotations");
    CLEANUP_JSON json_t *old = NULL;
    if (!text || strcmp(call->manager, MANAGER_KUBECTL) != 0 || !json_object_get(annotations, ANNOTATION_LAST_APPLIED))
        return NULL;
    CLEANUP_JSON json_t *notes = notes_to_write(call->body);
    if (json_parse(text, strlen(text), &old, NULL) == 0 && json_equal(old, notes))
        return NULL;
    CLEANUP_FREE char *words = json_dumps(notes, JSON_COMPACT | JSON_SORT_KEYS);
    return mem_format("%s\n", words);
}

// Behind the accounts of who owns what: the notes stay whose they are. Notes that are too long go.
static void write_notes(struct record *record, const char *notes)
{
    if (notes)
        text_map_set(&record->meta.annotations, ANNOTATION_LAST_APPLIED, strlen(notes) <= NOTES_MAX_BYTES ? notes : NULL);
}

// ---- merging
// -------------------------------------------------------------------------------------------------------------
// What the manager applied before, applies no more, and nobody else owns.
static json_t *find_abandoned(const struct record *current, const char *manager, const json_t *set, const json_t *others)
{
    const json_t *before = record_applied_by(current, manager);
    json_t *gone = before ? json_deep_copy(before) : json_object(), *entry;
    size_t i;
    owned_subtract(gone, set);
    json_array_foreach((json_t *)others, i, entry) owned_subtract(gone, json_object_get(entry, "fieldsV1"));
    return gone;
}

// The body with what came out of the merge in the place of what it had; the rest is there to be read and refused.
static json_t *build_object(const json_t *body, const json_t *merged)
{
    static const char *const parts[] = {"labels", "annotations", "finalizers", "ownerReferences"};
    json_t *object = json_copy((json_t *)body), *given = json_object_get(body, "metadata");
    const json_t *from = json_object_get(merged, "metadata");
    json_object_set_new(object, "spec", json_deep_copy(json_object_get(merged, "spec")));
    if (given && !json_is_object(given) && !json_is_null(given))
        return object;
    json_t *metadata = json_is_object(given) ? json_copy(given) : json_object();
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        json_t *value = json_object_get(from, parts[i]);
        json_object_del(metadata, parts[i]);
        if (value)
            json_object_set_new(metadata, parts[i], json_deep_copy(value));
    }
    json_object_set_new(object, "metadata", metadata);
    return object;
}

static int check_conflicts(const struct call *call, const struct record *current, const json_t *live, const json_t *others,
                           const json_t *merged, json_t *causes, struct error *err)
{
    CLEANUP_JSON json_t *changed = owned_diff(kind_owned_table(current->kind), live, merged);
    CLEANUP(conflicts_clear) struct conflicts conflicts = conflicts_find(others, changed);
    if (call_is_forced(call) || !json_array_size(conflicts.entries))
        return 0;
    if (strcmp(call->manager, MANAGER_KUBECTL) == 0) {
        CLEANUP_JSON json_t *allowed = fields_of_notes(current->kind, current, live);
        conflicts_subtract(&conflicts, allowed);
    }
    return json_array_size(conflicts.entries) ? conflicts_to_error(&conflicts, causes, err) : 0;
}

static int check_appliers(const json_t *others, struct error *err)
{
    size_t count = 0, i;
    json_t *entry;
    json_array_foreach((json_t *)others, i, entry)
    {
        const char *operation = json_get_text(entry, "operation");
        count += operation && strcmp(operation, "Apply") == 0;
    }
    return count < APPLIERS_MAX ? 0
                                : error_set(err, ERROR_LIMIT, "apply under one of their names, or reset metadata.managedFields",
                                            "the object is applied by %d field managers already, the most at once", APPLIERS_MAX);
}

// An object that nobody is noted for was made by somebody: its fields are not for the first applier to take.
static json_t *find_others(const struct record *current, const char *manager)
{
    if (json_array_size(current->meta.managed_fields))
        return record_managed_by_others(current, manager);
    CLEANUP_RECORD struct record *unowned = record_copy(current);
    record_touch_managed(unowned, NULL, MANAGER_BEFORE_FIRST, current->meta.created_at);
    return unowned->meta.managed_fields ? json_deep_copy(unowned->meta.managed_fields) : json_array();
}

int apply_merge(const struct call *call, const struct record *current, struct applied *ret, json_t *causes, struct error *err)
{
    const struct field_table *table = kind_owned_table(current->kind);
    CLEANUP_JSON json_t *live = record_owned_json(current);
    CLEANUP_JSON json_t *config = config_of(current->kind, call->body);
    CLEANUP_JSON json_t *set = owned_all(table, config);
    CLEANUP_JSON json_t *others = find_others(current, call->manager);
    CLEANUP_JSON json_t *merged = owned_merge(table, live, config);
    CLEANUP_JSON json_t *gone = find_abandoned(current, call->manager, set, others);
    owned_remove(table, merged, gone);
    if (check_appliers(others, err) < 0 || check_conflicts(call, current, live, others, merged, causes, err) < 0)
        return -1;
    *ret = (struct applied){.object = build_object(call->body, merged), .set = json_incref(set)};
    ret->notes = renew_notes(call, current, ret->object);
    return 0;
}

// Nobody writes down when an object was made: who states it, and it is right, gives back what the server printed of this object.
static bool has_printed_metadata(const struct record *before, const struct call *call)
{
    const char *made_at = json_get_text(json_object_get(call->body, "metadata"), "creationTimestamp");
    char text[WALL_TIME_TEXT_SIZE];
    wall_time_format(before->meta.created_at, text);
    return made_at && strcmp(made_at, text) == 0;
}

// What the server printed of the object as it is asks for nothing: nobody takes anything over.
static bool is_as_printed(const struct record *record, const struct record *before, const struct call *call)
{
    CLEANUP_JSON json_t *old = record_owned_json(before);
    CLEANUP_JSON json_t *new = record_owned_json(record);
    return has_printed_metadata(before, call) && json_equal(old, new);
}

void apply_own(struct record *record, const struct record *before, const struct applied *applied, const struct call *call,
               struct wall_time now)
{
    if (is_as_printed(record, before, call))
        return;
    if (!json_array_size(before->meta.managed_fields))
        record_touch_managed(record, NULL, MANAGER_BEFORE_FIRST, before->meta.created_at);
    record_apply_managed(record, before, call->manager, applied->set, now);
    write_notes(record, applied->notes);
}
