// Sets among themselves. A node is a member by itself if it is empty or has ".".
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/fields/owned.h"
#include <string.h>

#define PATH_MAX_BYTES 2048

static bool is_member(const json_t *node)
{
    return node && (!json_object_size(node) || json_object_get(node, "."));
}

// Writes down that a node is a member or not, beside what is below it.
static void set_member(json_t *node, bool is_in)
{
    json_object_del(node, ".");
    if (is_in && json_object_size(node))
        json_object_set_new(node, ".", json_object());
}

void owned_add(json_t *set, const json_t *more)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)more, key, value)
    {
        json_t *mine = json_object_get(set, key);
        if (!json_is_object(mine)) {
            json_object_set_new(set, key, json_deep_copy(value));
            continue;
        }
        bool is_in = is_member(mine) || is_member(value);
        owned_add(mine, value);
        set_member(mine, is_in);
    }
}

void owned_subtract(json_t *set, const json_t *without)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)without, key, value)
    {
        json_t *mine = json_object_get(set, key);
        if (!mine || strcmp(key, ".") == 0)
            continue;
        bool is_in = is_member(mine) && !is_member(value);
        owned_subtract(mine, value);
        set_member(mine, is_in);
        if (!is_in && !json_object_size(mine))
            json_object_del(set, key);
    }
}

json_t *owned_intersect(const json_t *a, const json_t *b)
{
    json_t *both = json_object(), *value;
    const char *key;
    json_object_foreach((json_t *)a, key, value)
    {
        const json_t *other = json_object_get(b, key);
        if (!other || strcmp(key, ".") == 0)
            continue;
        json_t *child = owned_intersect(value, other);
        bool is_in = is_member(value) && is_member(other);
        set_member(child, is_in);
        if (is_in || json_object_size(child))
            json_object_set_new(both, key, child);
        else
            json_decref(child);
    }
    return both;
}

// ---- form
// --------------------------------------------------------------------------------------------------------------
static bool is_json_of(const char *text, json_type type)
{
    CLEANUP_JSON json_t *value = NULL;
    if (json_parse(text, strlen(text), &value, NULL) < 0)
        return false;
    return type == JSON_OBJECT ? json_is_object(value) && json_object_size(value) : !json_is_object(value) && !json_is_array(value);
}

static bool is_valid_at(const json_t *set, size_t depth)
{
    const char *key;
    json_t *value;
    if (!json_is_object(set) || depth > OWNED_MAX_DEPTH)
        return false;
    json_object_foreach((json_t *)set, key, value)
    {
        bool is_named = strcmp(key, ".") == 0 || (strncmp(key, "f:", 2) == 0 && key[2]) ||
                        (strncmp(key, "k:", 2) == 0 && is_json_of(key + 2, JSON_OBJECT)) ||
                        (strncmp(key, "v:", 2) == 0 && is_json_of(key + 2, JSON_STRING));
        if (!is_named || !is_valid_at(value, depth + 1) || (strcmp(key, ".") == 0 && json_object_size(value)))
            return false;
    }
    return true;
}

bool owned_is_valid(const json_t *set)
{
    return is_valid_at(set, 0);
}

// ---- paths
// --------------------------------------------------------------------------------------------------------------
static void put_keys(struct buffer *to, const char *text)
{
    CLEANUP_JSON json_t *keys = NULL;
    const char *key;
    json_t *value;
    size_t count = 0;
    if (json_parse(text, strlen(text), &keys, NULL) < 0)
        return;
    json_object_foreach(keys, key, value)
    {
        CLEANUP_FREE char *word = json_to_text(value);
        buffer_format(to, "%s%s=%s", count++ ? "," : "", key, word);
    }
}

static void put_element(struct buffer *to, const char *key)
{
    if (key[0] == 'f') {
        buffer_format(to, ".%s", key + 2);
    } else if (key[0] == 'v') {
        buffer_format(to, "[=%s]", key + 2);
    } else {
        buffer_append_text(to, "[");
        put_keys(to, key + 2);
        buffer_append_text(to, "]");
    }
}

static void collect_paths(const json_t *set, const char *up, json_t *paths, size_t max)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)set, key, value)
    {
        if (strcmp(key, ".") == 0 || json_array_size(paths) >= max)
            continue;
        CLEANUP(buffer_free) struct buffer path = BUFFER_INIT(PATH_MAX_BYTES);
        buffer_append_text(&path, up);
        put_element(&path, key);
        if (is_member(value))
            json_array_append_new(paths, json_from_text(buffer_text(&path)));
        collect_paths(value, buffer_text(&path), paths, max);
    }
}

json_t *owned_paths(const json_t *set, size_t max)
{
    json_t *paths = json_array();
    collect_paths(set, "", paths, max);
    return paths;
}
