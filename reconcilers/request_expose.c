// A caller asks for a port to be exposed: everything that could race is settled in one transaction.
#include "controller/base/memory.h"
#include "reconcilers/exposure.h"
#include "reconcilers/host_workspace.h"
#include <string.h>

struct expose {
    struct world *world;
    char *principal, *manager, *sandbox_uid, *sandbox_name; // one of the last two
    int64_t port;
    struct record *wanted; // its metadata counts; NULL: one that is there is the answer
    bool is_dry_run;
    struct record *record;
    record_request_fn done;
    void *arg;
};

static void finish(struct expose *expose, int result, const struct error *err)
{
    expose->done(expose->arg, result, result == 0 ? TAKE_PTR(expose->record) : NULL, NULL, err);
    free(expose->principal);
    free(expose->manager);
    free(expose->sandbox_uid);
    free(expose->sandbox_name);
    record_free(expose->wanted);
    record_free(expose->record);
    free(expose);
}

static void on_committed(void *arg, int result, const struct error *err)
{
    struct expose *expose = arg;
    finish(expose, expose->is_dry_run && expose->record ? 0 : result, err);
}

// ---- of which sandbox ------------------------------------------------------------------------------------------------
static int check_exposable(struct store_tx *tx, const char *uid, struct record **ret, struct error *err)
{
    struct error why = ERROR_INIT;
    if (tx_get_uid(tx, KIND_SANDBOX, uid, ret, &why) < 0)
        return error_set(err, why.code, "sandbox_list shows the ids", "there is no sandbox %s", uid);
    if ((*ret)->meta.removed_at.ms || (*ret)->meta.deletion_at.ms)
        return error_set(err, ERROR_STATE, "create another one with sandbox_create", "the sandbox %s was destroyed", uid);
    const struct condition *failed = record_condition(*ret, CONDITION_FAILED);
    if (failed && failed->status == CONDITION_TRUE)
        return error_set(err, ERROR_STATE, "destroy it and create another one", "the sandbox %s failed: %s", uid, failed->message);
    return 0;
}

// *ret stays NULL where there is none of that name yet. It may have come since the request was read.
static int take_sandbox(struct store_tx *tx, struct expose *expose, struct record **ret, struct error *err)
{
    CLEANUP_RECORD struct record *named = NULL;
    struct error why = ERROR_INIT;
    if (expose->sandbox_uid)
        return check_exposable(tx, expose->sandbox_uid, ret, err);
    if (tx_get(tx, KIND_SANDBOX, expose->sandbox_name, &named, &why) < 0)
        return why.code == ERROR_NOT_FOUND ? 0 : error_copy(err, &why);
    return check_exposable(tx, named->meta.uid, ret, err);
}

// ---- what is exposed already ------------------------------------------------------------------------------------------
struct counts {
    size_t of_sandbox, waiting; // waiting: for whatever sandbox
};

static void look_at(struct expose *expose, const struct record *at, struct counts *counts)
{
    counts->of_sandbox++;
    if (at->spec.exposure.port == expose->port && !at->meta.deletion_at.ms && !expose->record)
        expose->record = record_copy(at);
}

static int look_at_bound(struct store_tx *tx, struct expose *expose, const struct record *sandbox, struct counts *counts, struct error *err)
{
    struct record_list all = {0};
    if (!sandbox)
        return 0;
    if (tx_list_bound(tx, KIND_EXPOSURE, sandbox->meta.uid, &all, err) < 0)
        return -1;
    for (size_t i = 0; i < all.count; i++)
        look_at(expose, all.items[i], counts);
    record_list_free(&all);
    return 0;
}

// Those that wait for a sandbox of that name count like its own: they will be.
static int look_at_waiting(struct store_tx *tx, struct expose *expose, const char *name, struct counts *counts, struct error *err)
{
    struct record_list all = {0};
    if (tx_list_bound(tx, KIND_EXPOSURE, NULL, &all, err) < 0)
        return -1;
    counts->waiting = all.count;
    for (size_t i = 0; i < all.count; i++)
        if (strcmp(all.items[i]->spec.exposure.sandbox_ref, name) == 0)
            look_at(expose, all.items[i], counts);
    record_list_free(&all);
    return 0;
}

static int check_limits(const struct counts *counts, bool is_waiting, struct error *err)
{
    if (counts->of_sandbox >= LIMIT_EXPOSURES_A_SANDBOX)
        return error_set(err, ERROR_LIMIT, "use one of those ports for the server, or serve several things through one", "the sandbox has %d exposed ports already, the most at once", LIMIT_EXPOSURES_A_SANDBOX);
    if (is_waiting && counts->waiting >= LIMIT_WAITING_EXPOSURES)
        return error_set(err, ERROR_LIMIT, "create the sandboxes that they wait for, or delete some", "%d exposures wait for sandboxes that are not there, the most at once", LIMIT_WAITING_EXPOSURES);
    return 0;
}

// ---- making it ----------------------------------------------------------------------------------------------------------
static int make_exposure(struct store_tx *tx, struct expose *expose, const struct record *sandbox, const char *name, struct error *err)
{
    CLEANUP_RECORD struct record *exposure = record_new(KIND_EXPOSURE);
    exposure->spec.exposure = (struct exposure_spec){mem_strdup(name), expose->port};
    exposure->status.exposure.sandbox_uid = sandbox ? mem_strdup(sandbox->meta.uid) : NULL;
    text_list_add(&exposure->meta.finalizers, FINALIZER_MAPPING);
    if (expose->wanted)
        meta_take_wanted(&exposure->meta, &expose->wanted->meta);
    if (!sandbox)
        exposure_set_waiting(exposure, tx_now(tx));
    const struct store_actor actor = {expose->principal, expose->manager};
    if (tx_create(tx, &actor, exposure, err) < 0)
        return -1;
    expose->record = TAKE_PTR(exposure);
    return expose->is_dry_run ? error_set(err, ERROR_CANCELLED, NULL, "only asked for: nothing of this is kept") : 0;
}

static int expose_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    struct expose *expose = arg;
    CLEANUP_RECORD struct record *sandbox = NULL;
    struct counts counts = {0};
    if (take_sandbox(tx, expose, &sandbox, err) < 0)
        return -1;
    const char *name = sandbox ? sandbox->meta.name : expose->sandbox_name;
    if (look_at_bound(tx, expose, sandbox, &counts, err) < 0 || (expose->wanted && look_at_waiting(tx, expose, name, &counts, err) < 0))
        return -1;
    if (expose->record && expose->wanted) {
        CLEANUP_RECORD struct record *other = TAKE_PTR(expose->record); // not the answer: not of a dry run either
        return error_set(err, ERROR_EXISTS, "use that one, or delete it first", "port %lld of the sandbox '%s' is exposed already by '%s'",
                         (long long)expose->port, name, other->meta.name);
    }
    if (expose->record)
        return 0;
    return check_limits(&counts, !sandbox, err) < 0 ? -1 : make_exposure(tx, expose, sandbox, name, err);
}

void request_expose(struct world *world, const char *principal, const char *sandbox_uid, int64_t port, record_request_fn done, void *arg)
{
    const struct expose_request request = {.principal = principal, .manager = "chat2shell", .sandbox_uid = sandbox_uid, .port = port};
    request_expose_as(world, &request, done, arg);
}

void request_expose_as(struct world *world, const struct expose_request *request, record_request_fn done, void *arg)
{
    struct expose *expose = mem_alloc(sizeof(*expose));
    *expose = (struct expose){
        .world = world, .principal = mem_strdup(request->principal), .manager = mem_strdup(request->manager),
        .sandbox_uid = mem_strdup_or_null(request->sandbox_uid), .sandbox_name = mem_strdup_or_null(request->sandbox_name),
        .port = request->port, .is_dry_run = request->is_dry_run, .done = done, .arg = arg,
    };
    struct error err = ERROR_INIT;
    if (request->wanted) {
        expose->wanted = record_new(KIND_EXPOSURE);
        meta_take_wanted(&expose->wanted->meta, request->wanted);
    }
    if (request->port < 1 || request->port > 65535) {
        error_set(&err, ERROR_INVALID, "give the port that the server in the sandbox listens on", "port must be from 1 to 65535, not %lld", (long long)request->port);
        finish(expose, -1, &err);
        return;
    }
    store_submit(world->store, expose_in_tx, on_committed, expose);
}
