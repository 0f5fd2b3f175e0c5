// Core v1 Events, as kubectl and `describe` read them.
#include "api/operator/internal.h"
#include "api/operator/selectors.h"
#include "controller/base/memory.h"
#include <inttypes.h>
#include <string.h>

#define EVENTS_SHOWN_MAX 1000

static const char *const event_fields[] = {"involvedObject.uid",
                                           "involvedObject.name",
                                           "involvedObject.kind",
                                           "involvedObject.namespace",
                                           "involvedObject.apiVersion",
                                           "type",
                                           "reason",
                                           "metadata.namespace",
                                           NULL};

static const char *get_field(const void *arg, const char *field)
{
    const struct store_event_row *row = arg;
    const char *const values[] = {row->uid,  row->name,   row->kind, "", API_GROUP "/" API_VERSION,
                                  row->type, row->reason, "default"};
    for (size_t i = 0; event_fields[i]; i++)
        if (strcmp(event_fields[i], field) == 0)
            return values[i];
    return "";
}

static json_t *event_to_json(const struct store_event_row *row)
{
    char first[WALL_TIME_TEXT_SIZE], last[WALL_TIME_TEXT_SIZE];
    wall_time_format(row->first_at, first);
    wall_time_format(row->last_at, last);
    CLEANUP_FREE char *name = mem_format("%s.%" PRIx64, row->name, (uint64_t)row->id);
    CLEANUP_FREE char *uid = mem_format("event_%" PRId64, row->id);
    CLEANUP_FREE char *version = mem_format("%" PRId64, row->id);
    json_t *json = json_pack("{s:s, s:s, s:{s:s, s:s, s:s, s:s, s:s}}", "kind", "Event", "apiVersion", "v1",
                             "metadata", "name", name, "namespace", "default", "uid", uid, "resourceVersion",
                             version, "creationTimestamp", first);
    json_object_set_new(json, "involvedObject",
                        json_pack("{s:s, s:s, s:s, s:s}", "kind", row->kind, "name", row->name, "uid",
                                  row->uid, "apiVersion", API_GROUP "/" API_VERSION));
    json_set_text(json, "type", row->type);
    json_set_text(json, "reason", row->reason);
    json_object_set_new(json, "message", json_from_text(row->message));
    json_object_set_new(json, "count", json_integer(row->count));
    json_set_text(json, "firstTimestamp", first);
    json_set_text(json, "lastTimestamp", last);
    json_object_set_new(json, "source", json_pack("{s:s}", "component", "chat2shell"));
    return json;
}

void events_list(struct call *call)
{
    CLEANUP(selector_clear) struct selector fields = {0};
    struct error err = ERROR_INIT;
    struct store_event_row *rows = NULL;
    size_t count = 0;
    if (selector_parse_fields(call->query[QUERY_FIELD_SELECTOR], event_fields, &fields, &err) < 0 ||
        store_list_events(call->world->store, selector_wanted(&fields, "involvedObject.uid"),
                          EVENTS_SHOWN_MAX, &rows, &count, &err) < 0) {
        operator_fail(call, &err);
        return;
    }
    json_t *items = json_array();
    for (size_t i = 0; i < count; i++)
        if (selector_fits_fields(&fields, get_field, &rows[i]))
            json_array_append_new(items, event_to_json(&rows[i]));
    store_events_free(rows, count);
    CLEANUP_FREE char *version = mem_format("%" PRId64, store_revision(call->world->store));
    operator_answer(call, 200,
                    json_pack("{s:s, s:s, s:{s:s}, s:o}", "kind", "EventList", "apiVersion", "v1", "metadata",
                              "resourceVersion", version, "items", items));
}
