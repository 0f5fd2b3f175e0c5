// PUT and PATCH. The body is applied to the record as it is inside the transaction, so no change in between
// is lost. A dry run does the same and undoes it: what it says is what would have happened.
#include "api/operator/update.h"
#include "api/operator/apply.h"
#include "api/operator/body.h"
#include "api/operator/json_patch.h"
#include "controller/base/memory.h"
#include "controller/fields/fields.h"
#include "schemas/kinds/tables.h"

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
    struct call *call = update->call;
    call->cancel = NULL; // it has nothing to cancel any more
    if (err->code != ERROR_NOT_FOUND || !apply_again(call))
        operator_fail_with(call, err, update->causes);
    update_free(update);
}

// ---- the object that is asked for
// ---------------------------------------------------------------------------------------------
// What came out of a patch and is as it was before states nothing: a version is a precondition, and managedFields are a
// change, only where the client wrote them.
static void drop_unchanged(json_t *object, const json_t *before)
{
    static const char *const members[] = {"resourceVersion", "managedFields"};
    json_t *metadata = json_object_get(object, "metadata");
    const json_t *old = json_object_get(before, "metadata");
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        const json_t *value = json_object_get(metadata, members[i]);
        if (value && json_equal(value, json_object_get(old, members[i])))
            json_object_del(metadata, members[i]);
    }
}

static int patch_object(const struct update *update, const struct record *current, json_t **ret, struct error *err)
{
    CLEANUP_JSON json_t *before = record_to_json(current);
    CLEANUP_JSON json_t *object = json_deep_copy(before);
    if (update->form == UPDATE_MERGE)
        body_merge(object, update->call->body);
    else if (json_patch_apply(&object, update->call->body, err) < 0)
        return -1;
    if (!json_is_object(object))
        return error_set(err, ERROR_INVALID, NULL, "the patch leaves no object");
    drop_unchanged(object, before);
    *ret = TAKE_PTR(object);
    return 0;
}

// What a PUT leaves out is taken away: a body that does not even say what it is about is a mistake.
static int check_is_named(const json_t *body, struct error *err)
{
    if (json_get_text(json_object_get(body, "metadata"), "name"))
        return 0;
    return error_set(err, ERROR_USAGE, "read the object, change it and send the whole; PATCH changes parts", "metadata.name must be in the body of a PUT");
}

static int make_object(struct update *update, const struct record *current, struct applied *ret, struct error *err)
{
    switch (update->form) {
    case UPDATE_REPLACE:
        if (check_is_named(update->call->body, err) < 0)
            return -1;
        ret->object = json_incref(update->call->body);
        return 0;
    case UPDATE_APPLY:
        return apply_merge(update->call, current, ret, update->causes, err);
    default:
        return patch_object(update, current, &ret->object, err);
    }
}

// ---- inside the transaction
// -----------------------------------------------------------------------------------------------
static int check_version(const struct record *current, const struct record *wanted, struct error *err)
{
    int64_t seen = wanted->meta.resource_version, now = current->meta.resource_version;
    if (!seen || seen == now)
        return 0;
    return error_set(err, ERROR_CONFLICT, "read it again and apply the change to what it is now",
                     "Operation cannot be fulfilled on %s." API_GROUP " \"%s\": the object has been modified; please apply your "
                     "changes to the latest version and try again (it has resourceVersion %lld, not %lld)",
                     kind_info(current->kind)->plural, current->meta.name, (long long)now, (long long)seen);
}

static void own_fields(struct update *update, const struct record *current, struct record *wanted, const struct applied *applied,
                       struct wall_time now)
{
    if (update->form == UPDATE_APPLY) {
        apply_own(wanted, current, applied, update->call, now);
        return;
    }
    record_set_managed(wanted, json_object_get(json_object_get(applied->object, "metadata"), "managedFields"));
    record_touch_managed(wanted, current, update->call->manager, now);
}

static int read_wanted(struct update *update, const struct record *current, struct record *wanted, struct wall_time now,
                       struct error *err)
{
    CLEANUP(applied_clear) struct applied applied = {0};
    json_array_clear(update->causes);
    if (make_object(update, current, &applied, err) < 0 ||
        body_read(update->call, wanted, applied.object, update->causes, err) < 0)
        return -1;
    if (update->is_decided && !update->call->is_dry_run) { // the version that the caller stated is the one before the decision, which wrote the spec
        wanted->meta.resource_version = 0;
        fields_clear(kind_spec_table(update->kind), &wanted->spec);
        fields_copy(kind_spec_table(update->kind), &current->spec, &wanted->spec);
    }
    if (check_version(current, wanted, err) < 0 ||
        fields_check_immutable(kind_spec_table(update->kind), &current->spec, &wanted->spec, "spec", update->causes, err) < 0)
        return -1;
    own_fields(update, current, wanted, &applied, now);
    return 0;
}

// The version that the client stated, also where it is the current one (drop_unchanged); 0: none.
static int64_t stated_version(const struct update *update, const struct record *wanted)
{
    const json_t *body = update->form == UPDATE_JSON_PATCH ? NULL : update->call->body;
    const char *text = json_get_text(json_object_get(body, "metadata"), "resourceVersion");
    return wanted->meta.resource_version ? wanted->meta.resource_version : text ? strtoll(text, NULL, 10) : 0;
}

// A decision mounts host paths: it goes through its own checks, and only once.
static bool takes_decision(struct update *update, const struct record *current, const struct record *wanted)
{
    const struct approval_spec *spec = &wanted->spec.approval;
    if (update->kind != KIND_APPROVAL || update->is_decided ||
        spec->decision == current->spec.approval.decision)
        return false;
    update->must_decide = true;
    update->decision = spec->decision;
    update->shown = spec->shown_resource_version &&
                            spec->shown_resource_version != current->spec.approval.shown_resource_version
                        ? spec->shown_resource_version
                        : stated_version(update, wanted);
    mem_replace(&update->reason, spec->reason);
    return true;
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
    if (read_wanted(update, current, wanted, tx_now(tx), err) < 0)
        return -1;
    if (takes_decision(update, current, wanted))
        return 0;
    const struct store_actor actor = {update->call->principal, update->call->manager};
    if (tx_write_object(tx, &actor, wanted, err) < 0)
        return -1;
    record_free(update->record);
    update->record = TAKE_PTR(wanted);
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
    else if (update->is_decided && !update->call->is_dry_run)
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

static struct update *update_new(struct call *call, const struct record *record, enum update_form form)
{
    struct update *update = mem_alloc(sizeof(*update));
    *update = (struct update){.call = call,
                              .kind = record->kind,
                              .uid = mem_strdup(record->meta.uid),
                              .form = form,
                              .causes = json_array()};
    return update;
}

void update_start(struct call *call, const struct record *record, enum update_form form)
{
    call->state = update_new(call, record, form);
    operator_wait_on_loop(call, start_on_loop, cancel);
}

void update_start_late(struct call *call, const struct record *record, enum update_form form)
{
    update_run(update_new(call, record, form));
}
