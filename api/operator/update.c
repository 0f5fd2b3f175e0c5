// PUT and PATCH. The body is applied to the record as it is inside the transaction, so no change in between
// is lost. A dry run does the same and undoes it: what it says is what would have happened.
#include "api/operator/update.h"
#include "api/operator/body.h"
#include "controller/base/memory.h"
#include "controller/fields/fields.h"
#include "schemas/kinds/tables.h"
#include <string.h>

static void update_free(struct update *update)
{
    free(update->uid);
    free(update->reason);
    record_free(update->record);
    json_decref(update->causes);
    free(update);
}

void update_finish(struct update *update)
{
    if (update->call->is_dry_run) // of a version that never was
        update->record->meta.resource_version = update->shown;
    operator_answer_record(update->call, 200, update->record);
    update_free(update);
}

void update_fail(struct update *update, const struct error *err)
{
    operator_fail_with(update->call, err, update->causes);
    update_free(update);
}

// ---- inside the transaction
// -----------------------------------------------------------------------------------------------
static int read_wanted(struct update *update, const struct record *current, struct record *wanted,
                       struct error *err)
{
    json_t *body = update->call->body;
    json_array_clear(update->causes);
    CLEANUP_JSON json_t *merged = update->form == UPDATE_MERGE ? body_merge(current, body) : NULL;
    if (body_read(wanted, merged ? merged : body, update->call->is_lenient, update->causes, err) < 0)
        return -1;
    return fields_check_immutable(kind_spec_table(update->kind), &current->spec, &wanted->spec, "spec",
                                  update->causes, err);
}

// A decision mounts host paths: it goes through its own checks, and only once.
static bool takes_decision(struct update *update, const struct record *current, const struct record *wanted)
{
    const struct approval_spec *spec = &wanted->spec.approval;
    if (update->kind != KIND_APPROVAL || update->is_decided || update->call->is_dry_run ||
        spec->decision == current->spec.approval.decision)
        return false;
    update->must_decide = true;
    update->decision = spec->decision;
    update->shown = spec->shown_resource_version &&
                            spec->shown_resource_version != current->spec.approval.shown_resource_version
                        ? spec->shown_resource_version
                        : wanted->meta.resource_version;
    mem_replace(&update->reason, spec->reason);
    return true;
}

static void take_map(struct text_map *to, const struct text_map *from)
{
    while (to->count) {
        CLEANUP_FREE char *key = mem_strdup(to->items[to->count - 1].key);
        text_map_set(to, key, NULL);
    }
    for (size_t i = 0; i < from->count; i++)
        text_map_set(to, from->items[i].key, from->items[i].value);
}

static int write_both(struct store_tx *tx, struct update *update, const struct record *wanted,
                      struct error *err)
{
    const struct store_actor actor = {update->call->principal, update->call->manager};
    CLEANUP_RECORD struct record *record = record_copy(wanted);
    if (!update->is_decided && tx_write_spec(tx, &actor, record, err) < 0)
        return -1;
    take_map(&record->meta.labels, &wanted->meta.labels);
    take_map(&record->meta.annotations, &wanted->meta.annotations);
    if (tx_write_meta(tx, &actor, record, err) < 0)
        return -1;
    record_free(update->record);
    update->record = TAKE_PTR(record);
    return 0;
}

static int update_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    struct update *update = arg;
    CLEANUP_RECORD struct record *current = NULL;
    if (tx_get_uid(tx, update->kind, update->uid, &current, err) < 0)
        return -1;
    if (current->meta.removed_at.ms)
        return error_set(err, ERROR_NOT_FOUND, NULL, "the %s '%s' was removed",
                         kind_info(update->kind)->singular, current->meta.name);
    CLEANUP_RECORD struct record *wanted = record_copy(current);
    if (read_wanted(update, current, wanted, err) < 0)
        return -1;
    if (takes_decision(update, current, wanted))
        return 0;
    if (update->is_decided) // the version that the caller stated is the one before the decision
        wanted->meta.resource_version = 0;
    if (write_both(tx, update, wanted, err) < 0)
        return -1;
    if (!update->call->is_dry_run)
        return 0;
    update->shown = current->meta.resource_version;
    return error_set(err, ERROR_CANCELLED, NULL, "a dry run: nothing of this is kept");
}

// ---- around it
// ----------------------------------------------------------------------------------------------------------
static void next(void *arg)
{
    struct update *update = arg;
    if (update->result < 0)
        update_fail(update, &update->error);
    else if (update->must_decide && !update->is_decided)
        decision_start(update);
    else if (update->is_decided)
        decision_settle(update);
    else
        update_finish(update);
}

static void on_committed(void *arg, int result, const struct error *err)
{
    struct update *update = arg;
    bool is_dry_success = update->call->is_dry_run && update->record;
    update->result = is_dry_success ? 0 : result;
    if (update->result < 0)
        error_copy(&update->error, err);
    loop_post(update->call->world->loop, next, update);
}

void update_run(struct update *update)
{
    store_submit(update->call->world->store, update_in_tx, on_committed, update);
}

static void start_on_loop(struct call *call)
{
    update_run(call->state);
}

static void cancel(struct call *call)
{
    decision_cancel(call->state);
}

void update_start(struct call *call, const struct record *record, enum update_form form)
{
    struct update *update = mem_alloc(sizeof(*update));
    *update = (struct update){.call = call,
                              .kind = record->kind,
                              .uid = mem_strdup(record->meta.uid),
                              .form = form,
                              .causes = json_array()};
    call->state = update;
    operator_wait_on_loop(call, start_on_loop, cancel);
}
