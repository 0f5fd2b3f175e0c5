// The Sandbox reconciler: one step a call towards what the record wants. Each step's comment-worthy rule is design 3's:
// intent is committed before the effect, a name is never used twice, a failed or dying sandbox holds its workspace until
// its runtime is confirmed gone.
#include "reconcilers/sandbox.h"
#include "controller/base/memory.h"
#include "controller/fault.h"
#include "controller/log.h"
#include <string.h>

enum reconcile_verdict sandbox_write(struct world *world, struct record *sandbox, struct error *err)
{
    return store_write_status(world->store, sandbox, err) < 0 ? RECONCILE_FAILED : RECONCILE_DONE;
}

enum reconcile_verdict sandbox_fail(struct world *world, struct record *sandbox, const char *reason, const char *message, struct error *err)
{
    struct wall_time now = clock_wall(world->clock);
    lane_close(world->lanes, sandbox->meta.uid, "the sandbox failed; sandbox_get tells why, sandbox_destroy removes it");
    record_set_condition(sandbox, CONDITION_FAILED, CONDITION_TRUE, now, reason, "%s", message);
    record_set_condition(sandbox, CONDITION_READY, CONDITION_FALSE, now, reason, "%s", message);
    if (store_write_status(world->store, sandbox, err) < 0)
        return RECONCILE_FAILED;
    store_event(world->store, sandbox, true, reason, "%s", message);
    log_warning("sandbox %s failed: %s: %s", sandbox->meta.uid, reason, message);
    return RECONCILE_DONE; // the write requeues it: the next step removes the runtime
}

// ---- creating ----------------------------------------------------------------------------------------------------
static char *workspace_root_for(const struct world *world, const struct record *sandbox, const struct record *workspace)
{
    if (workspace->spec.workspace.mode != WORKSPACE_CLONE)
        return mem_strdup(workspace->status.workspace.root);
    const char *name = strrchr(workspace->spec.workspace.path, '/') + 1;
    CLEANUP_FREE char *dir = driver_clone_dir_name(sandbox->status.sandbox.runtime_name);
    return mem_format("%s/clones/%s/%s", world->config->data_root, dir, name);
}

// Intent before effect: attempt and runtime name are committed before the driver hears of them.
static enum reconcile_verdict commit_attempt(struct world *world, struct record *sandbox, const struct record *workspace, struct error *err)
{
    struct sandbox_status *status = &sandbox->status.sandbox;
    struct wall_time now = clock_wall(world->clock);
    status->attempt++;
    free(status->runtime_name);
    status->runtime_name = driver_runtime_name(store_instance(world->store), sandbox->meta.uid, status->attempt);
    CLEANUP_FREE char *root = workspace_root_for(world, sandbox, workspace);
    mem_replace(&status->workspace_root, root);
    mem_replace(&status->driver, world->driver->ops->name);
    record_set_condition(sandbox, CONDITION_RUNTIME_CREATED, CONDITION_UNKNOWN, now, "Creating", "the driver makes the sandbox");
    record_set_condition(sandbox, CONDITION_READY, CONDITION_FALSE, now, "Creating", "the driver makes the sandbox");
    return sandbox_write(world, sandbox, err);
}

static enum reconcile_verdict wait_for_workspace(struct world *world, struct record *sandbox, const struct record *workspace, struct error *err)
{
    const struct condition *ready = record_condition(workspace, CONDITION_READY);
    if (!ready)
        return RECONCILE_DONE; // just born: its change requeues, and a commit now would only stand before the next one's
    if (ready->status == CONDITION_FALSE && strcmp(ready->reason, "IdentityChanged") == 0)
        return sandbox_fail(world, sandbox, "WorkspaceReplaced", ready->message, err);
    record_set_condition(sandbox, CONDITION_READY, CONDITION_FALSE, clock_wall(world->clock), "WorkspaceNotReady", "%s",
                         ready->message ? ready->message : "the workspace's directory is being made");
    return sandbox_write(world, sandbox, err);
}

static enum reconcile_verdict wait_for_slot(struct world *world, struct record *sandbox, struct error *err)
{
    record_set_condition(sandbox, CONDITION_READY, CONDITION_FALSE, clock_wall(world->clock), "WaitingForSlot",
                         "as many sandboxes as may be at once are being made; this one waits for its turn");
    return sandbox_write(world, sandbox, err);
}

static enum reconcile_verdict begin_create(struct world *world, struct record *sandbox, const struct record *workspace, struct error *err)
{
    struct effect *effect = effects_begin(world->reconcilers->effects, EFFECT_CREATE, KIND_SANDBOX, sandbox->meta.uid);
    if (!effect)
        return wait_for_slot(world, sandbox, err); // a freed slot requeues it
    if (commit_attempt(world, sandbox, workspace, err) == RECONCILE_FAILED) {
        effect_abandon(effect);
        return RECONCILE_FAILED;
    }
    if (FAULT("sandbox.create.intent")) {
        effect_abandon(effect);
        error_set(err, ERROR_IO, NULL, "fault point");
        return RECONCILE_FAILED;
    }
    sandbox_start_create(world, sandbox, workspace, effect);
    return RECONCILE_DONE;
}

static enum reconcile_verdict settle_created(struct world *world, struct record *sandbox, const struct sandbox_facts *facts, struct error *err)
{
    struct wall_time now = clock_wall(world->clock);
    sandbox_take_facts(sandbox, facts, now);
    record_set_condition(sandbox, CONDITION_RUNTIME_CREATED, CONDITION_TRUE, now, "Created", "the sandbox is made");
    record_set_condition(sandbox, CONDITION_READY, CONDITION_FALSE, now, "ToolServerStarting", "the tool server starts");
    if (store_transact(world->store, sandbox_create_session, sandbox, err) < 0)
        return RECONCILE_FAILED;
    return RECONCILE_DONE;
}

static enum reconcile_verdict step_create(struct world *world, struct record *sandbox, struct error *err)
{
    CLEANUP_RECORD struct record *workspace = NULL;
    if (world_get(world, KIND_WORKSPACE, sandbox->status.sandbox.workspace_uid, &workspace, err) < 0)
        return RECONCILE_FAILED;
    if (!workspace || workspace->meta.removed_at.ms)
        return sandbox_fail(world, sandbox, "WorkspaceGone", "its workspace was deleted", err);
    struct error why = ERROR_INIT;
    void *facts = NULL;
    bool is_free;
    enum reconcile_verdict verdict;
    switch (effects_look(world->reconcilers->effects, EFFECT_CREATE, sandbox->meta.uid, &facts, &why)) {
    case EFFECT_RUNNING:
        return RECONCILE_DONE; // its end requeues
    case EFFECT_DONE:
        return settle_created(world, sandbox, facts, err);
    case EFFECT_FAILED:
        verdict = sandbox_settle_failed_create(world, sandbox, &why, &is_free, err);
        if (!is_free)
            return verdict;
        break;
    case EFFECT_NONE:
        break;
    }
    if (!record_is_true(workspace, CONDITION_READY))
        return wait_for_workspace(world, sandbox, workspace, err);
    return begin_create(world, sandbox, workspace, err);
}

// ---- running ----------------------------------------------------------------------------------------------------
static enum reconcile_verdict step_session(struct world *world, struct record *sandbox, struct reconcile_outcome *outcome, struct error *err)
{
    CLEANUP_RECORD struct record *session = NULL;
    if (sandbox_find_session(world, sandbox->meta.uid, &session, err) < 0)
        return RECONCILE_FAILED;
    if (!session)
        return sandbox_fail(world, sandbox, "SessionGone", "the session record was deleted", err);
    struct wall_time now = clock_wall(world->clock);
    const struct condition *failed = record_condition(session, CONDITION_FAILED);
    if (failed && failed->status == CONDITION_TRUE)
        return sandbox_fail(world, sandbox, failed->reason, failed->message, err);
    if (!record_is_true(session, CONDITION_READY))
        return RECONCILE_DONE; // its change requeues
    bool is_first = !sandbox->status.sandbox.started_at.ms;
    if (is_first)
        sandbox->status.sandbox.started_at = now;
    record_set_condition(sandbox, CONDITION_SESSION_READY, CONDITION_TRUE, now, "ToolServerReady", "the tool server answers");
    record_set_condition(sandbox, CONDITION_READY, CONDITION_TRUE, now, "Running", "the sandbox runs");
    if (store_write_status(world->store, sandbox, err) < 0)
        return RECONCILE_FAILED;
    if (is_first) // after the write: the caller waits for that commit, not for this one
        store_event(world->store, sandbox, false, "Running", "the tool server answers");
    return sandbox_expire_if_idle(world, sandbox, outcome, err);
}

static enum reconcile_verdict step_live(struct world *world, struct record *sandbox, struct reconcile_outcome *outcome, struct error *err)
{
    if (!sandbox->status.sandbox.workspace_uid) {
        if (sandbox_bind(world, sandbox, err) == RECONCILE_FAILED)
            return RECONCILE_FAILED;
        if (!sandbox->status.sandbox.workspace_uid)
            return RECONCILE_DONE; // what it waits for requeues it
    }
    CLEANUP_FREE char *death = effects_death(world->reconcilers->effects, sandbox->meta.uid);
    if (death)
        return sandbox_fail(world, sandbox, "RuntimeDied", death, err);
    if (!record_is_true(sandbox, CONDITION_RUNTIME_CREATED))
        return step_create(world, sandbox, err);
    return step_session(world, sandbox, outcome, err);
}

// ---- failed and deleting: the runtime goes first ------------------------------------------------------------------
static enum reconcile_verdict step_failed(struct world *world, struct record *sandbox, struct error *err)
{
    bool is_gone;
    return sandbox_remove_runtime(world, sandbox, &is_gone, err);
}

static enum reconcile_verdict step_deleting(struct world *world, struct record *sandbox, struct error *err)
{
    lane_close(world->lanes, sandbox->meta.uid, "the sandbox was destroyed; create another one with sandbox_create");
    if (!text_list_has(&sandbox->meta.finalizers, FINALIZER_RUNTIME))
        return RECONCILE_DONE;
    if (store_transact(world->store, sandbox_delete_dependents, sandbox, err) < 0)
        return RECONCILE_FAILED;
    bool is_gone = false;
    enum reconcile_verdict verdict = sandbox_remove_runtime(world, sandbox, &is_gone, err);
    if (!is_gone)
        return verdict;
    if (FAULT("sandbox.finalize.before"))
        return error_set(err, ERROR_IO, NULL, "fault point"), RECONCILE_FAILED;
    if (store_transact(world->store, sandbox_finalize, sandbox, err) < 0)
        return RECONCILE_FAILED;
    return RECONCILE_DONE;
}

static enum reconcile_verdict reconcile_one(struct world *world, const char *uid, struct reconcile_outcome *outcome, struct error *err)
{
    CLEANUP_RECORD struct record *sandbox = NULL;
    if (world_get(world, KIND_SANDBOX, uid, &sandbox, err) < 0)
        return RECONCILE_FAILED;
    if (!sandbox || sandbox->meta.removed_at.ms) {
        lane_drop(world->lanes, uid);
        journals_end(lanes_journals(world->lanes), uid);
        anchors_forget(world, uid); // those whose last answer came after the removal
        effects_clear_all(world->reconcilers->effects, uid);
        return RECONCILE_DONE;
    }
    if (sandbox->meta.deletion_at.ms)
        return step_deleting(world, sandbox, err);
    if (record_is_true(sandbox, CONDITION_FAILED))
        return step_failed(world, sandbox, err);
    return step_live(world, sandbox, outcome, err);
}

static enum reconcile_verdict reconcile(void *arg, const char *uid, struct reconcile_outcome *outcome, struct error *err)
{
    return world_take_turn(arg, reconcile_one, uid, outcome, err);
}

// ---- other records' changes ----------------------------------------------------------------------------------------
static const char *sandbox_uid_of(const struct record *record)
{
    return record->kind == KIND_SESSION ? record->status.session.sandbox_uid : record->status.exposure.sandbox_uid;
}

static void enqueue_waiting(void *arg, const char *uid)
{
    manager_enqueue(arg, KIND_SANDBOX, uid);
}

// It may have been in the way of those that wait: for its workspace, or for one that overlaps with it, which only direct ones do.
static void map_removal(struct world *world, struct manager *manager, const char *uid)
{
    CLEANUP_RECORD struct record *sandbox = NULL, *workspace = NULL;
    if (world_get(world, KIND_SANDBOX, uid, &sandbox, NULL) == 0 && sandbox && sandbox->status.sandbox.workspace_uid)
        world_get(world, KIND_WORKSPACE, sandbox->status.sandbox.workspace_uid, &workspace, NULL);
    bool is_alone = workspace && workspace->spec.workspace.mode != WORKSPACE_DIRECT;
    store_each_waiting(world->store, is_alone ? workspace->meta.name : NULL, enqueue_waiting, manager, NULL);
}

static void map_change(void *arg, struct manager *manager, const struct store_change *change)
{
    struct world *world = arg;
    if (change->kind == KIND_WORKSPACE) {
        world_enqueue_bound(world, manager, KIND_SANDBOX, change->uid);
        store_each_waiting(world->store, change->name, enqueue_waiting, manager, NULL);
        return;
    }
    if (change->kind == KIND_SANDBOX && change->type == STORE_DELETED)
        map_removal(world, manager, change->uid);
    if (change->kind != KIND_SESSION && change->kind != KIND_EXPOSURE)
        return;
    CLEANUP_RECORD struct record *record = NULL;
    if (store_get_uid(world->store, change->kind, change->uid, &record, NULL) == 0 && sandbox_uid_of(record))
        manager_enqueue(manager, KIND_SANDBOX, sandbox_uid_of(record));
}

void sandbox_register(struct world *world)
{
    manager_add(world->manager, &(struct reconciler){.name = "sandbox", .kind = KIND_SANDBOX, .reconcile = reconcile,
                                                    .map_change = map_change, .recover = sandbox_recover, .arg = world});
}
