// A caller asks for a sandbox's end. The lane closes at once, so no call can slip in behind the decision.
#include "controller/base/memory.h"
#include "reconcilers/world.h"
#include <string.h>

#define UNSAVED_DEADLINE_MS 2000

struct destroy {
    struct world *world;
    char *principal, *manager, *uid;
    json_t *unsaved;
    struct record *record;
    record_request_fn done;
    void *arg;
};

static void finish(struct destroy *destroy, int result, const struct error *err)
{
    destroy->done(destroy->arg, result, result == 0 ? TAKE_PTR(destroy->record) : NULL, result == 0 ? TAKE_PTR(destroy->unsaved) : NULL, err);
    record_free(destroy->record);
    json_decref(destroy->unsaved);
    free(destroy->principal);
    free(destroy->manager);
    free(destroy->uid);
    free(destroy);
}

static void on_committed(void *arg, int result, const struct error *err)
{
    struct destroy *destroy = arg;
    if (result < 0)
        lane_reopen(destroy->world->lanes, destroy->uid); // it still exists
    finish(destroy, result, err);
}

static int destroy_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    struct destroy *destroy = arg;
    struct store_actor actor = {destroy->principal, destroy->manager};
    CLEANUP_RECORD struct record *sandbox = NULL;
    if (tx_get_uid(tx, KIND_SANDBOX, destroy->uid, &sandbox, err) < 0)
        return error_hint(err, "sandbox_list shows the ids");
    if (!sandbox->meta.removed_at.ms && !sandbox->meta.deletion_at.ms &&
        (tx_delete(tx, &actor, KIND_SANDBOX, destroy->uid, err) < 0))
        return -1;
    return tx_get_uid(tx, KIND_SANDBOX, destroy->uid, &destroy->record, err);
}

static void commit(struct destroy *destroy)
{
    lane_close(destroy->world->lanes, destroy->uid, "the sandbox was destroyed; create another one with sandbox_create");
    store_submit(destroy->world->store, destroy_in_tx, on_committed, destroy);
}

static void on_unsaved(void *arg, int result, json_t *answer, const struct error *err)
{
    (void)err; // a sandbox that does not answer is destroyed all the same
    struct destroy *destroy = arg;
    if (result == 0)
        destroy->unsaved = json_deep_copy(answer); // it goes to another thread, this one keeps its own
    commit(destroy);
}

static bool is_answering_clone(struct world *world, const char *uid)
{
    CLEANUP_RECORD struct record *sandbox = NULL, *workspace = NULL;
    if (store_get_uid(world->store, KIND_SANDBOX, uid, &sandbox, NULL) < 0 || sandbox->meta.deletion_at.ms || !sandbox->status.sandbox.workspace_uid)
        return false;
    if (store_get_uid(world->store, KIND_WORKSPACE, sandbox->status.sandbox.workspace_uid, &workspace, NULL) < 0)
        return false;
    return workspace->spec.workspace.mode == WORKSPACE_CLONE && lane_is_open(world->lanes, uid);
}

void request_destroy(struct world *world, const char *principal, const char *sandbox_uid, record_request_fn done, void *arg)
{
    struct destroy *destroy = mem_alloc(sizeof(*destroy));
    *destroy = (struct destroy){.world = world, .principal = mem_strdup(principal), .manager = mem_strdup("chat2shell"),
                                .uid = mem_strdup(sandbox_uid), .done = done, .arg = arg};
    if (is_answering_clone(world, sandbox_uid))
        lane_request_closed(world->lanes, sandbox_uid, "chat2shell/git_unsaved", json_object(), UNSAVED_DEADLINE_MS, on_unsaved, destroy);
    else
        commit(destroy);
}
