// The other requests: expose a port, decide an approval, pre-approve a host path, delete a record.
#include "controller/base/memory.h"
#include "reconcilers/exposes.h"
#include "reconcilers/host_workspace.h"
#include "reconcilers/world.h"
#include <stdio.h>
#include <string.h>

struct demand { // one request on its way
    struct world *world;
    struct store_actor actor; // strings owned
    char *text, *word, *reason;
    enum kind kind;
    enum workspace_mode mode;
    int64_t number;
    struct host_path path;
    json_t *exposes;
    struct record *wanted; // its metadata counts
    bool is_dry_run;
    struct record *record;
    record_request_fn done;
    void *arg;
};

static struct demand *demand_new(struct world *world, const char *principal, const char *manager, const char *text, record_request_fn done, void *arg)
{
    struct demand *demand = mem_alloc(sizeof(*demand));
    *demand = (struct demand){.world = world, .actor = {mem_strdup(principal), mem_strdup(manager)}, .text = mem_strdup(text), .done = done, .arg = arg};
    return demand;
}

static void finish(struct demand *demand, int result, const struct error *err)
{
    demand->done(demand->arg, result, result == 0 ? TAKE_PTR(demand->record) : NULL, NULL, err);
    free((char *)demand->actor.principal);
    free((char *)demand->actor.manager);
    free(demand->text);
    free(demand->word);
    free(demand->reason);
    host_path_clear(&demand->path);
    json_decref(demand->exposes);
    record_free(demand->wanted);
    record_free(demand->record);
    free(demand);
}

static void on_committed(void *arg, int result, const struct error *err)
{
    struct demand *demand = arg;
    finish(demand, demand->is_dry_run && demand->record ? 0 : result, err);
}

// The end of a transaction whose record is ready: a dry run is undone, which its callback knows for success.
static int keep(const struct demand *demand, struct error *err)
{
    return demand->is_dry_run ? error_set(err, ERROR_CANCELLED, NULL, "only asked for: nothing of this is kept") : 0;
}

// ---- decide ------------------------------------------------------------------------------------------------------------
static int check_decidable(const struct record *approval, const struct demand *demand, enum approval_decision decision, struct error *err)
{
    const struct approval_spec *spec = &approval->spec.approval;
    if (approval->meta.removed_at.ms || approval->meta.deletion_at.ms)
        return error_set(err, ERROR_STATE, "`chat2shell approval list` shows what is waiting", "the approval %s was deleted", demand->text);
    if (spec->decision != APPROVAL_PENDING && spec->decision != decision)
        return error_set(err, ERROR_STATE, "delete it (`chat2shell delete approval NAME`) to take a decision back; a new request asks again",
                         "the approval %s is decided already", demand->text);
    if (demand->number && demand->number != approval->meta.resource_version)
        return error_set(err, ERROR_CONFLICT, "look at it again, then decide", "the approval %s changed since it was shown", demand->text);
    return 0;
}

static int decide_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    struct demand *demand = arg;
    enum approval_decision decision = strcmp(demand->word, "approved") == 0 ? APPROVAL_APPROVED : APPROVAL_REJECTED;
    CLEANUP_RECORD struct record *approval = NULL;
    if (tx_get_uid(tx, KIND_APPROVAL, demand->text, &approval, err) < 0 || check_decidable(approval, demand, decision, err) < 0)
        return -1;
    if (approval->spec.approval.decision == APPROVAL_PENDING) {
        approval->spec.approval.decision = decision;
        approval->spec.approval.shown_resource_version = demand->number;
        mem_replace(&approval->spec.approval.reason, demand->reason);
        if (tx_write_spec(tx, &demand->actor, approval, err) < 0)
            return -1;
        text_map_set(&approval->meta.annotations, ANNOTATION_DECIDED_BY, demand->actor.principal);
        if (tx_write_meta(tx, &demand->actor, approval, err) < 0)
            return -1;
    }
    demand->record = TAKE_PTR(approval);
    return keep(demand, err);
}

static void check_then_decide(void *arg)
{
    struct demand *demand = arg;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *approval = NULL;
    if (store_get_uid(demand->world->store, KIND_APPROVAL, demand->text, &approval, &err) < 0 ||
        (approval->spec.approval.decision == APPROVAL_PENDING && approval_check(demand->world->config, approval, &err) < 0)) {
        finish(demand, -1, &err);
        return;
    }
    store_submit(demand->world->store, decide_in_tx, on_committed, demand);
}

static void send_to_worker(struct demand *demand, void (*fn)(void *arg))
{
    struct error err = ERROR_INIT;
    if (request_worker_add(demand->world->reconcilers->worker, fn, demand))
        return;
    error_set(&err, ERROR_LIMIT, "try again in a moment", "too many requests at once");
    finish(demand, -1, &err);
}

void request_decision(struct world *world, const char *principal, const char *manager, const char *approval, const char *decision,
                      int64_t shown_resource_version, const char *reason, bool is_dry_run, record_request_fn done, void *arg)
{
    struct demand *demand = demand_new(world, principal, manager, approval, done, arg);
    struct error err = ERROR_INIT;
    demand->word = mem_strdup(decision);
    demand->reason = mem_strdup_or_null(reason);
    demand->number = shown_resource_version;
    demand->is_dry_run = is_dry_run;
    if (strcmp(decision, "approved") == 0)
        send_to_worker(demand, check_then_decide);
    else if (strcmp(decision, "rejected") == 0)
        store_submit(world->store, decide_in_tx, on_committed, demand);
    else {
        error_set(&err, ERROR_INVALID, "use approved or rejected", "decision '%s' is unknown", decision);
        finish(demand, -1, &err);
    }
}

// ---- pre-approve --------------------------------------------------------------------------------------------------------
static int add_workspace_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    struct demand *demand = arg;
    CLEANUP_RECORD struct record *workspace = NULL, *approval = NULL;
    if (tx_find_host_workspace(tx, &demand->path, demand->mode, &workspace, err) < 0)
        return -1;
    if (!workspace) {
        // One that waits for this very path is decided by it; else the decision gets a record of its own.
        if (tx_find_pending(tx, &demand->path, demand->mode, &approval, err) < 0)
            return -1;
        if (approval) {
            approval->spec.approval.decision = APPROVAL_APPROVED;
            if (tx_write_spec(tx, &demand->actor, approval, err) < 0)
                return -1;
        } else if (tx_make_approval(tx, &demand->actor, &demand->path, demand->mode, APPROVAL_APPROVED, demand->exposes, &approval, err) < 0) {
            return -1;
        }
        text_map_set(&approval->meta.annotations, ANNOTATION_DECIDED_BY, demand->actor.principal);
        if (tx_write_meta(tx, &demand->actor, approval, err) < 0 ||
            tx_make_host_workspace(tx, &demand->actor, &demand->path, demand->mode, demand->wanted ? &demand->wanted->meta : NULL, &workspace, err) < 0)
            return -1;
    } else if (demand->wanted) {
        return error_set(err, ERROR_EXISTS, "use that one, or delete it first", "%s has a workspace of mode %s already: %s", demand->path.resolved,
                         workspace_mode_word(demand->mode), workspace->meta.name);
    }
    demand->record = TAKE_PTR(workspace);
    return keep(demand, err);
}

static void check_then_add(void *arg)
{
    struct demand *demand = arg;
    struct error err = ERROR_INIT;
    if (path_policy_check(demand->world->config, demand->text, demand->mode, true, &demand->path, &err) < 0 ||
        (demand->mode == WORKSPACE_DIRECT && exposes_scan(demand->path.resolved, &demand->exposes, &err) < 0)) {
        finish(demand, -1, &err);
        return;
    }
    store_submit(demand->world->store, add_workspace_in_tx, on_committed, demand);
}

void request_host_workspace(struct world *world, const char *principal, const char *manager, const char *path, const char *mode,
                            const struct record_meta *wanted, bool is_dry_run, record_request_fn done, void *arg)
{
    struct demand *demand = demand_new(world, principal, manager, path, done, arg);
    struct error err = ERROR_INIT;
    demand->is_dry_run = is_dry_run;
    demand->mode = mode && strcmp(mode, "direct") == 0 ? WORKSPACE_DIRECT : WORKSPACE_CLONE;
    if (wanted) {
        demand->wanted = record_new(KIND_WORKSPACE);
        meta_take_wanted(&demand->wanted->meta, wanted);
    }
    if (mode && strcmp(mode, "direct") != 0 && strcmp(mode, "clone") != 0) {
        error_set(&err, ERROR_INVALID, "use clone or direct", "mode '%s' does not go with a host path", mode);
        finish(demand, -1, &err);
        return;
    }
    send_to_worker(demand, check_then_add);
}

// ---- delete ------------------------------------------------------------------------------------------------------------
static int check_unbound(struct store_tx *tx, const struct record *workspace, struct error *err)
{
    CLEANUP_RECORD struct record *holder = NULL;
    if (workspace->spec.workspace.mode != WORKSPACE_MANAGED)
        return 0; // revoking does not touch a running sandbox: it only stops new ones
    if (tx_find_holder(tx, workspace->meta.uid, &holder, err) < 0)
        return -1;
    if (!holder)
        return 0;
    error_set(err, ERROR_STATE, NULL, "the workspace %s is bound to the sandbox %s", workspace->meta.name, holder->meta.name);
    return error_hint(err, "delete the sandbox first: chat2shell delete sandbox %s", holder->meta.name);
}

// Revoking an approval takes the workspace that it made back, too.
static int revoke_workspace(struct store_tx *tx, const struct demand *demand, const struct record *approval, struct error *err)
{
    const char *ref = approval->status.approval.workspace_ref;
    CLEANUP_RECORD struct record *workspace = NULL;
    if (!ref || tx_get_uid(tx, KIND_WORKSPACE, ref, &workspace, NULL) < 0 || workspace->meta.removed_at.ms)
        return 0;
    return tx_delete(tx, &demand->actor, KIND_WORKSPACE, ref, err);
}

static int check_deletable(struct store_tx *tx, const struct demand *demand, const struct record *record, struct error *err)
{
    if (demand->number && demand->number != record->meta.resource_version)
        return error_set(err, ERROR_CONFLICT, "read it again", "the record %s changed meanwhile", record->meta.name);
    switch (record->kind) {
    case KIND_WORKSPACE:
        return check_unbound(tx, record, err);
    case KIND_APPROVAL:
        return revoke_workspace(tx, demand, record, err);
    case KIND_SESSION:
        return error_set(err, ERROR_REFUSED, "delete the sandbox instead", "a session belongs to its sandbox and ends with it");
    default:
        return 0;
    }
}

static int delete_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    struct demand *demand = arg;
    CLEANUP_RECORD struct record *record = NULL;
    if (tx_get_uid(tx, demand->kind, demand->text, &record, err) < 0)
        return -1;
    if (!record->meta.removed_at.ms && !record->meta.deletion_at.ms &&
        (check_deletable(tx, demand, record, err) < 0 || tx_delete(tx, &demand->actor, demand->kind, demand->text, err) < 0))
        return -1;
    if (tx_get_uid(tx, demand->kind, demand->text, &demand->record, err) < 0)
        return -1;
    return keep(demand, err);
}

void request_delete(struct world *world, const char *principal, const char *manager, enum kind kind, const char *uid, int64_t resource_version,
                    record_request_fn done, void *arg)
{
    if (kind == KIND_SANDBOX && !resource_version) {
        request_destroy(world, principal, uid, done, arg);
        return;
    }
    struct demand *demand = demand_new(world, principal, manager, uid, done, arg);
    demand->kind = kind;
    demand->number = resource_version;
    store_submit(world->store, delete_in_tx, on_committed, demand);
}

void request_delete_dry_run(struct world *world, const char *principal, const char *manager, enum kind kind, const char *uid,
                            int64_t resource_version, record_request_fn done, void *arg)
{
    struct demand *demand = demand_new(world, principal, manager, uid, done, arg);
    demand->kind = kind;
    demand->number = resource_version;
    demand->is_dry_run = true;
    store_submit(world->store, delete_in_tx, on_committed, demand);
}
