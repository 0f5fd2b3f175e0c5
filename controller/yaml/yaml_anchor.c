// Anchors and aliases. What an alias stands for is copied, and counted as if it were written out: "billion laughs" end at the
// bound for values, long texts at the one for bytes.
#include "controller/yaml/yaml_internal.h"
#include "controller/base/memory.h"
#include <stdlib.h>
#include <string.h>

static void clear_anchor(struct yaml_anchor *anchor)
{
    free(anchor->name);
    json_decref(anchor->value);
    yaml_node_clear(&anchor->tree);
}

void yaml_anchors_clear(struct yaml_anchors *anchors)
{
    for (size_t i = 0; i < anchors->count; i++)
        clear_anchor(&anchors->items[i]);
    free(anchors->items);
    anchors->items = NULL;
    anchors->count = 0;
}

static struct yaml_anchor *find(const struct yaml_anchors *anchors, const char *name)
{
    for (size_t i = 0; i < anchors->count; i++)
        if (strcmp(anchors->items[i].name, name) == 0)
            return &anchors->items[i];
    return NULL;
}

// Keys and values of a tree, as the reader counts them, and its depth.
static size_t measure(const struct yaml_node *node, size_t *ret_depth)
{
    size_t nodes = node->key ? 2 : 1, deepest = 0;
    for (size_t i = 0; i < node->count; i++) {
        size_t depth = 0;
        nodes += measure(&node->items[i], &depth);
        deepest = depth > deepest ? depth : deepest;
    }
    *ret_depth = deepest + (node->count ? 1 : 0);
    return nodes;
}

static size_t text_bytes(const json_t *value)
{
    size_t bytes = json_is_string(value) ? json_string_length(value) : 0, i;
    const char *key;
    json_t *member;
    json_object_foreach((json_t *)value, key, member) bytes += strlen(key) + text_bytes(member);
    json_array_foreach((json_t *)value, i, member) bytes += text_bytes(member);
    return bytes;
}

static void copy_items(struct yaml_node *to, const struct yaml_node *from)
{
    to->is_list = from->is_list;
    to->count = from->count;
    to->items = from->count ? mem_alloc(from->count * sizeof(*to->items)) : NULL;
    for (size_t i = 0; i < from->count; i++) {
        to->items[i] = (struct yaml_node){.key = mem_strdup_or_null(from->items[i].key), .line = from->items[i].line, .column = from->items[i].column};
        copy_items(&to->items[i], &from->items[i]);
    }
}

int yaml_anchor_keep(struct yaml_walk *w, const yaml_mark_t *at, const char *name, json_t *value, const struct yaml_node *node)
{
    struct yaml_anchors *anchors = &w->anchors;
    struct yaml_anchor *anchor = find(anchors, name);
    size_t depth;
    if (!anchor && anchors->count == YAML_MAX_ANCHORS)
        return yaml_refuse(w, at, ERROR_TOO_LARGE, "write values out that are used once", "more than %d anchors in one document", YAML_MAX_ANCHORS);
    if (yaml_count_nodes(w, at, measure(node, &depth)) < 0) // its places are kept a second time
        return -1;
    if (anchor) {
        clear_anchor(anchor);
    } else {
        anchors->items = mem_realloc_array(anchors->items, anchors->count + 1, sizeof(*anchors->items));
        anchor = &anchors->items[anchors->count++];
    }
    *anchor = (struct yaml_anchor){.name = mem_strdup(name), .value = json_incref(value)}; // nobody changes it before the document's end
    copy_items(&anchor->tree, node);
    return 0;
}

int yaml_anchor_take(struct yaml_walk *w, const yaml_mark_t *at, const char *name, size_t depth, struct yaml_node *node, json_t **ret)
{
    const struct yaml_anchor *anchor = find(&w->anchors, name);
    size_t levels;
    if (!anchor)
        return yaml_refuse(w, at, ERROR_INVALID, "mark the value with &NAME above its first use, in the same document; a value cannot contain itself",
                           "the alias '*%.40s' names no value before it", name);
    size_t nodes = measure(&anchor->tree, &levels);
    if (depth + levels > YAML_MAX_DEPTH)
        return yaml_refuse(w, at, ERROR_TOO_LARGE, YAML_HINT_FLATTER, "nested deeper than %d levels by the alias '*%.40s'", YAML_MAX_DEPTH, name);
    if (yaml_count_nodes(w, at, nodes) < 0)
        return -1;
    w->anchors.aliased_bytes += text_bytes(anchor->value);
    if (w->anchors.aliased_bytes > YAML_MAX_ALIASED_BYTES)
        return yaml_refuse(w, at, ERROR_TOO_LARGE, "use fewer aliases of long texts", "aliases stand for more than %d bytes of text", YAML_MAX_ALIASED_BYTES);
    copy_items(node, &anchor->tree);
    *ret = json_deep_copy(anchor->value);
    return 0;
}
