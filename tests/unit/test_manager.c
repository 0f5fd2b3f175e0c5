#include "tests/support/support.h"
#include "tests/support/store_fixture.h"
#include "controller/manager.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

// A reconciler whose answers the test decides.
struct script {
    enum reconcile_verdict verdict;
    enum error_code code;
    int64_t after_ms;
    atomic_int runs, mapped, recovered, upkeep;
    atomic_bool is_inside, may_leave, is_slow;
    struct store_fixture *fixture; // set: writes a condition like a real reconciler
    pthread_mutex_t lock;
    char seen[4096]; // uids in order, with blanks
};

struct fixture {
    struct store_fixture *store; // NULL in tests without one
    struct clock *clock;
    struct manager *manager;
    struct script script;
    size_t resync_max; // 0: the usual
};

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void note(struct script *script, const char *uid)
{
    pthread_mutex_lock(&script->lock);
    size_t len = strlen(script->seen);
    snprintf(script->seen + len, sizeof(script->seen) - len, "%s ", uid);
    pthread_mutex_unlock(&script->lock);
}

static int write_ready(struct script *script, const char *uid, struct error *err)
{
    CLEANUP_RECORD struct record *record = NULL;
    if (store_get_uid(script->fixture->store, KIND_WORKSPACE, uid, &record, err) < 0)
        return -1;
    record_set_condition(record, "Ready", CONDITION_TRUE, clock_wall(script->fixture->clock), "Made",
                         "it is there");
    return store_write_status(script->fixture->store, record, err);
}

static enum reconcile_verdict reconcile(void *arg, const char *uid, struct reconcile_outcome *outcome,
                                        struct error *err)
{
    struct script *script = arg;
    script->runs++;
    note(script, uid);
    if (script->is_slow && strcmp(uid, "slow") == 0) {
        script->is_inside = true;
        while (!script->may_leave)
            sleep_ms(1);
    }
    if (script->fixture && write_ready(script, uid, err) < 0)
        return RECONCILE_FAILED;
    outcome->after_ms = script->after_ms;
    if (script->verdict == RECONCILE_FAILED)
        error_set(err, script->code, "try it", "the script says no");
    return script->verdict;
}

static void map_change(void *arg, struct manager *manager, const struct store_change *change)
{
    struct script *script = arg;
    script->mapped++;
    if (change->kind == KIND_APPROVAL)
        manager_enqueue(manager, KIND_WORKSPACE, "from-approval");
}

static int recover(void *arg, struct error *err)
{
    struct script *script = arg;
    (void)err;
    assert_int_equal(script->runs, 0);
    script->recovered++;
    return 0;
}

static struct manager *make_manager(struct fixture *it, int worker_count)
{
    struct manager_options options = {
        .clock = it->clock, .store = it->store ? it->store->store : NULL, .worker_count = worker_count, .resync_max = it->resync_max};
    it->manager = manager_new(&options);
    manager_add(it->manager, &(struct reconciler){
                                 .name = "workspace",
                                 .kind = KIND_WORKSPACE,
                                 .reconcile = reconcile,
                                 .map_change = map_change,
                                 .recover = recover,
                                 .arg = &it->script,
                             });
    return it->manager;
}

static void start(struct fixture *it, int worker_count)
{
    struct error err = ERROR_INIT;
    assert_ok(manager_start(make_manager(it, worker_count), &err));
}

static struct fixture *fixture_new(struct store_fixture *store, struct clock *clock)
{
    struct fixture *it = mem_alloc(sizeof(*it));
    it->store = store;
    it->clock = clock;
    pthread_mutex_init(&it->script.lock, NULL);
    return it;
}

static int set_up(void **state)
{
    *state = fixture_new(NULL, clock_new_fake((struct wall_time){0}));
    return 0;
}

static int set_up_real(void **state)
{
    *state = fixture_new(NULL, clock_new_real());
    return 0;
}

static int set_up_store(void **state)
{
    struct store_fixture *store = store_fixture_open();
    *state = fixture_new(store, store->clock);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *it = *state;
    assert_true(manager_stop(it->manager, SUPPORT_PATIENCE_MS));
    manager_free(it->manager);
    if (it->store)
        store_fixture_close(it->store);
    else
        clock_free(it->clock);
    pthread_mutex_destroy(&it->script.lock);
    free(it);
    return 0;
}

static void await_runs(struct fixture *it, int runs)
{
    support_await(1, it->script.runs >= runs);
    assert_int_equal(it->script.runs, runs);
}

static struct manager_stats stats_of(struct fixture *it)
{
    struct manager_stats stats;
    assert_int_equal(manager_get_stats(it->manager, &stats, 1), 1);
    return stats;
}

// ---- verdicts, on the caller's thread -----------------------------------------------------------

static void a_key_runs_once_and_then_nothing_does(void **state)
{
    struct fixture *it = *state;
    start(it, -1);
    assert_int_equal(it->script.recovered, 1);
    manager_enqueue(it->manager, KIND_WORKSPACE, "a");
    manager_enqueue(it->manager, KIND_WORKSPACE, "a");
    manager_enqueue(it->manager, KIND_SANDBOX, "nobody's");
    assert_int_equal(manager_run_until_idle(it->manager, 100), 1);
    clock_advance(it->clock, 24LL * 3600 * 1000);
    assert_int_equal(manager_run_until_idle(it->manager, 100), 0);
    assert_string_equal(it->script.seen, "a ");
}

static void after_runs_again_at_its_time(void **state)
{
    struct fixture *it = *state;
    start(it, -1);
    it->script.verdict = RECONCILE_AFTER;
    it->script.after_ms = 24LL * 3600 * 1000;
    manager_enqueue_after(it->manager, KIND_WORKSPACE, "a", 10);
    assert_int_equal(manager_run_until_idle(it->manager, 100), 0);
    clock_advance(it->clock, 10);
    assert_int_equal(manager_run_until_idle(it->manager, 100), 1);
    clock_advance(it->clock, it->script.after_ms - 1);
    assert_int_equal(manager_run_until_idle(it->manager, 100), 0);
    clock_advance(it->clock, 1);
    assert_int_equal(manager_run_until_idle(it->manager, 100), 1);
}

static void after_nothing_does_not_spin(void **state)
{
    struct fixture *it = *state;
    start(it, -1);
    it->script.verdict = RECONCILE_AFTER;
    manager_enqueue(it->manager, KIND_WORKSPACE, "a");
    assert_int_equal(manager_run_until_idle(it->manager, 100), 1);
}

static void a_failure_is_retried_with_backoff_and_counted(void **state)
{
    struct fixture *it = *state;
    start(it, -1);
    it->script.verdict = RECONCILE_FAILED;
    it->script.code = ERROR_IO;
    manager_enqueue(it->manager, KIND_WORKSPACE, "a");
    assert_int_equal(manager_run_until_idle(it->manager, 100), 1);
    clock_advance(it->clock, 179);
    assert_int_equal(manager_run_until_idle(it->manager, 100), 0);
    clock_advance(it->clock, 41);
    assert_int_equal(manager_run_until_idle(it->manager, 100), 1);
    clock_advance(it->clock, 359);
    assert_int_equal(manager_run_until_idle(it->manager, 100), 0);
    it->script.verdict = RECONCILE_DONE;
    clock_advance(it->clock, 81);
    assert_int_equal(manager_run_until_idle(it->manager, 100), 1);
    struct manager_stats stats = stats_of(it);
    assert_string_equal(stats.name, "workspace");
    assert_int_equal(stats.runs, 3);
    assert_int_equal(stats.failures, 2);
    assert_int_equal(stats.depth, 0);
}

static void conflicts_are_retried_at_once_and_are_no_failure_until_the_sixth(void **state)
{
    struct fixture *it = *state;
    start(it, -1);
    it->script.verdict = RECONCILE_FAILED;
    it->script.code = ERROR_CONFLICT;
    manager_enqueue(it->manager, KIND_WORKSPACE, "a");
    for (int i = 0; i < 5; i++) {
        assert_int_equal(manager_run_until_idle(it->manager, 100), 1);
        assert_int_equal(stats_of(it).failures, 0);
        clock_advance(it->clock, 11);
    }
    assert_int_equal(manager_run_until_idle(it->manager, 100), 1);
    assert_int_equal(stats_of(it).failures, 1);
    clock_advance(it->clock, 100);
    assert_int_equal(manager_run_until_idle(it->manager, 100), 0);
}

// What a run of `fn` writes on standard error.
static char *errors_of(void (*fn)(struct fixture *it), struct fixture *it)
{
    FILE *file = tmpfile();
    int before = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    fn(it);
    dup2(before, STDERR_FILENO);
    close(before);
    char text[8192];
    rewind(file);
    size_t len = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    return mem_strndup(text, len);
}

static void fail_five_times(struct fixture *it)
{
    manager_enqueue(it->manager, KIND_WORKSPACE, "a");
    for (int i = 0; i < 5; i++) {
        manager_run_until_idle(it->manager, 100);
        clock_advance(it->clock, 60000);
    }
}

static void the_same_failure_of_a_key_is_logged_once_until_it_succeeded(void **state)
{
    struct fixture *it = *state;
    start(it, -1);
    it->script.verdict = RECONCILE_FAILED;
    it->script.code = ERROR_IO;
    CLEANUP_FREE char *first = errors_of(fail_five_times, it);
    char *says = strstr(first, "workspace a: the script says no; try it\n");
    assert_non_null(says);
    assert_null(strstr(says + strlen("workspace a: the script says no"), "says no"));
    it->script.verdict = RECONCILE_DONE;
    manager_run_until_idle(it->manager, 100);
    it->script.verdict = RECONCILE_FAILED;
    CLEANUP_FREE char *second = errors_of(fail_five_times, it);
    assert_non_null(strstr(second, "says no"));
}

// ---- workers ------------------------------------------------------------------------------------

static void a_slow_key_does_not_hold_up_the_others(void **state)
{
    struct fixture *it = *state;
    start(it, 0);
    it->script.is_slow = true;
    manager_enqueue(it->manager, KIND_WORKSPACE, "slow");
    while (!it->script.is_inside)
        sleep_ms(1);
    char uid[16];
    for (int i = 0; i < 50; i++) {
        snprintf(uid, sizeof(uid), "k%d", i);
        manager_enqueue(it->manager, KIND_WORKSPACE, uid);
        if (i % 10 == 9)
            sleep_ms(5);
    }
    manager_enqueue_after(it->manager, KIND_WORKSPACE, "later", 20);
    await_runs(it, 52);
    it->script.may_leave = true;
}

static void workers_hear_the_fake_clock(void **state)
{
    struct fixture *it = *state;
    start(it, 2);
    it->script.verdict = RECONCILE_AFTER;
    it->script.after_ms = 3600000;
    manager_enqueue(it->manager, KIND_WORKSPACE, "a");
    for (int before; (before = it->script.runs) < 20;) {
        for (int i = 0; i < 10000 && it->script.runs == before;
             i++) { // the verdict is applied some time after the run
            sleep_ms(1);
            clock_advance(it->clock, 3600000);
        }
        assert_true(it->script.runs > before);
    }
}

static void stopping_waits_for_a_running_reconcile_but_not_for_ever(void **state)
{
    struct fixture *it = *state;
    start(it, 0);
    it->script.is_slow = true;
    manager_enqueue(it->manager, KIND_WORKSPACE, "slow");
    while (!it->script.is_inside)
        sleep_ms(1);
    int64_t start_ms = boot_time_now().ms;
    assert_false(manager_stop(it->manager, 30));
    assert_true(boot_time_now().ms - start_ms >= 29);
    manager_enqueue(it->manager, KIND_WORKSPACE, "too late");
    it->script.may_leave = true;
    assert_true(manager_stop(it->manager, SUPPORT_PATIENCE_MS));
    assert_int_equal(it->script.runs, 1);
}

struct bell {
    struct manager *manager;
    int first;
};

static void *ring(void *arg)
{
    struct bell *bell = arg;
    char uid[16];
    for (int i = 0; i < 500; i++) {
        snprintf(uid, sizeof(uid), "u%d", bell->first + i);
        manager_enqueue(bell->manager, KIND_WORKSPACE, uid);
        manager_enqueue_after(bell->manager, KIND_WORKSPACE, uid, 1 + i % 5);
    }
    return NULL;
}

static void no_key_of_many_threads_is_lost(void **state)
{
    struct fixture *it = *state;
    start(it, 0);
    pthread_t threads[3];
    struct bell bells[3];
    for (int i = 0; i < 3; i++) {
        bells[i] = (struct bell){it->manager, i * 1000};
        assert_int_equal(pthread_create(&threads[i], NULL, ring, &bells[i]), 0);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    support_await(1, it->script.runs >= 1500);
    sleep_ms(50);
    assert_in_range(it->script.runs, 1500, 3000);
    assert_int_equal(stats_of(it).depth, 0);
}

// ---- with the store -----------------------------------------------------------------------------

static int64_t revision_of(struct fixture *it)
{
    return store_revision(it->store->store);
}

static void a_stored_record_is_reconciled_and_settles_without_a_hot_loop(void **state)
{
    struct fixture *it = *state;
    it->script.fixture = it->store;
    start(it, -1);
    CLEANUP_RECORD struct record *record = store_fixture_create(it->store, store_fixture_workspace("dev"));
    // Its own status write brings it back once, and that run writes nothing.
    assert_int_equal(manager_run_until_idle(it->manager, 100), 2);
    int64_t revision = revision_of(it);
    assert_int_equal(manager_run_until_idle(it->manager, 100), 0);
    manager_enqueue(it->manager, KIND_WORKSPACE, record->meta.uid);
    assert_int_equal(manager_run_until_idle(it->manager, 100), 1);
    assert_int_equal(revision_of(it), revision);
}

static void changes_of_other_kinds_are_mapped(void **state)
{
    struct fixture *it = *state;
    start(it, -1);
    CLEANUP_RECORD struct record *record = store_fixture_create(it->store, store_fixture_approval("/srv/x"));
    assert_int_equal(manager_run_until_idle(it->manager, 100), 1);
    assert_string_equal(it->script.seen, "from-approval ");
    assert_int_equal(it->script.mapped, 1);
}

static void everything_is_reconciled_at_the_start_and_once_a_minute(void **state)
{
    struct fixture *it = *state;
    char name[16];
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof(name), "w%d", i);
        record_free(store_fixture_create(it->store, store_fixture_workspace(name)));
    }
    start(it, -1);
    assert_int_equal(manager_run_until_idle(it->manager, 100), 5);
    clock_advance(it->clock, 53999);
    assert_int_equal(manager_run_until_idle(it->manager, 100), 0);
    clock_advance(it->clock, 12002);
    assert_int_equal(manager_run_until_idle(it->manager, 100), 6); // the resync itself is a step
    assert_int_equal(it->script.runs, 10);
}

static void a_resync_of_many_records_takes_several_turns_and_leaves_none_out(void **state)
{
    struct fixture *it = *state;
    struct text_list names = {0};
    char name[16];
    it->resync_max = 2;
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof(name), "w%d", i);
        CLEANUP_RECORD struct record *record = store_fixture_create(it->store, store_fixture_workspace(name));
        text_list_add(&names, record->meta.uid);
    }
    start(it, -1);
    assert_int_equal(manager_run_until_idle(it->manager, 100), 5); // at the start all
    it->script.seen[0] = '\0';
    for (int i = 0; i < 3; i++) {
        clock_advance(it->clock, 66001);
        assert_int_equal(manager_run_until_idle(it->manager, 100), i < 2 ? 3 : 2); // the resync itself is a step
    }
    for (size_t i = 0; i < names.count; i++)
        assert_non_null(strstr(it->script.seen, names.items[i]));
    text_list_clear(&names);
}

static void an_idle_hour_with_200_settled_records_writes_nothing(void **state)
{
    struct fixture *it = *state;
    it->script.fixture = it->store;
    char name[16];
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "w%d", i);
        record_free(store_fixture_create(it->store, store_fixture_workspace(name)));
    }
    start(it, -1);
    manager_run_until_idle(it->manager, 10000);
    struct store_stats before, after;
    struct error err = ERROR_INIT;
    assert_ok(store_stats(it->store->store, &before, &err));
    int runs = it->script.runs;
    struct rusage used_before, used_after;
    getrusage(RUSAGE_SELF, &used_before);
    for (int minute = 0; minute < 60; minute++) {
        clock_advance(it->clock, 60000);
        manager_run_until_idle(it->manager, 10000);
    }
    getrusage(RUSAGE_SELF, &used_after);
    assert_ok(store_stats(it->store->store, &after, &err));
    assert_int_equal(after.revision, before.revision);
    assert_true(it->script.runs - runs <= 200 * 67); // resyncs come at most every 54 s
    print_message("one idle hour: %ld ms of CPU time\n",
                  (used_after.ru_utime.tv_sec - used_before.ru_utime.tv_sec + used_after.ru_stime.tv_sec -
                   used_before.ru_stime.tv_sec) *
                          1000 +
                      (used_after.ru_utime.tv_usec - used_before.ru_utime.tv_usec +
                       used_after.ru_stime.tv_usec - used_before.ru_stime.tv_usec) /
                          1000);
}

static bool is_ready(struct fixture *it, const struct record *record)
{
    CLEANUP_RECORD struct record *fresh = store_fixture_get(it->store, record);
    return record_is_true(fresh, "Ready");
}

static void workers_follow_the_store(void **state)
{
    struct fixture *it = *state;
    it->script.fixture = it->store;
    start(it, 0);
    char name[16];
    struct record *records[20];
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "w%d", i);
        records[i] = store_fixture_create(it->store, store_fixture_workspace(name));
    }
    for (int i = 0; i < 20; i++) {
        assert_true(support_await(1, is_ready(it, records[i])));
        record_free(records[i]);
    }
}

#define ON(test, set_up) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON(a_key_runs_once_and_then_nothing_does, set_up),
        ON(after_runs_again_at_its_time, set_up),
        ON(after_nothing_does_not_spin, set_up),
        ON(a_failure_is_retried_with_backoff_and_counted, set_up),
        ON(conflicts_are_retried_at_once_and_are_no_failure_until_the_sixth, set_up),
        ON(the_same_failure_of_a_key_is_logged_once_until_it_succeeded, set_up),
        ON(a_slow_key_does_not_hold_up_the_others, set_up_real),
        ON(workers_hear_the_fake_clock, set_up),
        ON(stopping_waits_for_a_running_reconcile_but_not_for_ever, set_up_real),
        ON(no_key_of_many_threads_is_lost, set_up_real),
        ON(a_stored_record_is_reconciled_and_settles_without_a_hot_loop, set_up_store),
        ON(changes_of_other_kinds_are_mapped, set_up_store),
        ON(everything_is_reconciled_at_the_start_and_once_a_minute, set_up_store),
        ON(a_resync_of_many_records_takes_several_turns_and_leaves_none_out, set_up_store),
        ON(an_idle_hour_with_200_settled_records_writes_nothing, set_up_store),
        ON(workers_follow_the_store, set_up_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
