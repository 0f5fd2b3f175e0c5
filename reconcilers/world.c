// The folder's memory: anchors, registration, small reads.
#include "reconcilers/world.h"
#include "controller/base/memory.h"
#include <stdlib.h>
#include <string.h>

struct anchor *anchor_new(struct world *world, const struct record *sandbox, struct effect *effect)
{
    struct reconcilers *mine = world->reconcilers;
    struct anchor *anchor = mem_alloc(sizeof(*anchor));
    pthread_mutex_lock(&mine->lock);
    *anchor = (struct anchor){mine->anchors, world, mem_strdup(sandbox->meta.uid), mem_strdup_or_null(sandbox->status.sandbox.workspace_uid),
                              effect};
    mine->anchors = anchor;
    pthread_mutex_unlock(&mine->lock);
    return anchor;
}

static void anchor_free(struct anchor *anchor)
{
    free(anchor->sandbox_uid);
    free(anchor->workspace_uid);
    free(anchor);
}

void anchors_forget(struct world *world, const char *sandbox_uid)
{
    struct reconcilers *mine = world->reconcilers;
    pthread_mutex_lock(&mine->lock);
    for (struct anchor **at = &mine->anchors; *at;) {
        struct anchor *anchor = *at;
        if (sandbox_uid && (strcmp(anchor->sandbox_uid, sandbox_uid) != 0 || anchor->effect)) {
            at = &anchor->next;
            continue;
        }
        *at = anchor->next;
        anchor_free(anchor);
    }
    pthread_mutex_unlock(&mine->lock);
}

int effects_running(const struct world *world)
{
    return effects_count_running(world->reconcilers->effects);
}

int world_get(struct world *world, enum kind kind, const char *uid, struct record **ret, struct error *err)
{
    struct error why = ERROR_INIT;
    *ret = NULL;
    if (store_get_uid(world->store, kind, uid, ret, &why) == 0 || why.code == ERROR_NOT_FOUND)
        return 0;
    return error_copy(err, &why);
}

void world_enqueue_bound(struct world *world, struct manager *manager, enum kind kind, const char *to_uid)
{
    struct record_list bound = {0};
    if (store_list_bound(world->store, kind, to_uid, &bound, NULL) < 0)
        return; // the minute's resync comes
    for (size_t i = 0; i < bound.count; i++)
        manager_enqueue(manager, kind, bound.items[i]->meta.uid);
    record_list_free(&bound);
}

int tx_find_holder(struct store_tx *tx, const char *workspace_uid, struct record **ret, struct error *err)
{
    struct record_list bound = {0}; // at most one: an index of the store says so
    if (tx_list_bound(tx, KIND_SANDBOX, workspace_uid, &bound, err) < 0)
        return -1;
    *ret = bound.count ? TAKE_PTR(bound.items[0]) : NULL;
    record_list_free(&bound);
    return 0;
}

enum reconcile_verdict world_take_turn(struct world *world, world_step_fn step, const char *uid, struct reconcile_outcome *outcome, struct error *err)
{
    struct effects *effects = world->reconcilers->effects;
    uint64_t entered = effects_enter(effects);
    enum reconcile_verdict verdict = step(world, uid, outcome, err);
    effects_leave(effects, uid, entered);
    return verdict;
}

int reconcilers_add_all(struct world *world, struct error *err)
{
    struct reconcilers *mine = mem_alloc(sizeof(*mine));
    mine->effects = effects_new(world->manager);
    pthread_mutex_init(&mine->lock, NULL);
    world->reconcilers = mine;
    if (request_worker_start("requests", &mine->worker, err) < 0 || request_worker_start("looks", &mine->looker, err) < 0)
        return -1;
    workspace_register(world);
    approval_register(world);
    sandbox_register(world);
    session_register(world);
    exposure_register(world);
    approval_rule_register(world);
    return 0;
}

void reconcilers_stop_workers(struct world *world)
{
    if (!world->reconcilers)
        return;
    request_worker_stop(TAKE_PTR(world->reconcilers->looker));
    request_worker_stop(TAKE_PTR(world->reconcilers->worker));
}

void reconcilers_free(struct world *world)
{
    struct reconcilers *mine = world->reconcilers;
    if (!mine)
        return;
    reconcilers_stop_workers(world);
    for (struct anchor *at = mine->anchors; at; at = at->next)
        at->effect = NULL; // owned by the table
    anchors_forget(world, NULL);
    effects_free(mine->effects);
    pthread_mutex_destroy(&mine->lock);
    free(mine);
    world->reconcilers = NULL;
}
