// Expiry: 24 hours without a tool call. The lane decides: it closes only if nothing is queued, running or newer.
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/fault.h"
#include "controller/log.h"
#include "reconcilers/bundle.h"
#include "reconcilers/sandbox.h"
#include <stdio.h>

#define EXPIRED_MESSAGE "the sandbox was removed after 24 hours without a tool call; create another one with sandbox_create"

static int delete_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    struct record *sandbox = arg;
    record_set_condition(sandbox, CONDITION_EXPIRED, CONDITION_TRUE, tx_now(tx), "Idle", "24 hours without a tool call");
    if (tx_write_status(tx, sandbox, err) < 0)
        return -1;
    return tx_delete(tx, &ACTOR_CONTROLLER, KIND_SANDBOX, sandbox->meta.uid, err);
}

static enum reconcile_verdict commit_expiry(struct world *world, struct record *sandbox, struct error *err)
{
    if (FAULT("sandbox.expire.commit") || store_transact(world->store, delete_in_tx, sandbox, err) < 0) {
        lane_reopen(world->lanes, sandbox->meta.uid); // the promise stands: it is not gone
        effects_clear(world->reconcilers->effects, EFFECT_BUNDLE, sandbox->meta.uid);
        return RECONCILE_FAILED;
    }
    store_event(world->store, sandbox, false, "Expired", "removed after 24 hours without a tool call");
    return RECONCILE_DONE;
}

static bool is_clone(struct world *world, const struct record *sandbox)
{
    CLEANUP_RECORD struct record *workspace = NULL;
    return world_get(world, KIND_WORKSPACE, sandbox->status.sandbox.workspace_uid, &workspace, NULL) == 0 && workspace &&
           workspace->spec.workspace.mode == WORKSPACE_CLONE;
}

static void on_bundled(void *arg, int result, const char *path, const struct error *err)
{
    (void)path;
    effect_end(arg, result, err, NULL, NULL);
}

// A private clone's branches are bundled under the data root first, where the sandbox still answers.
static enum reconcile_verdict save_clone(struct world *world, struct record *sandbox, struct error *err)
{
    struct effects *effects = world->reconcilers->effects;
    struct error why = ERROR_INIT;
    switch (effects_look(effects, EFFECT_BUNDLE, sandbox->meta.uid, NULL, &why)) {
    case EFFECT_RUNNING:
        return RECONCILE_DONE;
    case EFFECT_FAILED:
        store_event(world->store, sandbox, true, "BundleFailed", "the clone's branches could not be saved at expiry: %s", why.message);
        return commit_expiry(world, sandbox, err);
    case EFFECT_DONE:
        return commit_expiry(world, sandbox, err);
    case EFFECT_NONE:
        break;
    }
    struct effect *effect = effects_begin(effects, EFFECT_BUNDLE, KIND_SANDBOX, sandbox->meta.uid);
    if (effect)
        bundle_save(world, sandbox->meta.uid, sandbox->meta.name, on_bundled, effect);
    return RECONCILE_DONE;
}

enum reconcile_verdict sandbox_expire_if_idle(struct world *world, struct record *sandbox, struct reconcile_outcome *outcome, struct error *err)
{
    struct wall_time now = clock_wall(world->clock), idle_since = {now.ms - SANDBOX_IDLE_MS};
    struct wall_time last = store_activity(world->store, sandbox->meta.uid);
    if (!last.ms) { // a record without activity counts from its start
        store_touch_activity(world->store, sandbox->meta.uid, now);
        last = now;
    }
    if (last.ms > idle_since.ms || !lane_close_if_idle(world->lanes, sandbox->meta.uid, idle_since, EXPIRED_MESSAGE)) {
        int64_t left = last.ms + SANDBOX_IDLE_MS - now.ms;
        outcome->after_ms = left > 0 ? left : CLOCK_MAX_WAIT_MS;
        return RECONCILE_AFTER;
    }
    return is_clone(world, sandbox) ? save_clone(world, sandbox, err) : commit_expiry(world, sandbox, err);
}
