// The ApprovalRule reconciler: says whether a rule can decide, and has the approvals that wait looked at again when it newly can.
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/base/path_glob.h"
#include "reconcilers/approval_rules.h"
#include <string.h>

#define LOOK_AGAIN_MS 60000 // a wait for an expiry is never longer

// ---- can its paths be reached ---------------------------------------------------------------------------------------------
// Every match of the glob lies strictly below root.
static bool lies_below(const char *glob, const char *root)
{
    size_t fixed_len = path_glob_fixed_len(glob);
    CLEANUP_FREE char *fixed = mem_strndup(glob, fixed_len);
    bool has_wildcard = glob[fixed_len] != '\0';
    return fs_is_below(fixed, root) || (has_wildcard && strcmp(fixed, root) == 0);
}

struct reach {
    size_t outside;
    const char *first;  // glob outside, borrowed
    char *resolved_root; // where the root leads to that it was written below, if it was; owned
};

static bool is_reachable(const struct text_list *roots, const char *glob, char **ret_resolved)
{
    for (size_t i = 0; i < roots->count; i++) {
        CLEANUP_FREE char *resolved = realpath(roots->items[i], NULL);
        if (resolved && lies_below(glob, resolved))
            return true;
        if (resolved && !*ret_resolved && lies_below(glob, roots->items[i]))
            *ret_resolved = TAKE_PTR(resolved);
    }
    return false;
}

static void look_at_paths(const struct config *config, const struct record *rule, struct reach *ret)
{
    const struct text_list *paths = &rule->spec.approval_rule.paths;
    for (size_t i = 0; i < paths->count; i++) {
        CLEANUP_FREE char *resolved = NULL;
        if (is_reachable(&config->allowed_host_roots, paths->items[i], &resolved))
            continue;
        if (!ret->outside++) {
            ret->first = paths->items[i];
            ret->resolved_root = TAKE_PTR(resolved);
        }
    }
}

// ---- conditions -----------------------------------------------------------------------------------------------------------
static void set_or_drop(struct record *rule, const char *type, bool holds, struct wall_time now, const char *message)
{
    if (holds)
        record_set_condition(rule, type, CONDITION_TRUE, now, type, "%s", message);
    else
        record_drop_condition(rule, type);
}

static void set_ready(struct record *rule, const struct reach *reach, bool is_expired, bool is_exhausted, struct wall_time now)
{
    const char *hint = reach->resolved_root ? "; paths are compared with all symbolic links resolved, and its root leads to " : "";
    const char *root = reach->resolved_root ? reach->resolved_root : "";
    if (is_expired || is_exhausted)
        record_set_condition(rule, CONDITION_READY, CONDITION_FALSE, now, is_expired ? CONDITION_EXPIRED : CONDITION_EXHAUSTED, "it decides nothing any more");
    else if (reach->outside && reach->outside == rule->spec.approval_rule.paths.count)
        record_set_condition(rule, CONDITION_READY, CONDITION_FALSE, now, "OutsideAllowedRoots", "%s is not below an allowed host root%s%s", reach->first, hint,
                             root);
    else if (reach->outside)
        record_set_condition(rule, CONDITION_READY, CONDITION_TRUE, now, "SomeOutsideAllowedRoots",
                             "it decides, but %s is not below an allowed host root%s%s", reach->first, hint, root);
    else
        record_set_condition(rule, CONDITION_READY, CONDITION_TRUE, now, "Active", "it decides about what is asked for");
}

struct settling {
    const char *uid;
    const struct reach *reach;
    int64_t generation; // that `reach` is of
    bool is_news;       // out: approvals that wait may be decided now
    struct record *rule; // out
};

// Read again in the transaction: the count is written by decisions.
static int settle_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    struct settling *settling = arg;
    CLEANUP_RECORD struct record *rule = NULL;
    if (tx_get_uid(tx, KIND_APPROVAL_RULE, settling->uid, &rule, err) < 0)
        return -1;
    if (rule->meta.removed_at.ms)
        return 0;
    if (rule->meta.generation != settling->generation)
        return error_set(err, ERROR_CONFLICT, NULL, "the rule %s changed while it was looked at", rule->meta.name);
    struct wall_time now = tx_now(tx);
    bool is_expired = rule_is_expired(rule, now), is_exhausted = rule_is_exhausted(rule);
    bool is_old = rule->status.approval_rule.observed_generation == rule->meta.generation && record_is_true(rule, CONDITION_READY);
    set_or_drop(rule, CONDITION_EXPIRED, is_expired, now, "its time is over");
    set_or_drop(rule, CONDITION_EXHAUSTED, is_exhausted, now, "it has decided as many approvals as it may");
    set_ready(rule, settling->reach, is_expired, is_exhausted, now);
    settling->is_news = !is_old && record_is_true(rule, CONDITION_READY);
    if (tx_write_status(tx, rule, err) < 0)
        return -1;
    settling->rule = TAKE_PTR(rule);
    return 0;
}

static void enqueue_waiting(struct world *world)
{
    struct record_list approvals = {0};
    if (store_list(world->store, KIND_APPROVAL, &approvals, NULL, NULL) < 0)
        return; // the next resync looks again
    for (size_t i = 0; i < approvals.count; i++)
        if (approvals.items[i]->spec.approval.decision == APPROVAL_PENDING)
            manager_enqueue(world->manager, KIND_APPROVAL, approvals.items[i]->meta.uid);
    record_list_free(&approvals);
}

static enum reconcile_verdict wait_for_expiry(struct world *world, const struct record *rule, struct reconcile_outcome *outcome)
{
    struct wall_time now = clock_wall(world->clock);
    int64_t left_ms = rule->spec.approval_rule.expires_at.ms - now.ms;
    if (!rule->spec.approval_rule.expires_at.ms || record_is_true(rule, CONDITION_EXPIRED))
        return RECONCILE_DONE;
    outcome->after_ms = left_ms > LOOK_AGAIN_MS ? LOOK_AGAIN_MS : left_ms > 1 ? left_ms : 1;
    return RECONCILE_AFTER;
}

static enum reconcile_verdict reconcile(void *arg, const char *uid, struct reconcile_outcome *outcome, struct error *err)
{
    struct world *world = arg;
    CLEANUP_RECORD struct record *rule = NULL;
    struct reach reach = {0};
    if (world_get(world, KIND_APPROVAL_RULE, uid, &rule, err) < 0)
        return RECONCILE_FAILED;
    if (!rule || rule->meta.removed_at.ms)
        return RECONCILE_DONE;
    look_at_paths(world->config, rule, &reach);
    struct settling settling = {.uid = uid, .reach = &reach, .generation = rule->meta.generation};
    int r = store_transact(world->store, settle_in_tx, &settling, err);
    free(reach.resolved_root);
    CLEANUP_RECORD struct record *settled = settling.rule;
    if (r < 0)
        return RECONCILE_FAILED;
    if (settling.is_news)
        enqueue_waiting(world);
    return settled ? wait_for_expiry(world, settled, outcome) : RECONCILE_DONE;
}

int rule_check_room(struct store_tx *tx, struct error *err)
{
    int64_t count;
    if (tx_count_live(tx, KIND_APPROVAL_RULE, &count, err) < 0)
        return -1;
    return count < LIMIT_APPROVAL_RULES ? 0
                                        : error_set(err, ERROR_LIMIT, "delete those that are expired or exhausted: chat2shell get rule",
                                                    "there are %d approval rules already, the most at once", LIMIT_APPROVAL_RULES);
}

void approval_rule_register(struct world *world)
{
    manager_add(world->manager, &(struct reconciler){.name = "approvalrule", .kind = KIND_APPROVAL_RULE, .is_store_only = true, .reconcile = reconcile,
                                                    .arg = world});
}
