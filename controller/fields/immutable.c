// Which immutable rows differ between two values of one table.
#include "controller/fields/problems.h"
#include "controller/fields/values.h"

static void find_changes(const struct field_table *table, const void *before, const void *after,
                         const struct field_path *up, struct field_problem_list *problems)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct field *field = &table->fields[i];
        struct field_path path = {.up = up, .name = field->name};
        if (field_equal(field, before, after))
            continue;
        if (field->is_immutable)
            problems_add(problems, &path, CAUSE_INVALID, "may not be changed: the field is immutable");
        else if (field->type == FIELD_OBJECT)
            find_changes(field->fields, FIELD_AT(before, field), FIELD_AT(after, field), &path, problems);
    }
}

int fields_check_immutable(const struct field_table *table, const void *before, const void *after,
                           const char *path, json_t *causes, struct error *err)
{
    struct field_problem_list problems = {0};
    struct field_path root = {.name = path ? path : ""};
    find_changes(table, before, after, &root, &problems);
    return problems_finish(&problems, causes, err);
}
