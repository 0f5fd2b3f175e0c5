#include "cli/label.h"
#include "cli/objects.h"
#include "cli/printers/print.h"
#include "cli/removal.h"
#include "cli/selection.h"
#include "controller/base/memory.h"
#include <stdio.h>
#include <string.h>

#define ROUNDS_MAX 8 // looks at an object that others change meanwhile

struct labelled {
    json_t *object;  // newest image
    json_t *changes; // of the part; NULL: refused
    bool is_done;
};
struct labelling {
    struct invocation *in;
    const struct rest *rest;
    const struct label_words *words;
    const json_t *pairs;
    const char *version; // --resource-version
    bool may_overwrite;
    enum removal_trial trial;
    struct labelled *items;
    size_t count, failed;
    struct error first;
};

static const json_t *part_of(const struct labelling *labelling, const json_t *object)
{
    return json_object_get(json_object_get(object, "metadata"), labelling->words->part);
}

static void fail(struct labelling *labelling, struct labelled *item, const struct error *err)
{
    struct error told = *err;
    CLEANUP_FREE char *word = object_word(item->object);
    error_context(&told, "%s", word);
    if (labelling->count > 1)
        complain(labelling->in, &told);
    if (!labelling->failed++)
        error_copy(&labelling->first, &told);
    item->is_done = true;
    json_decref(item->changes);
    item->changes = NULL;
}

// ---- printing -----------------------------------------------------------------------------------------------------------------
static void list_part(const struct labelling *labelling, const json_t *object)
{
    const char *key;
    json_t *value;
    if (labelling->count > 1) {
        CLEANUP_FREE char *word = object_word(object);
        terminal_note("Listing %s for %s:", labelling->words->part, word);
    }
    json_object_foreach((json_t *)part_of(labelling, object), key, value)
    {
        CLEANUP_FREE char *line = mem_format("%s%s=%s\n", labelling->count > 1 ? " " : "", key, json_string_value(value));
        print_text(line);
    }
    fflush(stdout);
}

static void say_absent(const struct labelling *labelling, const struct labelled *item)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)labelling->pairs, key, value) if (json_is_null(value) && !json_object_get(item->changes, key))
        terminal_confirm("%s \"%s\" not found.", labelling->words->one, key);
}

static void say(const struct labelling *labelling, const struct labelled *item)
{
    const struct label_words *words = labelling->words;
    CLEANUP_FREE char *word = object_word(item->object);
    bool is_nothing = !json_object_size(item->changes), is_removal = !is_nothing && label_only_removes(item->changes);
    const char *what = is_nothing ? words->nothing : is_removal ? words->taken : words->done;
    if (invocation_switch(labelling->in, "list", false))
        list_part(labelling, item->object);
    else
        terminal_confirm("%s %s%s", word, what ? what : words->done, removal_mark(labelling->trial));
}

static void print_all(const struct labelling *labelling)
{
    CLEANUP_JSON json_t *all = json_pack("{s:s, s:s, s:[]}", "apiVersion", "v1", "kind", "List", "items");
    json_t *items = json_object_get(all, "items");
    for (size_t i = 0; i < labelling->count; i++)
        if (labelling->items[i].changes)
            json_array_append(items, labelling->items[i].object);
    object_print(labelling->in, labelling->count == 1 && json_array_size(items) ? json_array_get(items, 0) : all);
}

// ---- changing -----------------------------------------------------------------------------------------------------------------
// What is to change of the object as it is now. Nothing: it is done.
static void plan(struct labelling *labelling, struct labelled *item)
{
    struct error err = ERROR_INIT;
    json_decref(item->changes);
    item->changes = NULL;
    if (label_changes(labelling->pairs, part_of(labelling, item->object), labelling->may_overwrite, &item->changes, &err) < 0)
        fail(labelling, item, &err);
    else
        item->is_done = !json_object_size(item->changes);
}

static void change_here(const struct labelling *labelling, struct labelled *item)
{
    json_t *metadata = json_object_get(item->object, "metadata"), *part = json_object_get(metadata, labelling->words->part), *value;
    const char *key;
    if (!part)
        json_object_set_new(metadata, labelling->words->part, part = json_object());
    json_object_foreach(item->changes, key, value)
    {
        if (json_is_null(value))
            json_object_del(part, key);
        else
            json_object_set(part, key, value);
    }
    item->is_done = true;
}

static json_t *patch_of(const struct labelling *labelling, const struct labelled *item)
{
    const char *version = json_get_text(json_object_get(item->object, "metadata"), "resourceVersion");
    return json_pack("{s:{s:s, s:O}}", "metadata", "resourceVersion", labelling->version ? labelling->version : version ? version : "", labelling->words->part,
                     item->changes);
}

static int renew(const struct labelling *labelling, struct labelled *item, struct error *err)
{
    json_t *object = NULL;
    if (object_get(labelling->rest, selection_kind(item->object), object_uid(item->object), &object, err) < 0)
        return -1;
    json_decref(item->object);
    item->object = object;
    return 0;
}

// A conflict of versions: others changed the object meanwhile, and what is to change is found out anew.
static void settle(struct labelling *labelling, struct labelled *item, struct rest_job *job)
{
    struct error err = ERROR_INIT;
    if (job->err.code == ERROR_CONFLICT && !labelling->version) {
        if (renew(labelling, item, &err) < 0)
            fail(labelling, item, &err);
        else
            plan(labelling, item);
    } else if (job->err.code) {
        fail(labelling, item, &job->err);
    } else {
        json_decref(item->object);
        item->object = TAKE_PTR(job->answer);
        item->is_done = true;
    }
}

static int change_round(struct labelling *labelling, struct error *err)
{
    struct rest_job *jobs = mem_alloc((labelling->count + 1) * sizeof(*jobs));
    CLEANUP_FREE struct labelled **items = mem_alloc((labelling->count + 1) * sizeof(*items));
    const char *manager = invocation_option(labelling->in, "field-manager");
    CLEANUP_FREE char *escaped = http_escape(manager ? manager : labelling->words->manager);
    size_t count = 0;
    for (size_t i = 0; i < labelling->count; i++) {
        struct labelled *item = &labelling->items[i];
        if (item->is_done)
            continue;
        CLEANUP_FREE char *path = rest_path(selection_kind(item->object), object_uid(item->object));
        jobs[count].ask = (struct rest_ask){.method = "PATCH", .content_type = "application/merge-patch+json", .body = patch_of(labelling, item),
                                            .path = mem_format("%s?fieldManager=%s%s", path, escaped, labelling->trial == REMOVAL_REAL ? "" : "&dryRun=All")};
        items[count++] = item;
    }
    int r = rest_call_all(labelling->rest, jobs, count, err);
    for (size_t i = 0; i < count; i++) {
        if (r == 0)
            settle(labelling, items[i], &jobs[i]);
        json_decref((json_t *)jobs[i].ask.body);
        free((char *)jobs[i].ask.path);
        rest_job_clear(&jobs[i]);
    }
    free(jobs);
    return r;
}

static size_t left(const struct labelling *labelling)
{
    size_t count = 0;
    for (size_t i = 0; i < labelling->count; i++)
        count += !labelling->items[i].is_done;
    return count;
}

static int change_all(struct labelling *labelling, struct error *err)
{
    struct error busy = ERROR_INIT;
    for (size_t i = 0; i < labelling->count; i++) {
        plan(labelling, &labelling->items[i]);
        if (!labelling->items[i].is_done && labelling->trial == REMOVAL_TRIED_HERE)
            change_here(labelling, &labelling->items[i]);
    }
    for (int round = 0; round < ROUNDS_MAX && left(labelling); round++)
        if (change_round(labelling, err) < 0)
            return -1;
    error_set(&busy, ERROR_CONFLICT, "try again", "others change it all the time");
    for (size_t i = 0; i < labelling->count; i++)
        if (!labelling->items[i].is_done)
            fail(labelling, &labelling->items[i], &busy);
    return 0;
}

// ---- all of it ----------------------------------------------------------------------------------------------------------------
static int conclude(const struct labelling *labelling, struct error *err)
{
    if (!labelling->failed)
        return 0;
    if (labelling->count == 1)
        return error_copy(err, &labelling->first);
    return error_set(err, labelling->first.code, NULL, "%zu of %zu could not be %s", labelling->failed, labelling->count, labelling->words->done);
}

static int check(const struct labelling *labelling, const struct selection *selection, struct error *err)
{
    if (!json_object_size(labelling->pairs) && !invocation_switch(labelling->in, "list", false))
        return error_set(err, ERROR_USAGE, "like team=web, or team- to remove it; --list prints what there is", "which %s to change is not said", labelling->words->part);
    if (labelling->version && json_array_size(selection->objects) > 1)
        return error_set(err, ERROR_USAGE, "name one object", "--resource-version is of one object, and several are meant");
    return 0;
}

static int run_on(struct labelling *labelling, const struct selection *selection, struct error *err)
{
    if (check(labelling, selection, err) < 0)
        return -1;
    labelling->items = mem_alloc((json_array_size(selection->objects) + 1) * sizeof(*labelling->items));
    for (; labelling->count < json_array_size(selection->objects); labelling->count++)
        labelling->items[labelling->count].object = json_incref(json_array_get(selection->objects, labelling->count));
    if (!labelling->count && !selection->is_named)
        terminal_note("No resources found");
    if (change_all(labelling, err) < 0)
        return -1;
    bool prints = invocation_option(labelling->in, "output") != NULL;
    for (size_t i = 0; !prints && i < labelling->count; i++) {
        if (!labelling->items[i].changes)
            continue;
        say_absent(labelling, &labelling->items[i]);
        say(labelling, &labelling->items[i]);
    }
    if (prints)
        print_all(labelling);
    return conclude(labelling, err);
}

int label_run(struct invocation *in, const struct label_words *words, struct error *err)
{
    CLEANUP(selection_clear) struct selection selection = {0};
    CLEANUP_JSON json_t *pairs = NULL;
    struct labelling labelling = {.in = in, .words = words, .rest = invocation_rest(in, err), .version = invocation_option(in, "resource-version"),
                                  .may_overwrite = invocation_switch(in, "overwrite", false), .trial = removal_trial_of(in), .first = ERROR_INIT};
    if (!labelling.rest || label_take_pairs(in, words, &pairs, err) < 0 || selection_read(in, false, &selection, err) < 0)
        return -1;
    labelling.pairs = pairs;
    int r = run_on(&labelling, &selection, err);
    for (size_t i = 0; i < labelling.count; i++) {
        json_decref(labelling.items[i].object);
        json_decref(labelling.items[i].changes);
    }
    free(labelling.items);
    return r < 0 ? -1 : selection_conclude(&selection, err);
}
