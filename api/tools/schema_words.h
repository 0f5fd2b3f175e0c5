// The sentences of schema_check. Private to it.
#pragma once
#include "api/tools/schema_check.h"

// Where in the value: a chain up to the top, on the stack, put into words only when something is wrong.
struct schema_place {
    const struct schema_place *up; // NULL: the value itself
    const json_t *schema;          // of what stands there
    const char *name;              // of a member, or NULL: item number `index`
    size_t index;
};

// All return -1. The hint is the description of the place, or of the nearest one above that has one.
int schema_fail_misfit(const json_t *value, const struct schema_place *at, struct error *err);
int schema_fail_missing(const char *name, const struct schema_place *at, struct error *err);
int schema_fail_unknown(const char *name, const struct schema_place *at, struct error *err);
