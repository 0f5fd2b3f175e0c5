// Field sets in Kubernetes' FieldsV1 form: {"f:spec": {"f:port": {}}}; an empty object is a leaf. They say
// which field manager set which field.
#pragma once
#include "controller/fields/fields.h"

// The leaves of `to` (an object of that table, as fields_to_json writes it) that `from` does not have with
// the same value: all of them if from is NULL. Keyed lists and text maps are sets of their own; other lists
// and free JSON are leaves. New reference, possibly an empty object.
json_t *owned_diff(const struct field_table *table, const json_t *from, const json_t *to);
json_t *owned_diff_map(const json_t *from, const json_t *to); // the same for an object of strings
void owned_add(json_t *set, const json_t *more);              // union, in place
void owned_subtract(json_t *set, const json_t *without); // difference, in place; objects that become empty go
