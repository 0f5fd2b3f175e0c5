// Binding: a sandbox's spec names its workspace; which one that is, is settled once, in one transaction. Until then the sandbox
// has no runtime and waits, for the workspace to come or for what is in its way to go.
#include "controller/base/memory.h"
#include "controller/log.h"
#include "reconcilers/host_workspace.h"
#include "reconcilers/sandbox.h"

#define KEEP_ALIVE_MS (60 * 60 * 1000) // a sandbox that waits is not idle: its last activity is never older

void sandbox_set_waiting(struct record *sandbox, struct wall_time now)
{
    const char *name = sandbox->spec.sandbox.workspace_ref;
    record_set_condition(sandbox, CONDITION_REF_NOT_FOUND, CONDITION_TRUE, now, "WorkspaceNotFound",
                         "there is no workspace named %s yet; the sandbox waits for it", name);
    record_set_condition(sandbox, CONDITION_READY, CONDITION_FALSE, now, "WorkspaceNotFound",
                         "there is no workspace named %s yet; the sandbox waits for it", name);
}

static void set_blocked(struct record *sandbox, struct wall_time now, const char *reason, const char *why)
{
    record_drop_condition(sandbox, CONDITION_REF_NOT_FOUND);
    record_set_condition(sandbox, CONDITION_READY, CONDITION_FALSE, now, reason, "%s", why);
}

// Whether the workspace can be had now; else the sandbox says what it waits for.
static int look(struct store_tx *tx, struct record *sandbox, const struct record *workspace, bool *ret_is_free, struct error *err)
{
    CLEANUP_RECORD struct record *holder = NULL;
    CLEANUP_FREE char *text = NULL;
    struct error why = ERROR_INIT;
    const char *reason = NULL;
    if (tx_find_holder(tx, workspace->meta.uid, &holder, err) < 0)
        return -1;
    if (workspace->meta.deletion_at.ms) {
        reason = "WorkspaceDeleting";
        text = mem_format("the workspace %s is being deleted; the sandbox waits for another one of that name", workspace->meta.name);
    } else if (holder) {
        reason = "WorkspaceInUse";
        text = mem_format("the workspace %s is held by the sandbox %s; this one waits until that is gone", workspace->meta.name, holder->meta.name);
    } else if (tx_check_overlap(tx, workspace, &why) < 0) {
        if (why.code != ERROR_STATE)
            return error_copy(err, &why);
        reason = "WorkspaceOverlaps";
        text = mem_format("%s; this one waits until that is gone", why.message);
    }
    if (reason)
        set_blocked(sandbox, tx_now(tx), reason, text);
    *ret_is_free = !reason;
    return 0;
}

static int bind_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    struct record *sandbox = arg;
    CLEANUP_RECORD struct record *workspace = NULL;
    struct error why = ERROR_INIT;
    bool is_free = false;
    if (tx_get(tx, KIND_WORKSPACE, sandbox->spec.sandbox.workspace_ref, &workspace, &why) < 0) {
        if (why.code != ERROR_NOT_FOUND)
            return error_copy(err, &why);
        sandbox_set_waiting(sandbox, tx_now(tx));
        return tx_write_status(tx, sandbox, err);
    }
    if (look(tx, sandbox, workspace, &is_free, err) < 0)
        return -1;
    if (is_free) {
        set_blocked(sandbox, tx_now(tx), "Bound", "the workspace is there");
        mem_replace(&sandbox->status.sandbox.workspace_uid, workspace->meta.uid);
    }
    if (tx_write_status(tx, sandbox, err) == 0)
        return 0;
    mem_replace(&sandbox->status.sandbox.workspace_uid, NULL);
    return -1;
}

static void keep_alive(struct world *world, const struct record *sandbox)
{
    struct wall_time now = clock_wall(world->clock);
    if (store_activity(world->store, sandbox->meta.uid).ms + KEEP_ALIVE_MS <= now.ms)
        store_touch_activity(world->store, sandbox->meta.uid, now);
}

enum reconcile_verdict sandbox_bind(struct world *world, struct record *sandbox, struct error *err)
{
    if (store_transact(world->store, bind_in_tx, sandbox, err) < 0)
        return RECONCILE_FAILED;
    const char *workspace_uid = sandbox->status.sandbox.workspace_uid;
    if (!workspace_uid) {
        keep_alive(world, sandbox);
        return RECONCILE_DONE;
    }
    store_touch_activity(world->store, sandbox->meta.uid, clock_wall(world->clock)); // the hours without a call begin now
    manager_enqueue(world->manager, KIND_WORKSPACE, workspace_uid);                  // who holds it
    store_event(world->store, sandbox, false, "Bound", "bound to the workspace %s", sandbox->spec.sandbox.workspace_ref);
    log_info("sandbox %s is bound to the workspace %s that it waited for", sandbox->meta.uid, workspace_uid);
    return RECONCILE_DONE;
}
