#include "cli/selection.h"
#include "cli/manifests.h"
#include "cli/objects.h"
#include "cli/targets.h"
#include "controller/base/memory.h"
#include <string.h>

struct choosing {
    struct invocation *in;
    const struct rest *rest;
    struct selection *selection;
};

void selection_clear(struct selection *selection)
{
    json_decref(selection->objects);
    *selection = (struct selection){0};
}

const struct kind_info *selection_kind(const json_t *object)
{
    return kind_find(json_get_text(object, "kind"));
}

// ---- taking -----------------------------------------------------------------------------------------------------------------
static void take(struct selection *selection, const struct kind_info *info, const json_t *object)
{
    for (size_t i = 0; selection->is_named && i < json_array_size(selection->objects); i++)
        if (strcmp(object_uid(json_array_get(selection->objects, i)), object_uid(object)) == 0)
            return;
    json_array_append_new(selection->objects, target_object(info, object));
}

// Jobs of one GET each; infos: the kind of each.
static int take_named(const struct choosing *choosing, struct rest_job *jobs, const struct kind_info *const *infos, size_t count, struct error *err)
{
    if (rest_call_all(choosing->rest, jobs, count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (jobs[i].err.code == ERROR_NOT_FOUND) {
            if (invocation_switch(choosing->in, "ignore-not-found", false))
                continue;
            choosing->selection->missing++;
            complain(choosing->in, &jobs[i].err);
        } else if (jobs[i].err.code) {
            return error_copy(err, &jobs[i].err);
        } else {
            take(choosing->selection, infos[i], jobs[i].answer);
        }
    }
    return 0;
}

struct names {
    const struct kind_info **infos;
    const char **names;
    size_t count;
};

static int get_named(const struct choosing *choosing, const struct names *names, struct error *err)
{
    struct rest_job *jobs = mem_alloc((names->count + 1) * sizeof(*jobs));
    for (size_t i = 0; i < names->count; i++)
        jobs[i].ask = (struct rest_ask){.method = "GET", .path = rest_path(names->infos[i], names->names[i])};
    int r = take_named(choosing, jobs, names->infos, names->count, err);
    for (size_t i = 0; i < names->count; i++) {
        free((char *)jobs[i].ask.path);
        rest_job_clear(&jobs[i]);
    }
    free(jobs);
    return r;
}

// ---- from files ---------------------------------------------------------------------------------------------------------------
static int choose_from_files(const struct choosing *choosing, bool in_reverse, struct error *err)
{
    CLEANUP(manifests_clear) struct manifests manifests = {0};
    if (choosing->in->argument_count)
        return error_set(err, ERROR_USAGE, "give either -f FILE, or kinds and names", "-f goes with no other names");
    if (manifests_read(choosing->in, MANIFESTS_NAMES, &manifests, err) < 0)
        return -1;
    CLEANUP_FREE const struct kind_info **infos = mem_alloc((manifests.count + 1) * sizeof(*infos));
    CLEANUP_FREE const char **words = mem_alloc((manifests.count + 1) * sizeof(*words));
    struct names names = {infos, words, 0};
    for (; names.count < manifests.count; names.count++) {
        const struct manifest_item *item = &manifests.items[in_reverse ? manifests.count - 1 - names.count : names.count];
        infos[names.count] = item->info;
        words[names.count] = object_name(item->value);
    }
    return get_named(choosing, &names, err);
}

// ---- from arguments -------------------------------------------------------------------------------------------------------------
static int check(const struct invocation *in, const struct targets *targets, struct error *err)
{
    CLEANUP_FREE char *name = invocation_name(in);
    for (size_t i = 0; i < targets->count; i++)
        if (targets->items[i].info == &events_info)
            return error_set(err, ERROR_USAGE, "they go by themselves after an hour", "events cannot be changed or deleted");
    if (targets->has_names && targets_are_selected(in))
        error_set(err, ERROR_USAGE, NULL, "names go with no selector and not with --all");
    else if (!targets->has_names && !targets_are_selected(in))
        error_set(err, ERROR_USAGE, NULL, "which objects is not said: give a NAME, a selector, or --all");
    else
        return 0;
    return error_hint(err, "%s --help", name);
}

static int list_kind(const struct choosing *choosing, const struct kind_info *info, struct error *err)
{
    CLEANUP_FREE char *path = target_query(choosing->in, info, NULL, NULL);
    CLEANUP_JSON json_t *list = NULL;
    size_t i;
    json_t *item;
    if (rest_get(choosing->rest, path, &list, err) < 0)
        return -1;
    json_array_foreach(json_object_get(list, "items"), i, item) take(choosing->selection, info, item);
    return 0;
}

static int choose_from_arguments(const struct choosing *choosing, struct error *err)
{
    CLEANUP_FREE struct targets *targets = mem_alloc(sizeof(*targets));
    const struct kind_info *infos[TARGETS_MAX];
    const char *words[TARGETS_MAX];
    struct names names = {infos, words, 0};
    if (targets_parse(choosing->in, targets, err) < 0 || check(choosing->in, targets, err) < 0)
        return -1;
    choosing->selection->is_named = targets->has_names;
    for (size_t i = 0; i < targets->count; i++) {
        if (targets->items[i].name) {
            infos[names.count] = targets->items[i].info;
            words[names.count++] = targets->items[i].name;
        } else if (list_kind(choosing, targets->items[i].info, err) < 0) {
            return -1;
        }
    }
    return get_named(choosing, &names, err);
}

int selection_read(struct invocation *in, bool in_reverse, struct selection *ret, struct error *err)
{
    const struct choosing choosing = {in, invocation_rest(in, err), ret};
    if (!choosing.rest)
        return -1;
    ret->objects = json_array();
    ret->is_named = true;
    if (invocation_option(in, "filename"))
        return choose_from_files(&choosing, in_reverse, err);
    if (in->argument_count)
        return choose_from_arguments(&choosing, err);
    CLEANUP_FREE char *name = invocation_name(in);
    error_set(err, ERROR_USAGE, NULL, "%s needs KIND and NAME, or -f FILE", name);
    return error_hint(err, "%s --help", name);
}

int selection_conclude(const struct selection *selection, struct error *err)
{
    if (!selection->missing)
        return 0;
    error_set(err, ERROR_NOT_FOUND, NULL, "%s", ""); // told already, one by one
    return -1;
}
