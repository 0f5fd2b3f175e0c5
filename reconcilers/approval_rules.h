// What the operator's ApprovalRules say about an approval that waits. Asked by the approval reconciler only: no caller's
// request comes here. A rule decides nothing that the operator could not: an approval passes the same checks first.
#pragma once
#include "reconcilers/world.h"

// Has it time and decisions left? By its spec and count alone; what its conditions say may be older.
bool rule_is_active(const struct record *rule, struct wall_time now);
bool rule_is_expired(const struct record *rule, struct wall_time now);
bool rule_is_exhausted(const struct record *rule);
// The one that decides, borrowed from the list; NULL: none does. Among several, one that rejects before those that approve,
// then the first by name.
const struct record *rules_choose(const struct record_list *rules, const struct record *approval, struct wall_time now);

struct rules_verdict {
    bool is_decided;
    char *rule;         // the name of the rule that decided, or would if `holdup` was not
    struct error holdup; // code 0: nothing holds up
};
void rules_verdict_clear(struct rules_verdict *verdict);
// Decides a pending approval if a rule does: decision and count in one transaction, then an event on both. ERROR_CONFLICT:
// something changed meanwhile, begin again. May block on the approval's file system.
int rules_decide(struct world *world, const struct record *approval, struct rules_verdict *ret, struct error *err);
