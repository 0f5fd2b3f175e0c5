#include "tests/support/support.h"
#include "controller/operation.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct fixture {
    struct clock *clock;
    struct loop *loop;
    struct spawner *spawner;
    atomic_int done_count;
    struct operation_result result; // texts copied
    char *output, *errors;
};

static int set_up_on(void **state, struct clock *clock)
{
    struct error err = ERROR_INIT;
    struct fixture *it = mem_alloc(sizeof(*it));
    it->clock = clock;
    assert_ok(loop_start(it->clock, &it->loop, &err));
    assert_ok(spawner_start(&it->spawner, &err));
    *state = it;
    return 0;
}

static int set_up(void **state)
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
    spawner_stop(it->spawner);
    clock_free(it->clock);
    free(it->output);
    free(it->errors);
    free(it);
    return 0;
}

static void done(void *arg, const struct operation_result *result)
{
    struct fixture *it = arg;
    it->result = *result;
    it->output = mem_strndup(result->output, result->output_len);
    it->errors = mem_strndup(result->errors, result->errors_len);
    it->done_count++;
}

static struct operation *start(struct fixture *it, const char *script, int64_t deadline_ms, size_t max)
{
    struct error err = ERROR_INIT;
    const char *argv[] = {"sh", "-c", script, NULL}, *environment[] = {"PATH=/usr/bin:/bin", NULL};
    struct spawn_options options = {.path = "/bin/sh", .argv = argv, .environment = environment};
    struct operation *operation;
    assert_ok(operation_start(it->loop, it->spawner, &options, deadline_ms, max, done, it, &operation, &err));
    return operation;
}

static void await(struct fixture *it)
{
    support_await(1, it->done_count);
    assert_int_equal(it->done_count, 1);
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void output_errors_and_exit_code_come_back(void **state)
{
    struct fixture *it = *state;
    start(it, "echo out; echo bad >&2; exit 3", 20000, 1000);
    await(it);
    assert_int_equal(it->result.exit_code, 3);
    assert_int_equal(it->result.output_len, 8);
    assert_non_null(strstr(it->output, "out\n"));
    assert_non_null(strstr(it->output, "bad\n"));
    assert_string_equal(it->errors, "bad\n");
    assert_false(it->result.is_cancelled || it->result.is_timed_out || it->result.is_output_cut);
}

static void output_beyond_the_cap_is_dropped_and_does_not_block_the_process(void **state)
{
    struct fixture *it = *state;
    start(it, "head -c 3000000 /dev/zero; echo end >&2", 20000, 1000);
    await(it);
    assert_int_equal(it->result.exit_code, 0);
    assert_int_equal(it->result.output_len, 1000);
    assert_true(it->result.is_output_cut);
    assert_string_equal(it->errors, "end\n");
}

static void all_output_is_there_even_when_the_process_ends_at_once(void **state)
{
    struct fixture *it = *state;
    start(it, "head -c 60000 /dev/zero | tr '\\0' x", 20000, 100000);
    await(it);
    assert_int_equal(it->result.output_len, 60000);
}

static void a_cancelled_process_is_terminated_with_its_group(void **state)
{
    struct fixture *it = *state;
    struct operation *operation = start(it, "sleep 1000 & wait", 1000000, 1000);
    operation_cancel(operation);
    operation_cancel(operation);
    await(it);
    assert_true(it->result.is_cancelled);
    assert_false(it->result.is_timed_out);
    assert_int_equal(it->result.exit_code, 128 + SIGTERM);
}

static void a_process_that_ignores_the_deadlines_sigterm_is_killed_2_s_later(void **state)
{
    struct fixture *it = *state; // fake clock
    start(it, "trap '' TERM; echo ready; while :; do sleep 0.01; done", 24LL * 3600 * 1000, 1000);
    sleep_ms(100);
    clock_advance(it->clock, 24LL * 3600 * 1000);
    sleep_ms(100);
    assert_int_equal(it->done_count, 0);
    clock_advance(it->clock, 2000);
    await(it);
    assert_true(it->result.is_timed_out);
    assert_int_equal(it->result.exit_code, 128 + SIGKILL);
    assert_string_equal(it->output, "ready\n");
}

static void a_process_left_behind_with_the_pipes_is_not_waited_for(void **state)
{
    struct fixture *it = *state;
    start(it, "(sleep 60; echo late) & echo early", 20000, 1000);
    await(it);
    assert_false(it->result.is_timed_out);
    assert_string_equal(it->output, "early\n");
}

static void a_missing_program_fails_at_the_start_and_done_does_not_run(void **state)
{
    struct fixture *it = *state;
    struct error err = ERROR_INIT;
    const char *argv[] = {"x", NULL};
    struct spawn_options options = {.path = "/nonexistent", .argv = argv};
    struct operation *operation = NULL;
    assert_error(operation_start(it->loop, it->spawner, &options, 1000, 10, done, it, &operation, &err),
                 ERROR_NOT_FOUND);
    assert_null(operation);
    sleep_ms(20);
    assert_int_equal(it->done_count, 0);
}

#define ON_REAL(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define ON_FAKE(test) cmocka_unit_test_setup_teardown(test, set_up_fake, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_REAL(output_errors_and_exit_code_come_back),
        ON_REAL(output_beyond_the_cap_is_dropped_and_does_not_block_the_process),
        ON_REAL(all_output_is_there_even_when_the_process_ends_at_once),
        ON_REAL(a_cancelled_process_is_terminated_with_its_group),
        ON_FAKE(a_process_that_ignores_the_deadlines_sigterm_is_killed_2_s_later),
        ON_REAL(a_process_left_behind_with_the_pipes_is_not_waited_for),
        ON_REAL(a_missing_program_fails_at_the_start_and_done_does_not_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
