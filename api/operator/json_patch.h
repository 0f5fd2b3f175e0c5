// RFC 6902: a list of operations on a JSON document, all or nothing.
#pragma once
#include "controller/base/json.h"

#define JSON_PATCH_MAX_OPERATIONS 10000
#define JSON_PATCH_MAX_COPIED_BYTES (4 * 1024 * 1024) // by all its `copy` operations together: text, and for each value
#define JSON_PATCH_VALUE_BYTES 128                    // so much more: an empty list is two bytes long and takes that in memory

// *document is replaced on success. ERROR_USAGE: the list is malformed; ERROR_TOO_LARGE: too long, copies too much or
// nests too deep; ERROR_INVALID: an operation does not fit the document, or a `test` failed.
int json_patch_apply(json_t **document, const json_t *operations, struct error *err);
// The value at an RFC 6901 pointer, borrowed; NULL if there is none.
json_t *json_pointer_get(json_t *document, const char *pointer);
