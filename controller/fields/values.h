// How the engine's own files see members. Inside controller/fields only.
#pragma once
#include "controller/fields/fields.h"

// Every {T *items; size_t count;} as the engine sees it.
struct any_list {
    char *items;
    size_t count;
};
#define FIELD_AT(owner, field) ((const void *)((const char *)(owner) + (field)->offset))

bool field_equal(const struct field *field, const void *a, const void *b); // a, b: the owning structs
// The row of that name, NULL if there is none.
const struct field *field_by_name(const struct field_table *table, const char *name, size_t len);
