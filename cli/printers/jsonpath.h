// JSONPath templates as kubectl prints with them: text, and expressions in braces.
//
//     {.metadata.name} {.items[0].spec['port']} {.items[*].metadata.name} {..port} {.list[1:3]} {.list[::2]} {.list[-1]}
//     {.items[*]['metadata.name','status.phase']} {.list[0,2]} {.metadata.labels['example\.com/team']}
//     {.items[?(@.status.phase=="running")].metadata.name} {"\n"} {range .items[*]}{.metadata.name}{"\n"}{end}
//
// Filters compare with == != < <= > >= (numbers as numbers, everything else as text), or ask whether a field is there.
// Bounded: JSONPATH_MAX_BYTES of template, JSONPATH_MAX_RESULTS values of one expression, ranges three deep.
#pragma once
#include "controller/base/buffer.h"
#include "controller/base/error.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define JSONPATH_MAX_BYTES 8192
#define JSONPATH_MAX_STEPS 32
#define JSONPATH_MAX_RESULTS 100000
#define JSONPATH_MAX_RANGES 3
#define JSONPATH_MAX_DEPTH 64 // that ".." goes down

enum path_step_type { STEP_FIELD, STEP_ALL, STEP_SLICE, STEP_BELOW, STEP_FILTER, STEP_UNION };
enum path_operator { PATH_IS_THERE, PATH_EQUAL, PATH_NOT_EQUAL, PATH_LESS, PATH_LESS_EQUAL, PATH_GREATER, PATH_GREATER_EQUAL };
struct path_filter;
struct path_step {
    enum path_step_type type;
    char *name;                 // FIELD
    bool is_quoted;             // FIELD: 'a.b' is the field of that name, else the path (as kubectl reads it)
    long from, to, by;          // SLICE; by 0: one
    bool has_to, is_index;
    struct path_filter *filter; // FILTER
    struct path_step *parts;    // UNION: what stands between its commas
    size_t part_count;
};
struct json_expression { // one path
    struct path_step steps[JSONPATH_MAX_STEPS];
    size_t count;
};
struct path_values { // borrowed from the document
    json_t **items;
    size_t count;
};
void path_values_free(struct path_values *values);

// ".spec.port", "{.spec.port}", "spec.port", "$.spec.port". ERROR_USAGE names the position. *ret (zeroed before) is
// untouched on failure; the caller frees it with json_expression_free.
int json_expression_parse(const char *text, struct json_expression *ret, struct error *err);
void json_expression_free(struct json_expression *expression);
// Everything the path leads to; nothing where a field is missing. ERROR_TOO_LARGE.
int json_expression_find(const struct json_expression *expression, json_t *root, struct path_values *ret, struct error *err);
// A value as text: strings bare, everything else as JSON. The caller owns it.
char *path_value_text(const json_t *value);

struct jsonpath;
// A whole template. ERROR_USAGE names the position. The caller frees *ret.
int jsonpath_parse(const char *text, struct jsonpath **ret, struct error *err);
void jsonpath_free(struct jsonpath **jsonpath);
// Several values of one expression stand apart by a blank. ERROR_TOO_LARGE.
int jsonpath_write(const struct jsonpath *jsonpath, json_t *root, struct buffer *out, struct error *err);
