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
    const char *const *words;       // ENUM: indexed by value, NULL-terminated; an "" word means absent. TEXT_LIST: the items that may be
    const struct field_table *fields; // OBJECT, LIST
    const char *key;                // LIST: merge key
    int64_t min, max; // INT, QUANTITY, MILLI: bounds if max > min (INT64_MAX: none above); TEXT: max bytes (0: 4096)
    const char *default_json;       // default as JSON text, or NULL
    const char *column;             // printer column heading, or NULL
    const char *column_empty;       // the cell of an absent value, as JSON; NULL: "<none>", of numbers null
    int column_priority;            // 0 shown, 1 only wide
    bool is_required;
    bool is_immutable;
    bool is_selectable; // a fieldSelector may name it
    bool is_set;                    // TEXT_LIST: a set, whose items are owned one by one; else it is owned as a whole
    int max_items;                  // TEXT_LIST: at most; 0: FIELDS_LIST_MAX
    const char *(*check_item)(const char *text); // TEXT_LIST: as `check`, of each item
    // More than the table can say: NULL or a sentence fragment ("must be an absolute path"). `value` is the text
    // itself for TEXT, the member's address for every other type. Not asked about absent values.
    const char *(*check)(const void *value);
    const char *pattern; // TEXT: what fits `check` as a regular expression (RE2, in schemas), maybe with some that do not
};
struct field_table {
    const char *doc;
    size_t size; // sizeof the struct: LIST elements, copies
    const struct field *fields;
    size_t count;
    // Rules across fields. NULL or 0/-1 with error; a message that starts with "NAME: " is reported at that field
    // ("path: may not be specified when `mode` is 'managed'"). Asked only when every field by itself is right.
    int (*check)(const void *value, struct error *err);
    const char *rule, *rule_doc; // the same in Kubernetes' expression language (CEL), and its sentence; for schemas. NULL: none
};

// A row: FIELD(struct sandbox_spec, driver, "driver", FIELD_TEXT, "doc", .is_immutable = true)
#define FIELD(owner, member, json_name, json_type, doc_line, ...)                                              \
    {.name = (json_name), .type = (json_type), .offset = offsetof(owner, member), .doc = (doc_line), ##__VA_ARGS__}
#define FIELD_TABLE(owner, rows, doc_line, ...)                                                                \
    {.doc = (doc_line), .size = sizeof(owner), .fields = (rows), .count = sizeof(rows) / sizeof((rows)[0]), ##__VA_ARGS__}

#define FIELDS_MAX_PROBLEMS 20       // collected by one reading; the rest is counted only
#define FIELDS_TEXT_MAX 4096         // bytes of a text whose row states no maximum
#define FIELDS_LIST_MAX 1000         // items of a list or map
#define FIELDS_JSON_MAX (64 * 1024)  // bytes of a FIELD_JSON value as compact text

// A cause is {"field": path, "message": …, "reason": …}, as Kubernetes' Status.details.causes has it. Reasons:
#define CAUSE_REQUIRED "FieldValueRequired"
#define CAUSE_INVALID "FieldValueInvalid"
#define CAUSE_TYPE "FieldValueTypeInvalid"
#define CAUSE_WORD "FieldValueNotSupported"
#define CAUSE_DUPLICATE "FieldValueDuplicate"
#define CAUSE_FORBIDDEN "FieldValueForbidden"
#define CAUSE_UNKNOWN "FieldUnknown" // ours: a strict reader met a field that no table has

// Absent values (NULL text, unset time, zero number, false, empty list) are left out, unless the row is required or
// has a default. New reference.
json_t *fields_to_json(const struct field_table *table, const void *from);
// Reads an object: a member that is absent or null takes its default. Strict: unknown fields, missing required
// ones, bounds and checks are problems. Not strict (the store's own bytes): only wrong types are. All problems
// are collected: appended to `causes` (an array, NULL allowed) under `path` ("spec"; "" for none), worded
// together in err (ERROR_INVALID). `to` must hold a valid value (zeroed or filled): it is replaced on success,
// untouched on failure. The caller owns it (fields_clear).
int fields_from_json(const struct field_table *table, const json_t *json, void *to, bool is_strict, const char *path,
                     json_t *causes, struct error *err);
// Refuses differences in rows that are immutable (an immutable object as a whole), naming each like fields_from_json.
int fields_check_immutable(const struct field_table *table, const void *before, const void *after, const char *path,
                           json_t *causes, struct error *err);
// Words an array of causes into err as ERROR_INVALID; 0 if it is empty or NULL. For callers that collect from several
// readers (metadata, then spec).
int fields_causes_to_error(const json_t *causes, struct error *err);
void fields_copy(const struct field_table *table, const void *from, void *to); // `to` is overwritten, not freed
void fields_clear(const struct field_table *table, void *at); // frees what the struct owns, zeroes it
bool fields_equal(const struct field_table *table, const void *a, const void *b);
// JSON Schema of OpenAPI v3, next to which OPENAPI_QUANTITY (schemas/openapi/meta.json) must be defined. New reference.
#define OPENAPI_REFERENCES "#/components/schemas/"
#define OPENAPI_QUANTITY "io.k8s.apimachinery.pkg.api.resource.Quantity"
json_t *fields_to_openapi(const struct field_table *table);
// Walks "spec.a.b" (first part already stripped): NULL if there is none.
const struct field *fields_find(const struct field_table *table, const char *path);

// Quantities as text: "512Mi", "1G", "1500"; "1.5". Both print the shortest exact form.
#define QUANTITY_TEXT_SIZE 32
void quantity_format(int64_t bytes, char text[QUANTITY_TEXT_SIZE]);
int quantity_parse(const char *text, int64_t *ret_bytes); // 0, or -1: not of this form, or beyond int64_t
void milli_format(int64_t milli, char text[QUANTITY_TEXT_SIZE]);
int milli_parse(const char *text, int64_t *ret_milli);
