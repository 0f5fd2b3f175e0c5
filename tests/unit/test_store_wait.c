// Waiters: none is lost, none runs twice, all end.
#include "tests/support/store_fixture.h"
#include "controller/base/memory.h"
#include "controller/loop.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FAR 3600000

struct rig {
    struct store_fixture *fixture;
    struct loop *loop;
    struct record *record;
};

struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int runs, timeouts;
};
#define WAITING_INIT {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER}

static void resumed(void *arg, bool is_timeout)
{
    struct waiting *waiting = arg;
    pthread_mutex_lock(&waiting->lock);
    waiting->runs++;
    waiting->timeouts += is_timeout;
    pthread_cond_broadcast(&waiting->changed);
    pthread_mutex_unlock(&waiting->lock);
}

static bool wait_until(struct waiting *waiting, int runs)
{
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += SUPPORT_PATIENCE_MS / 1000;
    int r = 0;
    pthread_mutex_lock(&waiting->lock);
    while (waiting->runs < runs && r == 0)
        r = pthread_cond_timedwait(&waiting->changed, &waiting->lock, &deadline);
    pthread_mutex_unlock(&waiting->lock);
    return r == 0;
}

static int setup(void **state)
{
    struct error err = ERROR_INIT;
    struct rig *rig = mem_alloc(sizeof(*rig));
    rig->fixture = store_fixture_open();
    assert_ok(loop_start(rig->fixture->clock, &rig->loop, &err));
    rig->record = store_fixture_create(rig->fixture, store_fixture_approval("/srv/a"));
    *state = rig;
    return 0;
}

static int teardown(void **state)
{
    struct rig *rig = *state;
    store_close(rig->fixture->store); // before the loop: its last waiters are resumed through it
    rig->fixture->store = NULL;
    loop_stop(rig->loop);
    record_free(rig->record);
    store_fixture_close(rig->fixture);
    free(rig);
    return 0;
}

static struct store_waiter *start(struct rig *rig, int64_t after, int64_t wait_ms, struct waiting *waiting)
{
    struct boot_time deadline = {clock_boot(rig->fixture->clock).ms + wait_ms};
    return store_wait(rig->fixture->store, rig->loop, rig->record->meta.uid, after, deadline, resumed, waiting);
}

static void touch(struct rig *rig)
{
    struct error err = ERROR_INIT;
    static int count;
    CLEANUP_RECORD struct record *fresh = store_fixture_get(rig->fixture, rig->record);
    CLEANUP_FREE char *value = mem_format("%d", ++count);
    text_map_set(&fresh->meta.annotations, "count", value);
    assert_ok(store_fixture_write_meta(rig->fixture->store, fresh, &err));
}

static void a_waiter_is_resumed_by_the_next_change_of_its_record_only(void **state)
{
    struct rig *rig = *state;
    struct waiting waiting = WAITING_INIT;
    struct store_waiter *waiter = start(rig, rig->record->meta.resource_version, FAR, &waiting);
    for (int i = 0; i < 20; i++)
        record_free(store_fixture_create(rig->fixture, store_fixture_workspace(NULL)));
    assert_int_equal(waiting.runs, 0);
    touch(rig);
    assert_true(wait_until(&waiting, 1));
    assert_int_equal(waiting.timeouts, 0);
    touch(rig);
    assert_false(store_wait_cancel(waiter)); // long gone
    assert_int_equal(waiting.runs, 1);
}

static void a_change_before_the_wait_resumes_at_once(void **state)
{
    struct rig *rig = *state;
    struct waiting waiting = WAITING_INIT;
    start(rig, rig->record->meta.resource_version - 1, FAR, &waiting);
    assert_true(wait_until(&waiting, 1));
    assert_int_equal(waiting.timeouts, 0);
}

static void waiting_for_a_record_that_is_not_there_ends_at_once(void **state)
{
    struct rig *rig = *state;
    struct waiting waiting = WAITING_INIT;
    store_wait(rig->fixture->store, rig->loop, "approval_unknown", 0, (struct boot_time){INT64_MAX}, resumed, &waiting);
    assert_true(wait_until(&waiting, 1));
}

static void a_deadline_ends_the_wait_once(void **state)
{
    struct rig *rig = *state;
    struct waiting waiting = WAITING_INIT;
    start(rig, rig->record->meta.resource_version, 50000, &waiting);
    clock_advance(rig->fixture->clock, 49000);
    usleep(20000);
    assert_int_equal(waiting.runs, 0);
    clock_advance(rig->fixture->clock, 1001);
    assert_true(wait_until(&waiting, 1));
    assert_int_equal(waiting.timeouts, 1);
    touch(rig);
    usleep(20000);
    assert_int_equal(waiting.runs, 1);
}

static void a_cancelled_waiter_does_not_run(void **state)
{
    struct rig *rig = *state;
    struct waiting waiting = WAITING_INIT;
    struct store_waiter *waiter = start(rig, rig->record->meta.resource_version, 1000, &waiting);
    assert_true(store_wait_cancel(waiter));
    assert_false(store_wait_cancel(waiter));
    touch(rig);
    clock_advance(rig->fixture->clock, 2000);
    usleep(20000);
    assert_int_equal(waiting.runs, 0);
}

static void closing_the_store_resumes_all_as_timed_out(void **state)
{
    struct rig *rig = *state;
    struct waiting waiting = WAITING_INIT;
    for (int i = 0; i < 10; i++)
        start(rig, rig->record->meta.resource_version, FAR, &waiting);
    store_close(rig->fixture->store);
    rig->fixture->store = NULL;
    assert_int_equal(waiting.runs, 10);
    assert_int_equal(waiting.timeouts, 10);
}

// ---- the race that loses wake-ups --------------------------------------------------------------------------------------

#define ROUNDS 2000

struct chaser {
    struct rig *rig;
    int64_t seen;
    const char *failure;
};

static void *chase(void *arg)
{
    struct chaser *chaser = arg;
    int64_t last = chaser->rig->record->meta.resource_version + ROUNDS;
    while (chaser->seen < last) {
        struct waiting waiting = WAITING_INIT;
        start(chaser->rig, chaser->seen, FAR, &waiting);
        if (!wait_until(&waiting, 1))
            return chaser->failure = "a wake-up was lost", NULL;
        CLEANUP_RECORD struct record *fresh = NULL;
        if (store_get_uid(chaser->rig->fixture->store, KIND_APPROVAL, chaser->rig->record->meta.uid, &fresh, NULL) < 0)
            return chaser->failure = "the record cannot be read", NULL;
        if (fresh->meta.resource_version <= chaser->seen)
            return chaser->failure = "resumed without a change", NULL;
        chaser->seen = fresh->meta.resource_version;
    }
    return NULL;
}

static void no_wake_up_is_lost_while_a_writer_races_with_the_waiting(void **state)
{
    struct rig *rig = *state;
    struct chaser chasers[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        chasers[i] = (struct chaser){.rig = rig, .seen = rig->record->meta.resource_version};
        pthread_create(&threads[i], NULL, chase, &chasers[i]);
    }
    for (int i = 0; i < ROUNDS; i++)
        touch(rig);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        if (chasers[i].failure)
            fail_msg("%s", chasers[i].failure);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    if (access("/dev/shm", W_OK) == 0) // what is tested is order, not the disk
        setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        TEST(a_waiter_is_resumed_by_the_next_change_of_its_record_only),
        TEST(a_change_before_the_wait_resumes_at_once),
        TEST(waiting_for_a_record_that_is_not_there_ends_at_once),
        TEST(a_deadline_ends_the_wait_once),
        TEST(a_cancelled_waiter_does_not_run),
        TEST(closing_the_store_resumes_all_as_timed_out),
        TEST(no_wake_up_is_lost_while_a_writer_races_with_the_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
