// An approval's decision by PUT or PATCH. Approving is answered once the workspace that it makes is named in
// its status.
#include "api/operator/update.h"
#include "controller/base/memory.h"
#include <string.h>

#define SETTLE_MS 30000 // then the answer comes without the workspace

static void decided(void *arg)
{
    struct update *update = arg;
    if (update->result < 0) {
        update_fail(update, &update->error);
        return;
    }
    update->is_decided = true;
    if (update->call->is_dry_run) { // what was asked would be done: the whole body tells what comes out
        record_free(update->record);
        update->record = NULL;
    }
    update_run(update); // labels and annotations of the same body
}

static void on_decided(void *arg, int result, struct record *record, json_t *unsaved, const struct error *err)
{
    struct update *update = arg;
    json_decref(unsaved);
    record_free(update->record);
    update->record = record;
    update->result = result;
    if (result < 0)
        error_copy(&update->error, err);
    loop_post(update->call->world->loop, decided, update);
}

void decision_start(struct update *update)
{
    struct call *call = update->call;
    struct world *world = call->world;
    if (update->decision == APPROVAL_PENDING) {
        struct error err = ERROR_INIT;
        error_set(&err, ERROR_STATE,
                  "delete the approval to take the decision back; a new request asks again",
                  "a decision cannot be undone by clearing it");
        update_fail(update, &err);
        return;
    }
    update->deadline.ms = clock_boot(world->clock).ms + SETTLE_MS;
    request_decision(world, call->principal, call->manager, update->uid,
                     update->decision == APPROVAL_APPROVED ? "approved" : "rejected", update->shown,
                     update->reason, call->is_dry_run, on_decided, update);
}

static bool is_settled(const struct record *approval)
{
    return approval->spec.approval.decision != APPROVAL_APPROVED || approval->status.approval.workspace_ref ||
           approval->meta.deletion_at.ms || record_is_false(approval, CONDITION_VALID) ||
           record_is_true(approval, CONDITION_REVOKED);
}

static void read_again(void *arg)
{
    struct update *update = arg;
    struct call *call = update->call;
    struct record *record = NULL;
    update->waiter = NULL;
    if (store_get_uid(call->world->store, KIND_APPROVAL, update->uid, &record, &update->error) < 0) {
        update_fail(update, &update->error);
        return;
    }
    record_free(update->record);
    update->record = record;
    decision_settle(update);
}

static void on_change(void *arg, bool is_timeout) // store or loop thread
{
    (void)is_timeout;
    struct update *update = arg;
    loop_post(update->call->world->loop, read_again, update);
}

void decision_settle(struct update *update)
{
    struct world *world = update->call->world;
    const struct record *record = update->record;
    if (is_settled(record) || update->call->is_gone || clock_boot(world->clock).ms >= update->deadline.ms) {
        update_finish(update);
        return;
    }
    update->waiter = store_wait(world->store, world->loop, update->uid, record->meta.resource_version,
                                update->deadline, on_change, update);
}

void decision_cancel(struct update *update)
{
    if (update->waiter && store_wait_cancel(update->waiter)) {
        update->waiter = NULL;
        update_finish(update); // nobody reads it: this only releases
    }
}
