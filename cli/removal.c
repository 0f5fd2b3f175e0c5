#include "cli/removal.h"
#include "cli/manifests.h"
#include "cli/objects.h"
#include "cli/printers/print.h"
#include "cli/selection.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include <stdio.h>
#include <string.h>

const char *const dry_run_words[] = {"none", "server", "client", NULL};

enum removal_trial removal_trial_of(const struct invocation *in)
{
    const char *word = invocation_option(in, "dry-run");
    return !word || strcmp(word, "none") == 0 ? REMOVAL_REAL : strcmp(word, "server") == 0 ? REMOVAL_TRIED_BY_SERVER : REMOVAL_TRIED_HERE;
}

const char *removal_mark(enum removal_trial trial)
{
    static const char *const marks[] = {"", " (server dry run)", " (dry run)"};
    return marks[trial];
}

struct removing {
    const struct removal *removal;
    const struct rest *rest;
    int64_t deadline_ms;
    size_t failed, tried;
    struct error first;
    json_t *holders; // uids of the sandboxes that hold a workspace that is to be deleted, too
    json_t *granted; // uids of what the daemon would delete
};

static void fail(struct removing *removing, const struct error *err)
{
    if (removing->tried > 1)
        complain(removing->removal->in, err);
    if (!removing->failed++)
        error_copy(&removing->first, err);
}

static void say(const struct removal *removal, const json_t *object)
{
    CLEANUP_FREE char *word = object_word(object);
    if (invocation_is_output(removal->in, "name")) {
        CLEANUP_FREE char *line = mem_format("%s\n", word);
        print_text(line);
    } else {
        terminal_confirm("%s %s%s", word, removal->word, removal_mark(removal->trial));
    }
    fflush(stdout);
}

// ---- one rank after the other -----------------------------------------------------------------------------------------------
static json_t *body_of(const struct removal *removal, const json_t *object)
{
    json_t *body = json_pack("{s:{s:s}}", "preconditions", "uid", object_uid(object));
    json_set_text(body, "propagationPolicy", removal->propagation);
    return body;
}

static void ask(const struct removal *removal, const json_t *object, struct rest_job *job)
{
    CLEANUP_FREE char *path = rest_path(selection_kind(object), object_uid(object));
    job->ask = (struct rest_ask){.method = "DELETE", .content_type = "application/json", .body = body_of(removal, object),
                                 .path = mem_format("%s%s", path, removal->trial == REMOVAL_TRIED_BY_SERVER ? "?dryRun=All" : "")};
}

static const char *holder_of(const json_t *object)
{
    return selection_kind(object)->kind == KIND_WORKSPACE ? json_get_text(json_object_get(object, "status"), "boundSandbox") : NULL;
}

static json_t *holders_of(const json_t *objects)
{
    json_t *holders = json_object(), *object;
    size_t i;
    json_array_foreach((json_t *)objects, i, object) if (holder_of(object)) json_object_set_new(holders, holder_of(object), json_true());
    return holders;
}

// Tried only, the sandbox is still there that would be gone by then.
static bool is_held_by_granted(const struct removing *removing, const json_t *object, const struct error *err)
{
    const char *holder = holder_of(object);
    return removing->removal->trial == REMOVAL_TRIED_BY_SERVER && err->code == ERROR_STATE && holder && json_object_get(removing->granted, holder);
}

static void settle(struct removing *removing, const json_t *object, const struct rest_job *job)
{
    const struct removal *removal = removing->removal;
    struct error err = ERROR_INIT;
    if (job->err.code && job->err.code != ERROR_NOT_FOUND && !is_held_by_granted(removing, object, &job->err)) { // gone meanwhile is gone
        fail(removing, &job->err);
        return;
    }
    json_object_set_new(removing->granted, object_uid(object), json_true());
    bool waits = (removal->waits || json_object_get(removing->holders, object_uid(object))) && removal->trial == REMOVAL_REAL;
    if (waits && wait_until_gone(removing->rest, selection_kind(object), object_uid(object), removal->timeout_s, removing->deadline_ms, &err) < 0)
        fail(removing, &err);
    else
        say(removal, object);
}

static int remove_some(struct removing *removing, const json_t *objects, struct error *err)
{
    size_t count = json_array_size(objects);
    struct rest_job *jobs = mem_alloc((count + 1) * sizeof(*jobs));
    for (size_t i = 0; i < count; i++)
        ask(removing->removal, json_array_get(objects, i), &jobs[i]);
    int r = removing->removal->trial == REMOVAL_TRIED_HERE ? 0 : rest_call_all(removing->rest, jobs, count, err);
    for (size_t i = 0; i < count; i++) {
        if (r == 0)
            settle(removing, json_array_get(objects, i), &jobs[i]);
        json_decref((json_t *)jobs[i].ask.body);
        free((char *)jobs[i].ask.path);
        rest_job_clear(&jobs[i]);
    }
    free(jobs);
    return r;
}

static json_t *of_rank(const json_t *objects, int rank)
{
    json_t *some = json_array(), *object;
    size_t i;
    json_array_foreach((json_t *)objects, i, object) if (kind_rank(selection_kind(object)->kind) == rank) json_array_append(some, object);
    return some;
}

// ---- all of it --------------------------------------------------------------------------------------------------------------
static int confirm(const struct removing *removing, const json_t *objects, struct error *err)
{
    const struct removal *removal = removing->removal;
    int r = 0;
    size_t i;
    json_t *object;
    json_array_foreach((json_t *)objects, i, object)
    {
        if (r < 0 || removal->trial == REMOVAL_TRIED_HERE || selection_kind(object)->kind != KIND_SANDBOX)
            continue;
        r = removal->trial == REMOVAL_REAL ? loss_confirm(removal->in, removing->rest, object, err) : loss_foretell(removing->rest, object, err);
    }
    return r;
}

// Without the sessions of sandboxes that are among them: they end with those, and cannot be deleted by themselves.
static json_t *drop_sessions(const json_t *objects)
{
    CLEANUP_JSON json_t *sandboxes = json_object();
    json_t *rest = json_array(), *object;
    size_t i;
    json_array_foreach((json_t *)objects, i, object)
    {
        if (selection_kind(object)->kind != KIND_SANDBOX)
            continue;
        json_object_set_new(sandboxes, object_name(object), json_true());
        json_object_set_new(sandboxes, object_uid(object), json_true());
    }
    json_array_foreach((json_t *)objects, i, object)
    {
        const char *sandbox = selection_kind(object)->kind == KIND_SESSION ? json_get_text(json_object_get(object, "spec"), "sandboxRef") : NULL;
        if (!sandbox || !json_object_get(sandboxes, sandbox))
            json_array_append(rest, object);
    }
    return rest;
}

static int conclude(const struct removing *removing, struct error *err)
{
    if (!removing->failed)
        return 0;
    if (removing->tried == 1)
        return error_copy(err, &removing->first);
    return error_set(err, removing->first.code, NULL, "%zu of %zu could not be %s", removing->failed, removing->tried, removing->removal->word);
}

int removal_run(const struct removal *removal, const json_t *named, struct error *err)
{
    CLEANUP_JSON json_t *objects = drop_sessions(named);
    CLEANUP_JSON json_t *holders = holders_of(objects), *granted = json_object();
    struct removing removing = {.removal = removal, .rest = invocation_rest(removal->in, err), .tried = json_array_size(objects), .first = ERROR_INIT,
                                .holders = holders, .granted = granted, .deadline_ms = boot_time_now().ms + removal->timeout_s * 1000LL};
    if (!removing.rest || confirm(&removing, objects, err) < 0)
        return -1;
    for (int rank = KIND_RANKS - 1; rank >= 0; rank--) {
        CLEANUP_JSON json_t *some = of_rank(objects, rank);
        if (remove_some(&removing, some, err) < 0)
            return -1;
    }
    return conclude(&removing, err);
}
