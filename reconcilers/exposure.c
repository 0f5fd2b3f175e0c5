// The Exposure reconciler: one TCP port of a sandbox on an automatic port of every host IPv4 interface.
#include "controller/base/memory.h"
#include "controller/fault.h"
#include "reconcilers/exposure.h"
#include <string.h>

static void on_published(void *arg, int result, int host_port, const struct error *err)
{
    int64_t *port = NULL;
    if (result == 0) {
        port = mem_alloc(sizeof(*port));
        *port = host_port;
    }
    effect_end(arg, result, err, port, free);
}

static void on_done(void *arg, int result, const struct error *err)
{
    effect_end(arg, result, err, NULL, NULL);
}

static enum reconcile_verdict write_status(struct world *world, struct record *exposure, struct error *err)
{
    exposure_settle_ready(exposure, clock_wall(world->clock));
    return store_write_status(world->store, exposure, err) < 0 ? RECONCILE_FAILED : RECONCILE_DONE;
}

static enum reconcile_verdict set_unpublished(struct world *world, struct record *exposure, const char *reason, const char *message, struct error *err)
{
    exposure->status.exposure.host_port = 0;
    mem_replace(&exposure->status.exposure.host_address, NULL);
    record_set_condition(exposure, CONDITION_PUBLISHED, CONDITION_FALSE, clock_wall(world->clock), reason, "%s", message);
    record_drop_condition(exposure, CONDITION_REACHABLE);
    return write_status(world, exposure, err);
}

static enum reconcile_verdict note_published(struct world *world, struct record *exposure, int64_t host_port, struct error *err)
{
    exposure->status.exposure.host_port = host_port;
    mem_replace(&exposure->status.exposure.host_address, "0.0.0.0");
    record_set_condition(exposure, CONDITION_PUBLISHED, CONDITION_TRUE, clock_wall(world->clock), "Published",
                         "port %lld of the sandbox is on host port %lld", (long long)exposure->spec.exposure.port, (long long)host_port);
    return write_status(world, exposure, err);
}

static enum reconcile_verdict step_publish(struct world *world, struct record *exposure, const struct record *sandbox, struct error *err)
{
    struct effects *effects = world->reconcilers->effects;
    struct error why = ERROR_INIT;
    void *port = NULL;
    switch (effects_look(effects, EFFECT_PUBLISH, exposure->meta.uid, &port, &why)) {
    case EFFECT_RUNNING:
        return RECONCILE_DONE;
    case EFFECT_DONE:
        return note_published(world, exposure, *(int64_t *)port, err);
    case EFFECT_FAILED:
        effects_clear(effects, EFFECT_PUBLISH, exposure->meta.uid);
        if (set_unpublished(world, exposure, "PublishFailed", why.message, err) == RECONCILE_FAILED)
            return RECONCILE_FAILED;
        store_event(world->store, exposure, true, "PublishFailed", "%s", why.message);
        error_copy(err, &why);
        return RECONCILE_FAILED; // backoff, then again
    case EFFECT_NONE:
        break;
    }
    struct effect *effect = effects_begin(effects, EFFECT_PUBLISH, KIND_EXPOSURE, exposure->meta.uid);
    if (effect)
        world->driver->ops->publish(world->driver, sandbox->status.sandbox.runtime_name, (int)exposure->spec.exposure.port, on_published, effect);
    return RECONCILE_DONE;
}

// Reachable says whether something listened at the last look; looks happen after publishing and at every resync.
static enum reconcile_verdict step_probe(struct world *world, struct record *exposure, const struct record *sandbox, struct error *err)
{
    struct effects *effects = world->reconcilers->effects;
    struct error why = ERROR_INIT;
    struct wall_time now = clock_wall(world->clock);
    enum effect_state state = effects_look(effects, EFFECT_PROBE, exposure->meta.uid, NULL, &why);
    if (state == EFFECT_RUNNING)
        return RECONCILE_DONE;
    if (state == EFFECT_NONE) {
        struct effect *effect = effects_begin(effects, EFFECT_PROBE, KIND_EXPOSURE, exposure->meta.uid);
        if (effect)
            world->driver->ops->probe_port(world->driver, sandbox->status.sandbox.runtime_name, (int)exposure->spec.exposure.port, on_done, effect);
        return RECONCILE_DONE;
    }
    effects_clear(effects, EFFECT_PROBE, exposure->meta.uid);
    if (state == EFFECT_DONE)
        record_set_condition(exposure, CONDITION_REACHABLE, CONDITION_TRUE, now, "Answered", "something listens on the port");
    else
        record_set_condition(exposure, CONDITION_REACHABLE, CONDITION_FALSE, now, "NothingListens",
                             "nothing listens on port %lld inside yet; start the server on 0.0.0.0", (long long)exposure->spec.exposure.port);
    return write_status(world, exposure, err);
}

static int finalize(struct store_tx *tx, void *arg, struct error *err)
{
    struct record *exposure = arg;
    text_list_remove(&exposure->meta.finalizers, FINALIZER_MAPPING);
    return tx_write_meta(tx, &ACTOR_CONTROLLER, exposure, err);
}

// A dying sandbox takes its mappings along; a live one has to give this one back first.
static enum reconcile_verdict step_deleting(struct world *world, struct record *exposure, const struct record *sandbox, struct error *err)
{
    struct effects *effects = world->reconcilers->effects;
    bool is_live = sandbox && !sandbox->meta.removed_at.ms && !sandbox->meta.deletion_at.ms && !record_is_true(sandbox, CONDITION_FAILED);
    struct error why = ERROR_INIT;
    enum effect_state state = effects_look(effects, EFFECT_UNPUBLISH, exposure->meta.uid, NULL, &why);
    if (effects_look(effects, EFFECT_PUBLISH, exposure->meta.uid, NULL, NULL) == EFFECT_RUNNING)
        return RECONCILE_DONE; // settle that first: its end requeues
    if (is_live && state == EFFECT_NONE && sandbox->status.sandbox.runtime_name) {
        struct effect *effect = effects_begin(effects, EFFECT_UNPUBLISH, KIND_EXPOSURE, exposure->meta.uid);
        if (effect)
            world->driver->ops->unpublish(world->driver, sandbox->status.sandbox.runtime_name, (int)exposure->spec.exposure.port, on_done, effect);
        return RECONCILE_DONE;
    }
    if (state == EFFECT_RUNNING)
        return RECONCILE_DONE;
    if (is_live && state == EFFECT_FAILED) {
        effects_clear(effects, EFFECT_UNPUBLISH, exposure->meta.uid);
        error_copy(err, &why);
        return RECONCILE_FAILED;
    }
    return store_transact(world->store, finalize, exposure, err) < 0 ? RECONCILE_FAILED : RECONCILE_DONE;
}

static int delete_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    return tx_delete(tx, &ACTOR_CONTROLLER, KIND_EXPOSURE, arg, err);
}

static enum reconcile_verdict step_live(struct world *world, struct record *exposure, const struct record *sandbox, struct error *err)
{
    if (sandbox->meta.removed_at.ms || sandbox->meta.deletion_at.ms) // it goes away with its sandbox
        return store_transact(world->store, delete_in_tx, exposure->meta.uid, err) < 0 ? RECONCILE_FAILED : RECONCILE_DONE;
    if (record_is_true(sandbox, CONDITION_FAILED))
        return set_unpublished(world, exposure, "SandboxFailed", "its sandbox failed", err);
    if (!record_is_true(sandbox, CONDITION_READY))
        return set_unpublished(world, exposure, "SandboxNotReady", "its sandbox is not running yet", err);
    return record_is_true(exposure, CONDITION_PUBLISHED) ? step_probe(world, exposure, sandbox, err) : step_publish(world, exposure, sandbox, err);
}

static enum reconcile_verdict reconcile_one(struct world *world, const char *uid, struct reconcile_outcome *outcome, struct error *err)
{
    (void)outcome;
    CLEANUP_RECORD struct record *exposure = NULL, *sandbox = NULL;
    if (world_get(world, KIND_EXPOSURE, uid, &exposure, err) < 0)
        return RECONCILE_FAILED;
    if (!exposure || exposure->meta.removed_at.ms) {
        effects_clear_all(world->reconcilers->effects, uid);
        return RECONCILE_DONE;
    }
    if (!exposure->status.exposure.sandbox_uid && !exposure->meta.deletion_at.ms &&
        exposure_bind(world, exposure, err) == RECONCILE_FAILED)
        return RECONCILE_FAILED;
    const char *sandbox_uid = exposure->status.exposure.sandbox_uid;
    if (sandbox_uid && world_get(world, KIND_SANDBOX, sandbox_uid, &sandbox, err) < 0)
        return RECONCILE_FAILED;
    if (exposure->meta.deletion_at.ms)
        return step_deleting(world, exposure, sandbox, err);
    if (!sandbox)
        return RECONCILE_DONE; // what it waits for requeues it
    return step_live(world, exposure, sandbox, err);
}

static enum reconcile_verdict reconcile(void *arg, const char *uid, struct reconcile_outcome *outcome, struct error *err)
{
    return world_take_turn(arg, reconcile_one, uid, outcome, err);
}

static void map_change(void *arg, struct manager *manager, const struct store_change *change)
{
    struct world *world = arg;
    if (change->kind == KIND_EXPOSURE && change->type == STORE_DELETED)
        world_enqueue_bound(world, manager, KIND_EXPOSURE, NULL); // it may have been in the way of those that wait
    if (change->kind != KIND_SANDBOX)
        return;
    world_enqueue_bound(world, manager, KIND_EXPOSURE, change->uid);
    world_enqueue_bound(world, manager, KIND_EXPOSURE, NULL); // it may be the one they wait for
}

void exposure_register(struct world *world)
{
    manager_add(world->manager, &(struct reconciler){.name = "exposure", .kind = KIND_EXPOSURE, .reconcile = reconcile,
                                                    .map_change = map_change, .arg = world});
}
