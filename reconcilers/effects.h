// Effects: the driver and lane calls that reconcilers have started and not yet settled, one at most for each
// (effect kind, record). A reconcile begins an effect and returns; its end stores the result here and requeues the
// record, and the next reconcile reads it. Kinds have slots of their own, so hung creates never block removals. Who finds none
// waits in line: a slot that comes free is kept for who waits longest, and that record alone is requeued, so that thousands can
// wait. Its next reconcile takes the slot or, by effects_leave, gives it to the next in line; so does its end (effects_clear_all).
// In memory only: what must survive is committed in the record before the effect begins.
#pragma once
#include "controller/manager.h"

enum effect_kind { EFFECT_CREATE, EFFECT_REMOVE, EFFECT_SESSION, EFFECT_BUNDLE, EFFECT_PUBLISH, EFFECT_UNPUBLISH, EFFECT_PROBE, EFFECT_KIND_COUNT };
enum effect_state {
    EFFECT_NONE,    // never begun, or cleared
    EFFECT_RUNNING,
    EFFECT_DONE,
    EFFECT_FAILED,
};
struct effects;
struct effect; // one running effect: the callback argument of the driver call

struct effects *effects_new(struct manager *manager);
void effects_free(struct effects *effects);
// NULL when all slots of the kind are taken (the record is requeued when it is its turn) or when the effect exists already.
struct effect *effects_begin(struct effects *effects, enum effect_kind kind, enum kind record_kind, const char *uid);
// Around a reconcile of a record that begins effects: a slot that was kept for it before it entered, and that it did not take,
// is the next one's.
uint64_t effects_enter(struct effects *effects);
void effects_leave(struct effects *effects, const char *uid, uint64_t entered);
// Any thread, exactly once. payload (NULL allowed) is owned by the table from now on and freed with free_payload.
void effect_end(struct effect *effect, int result, const struct error *err, void *payload, void (*free_payload)(void *));
// Gives the slot back without having begun anything: as if effects_begin had not been called.
void effect_abandon(struct effect *effect);
// On DONE *ret_payload (NULL allowed) is borrowed until the effect is cleared; on FAILED *ret_err is filled.
enum effect_state effects_look(struct effects *effects, enum effect_kind kind, const char *uid, void **ret_payload, struct error *ret_err);
int effects_count_running(struct effects *effects);
// Forgets a settled effect so that it may begin again. A running one stays.
void effects_clear(struct effects *effects, enum effect_kind kind, const char *uid);
void effects_clear_all(struct effects *effects, const char *uid); // the record is gone
// Notes that the runtime or session of a record ended by itself (a sentence, a JSON text …) and requeues the record.
void effects_set_death(struct effects *effects, const char *uid, enum kind record_kind, const char *reason);
// The death noted for a runtime, or NULL. Owned by the caller.
char *effects_death(struct effects *effects, const char *uid);
