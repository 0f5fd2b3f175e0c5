// Fills a state directory with stored sandboxes, as a long-used daemon leaves them, for the figures that need many records.
//     bench_seed STATE_DIR WORKSPACE_ROOT DESTROYED FAILED RUNNING RETAINED
// DESTROYED are tombstones, FAILED wait for sandbox_destroy, RUNNING are what a killed daemon left (the next start marks
// them failed and removes their runtimes), each with a workspace of its own; RETAINED are workspaces without a sandbox.
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/policy.h"
#include "controller/store/store.h"
#include "reconcilers/reconcilers.h"
#include "reconcilers/workspace_files.h"
#include <stdio.h>
#include <stdlib.h>

#define BATCH 100 // records of one transaction
// Not "mcp": its creates of the last minute are counted and limited.
static const struct store_actor caller = {"operator:uid=0", "chat2shell"}, controller = {"controller", "chat2shell"};

enum life { LIFE_DESTROYED, LIFE_FAILED, LIFE_RUNNING, LIFE_RETAINED, LIFE_COUNT };

struct seed {
    struct config config; // only workspace_root is read
    enum life life;
    int count;
};

static int make_workspace(struct store_tx *tx, const struct seed *seed, struct record **ret, struct error *err)
{
    CLEANUP_RECORD struct record *workspace = record_new(KIND_WORKSPACE);
    struct workspace_status *status = &workspace->status.workspace;
    workspace->spec.workspace.mode = WORKSPACE_MANAGED;
    text_list_add(&workspace->meta.finalizers, FINALIZER_TRASH);
    if (tx_create(tx, &caller, workspace, err) < 0 ||
        workspace_files_make(&seed->config, workspace->meta.uid, &status->root, &status->device, &status->inode, err) < 0)
        return -1;
    record_set_condition(workspace, CONDITION_READY, CONDITION_TRUE, tx_now(tx), "DirectoryReady", "the directory can be mounted");
    if (tx_write_status(tx, workspace, err) < 0)
        return -1;
    *ret = TAKE_PTR(workspace);
    return 0;
}

static void set_facts(struct record *sandbox, const struct record *workspace)
{
    struct sandbox_status *status = &sandbox->status.sandbox;
    status->driver = mem_strdup("bubblewrap");
    status->template_name = mem_strdup("host");
    status->isolation = mem_strdup("namespace");
    status->workspace_uid = mem_strdup(workspace->meta.uid);
    status->workspace_root = mem_strdup(workspace->status.workspace.root);
    status->attempt = 1;
    text_list_add(&status->limits, "memory");
    text_list_add(&status->limits, "pids");
}

static void set_conditions(struct record *sandbox, enum life life, struct wall_time now)
{
    record_set_condition(sandbox, CONDITION_RUNTIME_CREATED, CONDITION_TRUE, now, "Created", "the sandbox is made");
    record_set_condition(sandbox, CONDITION_ISOLATED, CONDITION_TRUE, now, "Holds", "every rule holds");
    record_set_condition(sandbox, CONDITION_SESSION_READY, CONDITION_TRUE, now, "ToolServerReady", "the tool server answers");
    if (life == LIFE_RUNNING) {
        record_set_condition(sandbox, CONDITION_READY, CONDITION_TRUE, now, "Running", "the sandbox runs");
        return;
    }
    record_set_condition(sandbox, CONDITION_FAILED, CONDITION_TRUE, now, "RuntimeDied", "the sandbox ended by itself");
    record_set_condition(sandbox, CONDITION_READY, CONDITION_FALSE, now, "RuntimeDied", "the sandbox ended by itself");
    record_set_condition(sandbox, CONDITION_RUNTIME_REMOVED, CONDITION_TRUE, now, "Removed", "nothing of the sandbox is left");
}

static int make_session(struct store_tx *tx, const struct record *sandbox, struct error *err)
{
    CLEANUP_RECORD struct record *session = record_new(KIND_SESSION);
    session->spec.session.sandbox_ref = mem_strdup(sandbox->meta.name);
    session->status.session.sandbox_uid = mem_strdup(sandbox->meta.uid);
    record_set_condition(session, CONDITION_READY, CONDITION_TRUE, tx_now(tx), "ToolServerReady", "the tool server answers");
    return tx_create(tx, &controller, session, err);
}

static int make_sandbox(struct store_tx *tx, enum life life, const struct record *workspace, struct error *err)
{
    CLEANUP_RECORD struct record *sandbox = record_new(KIND_SANDBOX);
    sandbox->spec.sandbox.workspace_ref = mem_strdup(workspace->meta.name);
    if (life != LIFE_DESTROYED)
        text_list_add(&sandbox->meta.finalizers, FINALIZER_RUNTIME);
    set_facts(sandbox, workspace);
    if (tx_create(tx, &caller, sandbox, err) < 0)
        return -1;
    sandbox->status.sandbox.runtime_name = mem_format("c2s-%s-1", sandbox->meta.uid + sizeof("sbx_") - 1);
    sandbox->status.sandbox.started_at = tx_now(tx);
    set_conditions(sandbox, life, tx_now(tx));
    if (tx_write_status(tx, sandbox, err) < 0)
        return -1;
    if (life == LIFE_RUNNING)
        return make_session(tx, sandbox, err);
    return life == LIFE_DESTROYED ? tx_delete(tx, &caller, KIND_SANDBOX, sandbox->meta.uid, err) : 0;
}

static int seed_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    const struct seed *seed = arg;
    for (int i = 0; i < seed->count; i++) {
        CLEANUP_RECORD struct record *workspace = NULL;
        if (make_workspace(tx, seed, &workspace, err) < 0)
            return -1;
        if (seed->life != LIFE_RETAINED && make_sandbox(tx, seed->life, workspace, err) < 0)
            return -1;
    }
    return 0;
}

static int seed_all(struct store *store, char *workspace_root, char **counts, struct error *err)
{
    for (int life = 0; life < LIFE_COUNT; life++)
        for (int left = atoi(counts[life]); left > 0; left -= BATCH) {
            struct seed seed = {.config = {.workspace_root = workspace_root}, .life = (enum life)life, .count = left < BATCH ? left : BATCH};
            if (store_transact(store, seed_in_tx, &seed, err) < 0)
                return -1;
        }
    return 0;
}

static int run(char **argv, struct error *err)
{
    struct clock *clock = clock_new_real();
    struct store *store = NULL;
    const struct store_options options = {.state_dir = argv[1], .clock = clock};
    int r = fs_make_private_dir(argv[2], NULL, err) < 0 ? -1 : store_open(&options, &store, err);
    if (r == 0) {
        r = seed_all(store, argv[2], argv + 3, err);
        store_close(store);
    }
    clock_free(clock);
    return r;
}

int main(int argc, char **argv)
{
    struct error err = ERROR_INIT;
    if (argc != 3 + LIFE_COUNT) {
        fprintf(stderr, "usage: bench_seed STATE_DIR WORKSPACE_ROOT DESTROYED FAILED RUNNING RETAINED\n");
        return 2;
    }
    if (run(argv, &err) < 0) {
        fprintf(stderr, "bench_seed: %s (%s)\n", err.message, err.hint);
        return 1;
    }
    return 0;
}
