// Server-side apply: what an applier's configuration makes of an object, and who owns what of it afterwards.
#pragma once
#include "api/operator/internal.h"

#define APPLIERS_MAX 100              // of one object
#define APPLY_CONFLICTS_MAX 100       // named in one answer
#define MANAGER_BEFORE_FIRST "before-first-apply"

struct applied {
    json_t *object; // the merged object, for body_read
    json_t *set;    // what the applier owns from now on
    char *notes;    // kubectl's notes of client-side applies as they must be now; NULL: as they are
};
void applied_clear(struct applied *applied);
// A new object. `set` of the configuration alone.
json_t *apply_set_of(enum kind kind, const json_t *body);
// The configuration (call->body) merged into `current`: fields that the manager applied before and now leaves out go, unless
// somebody else owns them. A field whose value another manager owns and that would change is a conflict (ERROR_CONFLICT; one
// cause each in `causes`) unless call says force.
int apply_merge(const struct call *call, const struct record *current, struct applied *ret, json_t *causes, struct error *err);
// managedFields of what came out of it. before: `current`.
void apply_own(struct record *record, const struct record *before, const struct applied *applied, const struct call *call,
               struct wall_time now);
// fieldManager, force, and what a configuration may not have.
int apply_check_options(const struct call *call, json_t *causes, struct error *err);
bool call_is_forced(const struct call *call);
// Somebody else made or removed the object meanwhile: an apply looks again (on the loop thread) and does what fits now. False: this
// call is none, or has done so often enough. True: the caller lets go of the call. Any thread.
bool apply_again(struct call *call);
