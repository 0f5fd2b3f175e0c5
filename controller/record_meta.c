// Metadata as callers send it: strict, but what the server itself printed may come back.
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/fields/problems.h"
#include "controller/record.h"
#include "controller/record_names.h"
#include "schemas/kinds/common.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAP_MAX 128                        // labels, annotations
#define FINALIZERS_MAX 32
#define OWNERS_MAX 32
#define ANNOTATIONS_MAX_BYTES (256 * 1024) // all keys and values, as Kubernetes has it

struct meta_reading {
    struct record_meta *meta; // becomes the record's if there is no problem
    struct field_problem_list problems;
};
typedef void meta_reader(struct meta_reading *r, const json_t *value, const struct field_path *path);

static bool read_string(struct meta_reading *r, const json_t *value, const char **ret,
                        const struct field_path *path)
{
    if (!json_is_string(value)) {
        problems_add(&r->problems, path, CAUSE_TYPE, "must be a string");
        return false;
    }
    *ret = json_string_value(value);
    return true;
}

static void read_name(struct meta_reading *r, const json_t *value, const struct field_path *path)
{
    const char *name;
    if (!read_string(r, value, &name, path))
        return;
    const char *wrong = check_record_name(name);
    if (wrong)
        problems_add(&r->problems, path, CAUSE_INVALID, "%s", wrong);
    else
        mem_replace(&r->meta->name, name);
}

static void read_resource_version(struct meta_reading *r, const json_t *value, const struct field_path *path)
{
    const char *text;
    char *end;
    if (!read_string(r, value, &text, path) || !*text)
        return;
    errno = 0;
    long long version = strtoll(text, &end, 10);
    if (errno || *end || text[0] < '0' || text[0] > '9')
        problems_add(&r->problems, path, CAUSE_INVALID, "must be a version that the server gave");
    else
        r->meta->resource_version = version;
}

static void read_ignored(struct meta_reading *r, const json_t *value, const struct field_path *path)
{
    (void)r, (void)value, (void)path;
}

static void read_finalizer(struct meta_reading *r, const json_t *value, const struct field_path *path)
{
    const char *text;
    if (!read_string(r, value, &text, path) || name_is_own(text))
        return; // the server's own stay as they are
    if (!name_is_qualified(text) || !strchr(text, '/'))
        problems_add(&r->problems, path, CAUSE_INVALID,
                     "must be a name with a DNS prefix and '/', like 'example.com/cleanup'");
    else
        text_list_add(&r->meta->finalizers, text);
}

static void read_finalizers(struct meta_reading *r, const json_t *value, const struct field_path *path)
{
    if (!json_is_array(value)) {
        problems_add(&r->problems, path, CAUSE_TYPE, "must be a list of strings");
        return;
    }
    if (json_array_size(value) > FINALIZERS_MAX) {
        problems_add(&r->problems, path, CAUSE_INVALID, "must have no more than %d entries", FINALIZERS_MAX);
        return;
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        struct field_path at = {.up = path, .index = i};
        read_finalizer(r, json_array_get(value, i), &at);
    }
}

// Reads an object of strings with qualified keys; answers how many bytes it holds.
static size_t read_map(struct meta_reading *r, const json_t *value, struct text_map *map, bool (*is_key)(const char *),
                       bool (*is_value)(const char *), const char *value_form, const struct field_path *path)
{
    const char *key, *text;
    json_t *item;
    size_t bytes = 0;
    if (!json_is_object(value)) {
        problems_add(&r->problems, path, CAUSE_TYPE, "must be an object of strings");
        return 0;
    }
    if (json_object_size(value) > MAP_MAX) {
        problems_add(&r->problems, path, CAUSE_INVALID, "must have no more than %d entries", MAP_MAX);
        return 0;
    }
    json_object_foreach((json_t *)value, key, item)
    {
        struct field_path at = {.up = path, .name = key};
        if (!is_key(key))
            problems_add(&r->problems, &at, CAUSE_INVALID,
                         "key must be a name of letters, digits, '-', '_' and '.', at most 63 characters, "
                         "with an optional DNS prefix and '/'");
        else if (!read_string(r, item, &text, &at))
            continue;
        else if (!is_value(text))
            problems_add(&r->problems, &at, CAUSE_INVALID, "%s", value_form);
        else
            text_map_set(map, key, text);
        bytes += strlen(key) + json_string_length(item);
    }
    return bytes;
}

static void read_labels(struct meta_reading *r, const json_t *value, const struct field_path *path)
{
    read_map(r, value, &r->meta->labels, name_is_qualified, name_is_label_value,
             "must be empty or at most 63 letters, digits, '-', '_' and '.', starting and ending with a "
             "letter or digit",
             path);
}

static bool is_any_text(const char *text)
{
    (void)text;
    return true;
}

// Kubernetes reads the keys of annotations as if they were lower-case.
static bool is_annotation_key(const char *key)
{
    CLEANUP_FREE char *lower = mem_strdup(key);
    for (char *c = lower; *c; c++)
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    return name_is_qualified(lower);
}

static void read_annotations(struct meta_reading *r, const json_t *value, const struct field_path *path)
{
    struct text_map *map = &r->meta->annotations;
    if (read_map(r, value, map, is_annotation_key, is_any_text, "", path) > ANNOTATIONS_MAX_BYTES)
        problems_add(&r->problems, path, CAUSE_INVALID, "must be no more than %d bytes together",
                     ANNOTATIONS_MAX_BYTES);
    const char *created_by = text_map_get(map, ANNOTATION_CREATED_BY);
    struct field_path at = {.up = path, .name = ANNOTATION_CREATED_BY};
    if (created_by && r->meta->created_by && strcmp(created_by, r->meta->created_by) != 0)
        problems_add(&r->problems, &at, CAUSE_FORBIDDEN, "may not be changed: the server sets it");
    text_map_set(map, ANNOTATION_CREATED_BY, NULL);
    text_map_set(map, ANNOTATION_REMOVED_AT, NULL);
}

static void report_causes(struct meta_reading *r, const json_t *causes)
{
    size_t i;
    json_t *cause;
    json_array_foreach((json_t *)causes, i, cause)
    {
        struct field_path at = {.name = json_get_text(cause, "field")};
        problems_add(&r->problems, &at, json_get_text(cause, "reason"), "%s", json_get_text(cause, "message"));
    }
}

static void read_owners(struct meta_reading *r, const json_t *value, const struct field_path *path)
{
    CLEANUP_JSON json_t *causes = json_array();
    CLEANUP_JSON json_t *given = json_pack("{s:O}", "ownerReferences", value);
    struct owner_list *owners = &r->meta->owners;
    if (json_array_size(value) > OWNERS_MAX)
        problems_add(&r->problems, path, CAUSE_INVALID, "must have no more than %d entries", OWNERS_MAX);
    else if (fields_from_json(&given_owners_table, given, owners, true, "metadata", causes, NULL) < 0)
        report_causes(r, causes);
}

static const struct {
    const char *name;
    meta_reader *read;
} members[] = {
    {"name", read_name},
    {"labels", read_labels},
    {"annotations", read_annotations},
    {"resourceVersion", read_resource_version},
    {"finalizers", read_finalizers},
    {"namespace", read_ignored}, // no kind here has one
    {"generateName", read_ignored}, // of a create; whoever creates makes the name
    {"uid", read_ignored},
    {"generation", read_ignored},
    {"creationTimestamp", read_ignored},
    {"deletionTimestamp", read_ignored},
    {"deletionGracePeriodSeconds", read_ignored},
    {"managedFields", read_ignored},
    {"ownerReferences", read_owners},
    {"selfLink", read_ignored},
};

static void report_unknown(struct meta_reading *r, const char *name, const struct field_path *path)
{
    const char *known[ARRAY_LEN(members)];
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        known[i] = members[i].name;
    const char *nearest = problems_nearest(name, known, ARRAY_LEN(known));
    CLEANUP_FREE char *quoted = problems_quote(name);
    problems_add(&r->problems, path, CAUSE_UNKNOWN,
                 nearest ? "unknown field %s; did you mean `%s`?" : "unknown field %s", quoted, nearest);
}

static void read_member(struct meta_reading *r, const char *name, const json_t *value,
                        const struct field_path *up)
{
    struct field_path path = {.up = up, .name = name};
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        if (strcmp(members[i].name, name) == 0) {
            if (!json_is_null(value))
                members[i].read(r, value, &path);
            return;
        }
    report_unknown(r, name, &path);
}

static void read_members(struct meta_reading *r, const json_t *metadata)
{
    struct field_path root = {.name = "metadata"};
    const char *name;
    json_t *value;
    if (metadata && !json_is_object(metadata)) {
        problems_add(&r->problems, &root, CAUSE_TYPE, "must be an object");
        return;
    }
    json_object_foreach((json_t *)metadata, name, value) read_member(r, name, value, &root);
}

// The record's metadata with everything that the caller may set taken out.
static void start_from(const struct record_meta *from, struct record_meta *to)
{
    fields_copy(&record_meta_table, from, to);
    while (to->labels.count)
        text_map_set(&to->labels, to->labels.items[to->labels.count - 1].key, NULL);
    while (to->annotations.count)
        text_map_set(&to->annotations, to->annotations.items[to->annotations.count - 1].key, NULL);
    for (size_t i = to->finalizers.count; i > 0; i--)
        if (!name_is_own(to->finalizers.items[i - 1])) {
            CLEANUP_FREE char *text = mem_strdup(to->finalizers.items[i - 1]);
            text_list_remove(&to->finalizers, text);
        }
    fields_clear(&given_owners_table, &to->owners);
    to->resource_version = 0;
}

// Finalizers that stay keep their places; new ones come last.
static void keep_order(const struct text_list *before, struct text_list *list)
{
    struct text_list ordered = {0};
    for (size_t i = 0; i < before->count; i++)
        if (text_list_has(list, before->items[i]))
            text_list_add(&ordered, before->items[i]);
    for (size_t i = 0; i < list->count; i++)
        text_list_add(&ordered, list->items[i]);
    text_list_clear(list);
    *list = ordered;
}

int record_meta_from_json(struct record *record, const json_t *metadata, json_t *causes, struct error *err)
{
    struct record_meta meta;
    struct meta_reading r = {.meta = &meta};
    start_from(&record->meta, &meta);
    read_members(&r, metadata);
    if (problems_finish(&r.problems, causes, err) < 0) {
        fields_clear(&record_meta_table, &meta);
        return -1;
    }
    keep_order(&record->meta.finalizers, &meta.finalizers);
    fields_clear(&record_meta_table, &record->meta);
    record->meta = meta;
    return 0;
}
