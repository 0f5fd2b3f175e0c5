// What `apply --prune` takes away: objects that an earlier apply made and that the manifests name no more.
//
// An object is this apply's if its field manager has applied it (an Apply entry in managedFields, and of nobody else), an operator
// made it (not an assistant's call), it fits --selector (or --all is given), and its kind is in the list. Sessions and Approvals,
// which callers make, are never pruned.
#pragma once
#include "cli/apply.h"
#include "controller/base/json.h"

// Is --prune given, with what it needs? ERROR_USAGE if it is and something is missing or is no kind that can be pruned; asks nobody.
int prune_check(const struct invocation *in, bool *ret_prunes, struct error *err);
// *ret: an array of objects, new.
int prune_find(const struct apply *apply, json_t **ret, struct error *err);

#define OPTION_PRUNE {.name = "prune", .doc = "delete what an earlier apply of the same field manager made and the manifests name no more; with -l or --all"}
#define OPTION_PRUNE_ALL {.name = "all", .doc = "with --prune: of all objects, whatever their labels"}
#define OPTION_PRUNE_ALLOWLIST                                                                                                              \
    {.name = "prune-allowlist", .value = "KIND", .doc = "with --prune: only of this kind, as workspaces or chat2shell.dev/v1/Workspace", \
     .is_repeatable = true}
#define OPTION_APPLY_SELECTOR {.name = "selector", .letter = 'l', .value = "SELECTOR", .doc = "only manifests (and with --prune objects) with these labels, like app=web"}
