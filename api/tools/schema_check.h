// Checks a value against the part of JSON Schema 2020-12 that the tool catalogue uses: type (a word or a
// list), enum, required, properties, additionalProperties (true, false or a schema), items, minimum, maximum,
// minLength, maxLength. title, description and default say things to readers only. schema_check_keywords
// refuses any other keyword, so that nothing is ignored.
#pragma once
#include "controller/base/json.h"

// A result of a tool server has at most 24 MiB; no sensible one has more values than this.
#define SCHEMA_VALUES_MAX (2 * 1000 * 1000)

enum schema_use {
    SCHEMA_ARGUMENTS, // members that the schema does not know are an error
    SCHEMA_RESULT, // they are taken out: nobody was promised them, and a strict client would refuse the whole
                   // result
};

// One clear sentence naming the first thing that is wrong and what is permitted ("port must be an integer
// from 1 to 65535, not 70000"), ERROR_INVALID; its hint is what the schema says of that member. The value may
// be hostile: no text of its own but cut names of members gets into the sentence, recursion is bounded by the
// schema's own depth, and more than SCHEMA_VALUES_MAX values are ERROR_TOO_LARGE. Whole numbers written
// as 5.0 become integers where the schema wants an integer; the value is otherwise changed for SCHEMA_RESULT
// only.
int schema_check(const json_t *schema, json_t *value, enum schema_use use, struct error *err);
int schema_check_keywords(const json_t *schema, struct error *err);
