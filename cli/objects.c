#include "cli/objects.h"
#include "cli/printers/print.h"
#include "controller/base/memory.h"
#include "controller/fields/problems.h"
#include <stdio.h>
#include <string.h>

const struct kind_info *object_kind(const char *word, struct error *err)
{
    const struct kind_info *info = kind_find(word);
    if (info)
        return info;
    const char *names[KIND_COUNT * 2];
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        names[2 * kind] = kind_info((enum kind)kind)->plural;
        names[2 * kind + 1] = kind_info((enum kind)kind)->singular;
    }
    const char *nearest = problems_nearest(word, names, ARRAY_LEN(names));
    CLEANUP_FREE char *quoted = problems_quote(word);
    error_set(err, ERROR_USAGE, "kinds: workspaces, approvals, approvalrules, sandboxes, sessions, exposures", "there is no kind %s", quoted);
    if (nearest)
        error_hint(err, "did you mean `%s`?", nearest);
    return NULL;
}

const char *object_reference(const struct kind_info *info, const char *text, struct error *err)
{
    const char *slash = strchr(text, '/');
    if (!slash)
        return text;
    CLEANUP_FREE char *word = mem_strndup(text, (size_t)(slash - text));
    const struct kind_info *stated = object_kind(word, err);
    if (!stated)
        return NULL;
    if (stated == info && slash[1])
        return slash + 1;
    error_set(err, ERROR_USAGE, NULL, "'%.100s' does not name %s", text, info->singular);
    error_hint(err, "like %s/NAME, or NAME alone", info->singular);
    return NULL;
}

int object_get(const struct rest *rest, const struct kind_info *info, const char *name, json_t **ret, struct error *err)
{
    const char *bare = object_reference(info, name, err);
    CLEANUP_FREE char *path = bare ? rest_path(info, bare) : NULL;
    return path ? rest_get(rest, path, ret, err) : -1;
}

static const char *metadata_text(const json_t *object, const char *key)
{
    const char *text = json_get_text(json_object_get(object, "metadata"), key);
    return text ? text : "";
}

const char *object_name(const json_t *object)
{
    return metadata_text(object, "name");
}

const char *object_uid(const json_t *object)
{
    return metadata_text(object, "uid");
}

char *object_word(const json_t *object)
{
    const char *kind = json_get_text(object, "kind");
    const struct kind_info *info = kind ? kind_find(kind) : NULL;
    return mem_format("%s/%s", info ? info->singular : kind ? kind : "object", object_name(object));
}

const json_t *object_condition(const json_t *object, const char *type)
{
    const json_t *conditions = json_object_get(json_object_get(object, "status"), "conditions");
    for (size_t i = 0; i < json_array_size(conditions); i++) {
        const char *found = json_get_text(json_array_get(conditions, i), "type");
        if (found && strcmp(found, type) == 0)
            return json_array_get(conditions, i);
    }
    return NULL;
}

bool object_is_true(const json_t *object, const char *condition)
{
    const char *status = json_get_text(object_condition(object, condition), "status");
    return status && strcmp(status, "True") == 0;
}

const char *object_message(const json_t *object, const char *condition)
{
    const char *message = json_get_text(object_condition(object, condition), "message");
    return message ? message : "";
}

json_t *object_without_managers(const json_t *object)
{
    json_t *copy = json_copy((json_t *)object), *metadata = json_copy(json_object_get(object, "metadata"));
    json_object_del(metadata, "managedFields");
    if (metadata)
        json_object_set_new(copy, "metadata", metadata);
    return copy;
}

json_t *object_shown(const struct invocation *in, const json_t *object)
{
    size_t i;
    json_t *item, *items = json_object_get(object, "items"), *event = json_object_get(object, "object");
    if (invocation_switch(in, "show-managed-fields", false))
        return json_incref((json_t *)object);
    json_t *copy = object_without_managers(object), *shown = json_is_array(items) ? json_array() : NULL;
    json_array_foreach(items, i, item)
        json_array_append_new(shown, object_without_managers(item));
    if (shown)
        json_object_set_new(copy, "items", shown);
    if (event && json_object_size(object) == 2)
        json_object_set_new(copy, "object", object_without_managers(event));
    return copy;
}

static void print_word(const json_t *object)
{
    CLEANUP_FREE char *word = object_word(object);
    CLEANUP_FREE char *line = mem_format("%s\n", word);
    print_text(line);
}

static void print_words(const json_t *object)
{
    const json_t *items = json_object_get(object, "items");
    for (size_t i = 0; i < json_array_size(items); i++)
        print_word(json_array_get(items, i));
    if (!items)
        print_word(object);
}

bool object_print(const struct invocation *in, const json_t *object)
{
    static const struct {
        const char *format;
        void (*print)(const json_t *object);
    } printers[] = {{"json", print_json}, {"yaml", print_yaml}, {"name", print_words}};
    for (size_t i = 0; i < ARRAY_LEN(printers); i++)
        if (invocation_is_output(in, printers[i].format)) {
            CLEANUP_JSON json_t *shown = object_shown(in, object);
            printers[i].print(shown);
            return true;
        }
    return false;
}
