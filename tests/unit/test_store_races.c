// Invariants that are settled in the writing transaction, whoever comes first.
#include "tests/support/store_fixture.h"
#include "controller/base/memory.h"
#include "controller/base/random.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_setup, store_fixture_teardown)

static void a_workspace_has_one_live_sandbox(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *workspace = store_fixture_create(fixture, store_fixture_workspace("dev"));
    CLEANUP_RECORD struct record *first = store_fixture_create(fixture, store_fixture_sandbox("first", workspace));
    CLEANUP_RECORD struct record *second = store_fixture_sandbox("second", workspace);
    assert_error(store_fixture_try_create(fixture->store, second, &err), ERROR_CONFLICT);
    assert_non_null(strstr(err.message, "'first'"));
    assert_ok(store_fixture_delete(fixture->store, KIND_SANDBOX, first->meta.uid, &err));
    assert_error(store_fixture_try_create(fixture->store, second, &err), ERROR_CONFLICT); // dying, not confirmed gone
    CLEANUP_RECORD struct record *dying = store_fixture_get(fixture, first);
    text_list_clear(&dying->meta.finalizers);
    assert_ok(store_fixture_write_meta(fixture->store, dying, &err));
    store_fixture_create(fixture, second);
}

static void binding_a_second_sandbox_to_a_workspace_is_a_conflict(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *workspace = store_fixture_create(fixture, store_fixture_workspace("dev"));
    record_free(store_fixture_create(fixture, store_fixture_sandbox("first", workspace)));
    CLEANUP_RECORD struct record *second = store_fixture_sandbox("second", workspace);
    mem_replace(&second->status.sandbox.workspace_uid, NULL);
    store_fixture_create(fixture, second);
    mem_replace(&second->status.sandbox.workspace_uid, workspace->meta.uid);
    assert_error(store_write_status(fixture->store, second, &err), ERROR_CONFLICT);
    CLEANUP_RECORD struct record *fresh = store_fixture_get(fixture, second);
    assert_null(fresh->status.sandbox.workspace_uid);
}

static void a_bound_uid_must_be_one_that_exists(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *nobody = store_fixture_workspace("ghost");
    nobody->meta.uid = mem_strdup("ws_aaaaaaaaaaaaaaaaaaaaaaaaaa");
    CLEANUP_RECORD struct record *sandbox = store_fixture_sandbox("box", nobody);
    assert_error(store_fixture_try_create(fixture->store, sandbox, &err), ERROR_CONFLICT);
    mem_replace(&sandbox->status.sandbox.workspace_uid, NULL); // a name may dangle
    store_fixture_create(fixture, sandbox);
}

static void a_path_and_mode_has_one_pending_approval(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *first = store_fixture_create(fixture, store_fixture_approval("/srv/a"));
    CLEANUP_RECORD struct record *second = store_fixture_approval("/srv/a");
    assert_error(store_fixture_try_create(fixture->store, second, &err), ERROR_CONFLICT);
    assert_non_null(strstr(err.message, first->meta.uid));
    CLEANUP_RECORD struct record *other_mode = store_fixture_approval("/srv/a");
    other_mode->spec.approval.mode = WORKSPACE_DIRECT;
    store_fixture_create(fixture, other_mode);
    first->spec.approval.decision = APPROVAL_REJECTED;
    assert_ok(store_fixture_write_spec(fixture->store, first, &err));
    store_fixture_create(fixture, second);
}

static void a_port_of_a_sandbox_has_one_exposure(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *workspace = store_fixture_create(fixture, store_fixture_workspace("dev"));
    CLEANUP_RECORD struct record *sandbox = store_fixture_create(fixture, store_fixture_sandbox("box", workspace));
    CLEANUP_RECORD struct record *first = store_fixture_create(fixture, store_fixture_exposure("web", sandbox, 8080));
    CLEANUP_RECORD struct record *second = store_fixture_exposure("web-2", sandbox, 8080);
    assert_error(store_fixture_try_create(fixture->store, second, &err), ERROR_CONFLICT);
    assert_non_null(strstr(err.message, "'web'"));
    record_free(store_fixture_create(fixture, store_fixture_exposure("api", sandbox, 8081)));
    assert_ok(store_fixture_delete(fixture->store, KIND_EXPOSURE, first->meta.uid, &err));
    store_fixture_create(fixture, second);
}

// ---- threads ------------------------------------------------------------------------------------------------------

struct racer {
    pthread_t thread;
    struct store *store;
    struct record *record;
    pthread_barrier_t *start;
    int result;
    struct error err;
};

static void *race(void *arg)
{
    struct racer *racer = arg;
    pthread_barrier_wait(racer->start);
    racer->result = store_fixture_try_create(racer->store, racer->record, &racer->err);
    return NULL;
}

static void of_threads_that_create_the_same_active_sandbox_one_wins(void **state)
{
    struct store_fixture *fixture = *state;
    for (int round = 0; round < 30; round++) {
        CLEANUP_RECORD struct record *workspace = store_fixture_create(fixture, store_fixture_workspace(NULL));
        struct racer racers[4] = {0};
        pthread_barrier_t start;
        pthread_barrier_init(&start, NULL, 4);
        for (int i = 0; i < 4; i++) {
            racers[i] = (struct racer){.store = fixture->store, .record = store_fixture_sandbox(NULL, workspace), .start = &start};
            assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
        }
        int wins = 0;
        for (int i = 0; i < 4; i++) {
            pthread_join(racers[i].thread, NULL);
            wins += racers[i].result == 0;
            assert_true(racers[i].result == 0 || racers[i].err.code == ERROR_CONFLICT);
            record_free(racers[i].record);
        }
        pthread_barrier_destroy(&start);
        assert_int_equal(wins, 1);
    }
}

// Two writers append their own letter to one annotation from a read that may be stale. What ends up there must hold exactly
// the accepted writes, each once and in the order of their revisions: a serial order.
#define WRITES 5000
struct appender {
    pthread_t thread;
    struct store_fixture *fixture;
    const char *uid;
    unsigned seed;
    int64_t *accepted; // revision of each write that went through
    size_t count;
};

static int try_append(struct store *store, const char *uid, int64_t *ret_revision)
{
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *record = NULL;
    if (store_get_uid(store, KIND_WORKSPACE, uid, &record, &err) < 0)
        return -1;
    const char *count = text_map_get(&record->meta.annotations, "count");
    CLEANUP_FREE char *next = mem_format("%ld", (count ? atol(count) : 0) + 1);
    text_map_set(&record->meta.annotations, "count", next);
    if (store_fixture_write_meta(store, record, &err) < 0)
        return err.code == ERROR_CONFLICT ? 0 : -1;
    *ret_revision = record->meta.resource_version;
    return 1;
}

static void *append(void *arg)
{
    struct appender *appender = arg;
    for (int i = 0; i < WRITES; i++) {
        int r = try_append(appender->fixture->store, appender->uid, &appender->accepted[appender->count]);
        if (r < 0)
            return (void *)"a write failed for another reason than a conflict";
        appender->count += (size_t)r;
        if (rand_r(&appender->seed) % 4 == 0)
            sched_yield();
    }
    return NULL;
}

static void ten_thousand_interleaved_writes_end_in_a_serial_order(void **state)
{
    struct store_fixture *fixture = *state;
    CLEANUP_RECORD struct record *workspace = store_fixture_create(fixture, store_fixture_workspace("dev"));
    struct appender appenders[2];
    for (int i = 0; i < 2; i++) {
        appenders[i] = (struct appender){.fixture = fixture, .uid = workspace->meta.uid, .seed = random_below(1u << 30),
                                         .accepted = calloc(WRITES + 1, sizeof(int64_t))};
        assert_int_equal(pthread_create(&appenders[i].thread, NULL, append, &appenders[i]), 0);
    }
    size_t accepted = 0;
    for (int i = 0; i < 2; i++) {
        void *why = NULL;
        pthread_join(appenders[i].thread, &why);
        if (why)
            fail_msg("%s", (const char *)why);
        accepted += appenders[i].count;
        for (size_t j = 1; j < appenders[i].count; j++)
            assert_true(appenders[i].accepted[j] > appenders[i].accepted[j - 1]);
        free(appenders[i].accepted);
    }
    CLEANUP_RECORD struct record *end = store_fixture_get(fixture, workspace);
    assert_int_equal(atol(text_map_get(&end->meta.annotations, "count")), accepted); // none lost, none doubled
    assert_int_equal(store_revision(fixture->store), workspace->meta.resource_version + (int64_t)accepted);
    assert_true(accepted >= WRITES);
}

int main(void)
{
    if (access("/dev/shm", W_OK) == 0) // what is tested is order, not the disk
        setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        TEST(a_workspace_has_one_live_sandbox),
        TEST(binding_a_second_sandbox_to_a_workspace_is_a_conflict),
        TEST(a_bound_uid_must_be_one_that_exists),
        TEST(a_path_and_mode_has_one_pending_approval),
        TEST(a_port_of_a_sandbox_has_one_exposure),
        TEST(of_threads_that_create_the_same_active_sandbox_one_wins),
        TEST(ten_thousand_interleaved_writes_end_in_a_serial_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
