// Field sets in Kubernetes' FieldsV1 form: which field manager set which field.
//
//     {"f:spec": {"f:port": {}}, "f:metadata": {"f:finalizers": {"v:\"a/b\"": {}}, "f:labels": {"f:tier": {}}}}
//
// "f:" names a member of an object or map, "k:" an item of a keyed list, "v:" an item of a set. A node belongs to the set if it
// is empty or has the member "."; what else is below it belongs to the set by itself. Objects of a table are as fields_to_json
// writes them. Functions that answer a set give a new reference, possibly an empty object.
#pragma once
#include "controller/fields/fields.h"

#define OWNED_MAX_DEPTH 16 // of a set that a client sends; no table is that deep

// The leaves of `to` that `from` does not have with the same value: all of them if from is NULL. Keyed lists, text maps and
// sets are owned item by item; other lists and free JSON are leaves.
json_t *owned_diff(const struct field_table *table, const json_t *from, const json_t *to);
json_t *owned_diff_map(const json_t *from, const json_t *to); // the same for an object of strings
// Every leaf that `json` names, whether or not its value says anything (null names nothing).
json_t *owned_all(const struct field_table *table, const json_t *json);

void owned_add(json_t *set, const json_t *more);         // union, in place
void owned_subtract(json_t *set, const json_t *without); // difference, in place; nodes that become empty go
json_t *owned_intersect(const json_t *a, const json_t *b);
bool owned_is_valid(const json_t *set); // the form above; for what clients send
// Every member as Kubernetes writes it: ".spec.port", ".metadata.labels.tier", ".list[name=\"x\"].value", ".set[=\"x\"]".
// A new array of strings, at most `max`.
json_t *owned_paths(const json_t *set, size_t max);

// ---- objects and sets (owned_merge.c) --------------------------------------------------------------------------------
// `live` with `config` merged into it as the table says: objects, maps and keyed lists member by member, sets as unions,
// everything else replaced. null in config names nothing. Members that no table has are taken over as they are, for the
// reader to refuse. New reference; shares values with both.
json_t *owned_merge(const struct field_table *table, const json_t *live, const json_t *config);
// Takes the members of the set out of `json`, an object of its own; objects, lists and maps that become empty go.
void owned_remove(const struct field_table *table, json_t *json, const json_t *set);
// `json` with every value in the form that fields_to_json gives it ("1024Mi" → "1Gi"); what cannot be read, unknown members
// and values that say nothing ("" of an enum) stay as they are. New reference.
json_t *owned_normalize(const struct field_table *table, const json_t *json);
