#include "api/operator/rendering.h"
#include "controller/base/memory.h"
#include <inttypes.h>
#include <string.h>
#include <strings.h>

// ---- what is asked for
struct media {
    char *type, *as, *group, *version;
};

static void media_clear(struct media *media)
{
    free(media->type);
    free(media->as);
    free(media->group);
    free(media->version);
}

static const char *trim(const char *at, size_t *len)
{
    while (*len && (*at == ' ' || *at == '\t'))
        at++, --*len;
    while (*len && (at[*len - 1] == ' ' || at[*len - 1] == '\t'))
        --*len;
    return at;
}

static void read_parameter(struct media *media, const char *at, size_t len)
{
    const struct {
        const char *name;
        char **to;
    } table[] = {{"as=", &media->as}, {"g=", &media->group}, {"v=", &media->version}};
    at = trim(at, &len);
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        size_t name_len = strlen(table[i].name);
        if (len < name_len || strncasecmp(at, table[i].name, name_len) != 0)
            continue;
        free(*table[i].to);
        *table[i].to = mem_strndup(at + name_len, len - name_len);
    }
}

static void read_media(const char *at, size_t len, struct media *media)
{
    const char *end = at + len;
    size_t part_len = strcspn(at, ";,");
    size_t type_len = part_len;
    const char *type = trim(at, &type_len);
    media->type = mem_strndup(type, type_len);
    for (at += part_len; at < end && *at == ';'; at += part_len) {
        part_len = strcspn(++at, ";,");
        read_parameter(media, at, part_len);
    }
}

static bool is_json(const char *type)
{
    return strcasecmp(type, "application/json") == 0 || strcmp(type, "*/*") == 0 ||
           strcasecmp(type, "application/*") == 0;
}

static bool take_media(const struct media *media, enum rendering_form *ret)
{
    static const struct {
        const char *as;
        enum rendering_form form;
    } forms[] = {
        {"Table", RENDER_TABLE},
        {"PartialObjectMetadata", RENDER_METADATA},
        {"PartialObjectMetadataList", RENDER_METADATA},
    };
    if (!is_json(media->type))
        return false;
    *ret = RENDER_PLAIN;
    if (!media->as)
        return true;
    if ((media->group && strcmp(media->group, "meta.k8s.io") != 0) ||
        (media->version && strcmp(media->version, "v1") != 0))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        if (strcmp(forms[i].as, media->as) == 0) {
            *ret = forms[i].form;
            return true;
        }
    return false;
}

bool rendering_read(const char *accept, const char *include_object, struct rendering *ret)
{
    *ret = (struct rendering){RENDER_PLAIN, INCLUDE_METADATA};
    if (include_object && strcmp(include_object, "Object") == 0)
        ret->include = INCLUDE_OBJECT;
    else if (include_object && strcmp(include_object, "None") == 0)
        ret->include = INCLUDE_NONE;
    if (!accept || !accept[strspn(accept, " \t,")])
        return true;
    for (const char *at = accept; *at; at += *at == ',') {
        CLEANUP(media_clear) struct media media = {0};
        size_t len = strcspn(at, ",");
        read_media(at, len, &media);
        at += len;
        if (take_media(&media, &ret->form))
            return true;
    }
    ret->form = RENDER_PLAIN;
    return false;
}

// ---- showing
json_t *metadata_of(json_t *image)
{
    return json_pack("{s:s, s:s, s:O}", "kind", "PartialObjectMetadata", "apiVersion", "meta.k8s.io/v1",
                     "metadata", image_meta(image));
}

static const char *version_of(const json_t *image)
{
    const char *version = json_get_text(image_meta(image), "resourceVersion");
    return version ? version : "";
}

json_t *rendering_event(const struct rendering *rendering, const struct resource *resource, json_t *image,
                        struct wall_time now, bool has_columns)
{
    if (rendering->form == RENDER_PLAIN)
        return json_incref(image);
    if (rendering->form == RENDER_METADATA)
        return metadata_of(image);
    CLEANUP_JSON json_t *items = json_pack("[O]", image);
    json_t *table = table_make(resource, items, rendering->include, now, has_columns);
    json_object_set_new(table, "metadata", json_pack("{s:s}", "resourceVersion", version_of(image)));
    return table;
}

json_t *rendering_one(const struct rendering *rendering, const struct resource *resource, json_t *image,
                      struct wall_time now)
{
    return rendering_event(rendering, resource, image, now, true);
}

static json_t *plain_list(const struct resource *resource, json_t *items)
{
    CLEANUP_FREE char *kind = mem_format("%sList", resource->kind);
    return json_pack("{s:s, s:s, s:O}", "kind", kind, "apiVersion", resource->api_version, "items", items);
}

static json_t *metadata_list(json_t *items)
{
    json_t *all = json_array(), *image;
    size_t i;
    json_array_foreach(items, i, image) json_array_append_new(all, metadata_of(image));
    return json_pack("{s:s, s:s, s:o}", "kind", "PartialObjectMetadataList", "apiVersion", "meta.k8s.io/v1",
                     "items", all);
}

json_t *rendering_list(const struct rendering *rendering, const struct resource *resource, json_t *items,
                       int64_t revision, struct wall_time now)
{
    CLEANUP_FREE char *version = mem_format("%" PRId64, revision);
    json_t *list = rendering->form == RENDER_PLAIN ? plain_list(resource, items)
                   : rendering->form == RENDER_METADATA
                       ? metadata_list(items)
                       : table_make(resource, items, rendering->include, now, true);
    json_object_set_new(list, "metadata", json_pack("{s:s}", "resourceVersion", version));
    return list;
}
