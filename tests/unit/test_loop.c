#include "tests/support/support.h"
#include "controller/loop.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <string.h>
#include <time.h>

struct fixture {
    struct clock *clock;
    struct loop *loop;
    char trace[256]; // loop thread, read after a loop_call when nothing is on its way any more
    size_t trace_len;
    int pair[2];
    struct loop_source *source;
    struct loop_timer *timer;
    atomic_int count;
    atomic_bool is_inside, may_leave;
};

static int set_up_on(void **state, struct clock *clock)
{
    struct error err = ERROR_INIT;
    struct fixture *it = mem_alloc(sizeof(*it));
    it->clock = clock;
    assert_ok(loop_start(it->clock, &it->loop, &err));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, it->pair), 0);
    *state = it;
    return 0;
}

static int set_up_real(void **state)
{
    return set_up_on(state, clock_new_real());
}

static int set_up_fake(void **state)
{
    return set_up_on(state, clock_new_fake((struct wall_time){0}));
}

static int tear_down(void **state)
{
    struct fixture *it = *state;
    loop_stop(it->loop);
    clock_free(it->clock);
    close(it->pair[0]);
    if (it->pair[1] >= 0)
        close(it->pair[1]);
    free(it);
    return 0;
}

static void nothing(void *arg)
{
    (void)arg;
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void add_char(struct fixture *it, char c)
{
    size_t len = strlen(it->trace);
    if (len < sizeof(it->trace) - 1)
        it->trace[len] = c;
}

static void add_a(void *arg)
{
    add_char(arg, 'a');
}

static void add_b(void *arg)
{
    add_char(arg, 'b');
}

static void add_c(void *arg)
{
    add_char(arg, 'c');
}

static void count_up(void *arg)
{
    ((struct fixture *)arg)->count++;
}

static void posts_run_on_the_loop_thread_in_order(void **state)
{
    struct fixture *it = *state;
    assert_false(loop_is_current(it->loop));
    loop_post(it->loop, add_a, it);
    loop_post(it->loop, add_b, it);
    loop_call(it->loop, add_c, it);
    assert_string_equal(it->trace, "abc");
}

static void call_again(void *arg)
{
    struct fixture *it = arg;
    if (loop_is_current(it->loop))
        loop_call(it->loop, add_a, it);
}

static void a_call_from_the_loop_itself_runs_at_once(void **state)
{
    struct fixture *it = *state;
    loop_call(it->loop, call_again, it);
    assert_string_equal(it->trace, "a");
}

static void timers_run_in_order_of_deadline_when_the_fake_clock_moves(void **state)
{
    struct fixture *it = *state;
    loop_after(it->loop, 2000, add_b, it);
    loop_after(it->loop, 1000, add_a, it);
    loop_after(it->loop, 24LL * 3600 * 1000, add_c, it);
    loop_call(it->loop, nothing, it);
    assert_string_equal(it->trace, "");
    clock_advance(it->clock, 1000);
    loop_call(it->loop, nothing, it);
    assert_string_equal(it->trace, "a");
    clock_advance(it->clock, 24LL * 3600 * 1000);
    loop_call(it->loop, nothing, it);
    assert_string_equal(it->trace, "abc");
}

static void timers_of_one_deadline_run_in_order_of_making(void **state)
{
    struct fixture *it = *state;
    for (int i = 0; i < 20; i++) {
        loop_after(it->loop, 5, add_a, it);
        loop_after(it->loop, 5, add_b, it);
    }
    clock_advance(it->clock, 5);
    loop_call(it->loop, nothing, it);
    assert_string_equal(it->trace, "abababababababababababababababababababab");
}

static void cancel_the_other(void *arg)
{
    struct fixture *it = arg;
    add_char(it, 'x');
    loop_cancel(it->timer);
}

static void a_timer_cancelled_by_an_earlier_one_of_the_same_moment_does_not_run(void **state)
{
    struct fixture *it = *state;
    loop_after(it->loop, 5, cancel_the_other, it);
    it->timer = loop_after(it->loop, 5, add_a, it);
    clock_advance(it->clock, 10);
    loop_call(it->loop, nothing, it);
    assert_string_equal(it->trace, "x");
}

static void a_timer_may_cancel_itself(void **state)
{
    struct fixture *it = *state;
    it->timer = loop_after(it->loop, 5, cancel_the_other, it);
    clock_advance(it->clock, 10);
    loop_call(it->loop, nothing, it);
    assert_string_equal(it->trace, "x");
    loop_cancel(NULL);
}

static void rearm(void *arg)
{
    struct fixture *it = arg;
    it->count++;
    loop_after(it->loop, 0, rearm, it);
}

static void a_timer_that_rearms_itself_at_once_does_not_starve_posts(void **state)
{
    struct fixture *it = *state;
    loop_after(it->loop, 0, rearm, it);
    for (int i = 0; i < 100; i++)
        loop_call(it->loop, nothing, it);
    assert_true(it->count >= 100);
}

static void real_timers_fire_at_their_time_and_not_before(void **state)
{
    struct fixture *it = *state;
    int64_t start_ms = boot_time_now().ms;
    loop_after(it->loop, 60000, add_b, it);
    loop_after(it->loop, 30, count_up, it);
    while (!it->count)
        sleep_ms(1);
    assert_true(boot_time_now().ms - start_ms >= 30);
}

static void read_usage(void *arg)
{
    getrusage(RUSAGE_THREAD, arg);
}

// How often the loop's thread waited in this time; each of the two questions may be one.
static long wakes_in_ms(struct fixture *it, long ms)
{
    struct rusage before, after;
    loop_call(it->loop, read_usage, &before);
    sleep_ms(ms);
    loop_call(it->loop, read_usage, &after);
    return after.ru_nvcsw - before.ru_nvcsw;
}

static void an_idle_loop_does_not_wake(void **state)
{
    assert_true(wakes_in_ms(*state, 300) <= 3);
}

static void echo(void *arg, uint32_t events)
{
    struct fixture *it = arg;
    char c;
    if (events & EPOLLIN && read(it->pair[0], &c, 1) == 1)
        add_char(it, c);
}

static void measure_trace(void *arg)
{
    struct fixture *it = arg;
    it->trace_len = strlen(it->trace);
}

// Looked at on the loop thread, which may go on to write it.
static void wait_for_trace(struct fixture *it, size_t len)
{
    for (int i = 0; i < SUPPORT_PATIENCE_MS; i++) {
        loop_call(it->loop, measure_trace, it);
        if (it->trace_len >= len)
            return;
        sleep_ms(1);
    }
    fail_msg("the loop did not deliver");
}

static void a_watched_descriptor_delivers_what_is_readable(void **state)
{
    struct fixture *it = *state;
    it->source = loop_watch(it->loop, it->pair[0], EPOLLIN, echo, it);
    assert_int_equal(write(it->pair[1], "hey", 3), 3);
    wait_for_trace(it, 3);
    loop_unwatch(it->source);
    assert_string_equal(it->trace, "hey");
}

static void a_paused_source_hears_nothing_not_even_a_hang_up(void **state)
{
    struct fixture *it = *state;
    it->source = loop_watch(it->loop, it->pair[0], 0, echo, it);
    assert_int_equal(write(it->pair[1], "x", 1), 1);
    close(it->pair[1]);
    it->pair[1] = -1;
    assert_true(wakes_in_ms(it, 50) <= 3);
    loop_call(it->loop, nothing, it);
    assert_string_equal(it->trace, "");
    loop_rewatch(it->source, EPOLLIN);
    wait_for_trace(it, 1);
    loop_rewatch(it->source, 0);
    loop_unwatch(it->source);
}

static void unwatch_self(void *arg, uint32_t events)
{
    struct fixture *it = arg;
    (void)events;
    add_char(it, 'u');
    loop_unwatch(it->source);
}

static void a_source_may_be_unwatched_from_its_own_callback(void **state)
{
    struct fixture *it = *state;
    loop_call(it->loop, nothing, it);
    it->source = loop_watch(it->loop, it->pair[0], 0, unwatch_self, it);
    assert_int_equal(write(it->pair[1], "x", 1), 1);
    loop_rewatch(it->source, EPOLLIN);
    wait_for_trace(it, 1);
    loop_call(it->loop, nothing, it);
    assert_string_equal(it->trace, "u");
}

struct twins {
    struct fixture *it;
    struct loop_source *sources[2];
};

static void unwatch_both(void *arg, uint32_t events)
{
    struct twins *twins = arg;
    (void)events;
    twins->it->count++;
    loop_unwatch(twins->sources[0]);
    loop_unwatch(twins->sources[1]);
}

static void make_twins_ready(void *arg)
{
    struct twins *twins = arg;
    struct fixture *it = twins->it;
    ssize_t wrote = write(it->pair[0], "x", 1) + write(it->pair[1], "x", 1);
    (void)wrote;
    for (int i = 0; i < 2; i++)
        twins->sources[i] = loop_watch(it->loop, it->pair[i], EPOLLIN, unwatch_both, twins);
}

static void a_source_freed_by_another_of_the_same_batch_is_not_called(void **state)
{
    struct fixture *it = *state;
    struct twins twins = {.it = it};
    loop_call(it->loop, make_twins_ready, &twins);
    loop_call(it->loop, nothing, it);
    support_await(1, it->count);
    loop_call(it->loop, nothing, it);
    assert_int_equal(it->count, 1);
}

static void stay_inside(void *arg, uint32_t events)
{
    struct fixture *it = arg;
    (void)events;
    it->is_inside = true;
    while (!it->may_leave)
        sleep_ms(1);
    sleep_ms(20);
    it->is_inside = false;
}

static void unwatch_from_another_thread_waits_for_the_running_callback(void **state)
{
    struct fixture *it = *state;
    it->source = loop_watch(it->loop, it->pair[0], EPOLLIN, stay_inside, it);
    assert_int_equal(write(it->pair[1], "x", 1), 1);
    while (!it->is_inside)
        sleep_ms(1);
    it->may_leave = true;
    loop_unwatch(it->source);
    assert_false(it->is_inside);
    sleep_ms(20);
    assert_false(it->is_inside); // and it was not called again
}

#define ROUNDS 300

static void *churn(void *arg)
{
    struct fixture *it = arg;
    for (int i = 0; i < ROUNDS; i++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
            abort();
        struct fixture *local = mem_alloc(sizeof(*local));
        *local = (struct fixture){.loop = it->loop, .pair = {pair[0], pair[1]}};
        local->source = loop_watch(it->loop, pair[0], EPOLLIN, echo, local);
        ssize_t wrote = write(pair[1], "x", 1);
        (void)wrote;
        loop_post(it->loop, count_up, it);
        loop_after(it->loop, i % 3, count_up, it);
        if (i % 2)
            sched_yield();
        loop_unwatch(local->source);
        free(local); // the callback is certainly not running
        close(pair[0]);
        close(pair[1]);
    }
    return NULL;
}

static void sources_timers_and_posts_from_many_threads_are_all_served(void **state)
{
    struct fixture *it = *state;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, it), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    support_await(1, it->count >= 8 * ROUNDS);
    assert_int_equal(it->count, 8 * ROUNDS);
}

static void post_again(void *arg)
{
    struct fixture *it = arg;
    add_char(it, 'p');
    loop_post(it->loop, add_a, it);
}

static void stopping_runs_what_was_posted_and_drops_timers(void **state)
{
    struct fixture *it = *state;
    loop_post(it->loop, post_again, it);
    loop_after(it->loop, 1000000, add_b, it);
    loop_stop(it->loop);
    it->loop = NULL;
    assert_string_equal(it->trace, "pa");
}

#define ON_REAL(test) cmocka_unit_test_setup_teardown(test, set_up_real, tear_down)
#define ON_FAKE(test) cmocka_unit_test_setup_teardown(test, set_up_fake, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_REAL(posts_run_on_the_loop_thread_in_order),
        ON_REAL(a_call_from_the_loop_itself_runs_at_once),
        ON_FAKE(timers_run_in_order_of_deadline_when_the_fake_clock_moves),
        ON_FAKE(timers_of_one_deadline_run_in_order_of_making),
        ON_FAKE(a_timer_cancelled_by_an_earlier_one_of_the_same_moment_does_not_run),
        ON_FAKE(a_timer_may_cancel_itself),
        ON_FAKE(a_timer_that_rearms_itself_at_once_does_not_starve_posts),
        ON_REAL(real_timers_fire_at_their_time_and_not_before),
        ON_REAL(an_idle_loop_does_not_wake),
        ON_REAL(a_watched_descriptor_delivers_what_is_readable),
        ON_REAL(a_paused_source_hears_nothing_not_even_a_hang_up),
        ON_REAL(a_source_may_be_unwatched_from_its_own_callback),
        ON_FAKE(a_source_freed_by_another_of_the_same_batch_is_not_called),
        ON_REAL(unwatch_from_another_thread_waits_for_the_running_callback),
        ON_REAL(sources_timers_and_posts_from_many_threads_are_all_served),
        ON_REAL(stopping_runs_what_was_posted_and_drops_timers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
