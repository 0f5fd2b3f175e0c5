// A record as an API object, and its parts as the store keeps them.
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/fields/write.h"
#include "controller/record.h"
#include "schemas/kinds/common.h"
#include <inttypes.h>

json_t *record_spec_to_json(const struct record *record)
{
    return fields_to_json(kind_spec_table(record->kind), &record->spec);
}

json_t *record_status_to_json(const struct record *record)
{
    return fields_to_json(kind_status_table(record->kind), &record->status);
}

json_t *record_meta_to_json(const struct record *record)
{
    return fields_to_json(&record_meta_table, &record->meta);
}

// Metadata times have whole seconds, as Kubernetes writes them.
static void set_time(json_t *object, const char *key, struct wall_time time)
{
    char text[WALL_TIME_TEXT_SIZE];
    if (!time.ms)
        return;
    wall_time_format(time, text);
    json_set_text(object, key, text);
}

static void set_annotations(json_t *object, const struct record_meta *meta)
{
    json_t *annotations = text_map_to_json(&meta->annotations);
    json_set_text(annotations, ANNOTATION_CREATED_BY, meta->created_by);
    set_time(annotations, ANNOTATION_REMOVED_AT, meta->removed_at);
    if (json_object_size(annotations))
        json_object_set(object, "annotations", annotations);
    json_decref(annotations);
}

json_t *owners_to_json(const struct owner_list *owners)
{
    json_t *array = json_array();
    for (size_t i = 0; i < owners->count; i++) {
        json_t *owner = fields_to_json(&owner_table, &owners->items[i]);
        if (!owners->items[i].api_version)
            json_set_text(owner, "apiVersion", API_GROUP "/" API_VERSION);
        json_array_append_new(array, owner);
    }
    return array;
}

static json_t *metadata_to_json(const struct record_meta *meta)
{
    json_t *object = json_object();
    json_set_text(object, "name", meta->name);
    json_set_text(object, "uid", meta->uid);
    if (meta->resource_version) {
        CLEANUP_FREE char *version = mem_format("%" PRId64, meta->resource_version);
        json_set_text(object, "resourceVersion", version);
    }
    if (meta->generation)
        json_object_set_new(object, "generation", json_integer(meta->generation));
    set_time(object, "creationTimestamp", meta->created_at);
    set_time(object, "deletionTimestamp", meta->deletion_at);
    if (meta->labels.count)
        json_object_set_new(object, "labels", text_map_to_json(&meta->labels));
    set_annotations(object, meta);
    if (meta->finalizers.count)
        json_object_set_new(object, "finalizers", text_list_to_json(&meta->finalizers));
    if (meta->owners.count)
        json_object_set_new(object, "ownerReferences", owners_to_json(&meta->owners));
    if (json_array_size(meta->managed_fields))
        json_object_set_new(object, "managedFields", json_deep_copy(meta->managed_fields));
    return object;
}

json_t *record_to_json(const struct record *record)
{
    json_t *object = json_object();
    json_set_text(object, "apiVersion", API_GROUP "/" API_VERSION);
    json_set_text(object, "kind", kind_info(record->kind)->name);
    json_object_set_new(object, "metadata", metadata_to_json(&record->meta));
    json_object_set_new(object, "spec", record_spec_to_json(record));
    json_object_set_new(object, "status", record_status_to_json(record));
    return object;
}

int record_spec_from_json(struct record *record, const json_t *spec, json_t **ret_causes, struct error *err)
{
    CLEANUP_JSON json_t *causes = json_array();
    CLEANUP_JSON json_t *nothing =
        spec ? NULL : json_object(); // a manifest without spec: defaults and what is missing
    if (fields_from_json(kind_spec_table(record->kind), spec ? spec : nothing, &record->spec, true, "spec",
                         causes, err) == 0)
        return 0;
    if (ret_causes)
        *ret_causes = TAKE_PTR(causes);
    return -1;
}

// What the store itself wrote cannot be the caller's mistake.
static int read_stored(const struct field_table *table, const json_t *json, void *to, const char *path,
                       struct error *err)
{
    if (fields_from_json(table, json, to, false, path, NULL, err) == 0)
        return 0;
    if (err)
        err->code = ERROR_CORRUPT;
    return error_context(err, "a stored record cannot be read");
}

int record_spec_from_store_json(struct record *record, const json_t *spec, struct error *err)
{
    return read_stored(kind_spec_table(record->kind), spec, &record->spec, "spec", err);
}

int record_status_from_json(struct record *record, const json_t *status, struct error *err)
{
    return read_stored(kind_status_table(record->kind), status, &record->status, "status", err);
}

int record_meta_from_store_json(struct record *record, const json_t *meta, struct error *err)
{
    return read_stored(&record_meta_table, meta, &record->meta, "metadata", err);
}
