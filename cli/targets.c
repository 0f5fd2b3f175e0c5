#include "cli/targets.h"
#include "cli/objects.h"
#include "controller/base/memory.h"
#include <string.h>
#include <strings.h>

#define EVENTS_PATH "/api/v1/namespaces/default/events"

const struct kind_info events_info = {.kind = KIND_COUNT, .name = "Event", .singular = "event", .plural = "events", .short_name = "ev"};

const struct kind_info *target_kind(const char *word, struct error *err)
{
    const char *const names[] = {events_info.name, events_info.singular, events_info.plural, events_info.short_name};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcasecmp(word, names[i]) == 0)
            return &events_info;
    return object_kind(word, err);
}

static int add(struct targets *to, const struct kind_info *info, const char *name, struct error *err)
{
    for (size_t i = 0; i < to->count; i++)
        if (to->items[i].info == info && (name ? to->items[i].name && strcmp(to->items[i].name, name) == 0 : !to->items[i].name))
            return 0;
    if (to->count == TARGETS_MAX)
        return error_set(err, ERROR_USAGE, "use a selector, or several commands", "more than %d objects are named", TARGETS_MAX);
    to->items[to->count++] = (struct target){info, name};
    to->has_names |= name != NULL;
    return 0;
}

// names: NULL-terminated
static int add_names(struct targets *to, const struct kind_info *info, const char *const *names, struct error *err)
{
    if (!names[0])
        return add(to, info, NULL, err);
    for (size_t i = 0; names[i]; i++)
        if (add(to, info, names[i], err) < 0)
            return -1;
    return 0;
}

static int add_kinds(struct targets *to, const char *words, const char *const *names, struct error *err)
{
    while (*words) {
        size_t len = strcspn(words, ",");
        CLEANUP_FREE char *word = mem_strndup(words, len);
        bool is_all = strcmp(word, "all") == 0;
        const struct kind_info *info = is_all ? NULL : target_kind(word, err);
        if (!is_all && (!info || add_names(to, info, names, err) < 0))
            return -1;
        for (int kind = 0; is_all && kind < KIND_COUNT; kind++)
            if (add_names(to, kind_info((enum kind)kind), names, err) < 0)
                return -1;
        words += len + (words[len] == ',');
    }
    return to->count ? 0 : error_set(err, ERROR_USAGE, "chat2shell get sandboxes", "no kind is given");
}

static int add_pair(struct targets *to, const char *pair, struct error *err)
{
    const char *slash = strchr(pair, '/');
    if (!slash || !slash[1])
        return error_set(err, ERROR_USAGE, "like sandbox/dev workspace/demo", "'%.100s' is not of the form KIND/NAME", pair);
    CLEANUP_FREE char *word = mem_strndup(pair, (size_t)(slash - pair));
    const struct kind_info *info = target_kind(word, err);
    return info ? add(to, info, slash + 1, err) : -1;
}

int targets_parse(const struct invocation *in, struct targets *ret, struct error *err)
{
    if (!strchr(in->arguments[0], '/'))
        return add_kinds(ret, in->arguments[0], in->arguments + 1, err);
    for (int i = 0; i < in->argument_count; i++)
        if (add_pair(ret, in->arguments[i], err) < 0)
            return -1;
    return 0;
}

char *target_path(const struct kind_info *info, const char *name)
{
    if (info != &events_info)
        return rest_path(info, name);
    CLEANUP_FREE char *escaped = http_escape(name ? name : "");
    return mem_format(EVENTS_PATH "%s%s", name ? "/" : "", escaped);
}

static void append(char **path, const char *key, const char *value)
{
    CLEANUP_FREE char *escaped = key ? http_escape(value) : mem_strdup(value);
    char *longer = mem_format("%s%c%s%s%s", *path, strchr(*path, '?') ? '&' : '?', key ? key : "", key ? "=" : "", escaped);
    free(*path);
    *path = longer;
}

char *target_query(const struct invocation *in, const struct kind_info *info, const char *more, const char *query)
{
    char *path = target_path(info, NULL);
    const char *labels = invocation_option(in, "selector"), *fields = invocation_option(in, "field-selector");
    CLEANUP_FREE char *both = mem_format("%s%s%s", fields ? fields : "", fields && more ? "," : "", more ? more : "");
    if (labels)
        append(&path, "labelSelector", labels);
    if (*both)
        append(&path, "fieldSelector", both);
    if (query)
        append(&path, NULL, query);
    return path;
}

json_t *target_object(const struct kind_info *info, const json_t *item)
{
    json_t *object = json_pack("{s:s, s:s}", "apiVersion", info == &events_info ? "v1" : API_GROUP "/" API_VERSION, "kind", info->name);
    json_object_update(object, (json_t *)item);
    return object;
}

bool targets_are_selected(const struct invocation *in)
{
    return invocation_option(in, "selector") || invocation_option(in, "field-selector") || invocation_switch(in, "all", false);
}
