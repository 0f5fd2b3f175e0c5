// Host workspaces and approvals in a transaction: find the live one for a path, or make it.
#pragma once
#include "reconcilers/reconcilers.h"

// The live, not deleting host Workspace of this path and mode whose identity is the same; *ret = NULL if none.
int tx_find_host_workspace(struct store_tx *tx, const struct host_path *path, enum workspace_mode mode, struct record **ret, struct error *err);
// The same, made where there is none.
int tx_take_host_workspace(struct store_tx *tx, const struct store_actor *actor, const struct host_path *path, enum workspace_mode mode,
                           struct record **ret, struct error *err);
// A new one, with what meta_take_wanted takes of `wanted` (NULL allowed).
int tx_make_host_workspace(struct store_tx *tx, const struct store_actor *actor, const struct host_path *path, enum workspace_mode mode,
                           const struct record_meta *wanted, struct record **ret, struct error *err);
void meta_take_wanted(struct record_meta *to, const struct record_meta *wanted); // copies name, labels, annotations, finalizers, owners, managedFields
// ERROR_STATE where a sandbox holds a direct workspace that overlaps with this direct one: two live mounts of one tree would race each
// other's path checks.
int tx_check_overlap(struct store_tx *tx, const struct record *workspace, struct error *err);
// The pending Approval of path and mode with the same identity, or *ret = NULL. A pending one whose directory was replaced is
// deleted: its question no longer exists.
int tx_find_pending(struct store_tx *tx, const struct host_path *path, enum workspace_mode mode, struct record **ret, struct error *err);
// The Approval of the same caller, path, mode and identity that a rule rejected; *ret = NULL if none. Once the rejection has
// stood for REJECTION_STANDS_MS the very same record is asked for again, so that who repeats a request makes no more of them.
int tx_find_rejected(struct store_tx *tx, const struct store_actor *actor, const struct host_path *path, enum workspace_mode mode,
                     struct record **ret, struct error *err);
// What was decided before is out of the status: it is asked for again.
void approval_forget_decision(struct record *approval);
// Room for one more that an untrusted caller asks for? ERROR_LIMIT. The oldest rejected one goes where there are too many.
int tx_check_approvals(struct store_tx *tx, struct error *err);
// May this approval be approved now? All that the path policy asks, the identity that was shown, and for a direct mount
// that nothing in it forbids one. Blocks on the file system.
int approval_check(const struct config *config, const struct record *approval, struct error *err);
// A new Approval. exposes: borrowed, may be NULL.
int tx_make_approval(struct store_tx *tx, const struct store_actor *actor, const struct host_path *path, enum workspace_mode mode,
                     enum approval_decision decision, json_t *exposes, struct record **ret, struct error *err);
