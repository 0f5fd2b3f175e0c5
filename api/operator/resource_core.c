// Core v1 Events and Namespaces, as kubectl and `describe` read them.
#include "api/operator/resource_core.h"
#include "api/operator/rendering.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define COMPONENT "chat2shell"

// ---- images
static json_t *event_metadata(const struct store_event_row *row, const char *first)
{
    CLEANUP_FREE char *name = mem_format("%s.%" PRIx64, row->name, (uint64_t)row->id);
    CLEANUP_FREE char *uid = mem_format("event_%" PRId64, row->id);
    CLEANUP_FREE char *version = mem_format("%" PRId64, row->version + 1);
    return json_pack("{s:s, s:s, s:s, s:s, s:s}", "name", name, "namespace", EVENTS_NAMESPACE, "uid", uid,
                     "resourceVersion", version, "creationTimestamp", first);
}

json_t *event_image(const struct store_event_row *row)
{
    char first[WALL_TIME_TEXT_SIZE], last[WALL_TIME_TEXT_SIZE];
    wall_time_format(row->first_at, first);
    wall_time_format(row->last_at, last);
    json_t *json = json_pack("{s:s, s:s, s:o}", "kind", "Event", "apiVersion", "v1", "metadata",
                             event_metadata(row, first));
    json_object_set_new(json, "involvedObject",
                        json_pack("{s:s, s:s, s:s, s:s}", "kind", row->kind, "name", row->name, "uid",
                                  row->uid, "apiVersion", API_GROUP "/" API_VERSION));
    json_set_text(json, "type", row->type);
    json_set_text(json, "reason", row->reason);
    json_object_set_new(json, "message", json_from_text(row->message));
    json_object_set_new(json, "count", json_integer(row->count));
    json_set_text(json, "firstTimestamp", first);
    json_set_text(json, "lastTimestamp", last);
    json_object_set_new(json, "eventTime", json_null());
    json_object_set_new(json, "source", json_pack("{s:s}", "component", COMPONENT));
    json_set_text(json, "reportingComponent", COMPONENT);
    json_set_text(json, "reportingInstance", "");
    return json;
}

int64_t event_id_of_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    char *end;
    errno = 0;
    long long id = dot ? strtoll(dot + 1, &end, 16) : 0;
    return dot && !errno && end != dot + 1 && !*end && id > 0 ? id : 0;
}

json_t *namespace_image(struct wall_time made_at)
{
    char made[WALL_TIME_TEXT_SIZE];
    wall_time_format(made_at, made);
    return json_pack("{s:s, s:s, s:{s:s, s:s, s:s, s:s, s:{s:s}}, s:{s:[]}, s:{s:s}}", "kind", "Namespace",
                     "apiVersion", "v1", "metadata", "name", EVENTS_NAMESPACE, "uid", "namespace_default",
                     "resourceVersion", "1", "creationTimestamp", made, "labels", "kubernetes.io/metadata.name", EVENTS_NAMESPACE,
                     "spec", "finalizers", "status", "phase", "Active");
}

// ---- columns
static json_t *text_cell(const char *text)
{
    return json_string(text ? text : "");
}

static json_t *last_seen(const json_t *image, struct wall_time now)
{
    return age_cell(json_get_text(image, "lastTimestamp"), now);
}

static json_t *first_seen(const json_t *image, struct wall_time now)
{
    return age_cell(json_get_text(image, "firstTimestamp"), now);
}

static json_t *type_cell(const json_t *image, struct wall_time now)
{
    (void)now;
    return text_cell(json_get_text(image, "type"));
}

static json_t *reason_cell(const json_t *image, struct wall_time now)
{
    (void)now;
    return text_cell(json_get_text(image, "reason"));
}

static json_t *object_cell(const json_t *image, struct wall_time now)
{
    (void)now;
    const json_t *object = json_object_get(image, "involvedObject");
    const struct kind_info *info = kind_find(json_get_text(object, "kind"));
    CLEANUP_FREE char *text =
        mem_format("%s/%s", info ? info->singular : "object", json_get_text(object, "name"));
    return json_string(text);
}

static json_t *source_cell(const json_t *image, struct wall_time now)
{
    (void)now;
    return text_cell(json_get_text(json_object_get(image, "source"), "component"));
}

static json_t *message_cell(const json_t *image, struct wall_time now)
{
    (void)now;
    return text_cell(json_get_text(image, "message"));
}

static json_t *count_cell(const json_t *image, struct wall_time now)
{
    (void)now;
    return json_integer(json_get_int(image, "count", 1));
}

static json_t *name_cell(const json_t *image, struct wall_time now)
{
    (void)now;
    return text_cell(json_object_name(image));
}

static json_t *phase_cell(const json_t *image, struct wall_time now)
{
    (void)now;
    return text_cell(json_get_text(json_object_get(image, "status"), "phase"));
}

static json_t *made_cell(const json_t *image, struct wall_time now)
{
    return age_cell(json_get_text(json_object_get(image, "metadata"), "creationTimestamp"), now);
}

static const struct resource_column event_columns[] = {
    {"Last Seen", "string", "Time since it last happened.", 0, last_seen},
    {"Type", "string", "Normal or Warning.", 0, type_cell},
    {"Reason", "string", "One word for programs.", 0, reason_cell},
    {"Object", "string", "What it is about.", 0, object_cell},
    {"Source", "string", "Who noticed it.", 1, source_cell},
    {"Message", "string", "What happened.", 0, message_cell},
    {"First Seen", "string", "Time since it first happened.", 1, first_seen},
    {"Count", "integer", "How often it happened.", 1, count_cell},
    {"Name", "string", "Name of the event.", 1, name_cell},
};
static const struct resource_column namespace_columns[] = {
    {"Name", "string", "Name of the namespace.", 0, name_cell},
    {"Status", "string", "Whether it is in use.", 0, phase_cell},
    {"Age", "string", "Time since it was made.", 0, made_cell},
};

// ---- the resources
static const char *const event_fields[] = {"involvedObject.uid",
                                           "involvedObject.name",
                                           "involvedObject.kind",
                                           "involvedObject.namespace",
                                           "involvedObject.apiVersion",
                                           "involvedObject.resourceVersion",
                                           "involvedObject.fieldPath",
                                           "type",
                                           "reason",
                                           "reportingComponent",
                                           "metadata.name",
                                           "metadata.namespace",
                                           NULL};
static const char *const namespace_fields[] = {"metadata.name", "status.phase", NULL};

const struct resource resource_events = {
    .group = "",
    .version = "v1",
    .api_version = "v1",
    .kind = "Event",
    .plural = "events",
    .singular = "event",
    .short_name = "ev",
    .is_namespaced = true,
    .feed = FEED_EVENTS,
    .fields = event_fields,
    .columns = event_columns,
    .column_count = ARRAY_LEN(event_columns),
};
const struct resource resource_namespaces = {
    .group = "",
    .version = "v1",
    .api_version = "v1",
    .kind = "Namespace",
    .plural = "namespaces",
    .singular = "namespace",
    .short_name = "ns",
    .feed = FEED_NONE,
    .fields = namespace_fields,
    .columns = namespace_columns,
    .column_count = ARRAY_LEN(namespace_columns),
};
