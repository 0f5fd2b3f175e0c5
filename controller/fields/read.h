// The reader's state, shared by read.c (tables) and read_types.c (values). Inside controller/fields only.
#pragma once
#include "controller/fields/problems.h"
#include "controller/fields/values.h"

struct reading {
    bool is_strict;
    struct field_problem_list problems;
};
// Puts a present value into the member at `at` (valid before and after; zeroed before). Problems go to r.
void read_value(struct reading *r, const struct field *field, const json_t *json, void *at,
                const struct field_path *path);
void read_table(struct reading *r, const struct field_table *table, const json_t *json, void *to,
                const struct field_path *path);
const char *fields_type_word(const json_t *json); // "a string", "null", …
