#include "reconcilers/session/rewrite.h"
#include "controller/base/buffer.h"
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

static void replace_in_texts(json_t *content, const char *inner, const char *public_id)
{
    size_t i;
    json_t *item;
    json_array_foreach(content, i, item)
    {
        json_t *text = json_object_get(item, "text");
        json_t *replaced = json_is_string(text) ? replace_all(text, inner, public_id) : NULL;
        if (replaced)
            json_object_set_new(item, "text", replaced);
    }
}

void rewrite_workspace_ids(json_t *result, const char *public_id)
{
    static const char *const keys[] = {"selected_workspace_id", "workspace_id"};
    json_t *structured = json_object_get(result, "structuredContent");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        json_t *inner = json_object_get(structured, keys[i]);
        if (!json_is_string(inner))
            continue;
        if (is_inner_id(json_string_value(inner)))
            replace_in_texts(json_object_get(result, "content"), json_string_value(inner), public_id);
        json_object_set_new(structured, keys[i], json_from_text(public_id));
    }
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
