// What several commands do with API objects.
#pragma once
#include "cli/command.h"

// KIND or KIND/NAME words: "sandboxes", "sbx", "sandbox/dev". ERROR_USAGE with a likely meaning.
const struct kind_info *object_kind(const char *word, struct error *err);
// Gets one object by name, uid or unique prefix. New reference.
int object_get(const struct rest *rest, const struct kind_info *info, const char *name, json_t **ret, struct error *err);
const char *object_name(const json_t *object); // metadata.name, "" if absent
const char *object_uid(const json_t *object);
// "sandbox/dev", as `-o name` prints. The caller owns it.
char *object_word(const json_t *object);
// The True/False condition of that type in status, NULL if absent; borrowed.
const json_t *object_condition(const json_t *object, const char *type);
// -o json, yaml or name of one object (a List prints its items with name). False for other formats.
bool object_print(const struct invocation *in, const json_t *object);
