// Problems met while reading untrusted fields: collected instead of stopping at the first, bounded, each with
// its path. For the readers of untrusted objects only: controller/fields, controller/record*, manifests.
#pragma once
#include "controller/fields/fields.h"

// Where a value is: a chain on the stack, rendered only when there is something to report.
struct field_path {
    const struct field_path *up;
    const char *name; // NULL: an index
    size_t index;
};
char *field_path_text(const struct field_path *path); // "spec.items[3].name"; the caller owns it

struct field_problem_list {
    json_t *causes; // array, made at the first problem
    size_t count;   // beyond FIELDS_MAX_PROBLEMS counted, not kept
};
void problems_add(struct field_problem_list *list, const struct field_path *path, const char *reason,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));
// 0 if there are none. Else moves them to `causes` (NULL allowed), words them in err, and frees the list.
int problems_finish(struct field_problem_list *list, json_t *causes, struct error *err);
// The value for a message: quoted, printable, at most about 40 characters. The caller owns it.
char *problems_quote(const char *text);
// The known name nearest to `word` (edit distance at most 2, and less than its length), or NULL.
const char *problems_nearest(const char *word, const char *const *known, size_t count);
