// Deleting objects, as `delete` and `apply --prune` do: what refers to others goes first, and is waited for before what it refers to.
#pragma once
#include "cli/command.h"
#include "controller/base/json.h"

enum removal_trial { REMOVAL_REAL, REMOVAL_TRIED_BY_SERVER, REMOVAL_TRIED_HERE };
struct removal {
    struct invocation *in;
    const char *word;        // "deleted", "pruned"
    const char *propagation; // a propagationPolicy, or NULL
    enum removal_trial trial;
    bool waits; // without it only for sandboxes that hold a workspace that is deleted, too
    int timeout_s;
};
// objects: an array, of the kinds and uids that they have. What a sandbox's end loses is asked for first (loss_confirm), before
// anything is deleted (tried by the daemon: said). Sessions go with a sandbox that is among them, and are not mentioned. Each deletion
// is printed; each failure is told, and does not keep the others from being deleted.
int removal_run(const struct removal *removal, const json_t *objects, struct error *err);
// --dry-run of commands that delete.
enum removal_trial removal_trial_of(const struct invocation *in);
const char *removal_mark(enum removal_trial trial); // "", " (server dry run)", " (dry run)"

extern const char *const dry_run_words[];
#define OPTION_DRY_RUN                                                                                                                  \
    {.name = "dry-run", .value = "server|client", .doc = "server: the daemon checks everything and changes nothing; client: it is not even sent", \
     .choices = dry_run_words}
