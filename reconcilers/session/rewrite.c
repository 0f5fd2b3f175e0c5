#include "reconcilers/session/rewrite.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include <stdint.h>
#include <string.h>

#define INNER_ID_PREFIX "ws_"
#define INNER_ID_DIGITS 24

// "ws_" and 24 hex digits. Anything else is not replaced in texts: a hostile server could name its workspace "e".
static bool is_inner_id(const char *id)
{
    size_t prefix = strlen(INNER_ID_PREFIX);
    return strncmp(id, INNER_ID_PREFIX, prefix) == 0 && strlen(id) == prefix + INNER_ID_DIGITS &&
           strspn(id + prefix, "0123456789abcdef") == INNER_ID_DIGITS;
}

// A new string with every `inner` replaced, or NULL if there is none. Texts may hold NUL bytes.
static json_t *replace_all(const json_t *text, const char *inner, const char *public_id)
{
    const char *at = json_string_value(text), *end = at + json_string_length(text), *hit;
    if (!memmem(at, (size_t)(end - at), inner, strlen(inner)))
        return NULL;
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(SIZE_MAX / 4);
    for (; (hit = memmem(at, (size_t)(end - at), inner, strlen(inner))); at = hit + strlen(inner)) {
        buffer_append(&out, at, (size_t)(hit - at));
        buffer_append_text(&out, public_id);
    }
    buffer_append(&out, at, (size_t)(end - at));
    return json_stringn(out.data, out.len);
}

static void replace_in(json_t *value, const char *inner, const char *public_id);

// A new value for a string, or NULL; what it contains is changed in place.
static json_t *replace_one(json_t *value, const char *inner, const char *public_id)
{
    if (json_is_string(value))
        return replace_all(value, inner, public_id);
    replace_in(value, inner, public_id);
    return NULL;
}

// In all strings below. As deep as a message may be.
static void replace_in(json_t *value, const char *inner, const char *public_id)
{
    const char *key;
    size_t i;
    json_t *member, *replaced;
    void *next;
    if (json_is_array(value))
        json_array_foreach(value, i, member) if ((replaced = replace_one(member, inner, public_id)))
            json_array_set_new(value, i, replaced);
    json_object_foreach_safe(value, next, key, member) if ((replaced = replace_one(member, inner, public_id)))
        json_object_set_new(value, key, replaced);
}

// Images and sounds are base64, in which a long enough run could mean anything.
static void replace_in_content(json_t *content, const char *inner, const char *public_id)
{
    size_t i;
    json_t *item;
    json_array_foreach(content, i, item)
    {
        CLEANUP_JSON json_t *data = json_incref(json_object_get(item, "data"));
        json_object_del(item, "data");
        replace_in(item, inner, public_id);
        if (data)
            json_object_set(item, "data", data);
    }
}

static void replace_everywhere(json_t *result, const char *inner, const char *public_id)
{
    replace_in_content(json_object_get(result, "content"), inner, public_id);
    replace_in(json_object_get(result, "structuredContent"), inner, public_id);
}

void rewrite_workspace_ids(json_t *result, const char *public_id, char **inner)
{
    static const char *const keys[] = {"selected_workspace_id", "workspace_id"};
    json_t *structured = json_object_get(result, "structuredContent");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        CLEANUP_JSON json_t *named = json_incref(json_object_get(structured, keys[i]));
        if (!json_is_string(named))
            continue;
        json_object_set_new(structured, keys[i], json_from_text(public_id));
        if (!is_inner_id(json_string_value(named)))
            continue;
        replace_everywhere(result, json_string_value(named), public_id);
        mem_replace(inner, json_string_value(named));
    }
    if (*inner)
        replace_everywhere(result, *inner, public_id);
}

bool rewrite_is_tool_result(const json_t *result)
{
    const json_t *content = json_object_get(result, "content");
    size_t i;
    json_t *item;
    if (!json_is_array(content))
        return false;
    json_array_foreach(content, i, item) if (!json_get_text(item, "type")) return false;
    return true;
}
