// What the parts of the YAML reader share.
#pragma once
#include "controller/yaml/yaml.h"
#include <yaml.h>

struct yaml_anchors {
    struct yaml_anchor {
        char *name;
        json_t *value;
        struct yaml_node tree; // without a key
    } *items;
    size_t count;
    size_t aliased_bytes; // of all aliases of the stream so far
};

struct yaml_walk {
    yaml_parser_t parser;
    const char *file;
    const char *bytes;
    size_t len;
    size_t nodes, max_nodes;
    struct yaml_anchors anchors; // of the document being read
    struct error *err;
};

#define YAML_HINT_FLATTER "write it flatter or split it into several files"

// "FILE:LINE:COLUMN: …". Always -1.
int yaml_refuse(struct yaml_walk *w, const yaml_mark_t *at, enum error_code code, const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
int yaml_count_nodes(struct yaml_walk *w, const yaml_mark_t *at, size_t count);
void yaml_node_clear(struct yaml_node *node); // what is in it, not itself

// Remembers a whole value under its anchor's name; a later anchor of the same name counts from then on.
int yaml_anchor_keep(struct yaml_walk *w, const yaml_mark_t *at, const char *name, json_t *value, const struct yaml_node *node);
// The value that an alias stands for, copied: node's key and place stay as they are, what is below is the anchor's.
int yaml_anchor_take(struct yaml_walk *w, const yaml_mark_t *at, const char *name, size_t depth, struct yaml_node *node, json_t **ret);
void yaml_anchors_clear(struct yaml_anchors *anchors); // at a document's end; aliased_bytes stay
