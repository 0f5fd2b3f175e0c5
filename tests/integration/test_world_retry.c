// A create that times out or comes half into being is tried again under another name, and no name is ever lost.
#include "controller/base/memory.h"
#include "schemas/kinds/conditions.h"
#include "tests/support/world_fixture.h"
#include <string.h>

static struct record *create(struct world_fixture *fx)
{
    struct record *sandbox = NULL;
    struct error err = ERROR_INIT;
    assert_ok(world_create(fx, REQUEST_MCP(), NULL, &sandbox, &err));
    world_settle(fx);
    return sandbox;
}

static void a_create_that_timed_out_is_tried_again_under_a_fresh_name(void **state)
{
    struct world_fixture *fx = *state;
    fake_driver_inject(fx->world.driver, FAKE_CREATE, FAKE_TIMEOUT, 2);
    CLEANUP_RECORD struct record *sandbox = create(fx);
    CLEANUP_RECORD struct record *fresh = world_get_record(fx, KIND_SANDBOX, sandbox->meta.uid);
    assert_string_equal(world_word(fx, sandbox->meta.uid), "running");
    assert_int_equal(fresh->status.sandbox.attempt, 3);
    assert_int_equal(fake_driver_names_reused(fx->world.driver), 0);
    assert_int_equal(fake_driver_runtimes(fx->world.driver), 1); // the first two are gone
    assert_true(fake_driver_has(fx->world.driver, fresh->status.sandbox.runtime_name));
}

static void after_three_attempts_the_sandbox_fails_and_nothing_is_left(void **state)
{
    struct world_fixture *fx = *state;
    fake_driver_inject(fx->world.driver, FAKE_CREATE, FAKE_TIMEOUT, -1);
    CLEANUP_RECORD struct record *sandbox = create(fx);
    assert_string_equal(world_word(fx, sandbox->meta.uid), "failed");
    assert_int_equal(fake_driver_calls(fx->world.driver, FAKE_CREATE), 3);
    assert_int_equal(fake_driver_runtimes(fx->world.driver), 0);
}

static void an_error_that_no_attempt_can_help_is_not_tried_again(void **state)
{
    struct world_fixture *fx = *state;
    fake_driver_inject(fx->world.driver, FAKE_CREATE, FAKE_FAIL, 1);
    CLEANUP_RECORD struct record *sandbox = create(fx);
    assert_string_equal(world_word(fx, sandbox->meta.uid), "failed");
    assert_int_equal(fake_driver_calls(fx->world.driver, FAKE_CREATE), 1);
}

static void a_removal_that_fails_between_attempts_ends_them_and_keeps_the_name(void **state)
{
    struct world_fixture *fx = *state;
    fake_driver_inject(fx->world.driver, FAKE_CREATE, FAKE_TIMEOUT, 1);
    fake_driver_inject(fx->world.driver, FAKE_REMOVE, FAKE_FAIL, 2);
    CLEANUP_RECORD struct record *sandbox = create(fx);
    CLEANUP_RECORD struct record *fresh = world_get_record(fx, KIND_SANDBOX, sandbox->meta.uid);
    assert_string_equal(world_word(fx, sandbox->meta.uid), "failed");
    assert_int_equal(fresh->status.sandbox.attempt, 1);
    world_advance(fx, 120 * 1000); // the backoff
    assert_int_equal(fake_driver_calls(fx->world.driver, FAKE_CREATE), 1);
    assert_int_equal(fake_driver_runtimes(fx->world.driver), 0);
}

static void destroying_between_attempts_ends_them(void **state)
{
    struct world_fixture *fx = *state;
    struct error err = ERROR_INIT;
    fake_driver_inject(fx->world.driver, FAKE_CREATE, FAKE_TIMEOUT, 1);
    fake_driver_inject(fx->world.driver, FAKE_REMOVE, FAKE_HANG, 1);
    CLEANUP_RECORD struct record *sandbox = create(fx);
    assert_string_equal(world_word(fx, sandbox->meta.uid), "creating");
    assert_ok(world_destroy(fx, sandbox->meta.uid, NULL, &err));
    world_settle(fx);
    fake_driver_release(fx->world.driver, FAKE_REMOVE);
    world_settle(fx);
    assert_string_equal(world_word(fx, sandbox->meta.uid), "destroyed");
    assert_int_equal(fake_driver_calls(fx->world.driver, FAKE_CREATE), 1);
}

static void a_restart_between_attempts_removes_what_the_record_names(void **state)
{
    struct world_fixture *fx = *state;
    fake_driver_inject(fx->world.driver, FAKE_CREATE, FAKE_TIMEOUT, 1);
    fake_driver_inject(fx->world.driver, FAKE_REMOVE, FAKE_HANG, 1);
    CLEANUP_RECORD struct record *sandbox = create(fx);
    world_restart(fx);
    world_settle(fx);
    assert_string_equal(world_word(fx, sandbox->meta.uid), "failed");
    assert_int_equal(fake_driver_runtimes(fx->world.driver), 0);
}

static void a_runtime_of_another_driver_that_may_still_run_is_not_taken_as_gone(void **state)
{
    struct world_fixture *fx = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *sandbox = create(fx);
    CLEANUP_RECORD struct record *fresh = world_get_record(fx, KIND_SANDBOX, sandbox->meta.uid);
    mem_replace(&fresh->status.sandbox.driver, "sbx"); // as a daemon with that driver left it
    assert_ok(store_write_status(fx->world.store, fresh, &err));
    world_restart(fx);
    world_settle(fx);
    CLEANUP_RECORD struct record *left = world_get_record(fx, KIND_SANDBOX, sandbox->meta.uid);
    assert_false(record_is_true(left, CONDITION_RUNTIME_REMOVED));
    assert_non_null(strstr(record_condition(left, CONDITION_STALLED)->message, "the driver sbx made it"));
    assert_int_equal(fake_driver_calls(fx->world.driver, FAKE_REMOVE), 0);
}

#define RETRY_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RETRY_TEST(a_create_that_timed_out_is_tried_again_under_a_fresh_name),
        RETRY_TEST(after_three_attempts_the_sandbox_fails_and_nothing_is_left),
        RETRY_TEST(an_error_that_no_attempt_can_help_is_not_tried_again),
        RETRY_TEST(a_removal_that_fails_between_attempts_ends_them_and_keeps_the_name),
        RETRY_TEST(destroying_between_attempts_ends_them),
        RETRY_TEST(a_restart_between_attempts_removes_what_the_record_names),
        RETRY_TEST(a_runtime_of_another_driver_that_may_still_run_is_not_taken_as_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
