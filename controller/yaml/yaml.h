// libyaml's events → JSON values and a tree of where they stand. Strict: YAML 1.2 core scalars, core tags only, no duplicate
// keys, no merge keys, no NUL, UTF-8. Anchors and aliases are allowed; what they stand for counts as if it were written out,
// so that a small text never becomes a large value. Manifests on the command line are read by cli/printers/manifest.h.
#pragma once
#include "controller/base/error.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define YAML_MAX_DEPTH 64
#define YAML_MAX_NODES 10000 // keys and values of one stream, what aliases stand for included
#define YAML_MAX_ALIASED_BYTES (1024 * 1024) // of text that aliases stand for
#define YAML_MAX_ANCHORS 1000 // of one document

// Mirrors one value: a mapping's members by key, a list's items by position.
struct yaml_node {
    char *key;   // NULL: root or list item
    size_t line, column; // from 1, columns in characters; of the key where there is one. What an alias stands for: where it is written
    struct yaml_node *items;
    size_t count;
    bool is_list;
};
void yaml_node_free(struct yaml_node *node); // with what is below; NULL allowed

// Called for each document in order. value and root are handed over.
typedef void yaml_document_fn(void *arg, json_t *value, struct yaml_node *root);
// file: for messages, which begin with "FILE:LINE:COLUMN: ".
int yaml_parse(const char *file, const char *bytes, size_t len, yaml_document_fn *fn, void *arg,
               struct error *err);
// The same with another bound than YAML_MAX_NODES.
int yaml_parse_bounded(const char *file, const char *bytes, size_t len, size_t max_nodes, yaml_document_fn *fn, void *arg,
                       struct error *err);

// A plain scalar by the YAML 1.2 core schema. 0 and a new value; or -1 and *ret_wrong, a sentence fragment.
int yaml_resolve_plain(const char *text, json_t **ret, const char **ret_wrong);
// Any scalar with its tag (NULL: none): "!" and !!str make text of it, !!null, !!bool, !!int and !!float want that. Other tags
// are not allowed.
int yaml_resolve_scalar(const char *text, size_t len, bool is_plain, const char *tag, json_t **ret, const char **ret_wrong);
// Is a tag of a list or mapping one that changes nothing: none, "!", !!seq or !!map?
bool yaml_is_tag_of(const char *tag, bool is_list);
