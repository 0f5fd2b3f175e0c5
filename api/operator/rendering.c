#include "api/operator/rendering.h"
#include "controller/base/memory.h"
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
