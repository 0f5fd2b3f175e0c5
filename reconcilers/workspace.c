// The Workspace reconciler: the directory, who holds it, retention, the move to the trash, revocation.
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "reconcilers/workspace_files.h"
#include "reconcilers/world.h"
#include <string.h>

static int make_managed(struct world *world, struct record *workspace, struct error *err)
{
    struct workspace_status *status = &workspace->status.workspace;
    CLEANUP_FREE char *root = NULL;
    if (workspace_files_make(world->config, workspace->meta.uid, &root, &status->device, &status->inode, err) < 0)
        return -1;
    mem_replace(&status->root, root);
    return 0;
}

static void set_ready(struct world *world, struct record *workspace, int result, const struct error *err)
{
    struct wall_time now = clock_wall(world->clock);
    if (result == 0)
        record_set_condition(workspace, CONDITION_READY, CONDITION_TRUE, now, "DirectoryReady", "the directory is there");
    else if (err->code == ERROR_CONFLICT)
        record_set_condition(workspace, CONDITION_READY, CONDITION_FALSE, now, "IdentityChanged", "%s", err->message);
    else
        record_set_condition(workspace, CONDITION_READY, CONDITION_FALSE, now, "DirectoryMissing", "%s", err->message);
}

// The directory of a managed workspace is made once; afterwards both kinds are only compared with their identity.
static int settle_directory(struct world *world, struct record *workspace, struct error *err)
{
    struct workspace_status *status = &workspace->status.workspace;
    bool is_managed = workspace->spec.workspace.mode == WORKSPACE_MANAGED;
    struct error why = ERROR_INIT;
    int r = 0;
    if (is_managed && !status->root)
        r = make_managed(world, workspace, &why);
    else if (!status->root)
        r = error_set(&why, ERROR_NOT_FOUND, "use `chat2shell workspace add PATH`", "a host workspace exists only through an approval");
    else
        r = workspace_files_check(status->root, status->device, status->inode, &why);
    set_ready(world, workspace, r, &why);
    return r < 0 && is_managed && !status->root ? error_copy(err, &why) : 0;
}

static void set_retention(struct world *world, struct record *workspace, const struct record *holder)
{
    struct workspace_status *status = &workspace->status.workspace;
    struct wall_time now = clock_wall(world->clock);
    mem_replace(&status->bound_sandbox, holder ? holder->meta.uid : NULL);
    if (holder || workspace->spec.workspace.mode != WORKSPACE_MANAGED) {
        status->retained_until = (struct wall_time){0};
        record_drop_condition(workspace, CONDITION_RETAINED);
        return;
    }
    if (!status->retained_until.ms)
        status->retained_until.ms = now.ms + WORKSPACE_RETAIN_MS;
    record_set_condition(workspace, CONDITION_RETAINED, CONDITION_TRUE, now, "NoSandbox",
                         "kept until retainedUntil, then moved to the trash; create a sandbox with it to go on");
}

struct settle {
    struct world *world;
    struct record *workspace; // status prepared by the reconcile; retention decided in the transaction
};

static bool is_due(const struct world *world, const struct record *workspace)
{
    int64_t until = workspace->status.workspace.retained_until.ms;
    return until && until <= clock_wall(world->clock).ms;
}

static int settle_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    struct settle *settle = arg;
    struct record *workspace = settle->workspace;
    CLEANUP_RECORD struct record *holder = NULL;
    if (tx_find_holder(tx, workspace->meta.uid, &holder, err) < 0)
        return -1;
    set_retention(settle->world, workspace, holder);
    if (tx_write_status(tx, workspace, err) < 0)
        return -1;
    return is_due(settle->world, workspace) ? tx_delete(tx, &ACTOR_CONTROLLER, KIND_WORKSPACE, workspace->meta.uid, err) : 0;
}

// Whether the transaction would write nothing: most looks find everything as it was, and cost no turn of the writer. A sandbox
// that comes or goes meanwhile brings the workspace back here.
static bool is_settled(struct world *world, const struct record *before, struct record *workspace)
{
    struct record_list bound = {0};
    if (store_list_bound(world->store, KIND_SANDBOX, workspace->meta.uid, &bound, NULL) < 0)
        return false;
    set_retention(world, workspace, bound.count ? bound.items[0] : NULL);
    record_list_free(&bound);
    record_compute_phase(workspace);
    return before->status.workspace.observed_generation == before->meta.generation && record_status_equals(before, workspace) &&
           !is_due(world, workspace);
}

static enum reconcile_verdict settle_live(struct world *world, struct record *workspace, struct reconcile_outcome *outcome, struct error *err)
{
    struct error directory = ERROR_INIT;
    CLEANUP_RECORD struct record *before = record_copy(workspace);
    int r = settle_directory(world, workspace, &directory);
    struct settle settle = {world, workspace};
    if (!is_settled(world, before, workspace) && store_transact(world->store, settle_in_tx, &settle, err) < 0)
        return RECONCILE_FAILED;
    if (r < 0) {
        error_copy(err, &directory);
        return RECONCILE_FAILED;
    }
    int64_t until = workspace->status.workspace.retained_until.ms;
    if (!until)
        return RECONCILE_DONE;
    outcome->after_ms = until - clock_wall(world->clock).ms;
    return RECONCILE_AFTER;
}

static int drop_trash_finalizer(struct store_tx *tx, void *arg, struct error *err)
{
    struct record *workspace = arg;
    record_set_condition(workspace, CONDITION_TRASHED, CONDITION_TRUE, tx_now(tx), "MovedToTrash", "the directory is in the trash; nothing was deleted");
    if (tx_write_status(tx, workspace, err) < 0)
        return -1;
    text_list_remove(&workspace->meta.finalizers, FINALIZER_TRASH);
    return tx_write_meta(tx, &ACTOR_CONTROLLER, workspace, err);
}

static enum reconcile_verdict settle_deleting(struct world *world, struct record *workspace, struct error *err)
{
    if (!text_list_has(&workspace->meta.finalizers, FINALIZER_TRASH))
        return RECONCILE_DONE;
    if (workspace_files_trash(world->config, workspace->meta.uid, err) < 0 ||
        store_transact(world->store, drop_trash_finalizer, workspace, err) < 0)
        return RECONCILE_FAILED;
    store_event(world->store, workspace, false, "Trashed", "moved to the trash");
    return RECONCILE_DONE;
}

static enum reconcile_verdict reconcile(void *arg, const char *uid, struct reconcile_outcome *outcome, struct error *err)
{
    struct world *world = arg;
    CLEANUP_RECORD struct record *workspace = NULL;
    if (world_get(world, KIND_WORKSPACE, uid, &workspace, err) < 0)
        return RECONCILE_FAILED;
    if (!workspace || workspace->meta.removed_at.ms)
        return RECONCILE_DONE;
    return workspace->meta.deletion_at.ms ? settle_deleting(world, workspace, err) : settle_live(world, workspace, outcome, err);
}

// A sandbox that comes or goes changes who holds its workspace.
static void map_change(void *arg, struct manager *manager, const struct store_change *change)
{
    struct world *world = arg;
    if (change->kind != KIND_SANDBOX || change->type == STORE_MODIFIED)
        return;
    CLEANUP_RECORD struct record *sandbox = NULL;
    if (store_get_uid(world->store, KIND_SANDBOX, change->uid, &sandbox, NULL) == 0 && sandbox->status.sandbox.workspace_uid)
        manager_enqueue(manager, KIND_WORKSPACE, sandbox->status.sandbox.workspace_uid);
}

void workspace_register(struct world *world)
{
    manager_add(world->manager, &(struct reconciler){.name = "workspace", .kind = KIND_WORKSPACE, .is_store_only = true,
                                                    .reconcile = reconcile, .map_change = map_change, .arg = world});
}
