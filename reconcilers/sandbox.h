// The Sandbox reconciler's parts: sandbox.c decides the step, sandbox_bind.c waits for a workspace, sandbox_runtime.c speaks to the driver,
// sandbox_retry.c decides about another attempt, sandbox_end.c removes, sandbox_expiry.c decides about idleness.
#pragma once
#include "controller/base/cleanup.h"
#include "reconcilers/world.h"

struct sandbox_facts { // an owned copy of struct driver_facts
    struct record *holder; // a Sandbox record whose status carries isolation, capabilities, limits, template
    struct text_list missing_limits, warnings, broken_rules;
};

enum reconcile_verdict sandbox_write(struct world *world, struct record *sandbox, struct error *err);
enum reconcile_verdict sandbox_fail(struct world *world, struct record *sandbox, const char *reason, const char *message, struct error *err);

// sandbox_bind.c
// What a sandbox says whose spec names a workspace that is not there yet.
void sandbox_set_waiting(struct record *sandbox, struct wall_time now);
// Binds it to the workspace that its spec names, in one transaction, or writes down what it waits for: status.workspaceUid says which.
enum reconcile_verdict sandbox_bind(struct world *world, struct record *sandbox, struct error *err);

// sandbox_runtime.c
// Calls the driver; the effect's end requeues the sandbox.
void sandbox_start_create(struct world *world, const struct record *sandbox, const struct record *workspace, struct effect *effect);
void sandbox_take_facts(struct record *sandbox, const struct sandbox_facts *facts, struct wall_time now);
int sandbox_create_session(struct store_tx *tx, void *sandbox, struct error *err); // writes the status and makes the Session record
int sandbox_find_session(struct world *world, const char *sandbox_uid, struct record **ret, struct error *err); // *ret NULL if none

// sandbox_retry.c
#define SANDBOX_CREATE_ATTEMPTS 3
// One step after a create that failed: *ret_is_free once nothing of it is left and another attempt may begin.
enum reconcile_verdict sandbox_settle_failed_create(struct world *world, struct record *sandbox, const struct error *why, bool *ret_is_free, struct error *err);

// sandbox_end.c
// One step of removing the runtime: *ret_is_gone once it is confirmed (or never was).
enum reconcile_verdict sandbox_remove_runtime(struct world *world, struct record *sandbox, bool *ret_is_gone, struct error *err);
int sandbox_delete_dependents(struct store_tx *tx, void *sandbox, struct error *err); // exposures and session
int sandbox_finalize(struct store_tx *tx, void *sandbox, struct error *err);          // drops the finalizer if nothing depends on it
int sandbox_recover(void *world, struct error *err);                                  // restart policy

// sandbox_expiry.c
enum reconcile_verdict sandbox_expire_if_idle(struct world *world, struct record *sandbox, struct reconcile_outcome *outcome, struct error *err);
