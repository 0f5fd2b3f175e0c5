#include "reconcilers/approval_rules.h"
#include "controller/base/memory.h"
#include "controller/base/path_glob.h"
#include "reconcilers/host_workspace.h"
#include <string.h>

#define ROOM_IN_RULE_NAME 63

// ---- which rule ---------------------------------------------------------------------------------------------------------
bool rule_is_expired(const struct record *rule, struct wall_time now)
{
    struct wall_time end = rule->spec.approval_rule.expires_at;
    return end.ms && now.ms >= end.ms;
}

bool rule_is_exhausted(const struct record *rule)
{
    int64_t max = rule->spec.approval_rule.max_count;
    return max && rule->status.approval_rule.used_count >= max;
}

bool rule_is_active(const struct record *rule, struct wall_time now)
{
    return !rule_is_expired(rule, now) && !rule_is_exhausted(rule) && !rule->meta.deletion_at.ms && !rule->meta.removed_at.ms;
}

static bool is_named(const char *wanted, const char *principal)
{
    size_t len = strlen(wanted);
    bool is_beginning = len && wanted[len - 1] == '*';
    return is_beginning ? strncmp(wanted, principal, len - 1) == 0 : strcmp(wanted, principal) == 0;
}

static bool is_for(const struct approval_rule_spec *rule, const char *principal)
{
    bool is_for_it = !rule->requesters.count;
    for (size_t i = 0; i < rule->requesters.count && !is_for_it; i++)
        is_for_it = is_named(rule->requesters.items[i], principal);
    return is_for_it;
}

static bool holds_path(const struct approval_rule_spec *rule, const char *path)
{
    bool is_held = false;
    for (size_t i = 0; i < rule->paths.count && !is_held; i++)
        is_held = path_glob_matches(rule->paths.items[i], path);
    return is_held;
}

static bool is_about(const struct record *rule, const struct record *approval)
{
    const struct approval_rule_spec *spec = &rule->spec.approval_rule;
    const struct approval_spec *asked = &approval->spec.approval;
    return spec->decision != APPROVAL_PENDING && text_list_has(&spec->modes, workspace_mode_word(asked->mode)) && is_for(spec, asked->requester ? asked->requester : "") &&
           holds_path(spec, asked->path);
}

static bool goes_before(const struct record *a, const struct record *b)
{
    bool rejects = a->spec.approval_rule.decision == APPROVAL_REJECTED, other_rejects = b->spec.approval_rule.decision == APPROVAL_REJECTED;
    return rejects != other_rejects ? rejects : strcmp(a->meta.name, b->meta.name) < 0;
}

const struct record *rules_choose(const struct record_list *rules, const struct record *approval, struct wall_time now)
{
    const struct record *chosen = NULL;
    for (size_t i = 0; i < rules->count; i++) {
        const struct record *rule = rules->items[i];
        if ((!chosen || goes_before(rule, chosen)) && rule_is_active(rule, now) && is_about(rule, approval))
            chosen = rule;
    }
    return chosen;
}

// ---- deciding -----------------------------------------------------------------------------------------------------------
struct deciding {
    const struct record *seen; // the approval as it was looked at
    bool is_checked;           // it may be approved
    struct record *rule;       // out: as it is after the count; NULL: none decides
};

static int write_decision(struct store_tx *tx, struct record *approval, const struct record *rule, struct error *err)
{
    char principal[sizeof(PRINCIPAL_RULE) + ROOM_IN_RULE_NAME];
    snprintf(principal, sizeof(principal), PRINCIPAL_RULE "%s", rule->meta.name);
    const struct store_actor actor = {principal, ACTOR_CONTROLLER.manager};
    struct approval_spec *spec = &approval->spec.approval;
    spec->decision = rule->spec.approval_rule.decision;
    spec->shown_resource_version = approval->meta.resource_version;
    mem_replace(&spec->reason, rule->spec.approval_rule.reason);
    if (tx_write_spec(tx, &actor, approval, err) < 0)
        return -1;
    text_map_set(&approval->meta.annotations, ANNOTATION_DECIDED_BY, principal);
    return tx_write_meta(tx, &actor, approval, err);
}

static int count_use(struct store_tx *tx, const struct record *chosen, struct record **ret, struct error *err)
{
    CLEANUP_RECORD struct record *rule = record_copy(chosen);
    rule->status.approval_rule.used_count++;
    rule->status.approval_rule.last_used_at = tx_now(tx);
    if (tx_write_status(tx, rule, err) < 0)
        return -1;
    *ret = TAKE_PTR(rule);
    return 0;
}

// Rules and approval are read again here: what was looked at before may have changed, and of many that decide at once none may
// overdraw a rule.
static int decide_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    struct deciding *deciding = arg;
    CLEANUP_RECORD struct record *approval = NULL;
    struct record_list rules = {0};
    if (tx_get_uid(tx, KIND_APPROVAL, deciding->seen->meta.uid, &approval, err) < 0)
        return -1;
    if (approval->meta.resource_version != deciding->seen->meta.resource_version)
        return error_set(err, ERROR_CONFLICT, NULL, "the approval %s changed while rules were looked at", approval->meta.name);
    if (tx_list(tx, KIND_APPROVAL_RULE, &rules, err) < 0)
        return -1;
    const struct record *chosen = rules_choose(&rules, approval, tx_now(tx));
    int r = 0;
    if (chosen && chosen->spec.approval_rule.decision == APPROVAL_APPROVED && !deciding->is_checked)
        r = error_set(err, ERROR_CONFLICT, NULL, "the rules changed while they were looked at");
    else if (chosen && (write_decision(tx, approval, chosen, err) < 0 || count_use(tx, chosen, &deciding->rule, err) < 0))
        r = -1;
    record_list_free(&rules);
    return r;
}

static void tell(struct world *world, const struct record *approval, const struct record *rule)
{
    const struct approval_spec *asked = &approval->spec.approval;
    bool is_approved = rule->spec.approval_rule.decision == APPROVAL_APPROVED;
    const char *word = is_approved ? "approved" : "rejected", *mode = workspace_mode_word(asked->mode);
    store_event(world->store, approval, false, is_approved ? "ApprovedByRule" : "RejectedByRule", "rule/%s %s %s, mode %s", rule->meta.name, word,
                asked->path, mode);
    store_event(world->store, rule, false, is_approved ? "Approved" : "Rejected", "%s %s, mode %s, for %s: approval/%s", word, asked->path, mode,
                asked->requester ? asked->requester : "nobody", approval->meta.name);
}

// *ret: a copy of the rule that decides; NULL: none does.
static int choose(struct world *world, const struct record *approval, struct record **ret, struct error *err)
{
    struct record_list rules = {0};
    if (store_list(world->store, KIND_APPROVAL_RULE, &rules, NULL, err) < 0)
        return -1;
    const struct record *chosen = rules_choose(&rules, approval, clock_wall(world->clock));
    *ret = chosen ? record_copy(chosen) : NULL;
    record_list_free(&rules);
    return 0;
}

int rules_decide(struct world *world, const struct record *approval, struct rules_verdict *ret, struct error *err)
{
    CLEANUP_RECORD struct record *chosen = NULL;
    if (choose(world, approval, &chosen, err) < 0)
        return -1;
    if (!chosen)
        return 0;
    bool approves = chosen->spec.approval_rule.decision == APPROVAL_APPROVED;
    mem_replace(&ret->rule, chosen->meta.name);
    struct deciding deciding = {.seen = approval, .is_checked = approves};
    if (approves && approval_check(world->config, approval, &ret->holdup) < 0)
        return 0;
    if (store_transact(world->store, decide_in_tx, &deciding, err) < 0)
        return -1;
    CLEANUP_RECORD struct record *rule = deciding.rule;
    ret->is_decided = rule != NULL;
    if (!rule)
        return 0;
    mem_replace(&ret->rule, rule->meta.name);
    tell(world, approval, rule);
    return 0;
}

void rules_verdict_clear(struct rules_verdict *verdict)
{
    free(verdict->rule);
    *verdict = (struct rules_verdict){0};
}
