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

static struct watch_line *line_of_text(const char *type, const struct rendering *rendering, const struct resource *resource,
                                       struct json_span image, struct wall_time now, bool has_columns)
{
    struct buffer text = BUFFER_INIT(SIZE_MAX / 4);
    struct watch_line head = {.refs = 1};
    buffer_append(&text, &head, sizeof(head));
    buffer_format(&text, "{\"type\":\"%s\",\"object\":", type);
    rendering_put_one(&text, rendering, resource, image, now, has_columns);
    buffer_append_text(&text, "}\n");
    size_t len = text.len - sizeof(head);
    struct watch_line *line = (struct watch_line *)buffer_take_string(&text);
    line->len = len;
    return line;
}

static struct watch_line *line_of(const char *type, const json_t *object)
{
    static const struct rendering plain = {RENDER_PLAIN, INCLUDE_NONE};
    CLEANUP_FREE char *text = json_to_text(object);
    return line_of_text(type, &plain, NULL, (struct json_span){text, strlen(text)}, (struct wall_time){0}, false);
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
    resource_change_clear(&change->change);
    free(change);
}

static struct json_span image_before(const struct resource_change *change)
{
    return (struct json_span){change->before, change->before_len};
}

static struct json_span image_after(const struct resource_change *change)
{
    return (struct json_span){change->after, change->after_len};
}

bool watch_change_event(const struct watch_change *change, const struct collection_query *query,
                        enum watch_event *ret)
{
    const struct resource_change *at = &change->change;
    if (query->resource->feed == FEED_RECORDS && at->record_kind != query->resource->record_kind)
        return false;
    bool was = at->before && image_fits(image_before(at), &query->labels, &query->fields);
    bool is = at->type != STORE_DELETED && image_fits(image_after(at), &query->labels, &query->fields);
    *ret = is ? (was ? WATCH_MODIFIED : WATCH_ADDED) : WATCH_DELETED;
    return was || is;
}

// Who no longer sees the object is shown what it was, at the version of the change.
static void put_last_seen(struct buffer *to, const struct resource_change *change)
{
    struct json_span image = image_before(change), version = json_member(image_meta(image), "resourceVersion");
    if (!version.at) {
        json_put_span(to, image);
        return;
    }
    buffer_append(to, image.at, (size_t)(version.at - image.at));
    buffer_format(to, "\"%" PRId64 "\"", change->revision);
    buffer_append(to, version.at + version.len, image.len - (size_t)(version.at + version.len - image.at));
}

static struct watch_line *make_line(const struct resource_change *change,
                                    const struct collection_query *query, enum watch_event event,
                                    struct wall_time now, bool has_columns)
{
    static const char *const words[] = {
        [WATCH_ADDED] = "ADDED", [WATCH_MODIFIED] = "MODIFIED", [WATCH_DELETED] = "DELETED"};
    CLEANUP(buffer_free) struct buffer last_seen = BUFFER_INIT(SIZE_MAX / 4);
    struct json_span image = image_after(change);
    if (event == WATCH_DELETED && change->type != STORE_DELETED) {
        put_last_seen(&last_seen, change);
        image = (struct json_span){last_seen.data, last_seen.len};
    }
    return line_of_text(words[event], &query->rendering, query->resource, image, now, has_columns);
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

struct watch_line *watch_object_line(const struct collection_query *query, struct json_span image,
                                     struct wall_time now, bool has_columns)
{
    return line_of_text("ADDED", &query->rendering, query->resource, image, now, has_columns);
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
        json_object_set_new(json_object_get(object, "metadata"), "annotations",
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
