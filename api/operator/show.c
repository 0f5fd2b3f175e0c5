// Objects and lists of them as text, member by member in the order in which they always stood.
#include "api/operator/rendering.h"
#include "controller/base/memory.h"
#include <inttypes.h>

void metadata_put(struct buffer *to, struct json_span meta)
{
    buffer_append_text(to, "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":");
    json_put_span(to, meta);
    buffer_append_char(to, '}');
}

static void begin_table(struct buffer *to, const struct resource *resource, bool has_columns)
{
    buffer_append_text(to, "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"columnDefinitions\":");
    if (has_columns)
        table_put_columns(to, resource);
    else
        buffer_append_text(to, "[]");
    buffer_append_text(to, ",\"rows\":[");
}

void rendering_put_one(struct buffer *to, const struct rendering *rendering, const struct resource *resource, struct json_span image,
                       struct wall_time now, bool has_columns)
{
    if (rendering->form == RENDER_PLAIN) {
        json_put_span(to, image);
        return;
    }
    if (rendering->form == RENDER_METADATA) {
        metadata_put(to, image_meta(image));
        return;
    }
    struct json_span version = json_member(image_meta(image), "resourceVersion");
    begin_table(to, resource, has_columns);
    table_put_row(to, resource, image, rendering->include, now);
    buffer_append_text(to, "],\"metadata\":{\"resourceVersion\":");
    json_put_span(to, json_span_is_string(version) ? version : (struct json_span){"\"\"", 2});
    buffer_append_text(to, "}}");
}

void rendering_list_begin(struct rendering_list *list)
{
    struct buffer *to = list->to;
    if (list->rendering->form == RENDER_TABLE)
        begin_table(to, list->resource, true);
    else if (list->rendering->form == RENDER_METADATA)
        buffer_append_text(to, "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\",\"items\":[");
    else
        buffer_format(to, "{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"items\":[", list->resource->kind, list->resource->api_version);
}

void rendering_list_item(struct rendering_list *list, struct json_span image)
{
    struct buffer *to = list->to;
    if (list->count++)
        buffer_append_char(to, ',');
    if (list->rendering->form == RENDER_TABLE)
        table_put_row(to, list->resource, image, list->rendering->include, list->now);
    else if (list->rendering->form == RENDER_METADATA)
        metadata_put(to, image_meta(image));
    else
        json_put_span(to, image);
}

void rendering_list_end(struct rendering_list *list, int64_t revision, const char *next, int64_t rest)
{
    struct buffer *to = list->to;
    buffer_format(to, "],\"metadata\":{\"resourceVersion\":\"%" PRId64 "\"", revision);
    if (next) {
        buffer_append_text(to, ",\"continue\":");
        json_put_string(to, next);
    }
    if (next && rest > 0)
        buffer_format(to, ",\"remainingItemCount\":%" PRId64, rest);
    buffer_append_text(to, "}}");
}
