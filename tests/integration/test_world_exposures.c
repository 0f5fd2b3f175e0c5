// Exposed ports, rule by rule.
#include "schemas/kinds/conditions.h"
#include "tests/support/world_fixture.h"

static struct record *expose_and_settle(struct world_fixture *fx, const char *uid, int64_t port)
{
    CLEANUP_RECORD struct record *exposure = NULL;
    struct error err = ERROR_INIT;
    assert_ok(world_expose(fx, uid, port, &exposure, &err));
    world_settle(fx);
    return world_get_record(fx, KIND_EXPOSURE, exposure->meta.uid);
}

static void exposing_twice_returns_the_same_mapping(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *sandbox = world_create_running(fx);
    CLEANUP_RECORD struct record *first = expose_and_settle(fx, sandbox->meta.uid, 8000);
    CLEANUP_RECORD struct record *second = expose_and_settle(fx, sandbox->meta.uid, 8000);
    assert_true(record_is_true(first, CONDITION_PUBLISHED));
    assert_true(record_is_true(first, CONDITION_REACHABLE) && record_is_true(first, CONDITION_READY));
    assert_string_equal(first->meta.uid, second->meta.uid);
    assert_int_equal(first->status.exposure.host_port, second->status.exposure.host_port);
    assert_int_equal(fake_driver_calls(fx->world.driver, FAKE_PUBLISH), 1);
}

static void mappings_go_away_with_their_sandbox(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *sandbox = world_create_running(fx);
    CLEANUP_RECORD struct record *exposure = expose_and_settle(fx, sandbox->meta.uid, 8000);
    struct error err = ERROR_INIT;
    assert_ok(world_destroy(fx, sandbox->meta.uid, NULL, &err));
    world_settle(fx);
    CLEANUP_RECORD struct record *gone = world_get_record(fx, KIND_EXPOSURE, exposure->meta.uid);
    assert_int_not_equal(gone->meta.removed_at.ms, 0);
    assert_string_equal(world_word(fx, sandbox->meta.uid), "destroyed");
}

static void a_deleted_exposure_gives_its_port_back_and_the_sandbox_goes_on(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *sandbox = world_create_running(fx);
    CLEANUP_RECORD struct record *exposure = expose_and_settle(fx, sandbox->meta.uid, 8000);
    struct error err = ERROR_INIT;
    assert_ok(world_delete(fx, KIND_EXPOSURE, exposure->meta.uid, &err));
    assert_int_equal(fake_driver_calls(fx->world.driver, FAKE_UNPUBLISH), 1);
    CLEANUP_RECORD struct record *gone = world_get_record(fx, KIND_EXPOSURE, exposure->meta.uid);
    assert_int_not_equal(gone->meta.removed_at.ms, 0);
    assert_string_equal(world_word(fx, sandbox->meta.uid), "running");
}

static void a_publish_that_fails_is_tried_again(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *sandbox = world_create_running(fx);
    fake_driver_inject(fx->world.driver, FAKE_PUBLISH, FAKE_FAIL, 2);
    CLEANUP_RECORD struct record *failing = expose_and_settle(fx, sandbox->meta.uid, 8000);
    assert_true(record_is_false(failing, CONDITION_PUBLISHED));
    assert_true(record_is_false(failing, CONDITION_READY));
    assert_string_equal(record_condition(failing, CONDITION_READY)->reason, "PublishFailed");
    for (int i = 0; i < 4; i++)
        world_advance(fx, 10 * 1000);
    CLEANUP_RECORD struct record *fresh = world_get_record(fx, KIND_EXPOSURE, failing->meta.uid);
    assert_true(record_is_true(fresh, CONDITION_PUBLISHED));
}

static void a_lost_answer_is_settled_by_asking_again_with_one_mapping(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *sandbox = world_create_running(fx);
    fake_driver_inject(fx->world.driver, FAKE_PUBLISH, FAKE_HALF_DONE, 1);
    CLEANUP_RECORD struct record *exposure = expose_and_settle(fx, sandbox->meta.uid, 8000);
    world_advance(fx, 10 * 1000);
    CLEANUP_RECORD struct record *fresh = world_get_record(fx, KIND_EXPOSURE, exposure->meta.uid);
    assert_true(record_is_true(fresh, CONDITION_PUBLISHED));
    assert_int_equal(fresh->status.exposure.host_port, 40000); // the first and only one handed out
}

static void ports_out_of_range_and_dead_sandboxes_are_refused(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *sandbox = world_create_running(fx);
    struct error err = ERROR_INIT;
    assert_error(world_expose(fx, sandbox->meta.uid, 0, NULL, &err), ERROR_INVALID);
    assert_error(world_expose(fx, sandbox->meta.uid, 65536, NULL, &err), ERROR_INVALID);
    assert_error(world_expose(fx, "sbx_aaaaaaaaaaaaaaaaaaaaaaaaaa", 80, NULL, &err), ERROR_NOT_FOUND);
    assert_ok(world_destroy(fx, sandbox->meta.uid, NULL, &err));
    assert_error(world_expose(fx, sandbox->meta.uid, 80, NULL, &err), ERROR_STATE);
    world_settle(fx);
}

static void more_ports_than_allowed_are_refused(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *sandbox = world_create_running(fx);
    struct error err = ERROR_INIT;
    for (int i = 0; i < LIMIT_EXPOSURES_A_SANDBOX; i++)
        assert_ok(world_expose(fx, sandbox->meta.uid, 9000 + i, NULL, &err));
    assert_error(world_expose(fx, sandbox->meta.uid, 8999, NULL, &err), ERROR_LIMIT);
    world_settle(fx);
}

#define EXPOSURE_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EXPOSURE_TEST(exposing_twice_returns_the_same_mapping),
        EXPOSURE_TEST(mappings_go_away_with_their_sandbox),
        EXPOSURE_TEST(a_deleted_exposure_gives_its_port_back_and_the_sandbox_goes_on),
        EXPOSURE_TEST(a_publish_that_fails_is_tried_again),
        EXPOSURE_TEST(a_lost_answer_is_settled_by_asking_again_with_one_mapping),
        EXPOSURE_TEST(ports_out_of_range_and_dead_sandboxes_are_refused),
        EXPOSURE_TEST(more_ports_than_allowed_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
