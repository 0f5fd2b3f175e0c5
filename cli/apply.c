#include "cli/apply.h"
#include "cli/objects.h"
#include "controller/base/memory.h"
#include <string.h>

#define HINT_CONFLICT "give these fields the value that they have, leave them out, or take them over: --force-conflicts"

// What the server owns comes along in `get -o yaml`; it is not part of what somebody wants. creationTimestamp stays: by it the
// server knows its own words, and that nobody takes the fields over.
static json_t *wanted_of(const json_t *document)
{
    static const char *const owned[] = {"uid", "generation", "managedFields", "resourceVersion", "selfLink", "deletionTimestamp",
                                        "deletionGracePeriodSeconds"};
    json_t *wanted = json_deep_copy(document), *metadata = json_object_get(wanted, "metadata");
    json_object_del(wanted, "status");
    for (size_t i = 0; i < ARRAY_LEN(owned); i++)
        json_object_del(metadata, owned[i]);
    return wanted;
}

int apply_prepare(struct apply *ret, struct invocation *in, const struct manifests *manifests, struct error *err)
{
    const char *manager = invocation_option(in, "field-manager");
    *ret = (struct apply){.in = in, .rest = invocation_rest(in, err), .manager = manager ? manager : APPLY_MANAGER,
                          .is_forced = invocation_switch(in, "force-conflicts", false)};
    if (!ret->rest)
        return -1;
    if (!manifests->count)
        return error_set(err, ERROR_INVALID, "look at the labels in the files", "no manifest has the labels that --selector wants");
    if (!*ret->manager)
        return error_set(err, ERROR_USAGE, "like --field-manager=deploy-script", "--field-manager is empty");
    ret->items = mem_alloc((manifests->count + 1) * sizeof(*ret->items));
    for (; ret->count < manifests->count; ret->count++)
        ret->items[ret->count] = (struct apply_item){.from = &manifests->items[ret->count], .wanted = wanted_of(manifests->items[ret->count].value)};
    return 0;
}

void apply_clear(struct apply *apply)
{
    for (size_t i = 0; i < apply->count; i++) {
        json_decref(apply->items[i].wanted);
        json_decref(apply->items[i].before);
        json_decref(apply->items[i].after);
    }
    free(apply->items);
    *apply = (struct apply){0};
}

// ---- the requests -----------------------------------------------------------------------------------------------------------
struct work {
    struct rest_job *jobs;
    char **paths; // one a job
    size_t count;
};

static void work_clear(struct work *work)
{
    for (size_t i = 0; i < work->count; i++) {
        rest_job_clear(&work->jobs[i]);
        free(work->paths[i]);
    }
    free(work->jobs);
    free(work->paths);
}

static void work_reserve(struct work *work, size_t max)
{
    work->jobs = mem_alloc((max + 1) * sizeof(*work->jobs));
    work->paths = mem_alloc((max + 1) * sizeof(*work->paths));
}

static void work_add(struct work *work, const struct rest_ask *ask, char *path)
{
    work->paths[work->count] = path;
    work->jobs[work->count].ask = *ask;
    work->jobs[work->count++].ask.path = path;
}

static void add_get(struct work *work, const struct apply_item *item)
{
    work_add(work, &(struct rest_ask){.method = "GET"}, rest_path(item->from->info, object_name(item->wanted)));
}

static void add_patch(struct work *work, const struct apply *apply, const struct apply_item *item, bool is_dry_run)
{
    CLEANUP_FREE char *path = rest_path(item->from->info, object_name(item->wanted));
    CLEANUP_FREE char *manager = http_escape(apply->manager);
    char *whole = mem_format("%s?fieldManager=%s&fieldValidation=Strict%s%s", path, manager, apply->is_forced ? "&force=true" : "", is_dry_run ? "&dryRun=All" : "");
    work_add(work, &(struct rest_ask){.method = "PATCH", .content_type = "application/apply-patch+yaml", .body = item->wanted}, whole);
}

// ---- what came of them ------------------------------------------------------------------------------------------------------
static bool are_equal(const json_t *a, const json_t *b)
{
    return (!json_object_size(a) && !json_object_size(b) && !json_array_size(a) && !json_array_size(b)) || json_equal(a, b);
}

static bool is_same(const json_t *before, const json_t *after)
{
    static const char *const parts[] = {"labels", "annotations", "finalizers", "ownerReferences"};
    const json_t *old = json_object_get(before, "metadata"), *new = json_object_get(after, "metadata");
    bool same = are_equal(json_object_get(before, "spec"), json_object_get(after, "spec"));
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        same &= are_equal(json_object_get(old, parts[i]), json_object_get(new, parts[i]));
    return same;
}

static void judge(struct apply_item *item)
{
    const json_t *old = json_object_get(item->before, "metadata"), *new = json_object_get(item->after, "metadata");
    bool same = item->before && is_same(item->before, item->after);
    item->result = !item->before ? APPLY_CREATED : same ? APPLY_UNCHANGED : APPLY_CONFIGURED;
    item->is_settled = same && are_equal(json_object_get(old, "managedFields"), json_object_get(new, "managedFields"));
}

static void tell(const struct apply *apply, struct apply_item *item, const struct rest_job *job)
{
    struct error told = job->err;
    CLEANUP_JSON json_t *worded = apply_is_conflict(job->causes) ? apply_word_conflicts(item, job->causes) : NULL;
    if (worded)
        error_hint(&told, "%s", HINT_CONFLICT);
    manifests_tell(apply->in, item->from, worded ? worded : job->causes, &told);
    item->result = APPLY_FAILED;
}

// GET finds by uid too, and a new object may be called like the uid of another.
static int take_before(struct apply_item *item, struct rest_job *job, struct error *err)
{
    if (job->err.code == ERROR_NOT_FOUND)
        return 0;
    if (job->err.code)
        return error_copy(err, &job->err);
    if (strcmp(object_name(job->answer), object_name(item->wanted)) == 0)
        item->before = TAKE_PTR(job->answer);
    return 0;
}

static int conclude(const struct apply *apply, size_t failed, enum error_code code, const char *hint, struct error *err)
{
    if (!failed)
        return 0;
    if (apply->count == 1) {
        error_set(err, code, NULL, "%s", ""); // all is said
        return -1;
    }
    return error_set(err, code, hint, "%zu of %zu could not be done", failed, apply->count);
}

// ---- the steps ----------------------------------------------------------------------------------------------------------------
static int look(struct apply *apply, struct error *err)
{
    CLEANUP(work_clear) struct work work = {0};
    work_reserve(&work, apply->count);
    for (size_t i = 0; i < apply->count; i++)
        add_get(&work, &apply->items[i]);
    if (rest_call_all(apply->rest, work.jobs, work.count, err) < 0)
        return -1;
    for (size_t i = 0; i < apply->count; i++)
        if (take_before(&apply->items[i], &work.jobs[i], err) < 0)
            return -1;
    return 0;
}

int apply_look(struct apply *apply, struct error *err)
{
    if (look(apply, err) < 0)
        return -1;
    for (size_t i = 0; i < apply->count; i++) {
        struct apply_item *item = &apply->items[i];
        item->after = json_incref(item->wanted);
        item->result = !item->before ? APPLY_CREATED : apply_changes_nothing(item) ? APPLY_UNCHANGED : APPLY_CONFIGURED;
    }
    return 0;
}

// What needs no asking.
static bool foresee(const struct apply *apply, struct apply_item *item)
{
    item->is_settled = apply_is_settled(apply, item);
    if (!item->is_settled && !apply_is_safe(item))
        return false;
    item->after = json_incref(item->is_settled ? item->before : item->wanted);
    item->result = item->is_settled ? APPLY_UNCHANGED : APPLY_CREATED;
    return true;
}

struct outcome {
    size_t failed;
    enum error_code code;
};

static int call(struct apply *apply, const struct rest *rest, struct work *work, struct apply_item **items, struct outcome *outcome, struct error *err)
{
    if (rest_call_all(rest, work->jobs, work->count, err) < 0)
        return -1;
    for (size_t i = 0; i < work->count; i++) {
        if (work->jobs[i].err.code == ERROR_UNREACHABLE)
            return error_copy(err, &work->jobs[i].err); // it stopped: the others would say the same
        if (work->jobs[i].err.code) {
            tell(apply, items[i], &work->jobs[i]);
            outcome->code = outcome->failed++ ? outcome->code : work->jobs[i].err.code;
            continue;
        }
        json_decref(items[i]->after);
        items[i]->after = TAKE_PTR(work->jobs[i].answer);
        items[i]->is_made = true;
        judge(items[i]);
    }
    return 0;
}

int apply_try(struct apply *apply, bool asks_all, struct error *err)
{
    CLEANUP(work_clear) struct work work = {0};
    CLEANUP_FREE struct apply_item **items = mem_alloc((apply->count + 1) * sizeof(*items));
    struct outcome outcome = {0};
    if (look(apply, err) < 0)
        return -1;
    work_reserve(&work, apply->count);
    for (size_t i = 0; i < apply->count; i++) {
        struct apply_item *item = &apply->items[i];
        if (!asks_all && foresee(apply, item))
            continue;
        items[work.count] = item;
        add_patch(&work, apply, item, true);
    }
    struct rest silent = *apply->rest;
    silent.warn = NULL; // of what the same input makes first the daemon knows nothing yet
    if (call(apply, &silent, &work, items, &outcome, err) < 0)
        return -1;
    for (size_t i = 0; i < work.count; i++)
        items[i]->is_made = false; // only tried
    return conclude(apply, outcome.failed, outcome.code, "nothing was changed: mend what is named above, then run it again", err);
}

static int do_rank(struct apply *apply, int rank, struct outcome *outcome, struct error *err)
{
    CLEANUP(work_clear) struct work work = {0};
    CLEANUP_FREE struct apply_item **items = mem_alloc((apply->count + 1) * sizeof(*items));
    work_reserve(&work, apply->count);
    for (size_t i = 0; i < apply->count; i++) {
        struct apply_item *item = &apply->items[i];
        if (kind_rank(item->from->info->kind) != rank || item->is_settled)
            continue;
        items[work.count] = item;
        add_patch(&work, apply, item, false);
    }
    return call(apply, apply->rest, &work, items, outcome, err);
}

int apply_do(struct apply *apply, struct error *err)
{
    struct outcome outcome = {0};
    for (int rank = 0; rank < KIND_RANKS; rank++)
        if (do_rank(apply, rank, &outcome, err) < 0)
            return -1;
    return conclude(apply, outcome.failed, outcome.code, "mend what is named above, then run it again: what is done stays", err);
}
