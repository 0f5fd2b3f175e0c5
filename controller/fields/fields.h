// Recursive field tables: each field of a kind is declared once, and the table drives JSON ⇄ struct, defaults,
// validation, OpenAPI, explain, and printer columns. Adding a field is one line.
#pragma once
#include "controller/base/error.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum field_type {
    FIELD_TEXT,      // char *
    FIELD_BOOL,      // bool
    FIELD_INT,       // int64_t
    FIELD_QUANTITY,  // int64_t bytes; JSON integer or "512Mi", "2Gi", "1G"
    FIELD_MILLI,     // int64_t thousandths; JSON number or "1.5" or "500m"
    FIELD_ENUM,      // int (C enum); JSON word from `words`
    FIELD_TIME,      // struct wall_time; JSON RFC 3339 text
    FIELD_OBJECT,    // embedded struct described by `fields`
    FIELD_LIST,      // {T *items; size_t count;} of structs described by `fields`, merge key `key`
    FIELD_TEXT_LIST, // struct text_list
    FIELD_TEXT_MAP,  // struct text_map
    FIELD_JSON,      // json_t *, passed through (bounded by size)
};

struct field_table;
struct field {
    const char *name; // JSON name
    enum field_type type;
    size_t offset;
    const char *doc;                // one line, required
    const char *const *words;       // ENUM: indexed by value, NULL-terminated; an "" word means absent
    const struct field_table *fields; // OBJECT, LIST
    const char *key;                // LIST: merge key
    int64_t min, max;               // INT, QUANTITY, MILLI: bounds if max > min; TEXT: max length in bytes (0: 4096)
    const char *default_json;       // default as JSON text, or NULL
    const char *column;             // printer column heading, or NULL
    int column_priority;            // 0 shown, 1 only wide
    bool is_required;
    bool is_immutable;
    // More than the table can say: NULL or a sentence fragment ("must be an absolute path") put into text.
    const char *(*check)(const void *value);
};
struct field_table {
    const char *doc;
    size_t size; // sizeof the struct: LIST elements, copies
    const struct field *fields;
    size_t count;
    // Rules across fields ("path may not be specified when mode is 'managed'"). NULL or 0/-1 with error.
    int (*check)(const void *value, struct error *err);
};

struct field_problem_list; // collected problems, at most 20

json_t *fields_to_json(const struct field_table *table, const void *from);
int fields_from_json(const struct field_table *table, const json_t *json, void *to, bool is_strict, const char *path,
                     json_t *causes, struct error *err);
void fields_copy(const struct field_table *table, const void *from, void *to);
void fields_clear(const struct field_table *table, void *at); // frees what the struct owns, zeroes it
bool fields_equal(const struct field_table *table, const void *a, const void *b);
json_t *fields_to_openapi(const struct field_table *table); // JSON Schema of OpenAPI v3
// Walks "spec.a.b" (first part already stripped): NULL if there is none.
const struct field *fields_find(const struct field_table *table, const char *path);
