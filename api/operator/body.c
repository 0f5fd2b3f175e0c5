#include "api/operator/body.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include "controller/fields/fields.h"
#include "schemas/kinds/tables.h"
#include <stdarg.h>
#include <string.h>

#define NAME_SHOWN_BYTES 100
#define UNKNOWN_MAX_ROUNDS 50 // of FIELDS_MAX_PROBLEMS each: what is left then is an error after all

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

// A uid in the body says which object is meant, whatever has its name now.
static int check_uid(const struct record *record, const json_t *body, struct error *err)
{
    const char *given = json_get_text(json_object_get(body, "metadata"), "uid");
    if (!given || !*given || !record->meta.uid || strcmp(given, record->meta.uid) == 0)
        return 0;
    CLEANUP_FREE char *shown = printable(given);
    return error_set(err, ERROR_CONFLICT, "look at what has the name now",
                     "Operation cannot be fulfilled on %s." API_GROUP " \"%s\": Precondition failed: UID in precondition: %s, "
                     "UID in object meta: %s",
                     kind_info(record->kind)->plural, record->meta.name, shown, record->meta.uid);
}

// ---- what no table has, and what stands twice
// ----------------------------------------------------------------------------------
static void add_unknown(struct call *call, json_t *causes, const char *path)
{
    if (!call->is_lenient)
        body_add_cause(causes, path, CAUSE_UNKNOWN, "unknown field '%s'", path);
    else if (call->is_warning)
        operator_warn(call, "unknown field \"%s\"", path);
}

static void check_members(struct call *call, const json_t *body, json_t *causes)
{
    static const char *const known[] = {"apiVersion", "kind", "metadata", "spec", "status"};
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)body, name, value)
    {
        bool is_known = false;
        for (size_t i = 0; i < ARRAY_LEN(known) && !is_known; i++)
            is_known = strcmp(known[i], name) == 0;
        CLEANUP_FREE char *shown = printable(name);
        if (!is_known && json_array_size(causes) < FIELDS_MAX_PROBLEMS)
            add_unknown(call, causes, shown);
    }
}

static void check_repeats(struct call *call, json_t *causes)
{
    size_t i;
    json_t *path;
    json_array_foreach(call->repeated, i, path)
    {
        CLEANUP_FREE char *shown = printable(json_string_value(path));
        if (!call->is_lenient)
            body_add_cause(causes, shown, CAUSE_REPEATED, "duplicate field '%s'", shown);
        else if (call->is_warning)
            operator_warn(call, "duplicate field \"%s\"", shown);
    }
}

// What strict reading finds in one part.
static json_t *find_unknown(const struct record *record, const char *part, const json_t *value)
{
    json_t *causes = json_array();
    CLEANUP_RECORD struct record *scratch = record_copy(record);
    if (strcmp(part, "metadata") == 0)
        record_meta_from_json(scratch, value, causes, NULL);
    else
        fields_from_json(kind_spec_table(record->kind), value, &scratch->spec, true, part, causes, NULL);
    return causes;
}

// Takes "a.b" out of an object that is nobody else's; lists are left as they are.
static void remove_path(json_t *object, const char *path)
{
    if (json_object_get(object, path)) {
        json_object_del(object, path);
        return;
    }
    for (const char *dot = strchr(path, '.'); dot; dot = strchr(dot + 1, '.')) {
        CLEANUP_FREE char *name = mem_strndup(path, (size_t)(dot - path));
        if (json_is_object(json_object_get(object, name)))
            remove_path(json_object_get(object, name), dot + 1);
    }
}

// One reading reports a bounded number of problems: how many unknown fields were taken out of `copy`.
static size_t remove_unknown(struct call *call, const struct record *record, const char *part, json_t *copy)
{
    CLEANUP_JSON json_t *causes = find_unknown(record, part, copy);
    json_t *cause;
    size_t i, count = 0, part_len = strlen(part);
    json_array_foreach(causes, i, cause)
    {
        const char *field = json_get_text(cause, "field"), *reason = json_get_text(cause, "reason");
        if (strcmp(reason, CAUSE_UNKNOWN) != 0 || strncmp(field, part, part_len) != 0 || field[part_len] != '.')
            continue;
        remove_path(copy, field + part_len + 1);
        add_unknown(call, NULL, field);
        count++;
    }
    return count;
}

static json_t *without_unknown(struct call *call, const struct record *record, const char *part, const json_t *value)
{
    json_t *copy = json_deep_copy(value);
    for (size_t round = 0; round < UNKNOWN_MAX_ROUNDS && remove_unknown(call, record, part, copy); round++)
        continue;
    return copy;
}

static json_t *take_part(struct call *call, const struct record *record, const json_t *body, const char *part)
{
    json_t *value = json_object_get(body, part);
    if (!value || json_is_null(value))
        return NULL;
    return call->is_lenient && json_is_object(value) ? without_unknown(call, record, part, value) : json_incref(value);
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

// ---- what is left out
// ---------------------------------------------------------------------------------------------------------
static bool has_text(const json_t *list, const char *text)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *item = json_string_value(json_array_get(list, i));
        if (item && strcmp(item, text) == 0)
            return true;
    }
    return false;
}

static void warn_of_finalizers(struct call *call, const struct record *record, const json_t *given)
{
    for (size_t i = 0; i < record->meta.finalizers.count; i++) {
        const char *own = record->meta.finalizers.items[i];
        if (is_own(own) && !has_text(given, own))
            operator_warn(call, "metadata.finalizers: %s stays until the server has done what it stands for", own);
    }
}

static void warn_of_ignored(struct call *call, const struct record *record, const json_t *body)
{
    // A patch says what it means by itself; of a list of operations only the result can be seen.
    const json_t *metadata = json_object_get(json_is_object(call->body) ? call->body : body, "metadata");
    const json_t *finalizers = json_object_get(metadata, "finalizers");
    const char *namespace = json_get_text(metadata, "namespace");
    if (finalizers || json_is_array(call->body))
        warn_of_finalizers(call, record, finalizers);
    if (namespace && *namespace)
        operator_warn(call, "metadata.namespace: left out, because no kind of " API_GROUP " has namespaces");
}

int body_read(struct call *call, struct record *record, const json_t *body, json_t *causes, struct error *err)
{
    const struct kind_info *info = kind_info(record->kind);
    if (check_word(body, "apiVersion", API_GROUP "/" API_VERSION, err) < 0 ||
        check_word(body, "kind", info->name, err) < 0 || check_name(record, body, err) < 0 || check_uid(record, body, err) < 0)
        return -1;
    CLEANUP_JSON json_t *metadata = take_part(call, record, body, "metadata");
    CLEANUP_JSON json_t *spec = take_part(call, record, body, "spec");
    CLEANUP_JSON json_t *spec_causes = NULL;
    CLEANUP_RECORD struct record *before = record_copy(record);
    check_members(call, body, causes);
    check_repeats(call, causes);
    record_meta_from_json(record, metadata, causes, NULL);
    if (record_spec_from_json(record, spec, &spec_causes, NULL) < 0)
        json_array_extend(causes, spec_causes);
    keep_own_annotations(record, &before->meta.annotations);
    warn_of_ignored(call, before, body);
    return strict_check(call, causes, err) < 0 ? -1 : fields_causes_to_error(causes, err);
}

// ---- merging
// --------------------------------------------------------------------------------------------------------------
void body_merge(json_t *target, const json_t *patch)
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
            body_merge(old, value);
        }
    }
}
