// Checks a value against the part of JSON Schema that the tool catalogue uses: type (a word or a list), enum,
// required, properties, additionalProperties (true or false), items, minimum, maximum, minLength, maxLength.
// title, description and default say things to readers only. schema_check_keywords refuses any other keyword,
// so that nothing is ignored.
#pragma once
#include "controller/base/json.h"

// One clear sentence naming the first thing that is wrong ("port must be at most 65535"), ERROR_INVALID. The
// value may be hostile; recursion is bounded by the schema's own depth.
int schema_check(const json_t *schema, const json_t *value, struct error *err);
int schema_check_keywords(const json_t *schema, struct error *err);
