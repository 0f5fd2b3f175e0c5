// Changes as lines. Each form of a change is made once.
#include "api/operator/watch.h"
#include "controller/base/memory.h"
#include <inttypes.h>
#include <string.h>

void watch_line_unref(struct watch_line *line)
{
    if (line && --line->refs == 0)
        free(line);
}

static struct watch_line *line_of(const char *type, const json_t *object)
{
    CLEANUP_FREE char *text = json_to_text(object);
    size_t room = strlen(type) + strlen(text) + 32;
    struct watch_line *line = mem_alloc(sizeof(*line) + room);
    line->refs = 1;
    line->len = (size_t)snprintf(line->text, room, "{\"type\":\"%s\",\"object\":%s}\n", type, text);
    return line;
}

struct watch_change *watch_change_new(struct resource_change *from)
{
    struct watch_change *change = mem_alloc(sizeof(*change));
    change->refs = 1;
    change->change = *from;
    from->before = from->after = NULL;
    return change;
}

void watch_change_unref(struct watch_change *change)
{
    if (!change || --change->refs)
        return;
    for (size_t event = 0; event < WATCH_EVENT_COUNT; event++)
        for (size_t form = 0; form < WATCH_FORMS; form++)
            watch_line_unref(change->lines[event][form]);
    json_decref(change->change.before);
    json_decref(change->change.after);
    free(change);
}

bool watch_change_event(const struct watch_change *change, const struct collection_query *query,
                        enum watch_event *ret)
{
    const struct resource_change *at = &change->change;
    if (query->resource->feed == FEED_RECORDS && at->record_kind != query->resource->record_kind)
        return false;
    bool was = at->before && image_fits(at->before, &query->labels, &query->fields);
    bool is = at->type != STORE_DELETED && image_fits(at->after, &query->labels, &query->fields);
    *ret = is ? (was ? WATCH_MODIFIED : WATCH_ADDED) : WATCH_DELETED;
    return was || is;
}

// Who no longer sees the object is shown what it was, at the version of the change.
static json_t *last_seen(const struct resource_change *change)
{
    if (change->type == STORE_DELETED)
        return json_incref(change->after);
    CLEANUP_FREE char *version = mem_format("%" PRId64, change->revision);
    json_t *image = json_deep_copy(change->before);
    json_set_text(image_meta(image), "resourceVersion", version);
    return image;
}

static struct watch_line *make_line(const struct resource_change *change,
                                    const struct collection_query *query, enum watch_event event,
                                    struct wall_time now, bool has_columns)
{
    static const char *const words[] = {
        [WATCH_ADDED] = "ADDED", [WATCH_MODIFIED] = "MODIFIED", [WATCH_DELETED] = "DELETED"};
    CLEANUP_JSON json_t *image = event == WATCH_DELETED ? last_seen(change) : json_incref(change->after);
    CLEANUP_JSON json_t *object =
        rendering_event(&query->rendering, query->resource, image, now, has_columns);
    return line_of(words[event], object);
}

static size_t form_of(const struct rendering *rendering)
{
    return rendering->form == RENDER_TABLE ? 2 + (size_t)rendering->include : (size_t)rendering->form;
}

struct watch_line *watch_change_line(struct watch_change *change, const struct collection_query *query,
                                     enum watch_event event, struct wall_time now, bool has_columns)
{
    if (query->rendering.form == RENDER_TABLE && has_columns)
        return make_line(&change->change, query, event, now, true);
    struct watch_line **kept = &change->lines[event][form_of(&query->rendering)];
    if (!*kept)
        *kept = make_line(&change->change, query, event, now, false);
    (*kept)->refs++;
    return *kept;
}

struct watch_line *watch_object_line(const struct collection_query *query, json_t *image,
                                     struct wall_time now, bool has_columns)
{
    CLEANUP_JSON json_t *object =
        rendering_event(&query->rendering, query->resource, image, now, has_columns);
    return line_of("ADDED", object);
}

struct watch_line *watch_bookmark_line(const struct collection_query *query, int64_t revision,
                                       bool is_initial_end)
{
    CLEANUP_FREE char *version = mem_format("%" PRId64, revision);
    bool is_plain = query->rendering.form == RENDER_PLAIN;
    CLEANUP_JSON json_t *object =
        json_pack("{s:s, s:s, s:{s:s}}", "kind", is_plain ? query->resource->kind : "PartialObjectMetadata",
                  "apiVersion", is_plain ? query->resource->api_version : "meta.k8s.io/v1", "metadata",
                  "resourceVersion", version);
    if (is_initial_end)
        json_object_set_new(image_meta(object), "annotations",
                            json_pack("{s:s}", "k8s.io/initial-events-end", "true"));
    if (query->rendering.form != RENDER_TABLE)
        return line_of("BOOKMARK", object);
    CLEANUP_JSON json_t *table = json_pack("{s:s, s:s, s:{s:s}, s:[], s:[{s:[], s:O}]}", "kind", "Table",
                                           "apiVersion", "meta.k8s.io/v1", "metadata", "resourceVersion",
                                           version, "columnDefinitions", "rows", "cells", "object", object);
    return line_of("BOOKMARK", table);
}

struct watch_line *watch_error_line(const struct error *err)
{
    CLEANUP_JSON json_t *status = status_to_json(0, err, NULL, NULL);
    return line_of("ERROR", status);
}
