// JSON → struct: the walk over a table. The types' own readers are in read_types.c.
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/fields/read.h"
#include <string.h>

const struct field *field_by_name(const struct field_table *table, const char *name, size_t len)
{
    for (size_t i = 0; i < table->count; i++)
        if (strncmp(table->fields[i].name, name, len) == 0 && !table->fields[i].name[len])
            return &table->fields[i];
    return NULL;
}

const struct field *fields_find(const struct field_table *table, const char *path)
{
    const struct field *field = NULL;
    while (table) {
        size_t len = strcspn(path, ".");
        field = field_by_name(table, path, len);
        if (!field || !path[len])
            return field;
        path += len + 1;
        table = field->fields;
    }
    return NULL;
}

static void report_unknown(struct reading *r, const struct field_table *table, const char *name,
                           const struct field_path *up)
{
    const char *known[64];
    size_t count = table->count < ARRAY_LEN(known) ? table->count : ARRAY_LEN(known);
    for (size_t i = 0; i < count; i++)
        known[i] = table->fields[i].name;
    const char *nearest = problems_nearest(name, known, count);
    CLEANUP_FREE char *quoted = problems_quote(name);
    struct field_path path = {.up = up, .name = name};
    if (nearest)
        problems_add(&r->problems, &path, CAUSE_UNKNOWN, "unknown field %s; did you mean `%s`?", quoted,
                     nearest);
    else
        problems_add(&r->problems, &path, CAUSE_UNKNOWN, "unknown field %s", quoted);
}

static void check_unknown(struct reading *r, const struct field_table *table, const json_t *json,
                          const struct field_path *path)
{
    const char *name;
    json_t *value;
    if (!r->is_strict)
        return;
    json_object_foreach((json_t *)json, name, value) if (!field_by_name(table, name, strlen(name)))
        report_unknown(r, table, name, path);
}

static void read_default(struct reading *r, const struct field *field, void *at,
                         const struct field_path *path)
{
    CLEANUP_JSON json_t *value = NULL;
    if (json_parse(field->default_json, strlen(field->default_json), &value, NULL) == 0)
        read_value(r, field, value, at, path);
}

static void check_value(struct reading *r, const struct field *field, const void *at,
                        const struct field_path *path)
{
    if (!r->is_strict || !field->check)
        return;
    const char *wrong = field->check(field->type == FIELD_TEXT ? *(char *const *)at : at);
    if (wrong)
        problems_add(&r->problems, path, CAUSE_INVALID, "%s", wrong);
}

static void read_member(struct reading *r, const struct field *field, const json_t *json, void *to,
                        const struct field_path *up)
{
    struct field_path path = {.up = up, .name = field->name};
    const json_t *value = json_object_get(json, field->name);
    void *at = (char *)to + field->offset;
    size_t before = r->problems.count;
    if (value && !json_is_null(value)) {
        read_value(r, field, value, at, &path);
        if (r->problems.count == before)
            check_value(r, field, at, &path);
    } else if (field->default_json) {
        read_default(r, field, at, &path);
    } else if (field->is_required && r->is_strict) {
        problems_add(&r->problems, &path, CAUSE_REQUIRED, "must be specified");
    }
}

// "NAME: rest" is reported at NAME where the table has it.
static void report_check(struct reading *r, const struct field_table *table, const char *message,
                         const struct field_path *path)
{
    size_t len = strcspn(message, ":");
    const struct field *field = message[len] ? field_by_name(table, message, len) : NULL;
    struct field_path at = {.up = path, .name = field ? field->name : ""};
    problems_add(&r->problems, field ? &at : path, CAUSE_INVALID, "%s",
                 field ? message + len + strspn(message + len, ": ") : message);
}

void read_table(struct reading *r, const struct field_table *table, const json_t *json, void *to,
                const struct field_path *path)
{
    size_t before = r->problems.count;
    struct error err = ERROR_INIT;
    if (!json_is_object(json)) {
        problems_add(&r->problems, path, CAUSE_TYPE, "must be an object, not %s", fields_type_word(json));
        return;
    }
    check_unknown(r, table, json, path);
    for (size_t i = 0; i < table->count; i++)
        read_member(r, &table->fields[i], json, to, path);
    if (r->is_strict && table->check && r->problems.count == before && table->check(to, &err) < 0)
        report_check(r, table, err.message, path);
}

int fields_from_json(const struct field_table *table, const json_t *json, void *to, bool is_strict,
                     const char *path, json_t *causes, struct error *err)
{
    struct reading r = {.is_strict = is_strict};
    struct field_path root = {.name = path ? path : ""};
    CLEANUP_FREE void *fresh = mem_alloc(table->size);
    read_table(&r, table, json, fresh, &root);
    if (problems_finish(&r.problems, causes, err) < 0) {
        fields_clear(table, fresh);
        return -1;
    }
    fields_clear(table, to);
    memcpy(to, fresh, table->size);
    return 0;
}
