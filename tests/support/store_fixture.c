#include "tests/support/store_fixture.h"
#include "controller/base/memory.h"

const struct store_actor store_fixture_operator = {"operator:uid=0", "chat2shell"};
const struct store_actor store_fixture_controller = {"controller", "chat2shell-controller"};

static void open_store(struct store_fixture *fixture)
{
    struct error err = ERROR_INIT;
    assert_ok(store_open(&fixture->options, &fixture->store, &err));
}

struct store_fixture *store_fixture_open(void)
{
    struct store_fixture *fixture = mem_alloc(sizeof(*fixture));
    fixture->dir = support_make_dir();
    fixture->state_dir = mem_format("%s/state", fixture->dir);
    fixture->clock = clock_new_fake((struct wall_time){STORE_FIXTURE_START_MS});
    fixture->options = (struct store_options){.state_dir = fixture->state_dir, .clock = fixture->clock, .disk_floor_bytes = 1};
    open_store(fixture);
    return fixture;
}

void store_fixture_reopen(struct store_fixture *fixture)
{
    store_close(fixture->store);
    fixture->store = NULL;
    open_store(fixture);
}

void store_fixture_close(struct store_fixture *fixture)
{
    store_close(fixture->store);
    clock_free(fixture->clock);
    free(fixture->state_dir);
    support_remove_dir(fixture->dir);
    free(fixture);
}

int store_fixture_setup(void **state)
{
    *state = store_fixture_open();
    return 0;
}

int store_fixture_teardown(void **state)
{
    store_fixture_close(*state);
    return 0;
}

struct record *store_fixture_workspace(const char *name)
{
    struct record *record = record_new(KIND_WORKSPACE);
    record->meta.name = mem_strdup_or_null(name);
    record->spec.workspace.mode = WORKSPACE_MANAGED;
    return record;
}

struct record *store_fixture_approval(const char *path)
{
    struct record *record = record_new(KIND_APPROVAL);
    record->spec.approval.path = mem_strdup(path);
    record->spec.approval.mode = WORKSPACE_CLONE;
    record->spec.approval.requester = mem_strdup("mcp");
    return record;
}

struct record *store_fixture_sandbox(const char *name, const struct record *workspace)
{
    struct record *record = record_new(KIND_SANDBOX);
    record->meta.name = mem_strdup_or_null(name);
    record->spec.sandbox.workspace_ref = mem_strdup(workspace->meta.name);
    record->status.sandbox.workspace_uid = mem_strdup_or_null(workspace->meta.uid);
    text_list_add(&record->meta.finalizers, "chat2shell.dev/runtime");
    return record;
}

struct record *store_fixture_exposure(const char *name, const struct record *sandbox, int64_t port)
{
    struct record *record = record_new(KIND_EXPOSURE);
    record->meta.name = mem_strdup_or_null(name);
    record->spec.exposure.sandbox_ref = mem_strdup(sandbox->meta.name);
    record->spec.exposure.port = port;
    record->status.exposure.sandbox_uid = mem_strdup_or_null(sandbox->meta.uid);
    return record;
}

static int create(struct store_tx *tx, void *arg, struct error *err)
{
    return tx_create(tx, &store_fixture_operator, arg, err);
}

int store_fixture_try_create(struct store *store, struct record *record, struct error *err)
{
    return store_transact(store, create, record, err);
}

struct record *store_fixture_create(struct store_fixture *fixture, struct record *record)
{
    struct error err = ERROR_INIT;
    assert_ok(store_fixture_try_create(fixture->store, record, &err));
    return record;
}

struct record *store_fixture_get(struct store_fixture *fixture, const struct record *record)
{
    struct error err = ERROR_INIT;
    struct record *fresh = NULL;
    assert_ok(store_get_uid(fixture->store, record->kind, record->meta.uid, &fresh, &err));
    return fresh;
}

static int write_spec(struct store_tx *tx, void *arg, struct error *err)
{
    return tx_write_spec(tx, &store_fixture_operator, arg, err);
}

int store_fixture_write_spec(struct store *store, struct record *record, struct error *err)
{
    return store_transact(store, write_spec, record, err);
}

int store_fixture_write_meta(struct store *store, struct record *record, struct error *err)
{
    return store_write_meta(store, &store_fixture_operator, record, err);
}

struct deletion {
    enum kind kind;
    const char *uid;
};

static int delete(struct store_tx *tx, void *arg, struct error *err)
{
    const struct deletion *deletion = arg;
    return tx_delete(tx, &store_fixture_operator, deletion->kind, deletion->uid, err);
}

int store_fixture_delete(struct store *store, enum kind kind, const char *uid, struct error *err)
{
    return store_transact(store, delete, &(struct deletion){kind, uid}, err);
}
