// libyaml's events → JSON values and a tree of where they stand. Strict: YAML 1.2 core scalars, no duplicate keys,
// anchors, aliases, tags or NUL; bounded. Manifests on the command line are read by cli/printers/manifest.h.
#pragma once
#include "controller/base/error.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define YAML_MAX_DEPTH 64
#define YAML_MAX_NODES 10000

// Mirrors one value: a mapping's members by key, a list's items by position.
struct yaml_node {
    char *key;   // NULL: root or list item
    size_t line; // from 1; of the key where there is one
    struct yaml_node *items;
    size_t count;
    bool is_list;
};
void yaml_node_free(struct yaml_node *node); // with what is below; NULL allowed

// Called for each document in order. value and root are handed over.
typedef void yaml_document_fn(void *arg, json_t *value, struct yaml_node *root);
int yaml_parse(const char *file, const char *bytes, size_t len, yaml_document_fn *fn, void *arg,
               struct error *err);

// A plain scalar by the YAML 1.2 core schema. 0 and a new value; or -1 and *ret_wrong, a sentence fragment.
int yaml_resolve_plain(const char *text, json_t **ret, const char **ret_wrong);
