// A create that failed in a way that another attempt may help. The next attempt has another name, and is committed only once
// nothing of the last one is left: the record holds one name at a time, so no runtime is ever forgotten.
#include "controller/base/memory.h"
#include "controller/log.h"
#include "reconcilers/sandbox.h"

static void on_removed(void *arg, int result, const struct error *err)
{
    effect_end(arg, result, err, NULL, NULL);
}

static enum reconcile_verdict give_up(struct world *world, struct record *sandbox, const struct error *why, struct error *err)
{
    CLEANUP_FREE char *message = mem_format("%s%s%s", why->message, why->hint[0] ? "; to fix it: " : "", why->hint);
    return sandbox_fail(world, sandbox, "CreateFailed", message, err); // its next steps remove what may be left
}

static enum reconcile_verdict begin_removal(struct world *world, struct record *sandbox)
{
    struct effect *effect = effects_begin(world->reconcilers->effects, EFFECT_REMOVE, KIND_SANDBOX, sandbox->meta.uid);
    if (effect) // else: a freed slot requeues
        world->driver->ops->remove(world->driver, sandbox->status.sandbox.runtime_name, on_removed, effect);
    return RECONCILE_DONE;
}

static enum reconcile_verdict forget_attempt(struct world *world, struct record *sandbox, const struct error *why, bool *ret_is_free, struct error *err)
{
    long long attempt = (long long)sandbox->status.sandbox.attempt;
    record_set_condition(sandbox, CONDITION_RUNTIME_CREATED, CONDITION_FALSE, clock_wall(world->clock), "CreateFailed",
                         "attempt %lld of %d failed, another one follows: %s", attempt, SANDBOX_CREATE_ATTEMPTS, why->message);
    if (sandbox_write(world, sandbox, err) == RECONCILE_FAILED)
        return RECONCILE_FAILED;
    store_event(world->store, sandbox, true, "CreateFailed", "attempt %lld of %d failed, another one follows: %s", attempt, SANDBOX_CREATE_ATTEMPTS,
                why->message);
    log_warning("sandbox %s: attempt %lld of %d to make it failed, another one follows: %s", sandbox->meta.uid, attempt, SANDBOX_CREATE_ATTEMPTS,
                why->message);
    effects_clear(world->reconcilers->effects, EFFECT_REMOVE, sandbox->meta.uid);
    effects_clear(world->reconcilers->effects, EFFECT_CREATE, sandbox->meta.uid);
    anchors_forget(world, sandbox->meta.uid);
    *ret_is_free = true;
    return RECONCILE_DONE;
}

enum reconcile_verdict sandbox_settle_failed_create(struct world *world, struct record *sandbox, const struct error *why, bool *ret_is_free, struct error *err)
{
    *ret_is_free = false;
    if (!driver_create_may_help(why) || sandbox->status.sandbox.attempt >= SANDBOX_CREATE_ATTEMPTS)
        return give_up(world, sandbox, why, err);
    switch (effects_look(world->reconcilers->effects, EFFECT_REMOVE, sandbox->meta.uid, NULL, NULL)) {
    case EFFECT_RUNNING:
        return RECONCILE_DONE; // its end requeues
    case EFFECT_DONE:
        return forget_attempt(world, sandbox, why, ret_is_free, err);
    case EFFECT_FAILED:
        return give_up(world, sandbox, why, err);
    case EFFECT_NONE:
        break;
    }
    return begin_removal(world, sandbox);
}
