// What `apply` and `diff` do with manifests: ask the daemon what each would become, then (apply) make it so. Many requests are
// under way at once; what others refer to is made first, whatever the order of the input.
//
//     CLEANUP(apply_clear) struct apply apply = {0};
//     if (apply_prepare(&apply, in, &manifests, err) < 0 || apply_try(&apply, false, err) < 0 || apply_do(&apply, err) < 0) return -1;
#pragma once
#include "cli/manifests.h"

#define APPLY_MANAGER "chat2shell"

enum apply_result { APPLY_CREATED, APPLY_CONFIGURED, APPLY_UNCHANGED, APPLY_FAILED };
struct apply_item {
    const struct manifest_item *from;
    json_t *wanted; // what is sent: the manifest without what the server owns
    json_t *before; // the object as it is; NULL: it is not there
    json_t *after;  // as it would be, then as it became
    enum apply_result result;
    bool is_settled; // the daemon would not change anything
    bool is_made;    // by apply_do
};
struct apply {
    struct invocation *in;
    const struct rest *rest;
    const char *manager;
    bool is_forced;
    struct apply_item *items; // in the order of the input
    size_t count;
};
// manifests must outlive apply. --field-manager and --force-conflicts are read.
int apply_prepare(struct apply *ret, struct invocation *in, const struct manifests *manifests, struct error *err);
void apply_clear(struct apply *apply);
// Fills in before, after and result, by a dry run of all that the daemon could refuse or change (asks_all: of everything). What
// it refuses is told, and then all fails: nothing was changed.
int apply_try(struct apply *apply, bool asks_all, struct error *err);
// Only `before`, and what can be told without asking (--dry-run=client).
int apply_look(struct apply *apply, struct error *err);
// Makes it so. What is refused now, by what changed meanwhile, is told and does not keep the others from being made.
int apply_do(struct apply *apply, struct error *err);

// apply_settled.c: is the object that is there as the manifest says? Would the daemon change nothing, owners included? Could it refuse nothing?
bool apply_changes_nothing(const struct apply_item *item); // `before` must be there
bool apply_is_settled(const struct apply *apply, const struct apply_item *item);
bool apply_is_safe(const struct apply_item *item);
// The causes of a conflict with what the field is on both sides. New reference.
json_t *apply_word_conflicts(const struct apply_item *item, const json_t *causes);
bool apply_is_conflict(const json_t *causes);

#define OPTION_FIELD_MANAGER {.name = "field-manager", .value = "NAME", .doc = "who is noted for the fields; by default chat2shell, behind commands like label chat2shell-label"}
#define OPTION_FORCE_CONFLICTS {.name = "force-conflicts", .doc = "take fields over that other managers set differently"}
