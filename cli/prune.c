#include "cli/prune.h"
#include "cli/objects.h"
#include "cli/targets.h"
#include "controller/base/memory.h"
#include <string.h>

// What only callers and the daemon make.
static bool is_prunable_kind(enum kind kind)
{
    return kind != KIND_SESSION && kind != KIND_APPROVAL;
}

// ---- options ------------------------------------------------------------------------------------------------------------------
// "workspaces", or kubectl's GROUP/VERSION/KIND.
static const struct kind_info *read_kind(const char *word, struct error *err)
{
    static const char prefix[] = API_GROUP "/" API_VERSION "/";
    const struct kind_info *info = object_kind(strncmp(word, prefix, sizeof(prefix) - 1) == 0 ? word + sizeof(prefix) - 1 : word, err);
    if (!info || is_prunable_kind(info->kind))
        return info;
    error_set(err, ERROR_USAGE, "allow other kinds", "%s are never pruned: callers make them", info->plural);
    return NULL;
}

static int read_kinds(const struct invocation *in, bool allowed[KIND_COUNT], struct error *err)
{
    const char *words[ARGUMENTS_MAX_VALUES];
    size_t count = invocation_values(in, "prune-allowlist", words);
    for (int kind = 0; kind < KIND_COUNT; kind++)
        allowed[kind] = !count && is_prunable_kind((enum kind)kind);
    for (size_t i = 0; i < count; i++) {
        const struct kind_info *info = read_kind(words[i], err);
        if (!info)
            return -1;
        allowed[info->kind] = true;
    }
    return 0;
}

int prune_check(const struct invocation *in, bool *ret_prunes, struct error *err)
{
    bool prunes = invocation_switch(in, "prune", false), is_all = invocation_switch(in, "all", false);
    const char *selector = invocation_option(in, "selector");
    if (!prunes && (is_all || invocation_option(in, "prune-allowlist")))
        return error_set(err, ERROR_USAGE, "add --prune", "--all and --prune-allowlist say what to prune, and --prune is missing");
    if (prunes && is_all && selector)
        return error_set(err, ERROR_USAGE, "give one of them", "--all goes with no selector");
    if (prunes && !is_all && (!selector || !*selector))
        return error_set(err, ERROR_USAGE, "like --prune -l app=web, or --prune --all", "--prune needs a selector or --all: which objects belong to these manifests?");
    bool allowed[KIND_COUNT];
    if (read_kinds(in, allowed, err) < 0) // now, not when everything is applied
        return -1;
    *ret_prunes = prunes;
    return 0;
}

// ---- whose it is ----------------------------------------------------------------------------------------------------------------
static bool is_text(const json_t *object, const char *key, const char *wanted)
{
    const char *text = json_get_text(object, key);
    return text && strcmp(text, wanted) == 0;
}

// Another applier has a say in it: it is not for this one to take away.
static bool is_applied_by(const json_t *metadata, const char *manager)
{
    bool is_ours = false;
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(metadata, "managedFields"), i, entry)
    {
        if (!is_text(entry, "operation", "Apply"))
            continue;
        if (!is_text(entry, "manager", manager))
            return false;
        is_ours = true;
    }
    return is_ours;
}

static bool is_made_by_operator(const json_t *metadata)
{
    static const char prefix[] = "operator:";
    const char *creator = json_get_text(json_object_get(metadata, "annotations"), ANNOTATION_CREATED_BY);
    return creator && strncmp(creator, prefix, sizeof(prefix) - 1) == 0;
}

static bool is_named(const json_t *names, const json_t *object)
{
    return json_object_get(names, object_name(object)) != NULL;
}

static json_t *names_of(const struct apply *apply, const struct kind_info *info)
{
    json_t *names = json_object();
    for (size_t i = 0; i < apply->count; i++)
        if (apply->items[i].from->info == info)
            json_object_set_new(names, object_name(apply->items[i].wanted), json_true());
    return names;
}

static int find_of_kind(const struct apply *apply, const struct kind_info *info, json_t *found, struct error *err)
{
    const char *selector = invocation_option(apply->in, "selector");
    CLEANUP_FREE char *path = rest_path(info, NULL), *escaped = http_escape(selector ? selector : "");
    CLEANUP_FREE char *query = mem_format("%s%s%s", path, selector ? "?labelSelector=" : "", escaped);
    CLEANUP_JSON json_t *list = NULL, *names = names_of(apply, info);
    size_t i;
    json_t *object;
    if (rest_get(apply->rest, query, &list, err) < 0)
        return -1;
    json_array_foreach(json_object_get(list, "items"), i, object)
    {
        const json_t *metadata = json_object_get(object, "metadata");
        if (is_named(names, object) || json_object_get(metadata, "deletionTimestamp") || !is_applied_by(metadata, apply->manager) || !is_made_by_operator(metadata))
            continue;
        json_array_append_new(found, target_object(info, object));
    }
    return 0;
}

int prune_find(const struct apply *apply, json_t **ret, struct error *err)
{
    CLEANUP_JSON json_t *found = json_array();
    bool allowed[KIND_COUNT];
    if (read_kinds(apply->in, allowed, err) < 0)
        return -1;
    for (int kind = 0; kind < KIND_COUNT; kind++)
        if (allowed[kind] && find_of_kind(apply, kind_info((enum kind)kind), found, err) < 0)
            return -1;
    *ret = TAKE_PTR(found);
    return 0;
}
