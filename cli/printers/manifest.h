// Manifests: YAML (and JSON, which is YAML) from a file or standard input → JSON objects that know their
// places. Strict where two readers could see two documents (controller/yaml/yaml.h). Bounded: MANIFEST_MAX_BYTES,
// MANIFEST_MAX_DEPTH, MANIFEST_MAX_NODES.
//
//     CLEANUP(manifest_free) struct manifest manifest = {0};
//     if (manifest_read(path, &manifest, err) < 0) return -1;          // "dev.yaml:3:7: …"
//     for (size_t i = 0; i < manifest.count; i++)
//         if (manifest_check(&manifest, i, &info, causes, err) < 0) …   // apiVersion, kind, unknown
//         top-level fields
//     CLEANUP_FREE char *where = manifest_word_cause(&manifest, i, cause); // "dev.yaml:9:3: spec.port: must be …"
#pragma once
#include "controller/base/error.h"
#include "controller/record.h"
#include "controller/yaml/yaml.h"
#include <jansson.h>
#include <stddef.h>

#define MANIFEST_MAX_BYTES (16 * 1024 * 1024) // of one stream, all its documents
#define MANIFEST_MAX_DEPTH YAML_MAX_DEPTH
#define MANIFEST_MAX_NODES 1000000

struct manifest_document {
    json_t *value;                 // an object; owned by the manifest
    const struct yaml_node *lines; // where each of its fields stands
};
struct manifest {
    char *file;                          // for messages: the path, or "standard input"
    struct manifest_document *documents; // in order; the items of a `kind: List` stand here one by one
    size_t count;
    struct yaml_node **trees; // what `lines` points into
    size_t tree_count;
};

// Empty documents are skipped; a stream without any other is ERROR_INVALID. *ret (zeroed before) is untouched
// on failure.
int manifest_parse(const char *file, const char *bytes, size_t len, struct manifest *ret, struct error *err);
int manifest_read(const char *path, struct manifest *ret, struct error *err); // "-": standard input
void manifest_free(struct manifest *manifest);
// Checks apiVersion, kind (*ret_info) and the names of the top-level fields. Problems as in fields_from_json.
int manifest_check(const struct manifest *manifest, size_t document, const struct kind_info **ret_info,
                   json_t *causes, struct error *err);
// "FILE:LINE:COLUMN" of a field, "spec.items[3].port", or of the nearest part of that path that the document has. The caller owns it.
char *manifest_place(const struct manifest *manifest, size_t document, const char *path);
// "FILE:LINE:COLUMN: FIELD: MESSAGE" of a cause {field, message}. The caller owns it.
char *manifest_word_cause(const struct manifest *manifest, size_t document, const json_t *cause);
