#include "tests/support/support.h"
#include "controller/queue/queue.h"
#include "controller/base/memory.h"
#include "controller/base/random.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct fixture {
    struct clock *clock;
    struct queue *queue;
    atomic_int told; // by queue_on_ready
};

static void note_ready(void *arg)
{
    ((struct fixture *)arg)->told++;
}

static int set_up_on(void **state, struct clock *clock)
{
    struct fixture *it = mem_alloc(sizeof(*it));
    it->clock = clock;
    it->queue = queue_new(&(struct queue_options){it->clock, 200, 60000});
    queue_on_ready(it->queue, note_ready, it);
    *state = it;
    return 0;
}

static int set_up(void **state)
{
    return set_up_on(state, clock_new_fake((struct wall_time){0}));
}

static int set_up_real(void **state)
{
    return set_up_on(state, clock_new_real());
}

static int tear_down(void **state)
{
    struct fixture *it = *state;
    queue_free(it->queue);
    clock_free(it->clock);
    free(it);
    return 0;
}

// The next key must be this one; it is left in processing.
static void assert_takes(struct queue *queue, const char *expected)
{
    char *key = queue_try_take(queue);
    if (!key)
        fail_msg("nothing is ready, expected %s", expected);
    assert_string_equal(key, expected);
    free(key);
}

static void assert_empty(struct queue *queue)
{
    assert_null(queue_try_take(queue));
    assert_int_equal(queue_depth(queue), 0);
}

static void keys_come_out_in_the_order_of_adding(void **state)
{
    struct fixture *it = *state;
    const char *keys[] = {"c", "a", "b"};
    for (int i = 0; i < 3; i++)
        queue_add(it->queue, keys[i], QUEUE_CHANGE);
    assert_int_equal(queue_depth(it->queue), 3);
    for (int i = 0; i < 3; i++)
        assert_takes(it->queue, keys[i]);
    assert_empty(it->queue);
}

static void many_adds_before_processing_are_one_run(void **state)
{
    struct fixture *it = *state;
    for (int i = 0; i < 10; i++)
        queue_add(it->queue, "k", QUEUE_CHANGE);
    assert_int_equal(it->told, 1);
    assert_takes(it->queue, "k");
    assert_empty(it->queue);
    queue_done(it->queue, "k");
    assert_empty(it->queue);
}

static void adds_during_processing_mean_exactly_one_more_run_after_it(void **state)
{
    struct fixture *it = *state;
    queue_add(it->queue, "k", QUEUE_CHANGE);
    assert_takes(it->queue, "k");
    for (int i = 0; i < 10; i++)
        queue_add(it->queue, "k", QUEUE_CHANGE);
    assert_empty(it->queue); // never on two workers
    queue_done(it->queue, "k");
    assert_takes(it->queue, "k");
    queue_done(it->queue, "k");
    assert_empty(it->queue);
}

static void fresh_changes_pass_a_resync_of_everything(void **state)
{
    struct fixture *it = *state;
    char key[16];
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof(key), "r%d", i);
        queue_add(it->queue, key, QUEUE_RESYNC);
    }
    queue_add(it->queue, "fresh", QUEUE_CHANGE);
    assert_takes(it->queue, "fresh");
    assert_takes(it->queue, "r0");
}

static void a_change_lifts_a_key_that_waits_as_resync(void **state)
{
    struct fixture *it = *state;
    queue_add(it->queue, "a", QUEUE_RESYNC);
    queue_add(it->queue, "b", QUEUE_RESYNC);
    queue_add(it->queue, "b", QUEUE_CHANGE);
    queue_add(it->queue, "b", QUEUE_RESYNC);
    assert_int_equal(queue_depth(it->queue), 2);
    assert_takes(it->queue, "b");
    assert_takes(it->queue, "a");
}

static void the_priority_of_an_add_during_processing_is_kept(void **state)
{
    struct fixture *it = *state;
    queue_add(it->queue, "a", QUEUE_RESYNC);
    assert_takes(it->queue, "a");
    queue_add(it->queue, "a", QUEUE_CHANGE);
    queue_add(it->queue, "a", QUEUE_RESYNC);
    queue_add(it->queue, "b", QUEUE_RESYNC);
    queue_done(it->queue, "a");
    assert_takes(it->queue, "a");
}

static void steady_changes_do_not_starve_resyncs(void **state)
{
    struct fixture *it = *state;
    queue_add(it->queue, "old", QUEUE_RESYNC);
    char key[16];
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof(key), "c%d", i);
        queue_add(it->queue, key, QUEUE_CHANGE);
        char *taken = queue_try_take(it->queue);
        bool is_old = strcmp(taken, "old") == 0;
        free(taken);
        if (is_old)
            return;
    }
    fail_msg("the resync never had its turn");
}

static void a_delayed_key_comes_at_its_time_and_the_earliest_wins(void **state)
{
    struct fixture *it = *state;
    queue_add_after(it->queue, "k", 5000);
    queue_add_after(it->queue, "k", 1000);
    queue_add_after(it->queue, "k", 9000);
    assert_int_equal(queue_next_due(it->queue).ms, clock_boot(it->clock).ms + 1000);
    assert_int_equal(it->told, 2); // the due time became earlier twice
    clock_advance(it->clock, 999);
    assert_empty(it->queue);
    clock_advance(it->clock, 1);
    assert_takes(it->queue, "k");
    queue_done(it->queue, "k");
    clock_advance(it->clock, 100000);
    assert_empty(it->queue);
    assert_true(queue_next_due(it->queue).ms == INT64_MAX);
}

static void a_key_that_becomes_due_while_it_is_processed_runs_after_it(void **state)
{
    struct fixture *it = *state;
    queue_add(it->queue, "k", QUEUE_CHANGE);
    assert_takes(it->queue, "k");
    queue_add_after(it->queue, "k", 10);
    clock_advance(it->clock, 10);
    assert_empty(it->queue);
    queue_done(it->queue, "k");
    assert_takes(it->queue, "k");
}

static void a_very_long_delay_does_not_overflow(void **state)
{
    struct fixture *it = *state;
    queue_add_after(it->queue, "k", INT64_MAX);
    clock_advance(it->clock, 365LL * 86400 * 1000);
    assert_empty(it->queue);
}

static int64_t delay_after_failure(struct fixture *it)
{
    queue_add_failed(it->queue, "k");
    int64_t delay_ms = queue_next_due(it->queue).ms - clock_boot(it->clock).ms;
    clock_advance(it->clock, delay_ms);
    assert_takes(it->queue, "k");
    queue_done(it->queue, "k");
    return delay_ms;
}

static void backoff_doubles_with_jitter_up_to_the_maximum_and_forget_resets_it(void **state)
{
    struct fixture *it = *state;
    int64_t plain_ms = 200;
    for (int i = 0; i < 30; i++) {
        int64_t delay_ms = delay_after_failure(it);
        assert_in_range(delay_ms, plain_ms * 9 / 10, plain_ms * 11 / 10 < 60000 ? plain_ms * 11 / 10 : 60000);
        plain_ms = plain_ms * 2 < 60000 ? plain_ms * 2 : 60000;
    }
    assert_int_equal(queue_failures(it->queue, "k"), 30);
    assert_int_equal(queue_failures(it->queue, "other"), 0);
    queue_forget(it->queue, "k");
    assert_int_equal(queue_failures(it->queue, "k"), 0);
    assert_in_range(delay_after_failure(it), 180, 220);
}

static void conflicts_are_retried_quickly_five_times_and_then_backed_off(void **state)
{
    struct fixture *it = *state;
    for (int i = 0; i < 5; i++) {
        assert_true(queue_add_conflicted(it->queue, "k"));
        assert_in_range(queue_next_due(it->queue).ms - clock_boot(it->clock).ms, 9, 11);
        clock_advance(it->clock, 11);
        assert_takes(it->queue, "k");
        queue_done(it->queue, "k");
    }
    assert_false(queue_add_conflicted(it->queue, "k"));
    assert_in_range(queue_next_due(it->queue).ms - clock_boot(it->clock).ms, 180, 220);
    assert_int_equal(queue_failures(it->queue, "k"), 1);
}

static void *shut_down_soon(void *arg)
{
    nanosleep(&(struct timespec){0, 20000000}, NULL);
    queue_shut_down(arg);
    return NULL;
}

static void shutting_down_ends_a_waiting_take_and_drops_later_adds(void **state)
{
    struct fixture *it = *state;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, shut_down_soon, it->queue), 0);
    assert_null(queue_take(it->queue));
    pthread_join(thread, NULL);
    queue_add(it->queue, "k", QUEUE_CHANGE);
    queue_add_after(it->queue, "k", 0);
    queue_add_failed(it->queue, "k");
    assert_false(queue_add_conflicted(it->queue, "k"));
    assert_empty(it->queue);
    assert_null(queue_take(it->queue));
}

static void *advance_soon(void *arg)
{
    nanosleep(&(struct timespec){0, 20000000}, NULL);
    clock_advance(arg, 24LL * 3600 * 1000);
    return NULL;
}

static void a_waiting_take_hears_the_fake_clock(void **state)
{
    struct fixture *it = *state;
    queue_add_after(it->queue, "tomorrow", 24LL * 3600 * 1000);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, advance_soon, it->clock), 0);
    char *key = queue_take(it->queue);
    assert_string_equal(key, "tomorrow");
    free(key);
    pthread_join(thread, NULL);
}

static void a_waiting_take_gets_a_delayed_key_on_the_real_clock(void **state)
{
    struct fixture *it = *state;
    int64_t start_ms = boot_time_now().ms;
    queue_add_after(it->queue, "later", 60000);
    queue_add_after(it->queue, "soon", 20);
    char *key = queue_take(it->queue);
    assert_string_equal(key, "soon");
    free(key);
    assert_true(boot_time_now().ms - start_ms >= 20);
}

#define KEYS 8
#define ADDS 4000

struct race {
    struct queue *queue;
    atomic_int inside[KEYS], wanted[KEYS], seen[KEYS];
    atomic_bool is_broken;
};

static void *work(void *arg)
{
    struct race *race = arg;
    for (char *key; (key = queue_take(race->queue)); free(key)) {
        int i = key[0] - '0';
        if (race->inside[i]++ != 0)
            race->is_broken = true;
        race->seen[i] = race->wanted[i]; // level-triggered: sees everything that was wanted before it started
        if (random_below(4) == 0)
            queue_add_after(race->queue, key, 1);
        race->inside[i]--;
        queue_done(race->queue, key);
    }
    return NULL;
}

static void *ask(void *arg)
{
    struct race *race = arg;
    for (int n = 0; n < ADDS; n++) {
        int i = (int)random_below(KEYS);
        char key[2] = {(char)('0' + i), '\0'};
        race->wanted[i]++;
        queue_add(race->queue, key, random_below(2) ? QUEUE_CHANGE : QUEUE_RESYNC);
    }
    return NULL;
}

static bool is_settled(struct race *race)
{
    for (int i = 0; i < KEYS; i++)
        if (race->seen[i] != race->wanted[i])
            return false;
    return queue_depth(race->queue) == 0;
}

static void no_key_is_on_two_workers_and_no_add_is_lost(void **state)
{
    struct fixture *it = *state;
    static struct race race;
    race.queue = it->queue;
    pthread_t workers[4], askers[2];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&workers[i], NULL, work, &race), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&askers[i], NULL, ask, &race), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(askers[i], NULL);
    assert_true(support_await(1, is_settled(&race)));
    queue_shut_down(it->queue);
    for (int i = 0; i < 4; i++)
        pthread_join(workers[i], NULL);
    assert_false(race.is_broken);
}

#define WITH_QUEUE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_QUEUE(keys_come_out_in_the_order_of_adding),
        WITH_QUEUE(many_adds_before_processing_are_one_run),
        WITH_QUEUE(adds_during_processing_mean_exactly_one_more_run_after_it),
        WITH_QUEUE(fresh_changes_pass_a_resync_of_everything),
        WITH_QUEUE(a_change_lifts_a_key_that_waits_as_resync),
        WITH_QUEUE(the_priority_of_an_add_during_processing_is_kept),
        WITH_QUEUE(steady_changes_do_not_starve_resyncs),
        WITH_QUEUE(a_delayed_key_comes_at_its_time_and_the_earliest_wins),
        WITH_QUEUE(a_key_that_becomes_due_while_it_is_processed_runs_after_it),
        WITH_QUEUE(a_very_long_delay_does_not_overflow),
        WITH_QUEUE(backoff_doubles_with_jitter_up_to_the_maximum_and_forget_resets_it),
        WITH_QUEUE(conflicts_are_retried_quickly_five_times_and_then_backed_off),
        WITH_QUEUE(shutting_down_ends_a_waiting_take_and_drops_later_adds),
        WITH_QUEUE(a_waiting_take_hears_the_fake_clock),
        cmocka_unit_test_setup_teardown(a_waiting_take_gets_a_delayed_key_on_the_real_clock, set_up_real,
                                        tear_down),
        cmocka_unit_test_setup_teardown(no_key_is_on_two_workers_and_no_add_is_lost, set_up_real, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
