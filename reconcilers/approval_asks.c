// Approvals that are asked for: how many there may be, and what a rule's rejection means for the next request. Nothing here asks
// a rule: a caller learns what was decided, never what would be.
#include "controller/base/memory.h"
#include "reconcilers/host_workspace.h"
#include "reconcilers/world.h"
#include <string.h>

// ---- room -----------------------------------------------------------------------------------------------------------------
static int check_counts(struct store_tx *tx, struct error *err)
{
    int64_t pending, recent;
    if (tx_count_pending_approvals(tx, &pending, err) < 0 ||
        tx_count_approvals_since(tx, (struct wall_time){tx_now(tx).ms - 60000}, PRINCIPAL_MCP, &recent, err) < 0)
        return -1;
    if (pending >= LIMIT_PENDING_APPROVALS)
        return error_set(err, ERROR_LIMIT, "wait until the owner has decided about some", "%d approvals are waiting already, the most at once",
                         LIMIT_PENDING_APPROVALS);
    if (recent >= LIMIT_APPROVALS_A_MINUTE)
        return error_set(err, ERROR_LIMIT, "wait a minute, then ask again for those that are needed", "%d host paths were asked for within a minute, the most allowed",
                         LIMIT_APPROVALS_A_MINUTE);
    return 0;
}

int tx_check_approvals(struct store_tx *tx, struct error *err)
{
    CLEANUP_FREE char *oldest = NULL;
    if (check_counts(tx, err) < 0 || tx_find_old_rejected(tx, LIMIT_REJECTED_APPROVALS - 1, &oldest, err) < 0)
        return -1;
    return oldest ? tx_delete(tx, &ACTOR_CONTROLLER, KIND_APPROVAL, oldest, err) : 0;
}

// ---- rejected by a rule ---------------------------------------------------------------------------------------------------
static bool was_rejected_by_rule(const struct record *approval)
{
    const char *by = text_map_get(&approval->meta.annotations, ANNOTATION_DECIDED_BY);
    return approval->spec.approval.decision == APPROVAL_REJECTED && !approval->meta.deletion_at.ms && by &&
           strncmp(by, PRINCIPAL_RULE, sizeof(PRINCIPAL_RULE) - 1) == 0;
}

static bool is_same_question(const struct record *approval, const char *principal, const struct host_path *path, enum workspace_mode mode)
{
    const struct approval_spec *spec = &approval->spec.approval;
    const struct approval_status *status = &approval->status.approval;
    return spec->mode == mode && strcmp(spec->path, path->resolved) == 0 && spec->requester && strcmp(spec->requester, principal) == 0 &&
           status->device == path->device && status->inode == path->inode;
}

void approval_forget_decision(struct record *approval)
{
    approval->status.approval.decided_at.ms = 0;
    free(TAKE_PTR(approval->status.approval.decided_by));
}

static int ask_again(struct store_tx *tx, struct record *approval, struct error *err)
{
    struct approval_spec *spec = &approval->spec.approval;
    spec->decision = APPROVAL_PENDING;
    spec->shown_resource_version = 0;
    free(TAKE_PTR(spec->reason));
    if (tx_write_spec(tx, &ACTOR_CONTROLLER, approval, err) < 0)
        return -1;
    text_map_set(&approval->meta.annotations, ANNOTATION_DECIDED_BY, NULL);
    if (tx_write_meta(tx, &ACTOR_CONTROLLER, approval, err) < 0)
        return -1;
    approval_forget_decision(approval);
    record_drop_condition(approval, CONDITION_DECIDED); // until the rules were asked again
    return tx_write_status(tx, approval, err);
}

int tx_find_rejected(struct store_tx *tx, const struct store_actor *actor, const struct host_path *path, enum workspace_mode mode,
                     struct record **ret, struct error *err)
{
    struct record_list all = {0};
    if (tx_list_of_path(tx, KIND_APPROVAL, mode, path->resolved, &all, err) < 0)
        return -1;
    CLEANUP_RECORD struct record *found = NULL;
    for (size_t i = all.count; i > 0 && !found; i--) // the newest
        if (was_rejected_by_rule(all.items[i - 1]) && is_same_question(all.items[i - 1], actor->principal, path, mode))
            found = record_copy(all.items[i - 1]);
    record_list_free(&all);
    if (found && tx_now(tx).ms - found->status.approval.decided_at.ms >= REJECTION_STANDS_MS && ask_again(tx, found, err) < 0)
        return -1;
    *ret = TAKE_PTR(found);
    return 0;
}
