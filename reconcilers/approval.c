// The Approval reconciler: turns a decision into a host Workspace, notices revocation and changed identity.
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "reconcilers/approval_rules.h"
#include "reconcilers/host_workspace.h"
#include "reconcilers/workspace_files.h"
#include "reconcilers/world.h"
#include <string.h>

struct decide {
    struct world *world;
    struct record *approval;
};

// Approving makes the Workspace and names it in the approval's status: one transaction.
static int grant_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    struct decide *decide = arg;
    struct record *approval = decide->approval;
    struct approval_status *status = &approval->status.approval;
    CLEANUP_RECORD struct record *workspace = NULL;
    struct host_path path = {approval->spec.approval.path, status->device, status->inode};
    if (tx_take_host_workspace(tx, &ACTOR_CONTROLLER, &path, approval->spec.approval.mode, &workspace, err) < 0)
        return -1;
    mem_replace(&status->workspace_ref, workspace->meta.uid);
    return tx_write_status(tx, approval, err);
}

static void note_decision(struct record *approval, struct wall_time now, const char *word)
{
    struct approval_status *status = &approval->status.approval;
    if (!status->decided_at.ms)
        status->decided_at = now;
    if (!status->decided_by) {
        const char *by = text_map_get(&approval->meta.annotations, ANNOTATION_DECIDED_BY);
        mem_replace(&status->decided_by, by ? by : "operator");
    }
    record_set_condition(approval, CONDITION_DECIDED, CONDITION_TRUE, now, word, "decided by %s", status->decided_by);
}

static enum reconcile_verdict write_status(struct world *world, struct record *approval, struct error *err)
{
    return store_write_status(world->store, approval, err) < 0 ? RECONCILE_FAILED : RECONCILE_DONE;
}

static enum reconcile_verdict settle_approved(struct world *world, struct record *approval, struct error *err)
{
    struct approval_status *status = &approval->status.approval;
    struct wall_time now = clock_wall(world->clock);
    note_decision(approval, now, "Approved");
    if (!status->workspace_ref && !record_is_true(approval, CONDITION_REVOKED)) {
        struct error why = ERROR_INIT;
        if (workspace_files_check(approval->spec.approval.path, status->device, status->inode, &why) < 0) {
            record_set_condition(approval, CONDITION_VALID, CONDITION_FALSE, now, "IdentityChanged", "%s", why.message);
            return write_status(world, approval, err);
        }
        record_set_condition(approval, CONDITION_VALID, CONDITION_TRUE, now, "SameDirectory", "the directory is the one that was shown");
        struct decide decide = {world, approval};
        return store_transact(world->store, grant_in_tx, &decide, err) < 0 ? RECONCILE_FAILED : RECONCILE_DONE;
    }
    CLEANUP_RECORD struct record *workspace = NULL;
    if (status->workspace_ref && world_get(world, KIND_WORKSPACE, status->workspace_ref, &workspace, err) < 0)
        return RECONCILE_FAILED;
    if (!workspace || workspace->meta.deletion_at.ms || workspace->meta.removed_at.ms)
        record_set_condition(approval, CONDITION_REVOKED, CONDITION_TRUE, now, "WorkspaceDeleted", "its workspace was deleted");
    return write_status(world, approval, err);
}

// The rules first; what they leave waits for a person. A decision of theirs is a change, which comes here again.
static enum reconcile_verdict settle_pending(struct world *world, struct record *approval, struct error *err)
{
    CLEANUP(rules_verdict_clear) struct rules_verdict verdict = {0};
    struct wall_time now = clock_wall(world->clock);
    if (rules_decide(world, approval, &verdict, err) < 0)
        return RECONCILE_FAILED;
    if (verdict.is_decided)
        return RECONCILE_DONE;
    approval_forget_decision(approval);
    if (!verdict.holdup.code) {
        record_set_condition(approval, CONDITION_DECIDED, CONDITION_FALSE, now, "Waiting", "waits for the operator: chat2shell approval approve %s",
                             approval->meta.name);
        return write_status(world, approval, err);
    }
    bool is_news = record_set_condition(approval, CONDITION_DECIDED, CONDITION_FALSE, now, "RuleCannotApprove", "rule/%s does not approve it: %s", verdict.rule,
                                        verdict.holdup.message);
    if (is_news)
        store_event(world->store, approval, true, "RuleCannotApprove", "rule/%s does not approve it: %s", verdict.rule, verdict.holdup.message);
    return write_status(world, approval, err);
}

static enum reconcile_verdict reconcile(void *arg, const char *uid, struct reconcile_outcome *outcome, struct error *err)
{
    (void)outcome;
    struct world *world = arg;
    CLEANUP_RECORD struct record *approval = NULL;
    if (world_get(world, KIND_APPROVAL, uid, &approval, err) < 0)
        return RECONCILE_FAILED;
    if (!approval || approval->meta.removed_at.ms || approval->meta.deletion_at.ms)
        return RECONCILE_DONE;
    switch (approval->spec.approval.decision) {
    case APPROVAL_APPROVED:
        return settle_approved(world, approval, err);
    case APPROVAL_REJECTED:
        note_decision(approval, clock_wall(world->clock), "Rejected");
        return write_status(world, approval, err);
    case APPROVAL_PENDING:
        return settle_pending(world, approval, err);
    }
    return RECONCILE_DONE;
}

static void map_change(void *arg, struct manager *manager, const struct store_change *change)
{
    struct world *world = arg;
    if (change->kind != KIND_WORKSPACE || change->type != STORE_DELETED)
        return;
    struct record_list approvals = {0};
    CLEANUP_RECORD struct record *workspace = NULL;
    if (store_get_uid(world->store, KIND_WORKSPACE, change->uid, &workspace, NULL) < 0 || !workspace->spec.workspace.path ||
        store_list_of_path(world->store, KIND_APPROVAL, workspace->spec.workspace.mode, workspace->spec.workspace.path, &approvals, NULL) < 0)
        return; // the next resync looks again
    for (size_t i = 0; i < approvals.count; i++) {
        const char *ref = approvals.items[i]->status.approval.workspace_ref;
        if (ref && strcmp(ref, change->uid) == 0)
            manager_enqueue(manager, KIND_APPROVAL, approvals.items[i]->meta.uid);
    }
    record_list_free(&approvals);
}

void approval_register(struct world *world)
{
    manager_add(world->manager, &(struct reconciler){.name = "approval", .kind = KIND_APPROVAL, .is_store_only = true,
                                                    .reconcile = reconcile, .map_change = map_change, .arg = world});
}
