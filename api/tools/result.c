#include "api/tools/result.h"
#include "controller/base/memory.h"
#include <string.h>

#define ITEMS_MAX 64
#define HINT_LOOK_BYTES 2000 // of a failure's text

// ---- content ----------------------------------------------------------------------------------------------
static json_t *text_item(const json_t *text)
{
    return json_pack("{s:s, s:O}", "type", "text", "text", text);
}

static bool is_base64(const json_t *data)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *text = json_string_value(data);
    size_t len = json_string_length(data), used = text ? strspn(text, digits) : 0;
    return len && len % 4 == 0 && used >= len - 2 && strspn(text + used, "=") == len - used;
}

static bool is_image_type(const json_t *type)
{
    static const char *const types[] = {"image/png", "image/jpeg", "image/gif", "image/webp"};
    for (size_t i = 0; json_is_string(type) && i < ARRAY_LEN(types); i++)
        if (strcmp(types[i], json_string_value(type)) == 0)
            return true;
    return false;
}

// NULL: no item of ours, or a text that says nothing.
static json_t *clean_item(const json_t *item)
{
    const char *type = json_get_text(item, "type");
    const json_t *text = json_object_get(item, "text"), *data = json_object_get(item, "data");
    json_t *image_type = json_object_get(item, "mimeType");
    if (type && strcmp(type, "text") == 0 && json_string_length(text))
        return text_item(text);
    if (type && strcmp(type, "image") == 0 && is_base64(data) && is_image_type(image_type))
        return json_pack("{s:s, s:O, s:O}", "type", "image", "data", data, "mimeType", image_type);
    return NULL;
}

static json_t *clean_content(const json_t *content)
{
    json_t *items = json_array();
    for (size_t i = 0; i < json_array_size(content) && json_array_size(items) < ITEMS_MAX; i++) {
        json_t *item = clean_item(json_array_get(content, i));
        if (item)
            json_array_append_new(items, item);
    }
    return items;
}

// Borrowed; NULL if there is none.
static json_t *first_text(const json_t *items)
{
    size_t i;
    json_t *item;
    json_array_foreach(items, i, item)
    {
        if (json_object_get(item, "text"))
            return item;
    }
    return NULL;
}

// ---- failures ---------------------------------------------------------------------------------------------
static void add_hint(const char *tool, json_t *item)
{
    const json_t *text = json_object_get(item, "text");
    CLEANUP_FREE char *start = mem_strndup(json_string_value(text), HINT_LOOK_BYTES);
    const char *hint = strstr(start, "Hint: ") ? NULL : tool_failure_hint(tool, start);
    size_t len = json_string_length(text);
    if (!hint || strlen(json_string_value(text)) != len)
        return;
    char last = json_string_value(text)[len - 1];
    const char *stop = strchr(".!?\n", last) ? "" : ".";
    CLEANUP_FREE char *all = mem_format("%s%s Hint: %s.", json_string_value(text), stop, hint);
    json_object_set_new(item, "text", json_from_text(all));
}

static json_t *clean_failure(const char *tool, json_t *items)
{
    json_t *item = first_text(items);
    if (item) {
        add_hint(tool, item);
    } else {
        CLEANUP_FREE char *text = mem_format(
            "%s failed in the sandbox, which does not say why. Try it another way with bash; if nothing "
            "works there, call sandbox_destroy and sandbox_create.",
            tool);
        CLEANUP_JSON json_t *words = json_from_text(text);
        json_array_insert_new(items, 0, text_item(words));
    }
    return json_pack("{s:o, s:b}", "content", items, "isError", 1);
}

// ---- successes --------------------------------------------------------------------------------------------
// Clients that know no structuredContent read it as text.
static void add_text_copy(json_t *items, const json_t *structured)
{
    CLEANUP_FREE char *text = json_to_pretty_text(structured);
    CLEANUP_JSON json_t *words = json_from_text(text);
    json_array_insert_new(items, 0, text_item(words));
}

static int fail_misfit(struct error *err, const char *tool, const char *what)
{
    return error_set(err, ERROR_UNAVAILABLE,
                     "look with bash whether it was done before repeating it; if it stays, call "
                     "sandbox_destroy and sandbox_create",
                     "the tool server in the sandbox answered %s with something that is no result of it: %s",
                     tool, what);
}

json_t *tool_result_clean(const struct catalogue *catalogue, const char *tool, const json_t *answer,
                          struct error *err)
{
    json_t *structured = json_object_get(answer, "structuredContent");
    struct error misfit = ERROR_INIT;
    if (!json_is_array(json_object_get(answer, "content"))) {
        fail_misfit(err, tool, "content must be an array");
        return NULL;
    }
    bool is_failure = json_is_true(json_object_get(answer, "isError"));
    if (!is_failure && !json_is_object(structured)) {
        fail_misfit(err, tool, "structuredContent must be an object");
        return NULL;
    }
    if (!is_failure && catalogue_fit_result(catalogue, tool, structured, &misfit) < 0) {
        fail_misfit(err, tool, misfit.message);
        return NULL;
    }
    json_t *items = clean_content(json_object_get(answer, "content"));
    if (is_failure)
        return clean_failure(tool, items);
    if (!first_text(items))
        add_text_copy(items, structured);
    return json_pack("{s:o, s:O}", "content", items, "structuredContent", structured);
}
