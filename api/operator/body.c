#include "api/operator/body.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include "controller/fields/fields.h"
#include "schemas/kinds/tables.h"
#include <stdarg.h>
#include <string.h>

#define NAME_SHOWN_BYTES 100

void body_add_cause(json_t *causes, const char *field, const char *reason, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *message = mem_vformat(format, args);
    va_end(args);
    json_array_append_new(causes, json_pack("{s:o, s:o, s:s}", "field", json_from_text(field), "message",
                                            json_from_text(message), "reason", reason));
}

static char *printable(const char *text)
{
    size_t len = strlen(text);
    return utf8_to_printable(text, len > NAME_SHOWN_BYTES ? utf8_cut(text, NAME_SHOWN_BYTES) : len, false);
}

// ---- the object as a whole
// --------------------------------------------------------------------------------------------
static int check_word(const json_t *body, const char *member, const char *wanted, struct error *err)
{
    const json_t *value = json_object_get(body, member);
    const char *given = json_get_text(body, member);
    if (!value || json_is_null(value) || (given && strcmp(given, wanted) == 0))
        return 0;
    CLEANUP_FREE char *shown = printable(given ? given : "something else than a string");
    return error_set(err, ERROR_USAGE, NULL, "the %s in the body is %s, but this path is about %s", member,
                     shown, wanted);
}

static int check_name(const struct record *record, const json_t *body, struct error *err)
{
    const char *given = json_get_text(json_object_get(body, "metadata"), "name");
    if (!given || !record->meta.name || strcmp(given, record->meta.name) == 0)
        return 0;
    CLEANUP_FREE char *shown = printable(given);
    return error_set(err, ERROR_USAGE, "objects cannot be renamed: make another one, and delete this one",
                     "metadata.name in the body is %s, but the path names %s", shown, record->meta.name);
}

static void check_members(const json_t *body, bool is_lenient, json_t *causes)
{
    static const char *const known[] = {"apiVersion", "kind", "metadata", "spec", "status"};
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)body, name, value)
    {
        bool is_known = is_lenient;
        for (size_t i = 0; i < ARRAY_LEN(known) && !is_known; i++)
            is_known = strcmp(known[i], name) == 0;
        CLEANUP_FREE char *shown = printable(name);
        if (!is_known)
            body_add_cause(causes, shown, CAUSE_UNKNOWN, "unknown field '%s'", shown);
    }
}

// ---- fieldValidation=Ignore: what no table has is left out
// ---------------------------------------------------------------
static json_t *without_unknown(const struct record *record, const char *part, const json_t *value)
{
    CLEANUP_JSON json_t *causes = json_array();
    CLEANUP_RECORD struct record *scratch = record_copy(record);
    json_t *copy = json_copy((json_t *)value), *cause;
    size_t i, part_len = strlen(part);
    if (strcmp(part, "metadata") == 0)
        record_meta_from_json(scratch, value, causes, NULL);
    else
        fields_from_json(kind_spec_table(record->kind), value, &scratch->spec, true, part, causes, NULL);
    json_array_foreach(causes, i, cause)
    {
        const char *field = json_get_text(cause, "field"), *reason = json_get_text(cause, "reason");
        if (strcmp(reason, CAUSE_UNKNOWN) == 0 && strncmp(field, part, part_len) == 0 &&
            field[part_len] == '.')
            json_object_del(copy, field + part_len + 1);
    }
    return copy;
}

static json_t *take_part(const struct record *record, const json_t *body, const char *part, bool is_lenient)
{
    json_t *value = json_object_get(body, part);
    if (!value || json_is_null(value))
        return NULL;
    return is_lenient && json_is_object(value) ? without_unknown(record, part, value) : json_incref(value);
}

// ---- the server's own annotations
// ------------------------------------------------------------------------------------------
static bool is_own(const char *key)
{
    return strncmp(key, ANNOTATIONS_OWN_PREFIX, strlen(ANNOTATIONS_OWN_PREFIX)) == 0;
}

// Joins and decisions rest on them, so whatever a caller sends, they stay as they are stored.
static void keep_own_annotations(struct record *record, const struct text_map *stored)
{
    struct text_map *map = &record->meta.annotations;
    for (size_t i = map->count; i > 0; i--)
        if (is_own(map->items[i - 1].key)) {
            CLEANUP_FREE char *key = mem_strdup(map->items[i - 1].key);
            text_map_set(map, key, NULL);
        }
    for (size_t i = 0; i < stored->count; i++)
        if (is_own(stored->items[i].key))
            text_map_set(map, stored->items[i].key, stored->items[i].value);
}

int body_read(struct record *record, const json_t *body, bool is_lenient, json_t *causes, struct error *err)
{
    const struct kind_info *info = kind_info(record->kind);
    if (check_word(body, "apiVersion", API_GROUP "/" API_VERSION, err) < 0 ||
        check_word(body, "kind", info->name, err) < 0 || check_name(record, body, err) < 0)
        return -1;
    CLEANUP_JSON json_t *metadata = take_part(record, body, "metadata", is_lenient);
    CLEANUP_JSON json_t *spec = take_part(record, body, "spec", is_lenient);
    CLEANUP_JSON json_t *spec_causes = NULL;
    CLEANUP_RECORD struct record *before = record_copy(record);
    check_members(body, is_lenient, causes);
    record_meta_from_json(record, metadata, causes, NULL);
    if (record_spec_from_json(record, spec, &spec_causes, NULL) < 0)
        json_array_extend(causes, spec_causes);
    keep_own_annotations(record, &before->meta.annotations);
    return fields_causes_to_error(causes, err);
}

// ---- merging
// --------------------------------------------------------------------------------------------------------------
static void merge_into(json_t *target, const json_t *patch)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)patch, name, value)
    {
        json_t *old = json_object_get(target, name);
        if (json_is_null(value)) {
            json_object_del(target, name);
        } else if (!json_is_object(value)) {
            json_object_set(target, name, value);
        } else {
            if (!json_is_object(old)) {
                old = json_object();
                json_object_set_new(target, name, old);
            }
            merge_into(old, value);
        }
    }
}

json_t *body_merge(const struct record *current, const json_t *body)
{
    CLEANUP_JSON json_t *object = record_to_json(current);
    CLEANUP_JSON json_t *patch = json_copy((json_t *)body);
    json_t *metadata = json_object_get(object, "metadata");
    json_object_del(object, "status"); // the reconcilers' alone
    json_object_del(patch, "status");
    json_object_del(metadata, "resourceVersion"); // a precondition only where the caller states it
    json_object_del(metadata, "managedFields");
    merge_into(object, patch);
    return json_incref(object);
}
