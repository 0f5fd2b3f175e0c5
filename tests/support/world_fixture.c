#include "tests/support/world_fixture.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <libgen.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define START_MS 1796000000000LL

static void start_parts(struct world_fixture *fixture)
{
    struct world *world = &fixture->world;
    struct error err = ERROR_INIT;
    assert_ok(store_open(&(struct store_options){.state_dir = fixture->config.state_dir, .clock = world->clock, .disk_floor_bytes = 1}, &world->store, &err));
    world->lanes = lanes_new(world->loop, world->store);
    world->manager = manager_new(&(struct manager_options){.clock = world->clock, .loop = world->loop, .store = world->store, .worker_count = fixture->worker_count});
    assert_ok(reconcilers_add_all(world, &err));
    assert_ok(manager_start(world->manager, &err));
}

static void stop_parts(struct world_fixture *fixture)
{
    struct world *world = &fixture->world;
    assert_true(manager_stop(world->manager, SUPPORT_PATIENCE_MS));
    lanes_free(world->lanes);
    reconcilers_stop_workers(world);
    store_close(world->store);
    loop_stop(world->loop);
    world->loop = NULL;
    reconcilers_free(world);
    manager_free(world->manager);
}

static struct world_fixture *open_on(struct clock *clock, int worker_count)
{
    struct world_fixture *fixture = mem_alloc(sizeof(*fixture));
    fixture->worker_count = worker_count;
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *dir = support_make_dir();
    fixture->dir = realpath(dir, NULL);
    struct config *config = &fixture->config;
    config->data_root = mem_format("%s/data", fixture->dir);
    config->state_dir = mem_format("%s/data/state", fixture->dir);
    config->workspace_root = mem_format("%s/data/workspaces", fixture->dir);
    CLEANUP_FREE char *allowed = mem_format("%s/repositories", fixture->dir);
    text_list_add(&config->allowed_host_roots, allowed);
    config->max_sandboxes = 64;
    config->program_dir = support_program_dir();
    assert_ok(fs_make_private_dir(config->data_root, NULL, &err));
    assert_ok(fs_make_private_dir(allowed, NULL, &err));
    struct world *world = &fixture->world;
    world->config = config;
    world->clock = clock;
    assert_ok(spawner_start(&fixture->spawner, &err));
    assert_ok(loop_start(world->clock, &world->loop, &err));
    struct driver_options options = {.clock = world->clock, .loop = world->loop, .spawner = fixture->spawner, .program_dir = config->program_dir};
    assert_ok(fake_driver_new(&options, &world->driver, &err));
    start_parts(fixture);
    return fixture;
}

struct world_fixture *world_open(void)
{
    return open_on(clock_new_fake((struct wall_time){START_MS}), -1);
}

struct world_fixture *world_open_busy(void)
{
    return open_on(clock_new_real(), 0);
}

void world_restart(struct world_fixture *fixture)
{
    struct error err = ERROR_INIT;
    stop_parts(fixture);
    assert_ok(loop_start(fixture->world.clock, &fixture->world.loop, &err));
    fake_driver_set_loop(fixture->world.driver, fixture->world.loop);
    start_parts(fixture);
}

void world_close(struct world_fixture *fixture)
{
    stop_parts(fixture);
    fixture->world.driver->ops->free(fixture->world.driver);
    spawner_stop(fixture->spawner);
    clock_free(fixture->world.clock);
    support_remove_dir(fixture->dir);
    free(fixture->config.data_root);
    free(fixture->config.state_dir);
    free(fixture->config.workspace_root);
    free(fixture->config.program_dir);
    text_list_clear(&fixture->config.allowed_host_roots);
    free(fixture);
}

int world_setup(void **state)
{
    *state = world_open();
    return 0;
}

int world_teardown(void **state)
{
    world_close(*state);
    return 0;
}

// Real processes answer in real time: settled is when nothing moves and nothing is under way but what hangs by injection.
void world_settle(struct world_fixture *fixture)
{
    int64_t end_ms = support_now_ms() + SUPPORT_PATIENCE_MS;
    for (int quiet = 0; support_now_ms() < end_ms;) {
        int64_t before = store_revision(fixture->world.store);
        int steps = manager_run_until_idle(fixture->world.manager, 10000);
        bool is_quiet = steps == 0 && store_revision(fixture->world.store) == before &&
                        effects_running(&fixture->world) == fake_driver_hung(fixture->world.driver);
        quiet = is_quiet ? quiet + 1 : 0;
        if (quiet >= 3)
            return;
        support_pause(2);
    }
    fail_msg("the world does not settle");
}

void world_settle_until(struct world_fixture *fixture, const char *uid, const char *word)
{
    if (!support_await(10, (world_settle(fixture), strcmp(world_word(fixture, uid), word) == 0)))
        assert_string_equal(world_word(fixture, uid), word);
}

void world_advance(struct world_fixture *fixture, int64_t ms)
{
    clock_advance(fixture->world.clock, ms);
    world_settle(fixture);
}

// ---- waiting for asynchronous answers ------------------------------------------------------------------------------------
struct answer {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_done;
    int result;
    enum sandbox_outcome outcome;
    struct record *record;
    json_t *json;
    struct error err;
};
#define ANSWER_INIT {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER}

static void put(struct answer *answer, int result, struct record *record, json_t *json, const struct error *err)
{
    pthread_mutex_lock(&answer->lock);
    answer->result = result;
    answer->record = record;
    answer->json = json;
    if (result < 0 && err)
        answer->err = *err;
    answer->is_done = true;
    pthread_cond_signal(&answer->changed);
    pthread_mutex_unlock(&answer->lock);
}

static int wait_for(struct answer *answer, struct record **ret, json_t **ret_json, struct error *err)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += SUPPORT_PATIENCE_MS / 1000;
    pthread_mutex_lock(&answer->lock);
    while (!answer->is_done)
        if (pthread_cond_timedwait(&answer->changed, &answer->lock, &until) != 0)
            fail_msg("a request was not answered within 20 s");
    pthread_mutex_unlock(&answer->lock);
    if (answer->result < 0)
        error_copy(err, &answer->err);
    if (ret)
        *ret = answer->record;
    else
        record_free(answer->record);
    if (ret_json)
        *ret_json = answer->json;
    else
        json_decref(answer->json);
    return answer->result;
}

static void on_sandbox(void *arg, int result, enum sandbox_outcome outcome, struct record *record, const struct error *err)
{
    struct answer *answer = arg;
    answer->outcome = outcome;
    put(answer, result, record, NULL, err);
}

static void on_record(void *arg, int result, struct record *record, json_t *unsaved, const struct error *err)
{
    put(arg, result, record, unsaved, err);
}

static void on_call(void *arg, int result, json_t *answer, const struct error *err)
{
    put(arg, result, NULL, json_deep_copy(answer), err); // the loop thread keeps its own
}

int world_create(struct world_fixture *fixture, const struct sandbox_request *request, enum sandbox_outcome *ret_outcome, struct record **ret,
                 struct error *err)
{
    struct answer answer = ANSWER_INIT;
    *ret = NULL;
    request_sandbox(&fixture->world, request, on_sandbox, &answer);
    int r = wait_for(&answer, ret, NULL, err);
    if (ret_outcome)
        *ret_outcome = answer.outcome;
    return r;
}

struct record *world_create_running(struct world_fixture *fixture)
{
    struct record *sandbox;
    struct error err = ERROR_INIT;
    assert_ok(world_create(fixture, REQUEST_MCP(), NULL, &sandbox, &err));
    world_settle(fixture);
    struct record *fresh = world_get_record(fixture, KIND_SANDBOX, sandbox->meta.uid);
    assert_string_equal(world_word(fixture, fresh->meta.uid), "running");
    record_free(sandbox);
    return fresh;
}

int world_destroy(struct world_fixture *fixture, const char *uid, struct record **ret, struct error *err)
{
    struct answer answer = ANSWER_INIT;
    request_destroy(&fixture->world, PRINCIPAL_MCP, uid, on_record, &answer);
    return wait_for(&answer, ret, NULL, err);
}

int world_destroy_unsaved(struct world_fixture *fixture, const char *uid, json_t **ret_unsaved, struct error *err)
{
    struct answer answer = ANSWER_INIT;
    request_destroy(&fixture->world, PRINCIPAL_MCP, uid, on_record, &answer);
    return wait_for(&answer, NULL, ret_unsaved, err);
}

int world_expose(struct world_fixture *fixture, const char *uid, int64_t port, struct record **ret, struct error *err)
{
    struct answer answer = ANSWER_INIT;
    request_expose(&fixture->world, PRINCIPAL_MCP, uid, port, on_record, &answer);
    return wait_for(&answer, ret, NULL, err);
}

int world_decide(struct world_fixture *fixture, const char *approval, const char *decision, int64_t shown, struct error *err)
{
    struct answer answer = ANSWER_INIT;
    request_decision(&fixture->world, "operator:uid=0", "test", approval, decision, shown, NULL, false, on_record, &answer);
    int r = wait_for(&answer, NULL, NULL, err);
    world_settle(fixture);
    return r;
}

int world_delete(struct world_fixture *fixture, enum kind kind, const char *uid, struct error *err)
{
    struct answer answer = ANSWER_INIT;
    request_delete(&fixture->world, "operator:uid=0", "test", kind, uid, 0, on_record, &answer);
    int r = wait_for(&answer, NULL, NULL, err);
    world_settle(fixture);
    return r;
}

struct record *world_get_record(struct world_fixture *fixture, enum kind kind, const char *uid)
{
    struct record *record = NULL;
    struct error err = ERROR_INIT;
    assert_ok(store_get_uid(fixture->world.store, kind, uid, &record, &err));
    return record;
}

const char *world_word(struct world_fixture *fixture, const char *uid)
{
    static char word[32];
    CLEANUP_RECORD struct record *sandbox = world_get_record(fixture, KIND_SANDBOX, uid);
    CLEANUP_JSON json_t *json = render_sandbox(&fixture->world, sandbox);
    snprintf(word, sizeof(word), "%s", json_get_text(json, "status"));
    return word;
}

int world_call(struct world_fixture *fixture, const char *uid, const char *tool, json_t *arguments, json_t **ret, struct error *err)
{
    struct answer answer = ANSWER_INIT;
    lane_call_tool(fixture->world.lanes, uid, tool, arguments, on_call, &answer);
    return wait_for(&answer, NULL, ret, err);
}

char *world_make_host_dir(struct world_fixture *fixture, const char *name)
{
    struct error err = ERROR_INIT;
    char *path = mem_format("%s/repositories/%s", fixture->dir, name);
    assert_ok(fs_make_private_dir(path, NULL, &err));
    return path;
}

char *world_make_repository(struct world_fixture *fixture, const char *name)
{
    static const char *const parts[] = {".git", ".git/objects", ".git/objects/info", ".git/refs"};
    struct error err = ERROR_INIT;
    char *path = world_make_host_dir(fixture, name);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        CLEANUP_FREE char *part = mem_format("%s/%s", path, parts[i]);
        assert_ok(fs_make_private_dir(part, NULL, &err));
    }
    return path;
}
