// Ending a sandbox and confirming that it is gone. "Not there" is success, but an `ls` that has lost sandboxes which we know to
// run is no proof of anything, and a sandbox whose create was cut short may still come into being: it is looked for twice.
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "reconcilers/drivers/sbx/sbx.h"
#include <string.h>

struct removal_waiter {
    removed_fn done;
    void *arg;
};
struct removal {
    struct removal *next;
    struct sbx *sbx;
    char *name;
    int round;
    bool is_absent, was_there, is_tidying;
    struct call *call;
    struct loop_timer *timer;
    struct removal_waiter *waiters;
    size_t waiter_count;
};

static struct removal *find_removal(struct sbx *sbx, const char *name)
{
    for (struct removal *removal = sbx->removals; removal; removal = removal->next)
        if (strcmp(removal->name, name) == 0)
            return removal;
    return NULL;
}

static void add_waiter(struct removal *removal, removed_fn done, void *arg)
{
    removal->waiters = mem_realloc_array(removal->waiters, removal->waiter_count + 1, sizeof(*removal->waiters));
    removal->waiters[removal->waiter_count++] = (struct removal_waiter){done, arg};
}

static void finish(struct removal *removal, const struct error *err)
{
    struct removal **at = &removal->sbx->removals;
    while (*at != removal)
        at = &(*at)->next;
    *at = removal->next;
    loop_cancel(TAKE_PTR(removal->timer));
    struct runtime *runtime = sbx_runtime_find(removal->sbx, removal->name);
    if (err == NULL && runtime)
        sbx_runtime_free(runtime);
    for (size_t i = 0; i < removal->waiter_count; i++)
        removal->waiters[i].done(removal->waiters[i].arg, removal->was_there, err);
    free(removal->waiters);
    free(removal->name);
    free(removal);
}

static void fail(struct removal *removal, struct error *err)
{
    error_context(err, "cannot remove the sandbox's runtime");
    finish(removal, err);
}

// ---- the steps ---------------------------------------------------------------------------------------------------------

static void run_rm(struct removal *removal);

static void on_tidied(void *arg, const struct error *err)
{
    struct removal *removal = arg;
    struct error why = ERROR_INIT;
    removal->is_tidying = false;
    if (err == NULL) {
        finish(removal, NULL);
        return;
    }
    error_copy(&why, err);
    fail(removal, &why);
}

static void tidy(struct removal *removal)
{
    removal->is_tidying = true;
    sbx_clone_forget(removal->sbx, removal->name, on_tidied, removal);
}

static void on_timer(void *arg)
{
    struct removal *removal = arg;
    removal->timer = NULL;
    run_rm(removal);
}

static void look_again(struct removal *removal)
{
    removal->round++;
    removal->timer = loop_after(removal->sbx->loop, removal->sbx->deadlines.second_look_ms, on_timer, removal);
}

// A sandbox of ours that certainly runs, and that the list does not know.
static bool is_short(const struct removal *removal, const struct sandbox_row_list *sandboxes)
{
    for (const struct runtime *runtime = removal->sbx->runtimes; runtime; runtime = runtime->next)
        if (sbx_runtime_runs(runtime) && sbx_sandbox_row_find(sandboxes, runtime->name) == NULL)
            return true;
    return false;
}

// sbx may still be making one whose create was cut short, in this process or in one before it.
static bool may_come_late(const struct removal *removal)
{
    const struct runtime *runtime = sbx_runtime_find(removal->sbx, removal->name);
    return runtime ? runtime->is_unsettled : removal->is_absent;
}

static void on_list(void *arg, const struct sandbox_row_list *sandboxes, const struct error *err)
{
    struct removal *removal = arg;
    struct error why = ERROR_INIT;
    bool is_listed = sandboxes && sbx_sandbox_row_find(sandboxes, removal->name);
    if (err)
        error_copy(&why, err);
    else if (!is_listed && is_short(removal, sandboxes))
        error_set(&why, ERROR_UNAVAILABLE, "run: sbx diagnose; if sandboxes stay away from `sbx ls`: sbx daemon restart",
                  "`sbx ls` has lost sandboxes that run, so that it proves nothing about this one");
    else if (is_listed && removal->round > 0)
        error_set(&why, ERROR_UNAVAILABLE, "look at: sbx ls", "sbx reported it as removed and still lists it");
    if (why.code != ERROR_NONE)
        fail(removal, &why);
    else if (is_listed || (removal->round == 0 && may_come_late(removal)))
        look_again(removal);
    else
        tidy(removal);
}

static void on_rm(void *arg, const struct call_result *result)
{
    struct removal *removal = arg;
    struct error err = ERROR_INIT;
    removal->call = NULL;
    removal->is_absent = sbx_call_says_absent(result);
    if (!removal->is_absent && sbx_call_judge(result, &err) < 0) {
        fail(removal, &err);
        return;
    }
    removal->was_there |= !removal->is_absent;
    sbx_list_ask(removal->sbx, on_list, removal);
}

static void run_rm(struct removal *removal)
{
    struct call_options options = {.subject = removal->name, .deadline_ms = removal->sbx->deadlines.remove_call_ms};
    sbx_words_add(&options.words, "rm");
    sbx_words_add(&options.words, "-f");
    sbx_words_add(&options.words, "%s", removal->name);
    removal->call = sbx_call_start(removal->sbx, &options, on_rm, removal);
}

static void advance(struct removal *removal)
{
    struct runtime *runtime = sbx_runtime_find(removal->sbx, removal->name);
    if (runtime && runtime->creation)
        return; // its end comes here again
    if (runtime && runtime->is_untouched)
        tidy(removal);
    else
        run_rm(removal);
}

void sbx_remove_creation_ended(struct sbx *sbx, const char *name)
{
    struct removal *removal = find_removal(sbx, name);
    if (removal)
        advance(removal);
}

// ---- the start ---------------------------------------------------------------------------------------------------------

static void stop_using(struct runtime *runtime)
{
    struct error err = ERROR_INIT;
    runtime->is_removing = true;
    sbx_call_cancel(runtime->ending_call);
    if (runtime->starting) {
        error_set(&err, ERROR_CANCELLED, NULL, "the sandbox is being removed");
        sbx_session_cancel(runtime->starting, &err);
    }
}

void sbx_remove_on_loop(struct sbx *sbx, const char *name, removed_fn done, void *arg)
{
    struct removal *removal = find_removal(sbx, name);
    if (removal) {
        add_waiter(removal, done, arg);
        return;
    }
    if (!sbx_owns(sbx, name)) { // create refuses such names: nothing of it can be here
        done(arg, false, NULL);
        return;
    }
    removal = mem_alloc(sizeof(*removal));
    *removal = (struct removal){.next = sbx->removals, .sbx = sbx, .name = mem_strdup(name)};
    sbx->removals = removal;
    add_waiter(removal, done, arg);
    struct runtime *runtime = sbx_runtime_find(sbx, name);
    if (runtime)
        stop_using(runtime);
    if (runtime && runtime->creation)
        sbx_create_cancel(runtime->creation); // advances when it has ended
    else
        advance(removal);
}

void sbx_remove_stop(struct sbx *sbx, const struct error *err)
{
    for (struct removal *removal = sbx->removals, *next; removal; removal = next) {
        next = removal->next;
        sbx_list_leave(sbx, removal);
        if (removal->call) {
            sbx_call_cancel(removal->call); // its end answers
        } else if (!removal->is_tidying) {
            finish(removal, err);
        }
    }
}

struct remove_call {
    struct sbx *sbx;
    char *name;
    driver_done_fn done;
    void *arg;
};

static void on_removed(void *arg, bool was_there, const struct error *err)
{
    CLEANUP_FREE struct remove_call *call = arg;
    (void)was_there;
    free(call->name);
    call->done(call->arg, err ? -1 : 0, err);
}

static void run_call(void *arg)
{
    struct remove_call *call = arg;
    sbx_remove_on_loop(call->sbx, call->name, on_removed, call);
}

void sbx_remove(struct driver *driver, const char *name, driver_done_fn done, void *arg)
{
    struct remove_call *call = mem_alloc(sizeof(*call));
    *call = (struct remove_call){sbx_of(driver), mem_strdup(name), done, arg};
    loop_post(call->sbx->loop, run_call, call);
}
