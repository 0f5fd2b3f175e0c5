// What somebody changed in an object's text, as an RFC 7386 merge patch.
#pragma once
#include "controller/base/error.h"
#include <jansson.h>
#include <stdbool.h>

// before → after; an empty object where they are the same. New reference.
json_t *merge_patch(const json_t *before, const json_t *after);
// The same of an API object: only labels, annotations, finalizers and spec may differ. ERROR_INVALID names what else does; the
// resourceVersion and managedFields do not count.
int edit_patch(const json_t *before, const json_t *after, json_t **ret, struct error *err);
// Do two images of an object agree in what can be edited?
bool edit_is_same(const json_t *a, const json_t *b);
