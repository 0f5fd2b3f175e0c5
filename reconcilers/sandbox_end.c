// The end of a sandbox: its dependents, its runtime, its record; and the restart policy.
#include "controller/base/memory.h"
#include "controller/fault.h"
#include "controller/log.h"
#include "reconcilers/sandbox.h"
#include <string.h>

static void on_removed(void *arg, int result, const struct error *err)
{
    effect_end(arg, result, err, NULL, NULL);
}

static enum reconcile_verdict note_removed(struct world *world, struct record *sandbox, bool *ret_is_gone, struct error *err)
{
    (void)FAULT("sandbox.remove.done");
    effects_clear(world->reconcilers->effects, EFFECT_REMOVE, sandbox->meta.uid);
    lane_drop(world->lanes, sandbox->meta.uid); // first: until it returned, the lane may tell of a death through an anchor
    anchors_forget(world, sandbox->meta.uid);
    record_drop_condition(sandbox, CONDITION_STALLED);
    record_set_condition(sandbox, CONDITION_RUNTIME_REMOVED, CONDITION_TRUE, clock_wall(world->clock), "Removed",
                         "nothing of the sandbox is left");
    enum reconcile_verdict verdict = sandbox_write(world, sandbox, err);
    *ret_is_gone = verdict == RECONCILE_DONE;
    return verdict;
}

static enum reconcile_verdict note_stalled(struct world *world, struct record *sandbox, const struct error *why, struct error *err)
{
    effects_clear(world->reconcilers->effects, EFFECT_REMOVE, sandbox->meta.uid);
    record_set_condition(sandbox, CONDITION_STALLED, CONDITION_TRUE, clock_wall(world->clock), "RemoveFailed",
                         "%s; it is tried again, `chat2shell doctor` shows what is in the way", why->message);
    if (sandbox_write(world, sandbox, err) == RECONCILE_FAILED)
        return RECONCILE_FAILED;
    error_copy(err, why);
    return RECONCILE_FAILED; // backoff
}

// Another driver would find nothing of it, and that would prove nothing.
static int check_maker(const struct world *world, const struct record *sandbox, struct error *err)
{
    const char *maker = sandbox->status.sandbox.driver, *ours = world->driver->ops->name;
    if (!maker || strcmp(maker, ours) == 0 || !driver_outlives_daemon(maker))
        return 0;
    return error_set(err, ERROR_STATE, NULL, "the driver %s made it and may still run it, and this daemon runs the driver %s: start it once with CHAT2SHELL_DRIVER=%s, which removes it",
                     maker, ours, maker);
}

enum reconcile_verdict sandbox_remove_runtime(struct world *world, struct record *sandbox, bool *ret_is_gone, struct error *err)
{
    struct effects *effects = world->reconcilers->effects;
    const char *uid = sandbox->meta.uid, *name = sandbox->status.sandbox.runtime_name;
    *ret_is_gone = !name || record_is_true(sandbox, CONDITION_RUNTIME_REMOVED);
    if (*ret_is_gone)
        return RECONCILE_DONE;
    struct error why = ERROR_INIT;
    if (check_maker(world, sandbox, &why) < 0)
        return note_stalled(world, sandbox, &why, err);
    switch (effects_look(effects, EFFECT_REMOVE, uid, NULL, &why)) {
    case EFFECT_RUNNING:
        return RECONCILE_DONE;
    case EFFECT_DONE:
        return note_removed(world, sandbox, ret_is_gone, err);
    case EFFECT_FAILED:
        return note_stalled(world, sandbox, &why, err);
    case EFFECT_NONE:
        break;
    }
    struct effect *effect = effects_begin(effects, EFFECT_REMOVE, KIND_SANDBOX, uid);
    if (effect) // else: a freed slot requeues
        world->driver->ops->remove(world->driver, name, on_removed, effect);
    return RECONCILE_DONE;
}

static int delete_all_of(struct store_tx *tx, enum kind kind, const char *sandbox_uid, struct error *err)
{
    struct record_list all = {0};
    if (tx_list_bound(tx, kind, sandbox_uid, &all, err) < 0)
        return -1;
    int r = 0;
    for (size_t i = 0; i < all.count && r == 0; i++)
        r = tx_delete(tx, &ACTOR_CONTROLLER, kind, all.items[i]->meta.uid, err);
    record_list_free(&all);
    return r;
}

int sandbox_delete_dependents(struct store_tx *tx, void *arg, struct error *err)
{
    const struct record *sandbox = arg;
    int r = delete_all_of(tx, KIND_EXPOSURE, sandbox->meta.uid, err);
    return r < 0 ? r : delete_all_of(tx, KIND_SESSION, sandbox->meta.uid, err);
}

static int has_exposures(struct store_tx *tx, const char *sandbox_uid, bool *ret, struct error *err)
{
    struct record_list all = {0};
    if (tx_list_bound(tx, KIND_EXPOSURE, sandbox_uid, &all, err) < 0)
        return -1;
    *ret = all.count > 0;
    record_list_free(&all);
    return 0;
}

int sandbox_finalize(struct store_tx *tx, void *arg, struct error *err)
{
    struct record *sandbox = arg;
    bool is_waiting;
    if (has_exposures(tx, sandbox->meta.uid, &is_waiting, err) < 0)
        return -1;
    if (is_waiting)
        return 0; // their going requeues the sandbox
    text_list_remove(&sandbox->meta.finalizers, FINALIZER_RUNTIME);
    return tx_write_meta(tx, &ACTOR_CONTROLLER, sandbox, err);
}

// ---- restart policy: a sandbox belongs to the controller process that started its session ------------------------
#define RESTARTED_REASON "ControllerRestarted"
#define RESTARTED_WHY "chat2shell was restarted, which ends every sandbox; destroy this one and create another on the same workspace"

static bool is_leftover(const struct record *sandbox)
{
    return sandbox->status.sandbox.attempt && !sandbox->meta.deletion_at.ms && !record_is_true(sandbox, CONDITION_FAILED);
}

// Keeps those that it failed, so that events can tell of them once that is committed.
static int fail_leftovers(struct store_tx *tx, void *arg, struct error *err)
{
    struct record_list *failed = arg, all = {0};
    if (tx_list(tx, KIND_SANDBOX, &all, err) < 0)
        return -1;
    int r = 0;
    failed->items = mem_realloc_array(failed->items, all.count + 1, sizeof(*failed->items));
    for (size_t i = 0; i < all.count && r == 0; i++) {
        struct record *sandbox = all.items[i];
        if (!is_leftover(sandbox))
            continue;
        record_set_condition(sandbox, CONDITION_FAILED, CONDITION_TRUE, tx_now(tx), RESTARTED_REASON, "%s", RESTARTED_WHY);
        record_set_condition(sandbox, CONDITION_READY, CONDITION_FALSE, tx_now(tx), RESTARTED_REASON, "%s", RESTARTED_WHY);
        r = tx_write_status(tx, sandbox, err);
        failed->items[failed->count++] = TAKE_PTR(all.items[i]);
    }
    record_list_free(&all);
    return r;
}

// Marks only: the ordinary steps of failed and deleting records remove the runtimes, with retries and in parallel, and
// until that is confirmed their workspaces stay held.
int sandbox_recover(void *arg, struct error *err)
{
    struct world *world = arg;
    struct record_list failed = {0};
    int r = store_transact(world->store, fail_leftovers, &failed, err);
    for (size_t i = 0; i < failed.count && r == 0; i++)
        store_event(world->store, failed.items[i], true, RESTARTED_REASON, "%s", RESTARTED_WHY);
    if (r == 0 && failed.count)
        log_info("%zu sandboxes of an earlier run are marked failed (" RESTARTED_REASON ")", failed.count);
    record_list_free(&failed);
    return r < 0 ? error_context(err, "cannot settle what an earlier run left") : 0;
}
