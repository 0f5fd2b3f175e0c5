// A sandbox's life, rule by rule of the product policy, on a clock that the test moves.
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/policy.h"
#include "schemas/kinds/conditions.h"
#include "tests/support/world_fixture.h"
#include <string.h>
#include <sys/stat.h>

#define HOUR_MS (3600LL * 1000)
#define DAY_MS (24 * HOUR_MS)

static json_t *read_arguments(void)
{
    return json_pack("{s:s}", "path", "no-such-file");
}

static void a_new_sandbox_runs_in_a_fresh_private_directory(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *sandbox = world_create_running(fx);
    CLEANUP_RECORD struct record *workspace = world_get_record(fx, KIND_WORKSPACE, sandbox->status.sandbox.workspace_uid);
    struct stat st;
    assert_int_equal(stat(workspace->status.workspace.root, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_string_equal(workspace->status.workspace.bound_sandbox, sandbox->meta.uid);
    assert_int_equal(fake_driver_runtimes(fx->world.driver), 1);
    assert_string_equal(sandbox->meta.created_by, "mcp");
}

static void destroying_leaves_a_tombstone_and_a_retained_workspace(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *sandbox = world_create_running(fx);
    struct error err = ERROR_INIT;
    assert_ok(world_destroy(fx, sandbox->meta.uid, NULL, &err));
    world_settle(fx);
    assert_string_equal(world_word(fx, sandbox->meta.uid), "destroyed");
    assert_int_equal(fake_driver_runtimes(fx->world.driver), 0);
    CLEANUP_RECORD struct record *workspace = world_get_record(fx, KIND_WORKSPACE, sandbox->status.sandbox.workspace_uid);
    assert_null(workspace->status.workspace.bound_sandbox);
    assert_int_equal(workspace->status.workspace.retained_until.ms, clock_wall(fx->world.clock).ms + WORKSPACE_RETAIN_MS);
    assert_ok(world_destroy(fx, sandbox->meta.uid, NULL, &err)); // again: the same record
}

static void a_retained_workspace_can_be_attached_again(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *first = world_create_running(fx);
    CLEANUP_RECORD struct record *second = NULL;
    struct error err = ERROR_INIT;
    enum sandbox_outcome outcome;
    assert_ok(world_destroy(fx, first->meta.uid, NULL, &err));
    world_settle(fx);
    world_advance(fx, 29 * DAY_MS);
    assert_ok(world_create(fx, REQUEST_MCP(.workspace_id = first->status.sandbox.workspace_uid), &outcome, &second, &err));
    assert_int_equal(outcome, SANDBOX_CREATED);
    world_settle(fx);
    assert_string_equal(world_word(fx, second->meta.uid), "running");
    CLEANUP_RECORD struct record *workspace = world_get_record(fx, KIND_WORKSPACE, first->status.sandbox.workspace_uid);
    assert_int_equal(workspace->status.workspace.retained_until.ms, 0);
}

static void after_thirty_days_a_workspace_moves_to_the_trash_and_loses_nothing(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *sandbox = world_create_running(fx);
    CLEANUP_RECORD struct record *second = NULL;
    CLEANUP_RECORD struct record *workspace = world_get_record(fx, KIND_WORKSPACE, sandbox->status.sandbox.workspace_uid);
    CLEANUP_FREE char *file = mem_format("%s/work", workspace->status.workspace.root);
    CLEANUP_FREE char *trashed = mem_format("%s/.trash/%s/root/work", fx->config.workspace_root, workspace->meta.uid);
    struct error err = ERROR_INIT;
    fclose(fopen(file, "w"));
    assert_ok(world_destroy(fx, sandbox->meta.uid, NULL, &err));
    world_settle(fx);
    world_advance(fx, WORKSPACE_RETAIN_MS - 1000);
    assert_int_equal(access(file, F_OK), 0);
    world_advance(fx, 61 * 1000);
    assert_int_equal(access(file, F_OK), -1);
    assert_int_equal(access(trashed, F_OK), 0);
    assert_error(world_create(fx, REQUEST_MCP(.workspace_id = workspace->meta.uid), NULL, &second, &err), ERROR_STATE);
}

static void a_day_without_a_call_ends_a_sandbox(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *sandbox = world_create_running(fx);
    world_advance(fx, SANDBOX_IDLE_MS - 60 * 1000);
    assert_string_equal(world_word(fx, sandbox->meta.uid), "running");
    world_advance(fx, 2 * 60 * 1000);
    assert_string_equal(world_word(fx, sandbox->meta.uid), "destroyed");
    assert_int_equal(fake_driver_runtimes(fx->world.driver), 0);
}

static void a_call_that_fails_counts_and_looking_does_not(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *sandbox = world_create_running(fx);
    struct error err = ERROR_INIT;
    json_t *answer = NULL;
    world_advance(fx, 23 * HOUR_MS);
    assert_ok(world_call(fx, sandbox->meta.uid, "read", read_arguments(), &answer, &err)); // a result with isError
    assert_true(json_get_bool(answer, "isError", false));
    json_decref(answer);
    world_advance(fx, 23 * HOUR_MS);
    assert_string_equal(world_word(fx, sandbox->meta.uid), "running"); // a look
    world_advance(fx, 2 * HOUR_MS);
    assert_string_equal(world_word(fx, sandbox->meta.uid), "destroyed");
}

static void a_wall_clock_that_steps_back_expires_nothing(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *sandbox = world_create_running(fx);
    clock_step_wall(fx->world.clock, -DAY_MS);
    world_advance(fx, 61 * 1000);
    assert_string_equal(world_word(fx, sandbox->meta.uid), "running");
}

static void an_hour_that_the_wall_clock_jumps_harms_no_create_no_call_and_no_sandbox(void **state)
{
    struct world_fixture *fx = *state;
    static const int64_t jumps[] = {HOUR_MS, -HOUR_MS, -HOUR_MS, HOUR_MS};
    CLEANUP_RECORD struct record *old = world_create_running(fx);
    struct error err = ERROR_INIT;
    for (size_t i = 0; i < ARRAY_LEN(jumps); i++) {
        CLEANUP_JSON json_t *answer = NULL;
        CLEANUP_RECORD struct record *made = NULL;
        enum sandbox_outcome outcome;
        struct sandbox_request request = {.principal = PRINCIPAL_MCP, .manager = "test"};
        fake_driver_inject(fx->world.driver, FAKE_CREATE, FAKE_HANG, 1);
        assert_ok(world_create(fx, &request, &outcome, &made, &err));
        world_settle(fx);
        clock_step_wall(fx->world.clock, jumps[i]); // in the middle of a create
        fake_driver_release(fx->world.driver, FAKE_CREATE);
        world_settle_until(fx, made->meta.uid, "running");
        assert_ok(world_call(fx, old->meta.uid, "read", read_arguments(), &answer, &err));
        world_advance(fx, 61 * 1000);
        assert_string_equal(world_word(fx, old->meta.uid), "running");
        assert_string_equal(world_word(fx, made->meta.uid), "running");
    }
}

static void an_expiry_that_cannot_be_committed_keeps_the_sandbox(void **state)
{
    struct world_fixture *fx = *state;
#ifndef CHAT2SHELL_FAULTS
    (void)fx;
    skip();
#else
    CLEANUP_RECORD struct record *sandbox = world_create_running(fx);
    struct error err = ERROR_INIT;
    json_t *answer = NULL;
    setenv("CHAT2SHELL_FAULT", "sandbox.expire.commit:1:error", 1);
    world_advance(fx, SANDBOX_IDLE_MS + 1000);
    unsetenv("CHAT2SHELL_FAULT");
    if (strcmp(world_word(fx, sandbox->meta.uid), "running") == 0) { // reopened: calls go through again
        assert_ok(world_call(fx, sandbox->meta.uid, "read", read_arguments(), &answer, &err));
        json_decref(answer);
    }
#endif
}

static void creating_again_on_a_workspace_returns_the_running_one(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *first = world_create_running(fx);
    CLEANUP_RECORD struct record *second = NULL;
    struct error err = ERROR_INIT;
    enum sandbox_outcome outcome;
    assert_ok(world_create(fx, REQUEST_MCP(.workspace_id = first->status.sandbox.workspace_uid), &outcome, &second, &err));
    assert_int_equal(outcome, SANDBOX_REUSED);
    assert_string_equal(second->meta.uid, first->meta.uid);
}

static void an_identical_request_joins_the_one_in_progress_and_a_later_one_does_not(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *first = NULL, *second = NULL, *third = NULL;
    struct error err = ERROR_INIT;
    enum sandbox_outcome outcome;
    fake_driver_inject(fx->world.driver, FAKE_CREATE, FAKE_HANG, 1);
    assert_ok(world_create(fx, REQUEST_MCP(), &outcome, &first, &err));
    world_settle(fx);
    assert_ok(world_create(fx, REQUEST_MCP(), &outcome, &second, &err));
    assert_int_equal(outcome, SANDBOX_JOINED);
    assert_string_equal(second->meta.uid, first->meta.uid);
    fake_driver_release(fx->world.driver, FAKE_CREATE);
    world_settle(fx);
    assert_ok(world_create(fx, REQUEST_MCP(), &outcome, &third, &err));
    assert_int_equal(outcome, SANDBOX_CREATED);
    assert_string_not_equal(third->meta.uid, first->meta.uid);
}

static void a_failed_create_removes_what_was_half_done_and_blocks_the_workspace(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *sandbox = NULL, *again = NULL;
    struct error err = ERROR_INIT;
    fake_driver_inject(fx->world.driver, FAKE_CREATE, FAKE_HALF_DONE, 1);
    assert_ok(world_create(fx, REQUEST_MCP(), NULL, &sandbox, &err));
    world_settle(fx);
    assert_string_equal(world_word(fx, sandbox->meta.uid), "failed");
    assert_int_equal(fake_driver_runtimes(fx->world.driver), 0);
    CLEANUP_RECORD struct record *fresh = world_get_record(fx, KIND_SANDBOX, sandbox->meta.uid);
    assert_error(world_create(fx, REQUEST_MCP(.workspace_id = fresh->status.sandbox.workspace_uid), NULL, &again, &err), ERROR_STATE);
    assert_non_null(strstr(err.message, "failed"));
    assert_ok(world_destroy(fx, sandbox->meta.uid, NULL, &err));
    world_settle(fx);
    assert_ok(world_create(fx, REQUEST_MCP(.workspace_id = fresh->status.sandbox.workspace_uid), NULL, &again, &err));
}

static void a_failed_sandbox_waits_for_its_user_and_does_not_expire(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *sandbox = world_create_running(fx);
    fake_driver_kill_session(fx->world.driver);
    world_settle_until(fx, sandbox->meta.uid, "failed");
    world_advance(fx, 40 * DAY_MS);
    assert_string_equal(world_word(fx, sandbox->meta.uid), "failed");
    CLEANUP_RECORD struct record *workspace = world_get_record(fx, KIND_WORKSPACE, sandbox->status.sandbox.workspace_uid);
    assert_int_equal(workspace->meta.removed_at.ms, 0); // it keeps its workspace
    assert_int_equal(fake_driver_calls(fx->world.driver, FAKE_SESSION), 1); // and nothing was restarted
}

static void a_runtime_that_dies_fails_its_sandbox_with_the_reason(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *sandbox = world_create_running(fx);
    fake_driver_kill_runtime(fx->world.driver, "the machine took it");
    world_settle(fx);
    CLEANUP_RECORD struct record *fresh = world_get_record(fx, KIND_SANDBOX, sandbox->meta.uid);
    assert_true(record_is_true(fresh, CONDITION_FAILED));
}

static void destroying_cancels_a_create_that_hangs(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *sandbox = NULL;
    struct error err = ERROR_INIT;
    fake_driver_inject(fx->world.driver, FAKE_CREATE, FAKE_HANG, -1);
    assert_ok(world_create(fx, REQUEST_MCP(), NULL, &sandbox, &err));
    world_settle(fx);
    assert_string_equal(world_word(fx, sandbox->meta.uid), "creating");
    assert_ok(world_destroy(fx, sandbox->meta.uid, NULL, &err));
    world_settle(fx);
    assert_string_equal(world_word(fx, sandbox->meta.uid), "destroyed");
    assert_int_equal(fake_driver_runtimes(fx->world.driver), 0);
}

static void hung_creates_do_not_block_a_removal(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *running = world_create_running(fx);
    struct error err = ERROR_INIT;
    fake_driver_inject(fx->world.driver, FAKE_CREATE, FAKE_HANG, -1);
    for (int i = 0; i < 12; i++) { // more than there are slots
        CLEANUP_RECORD struct record *hung = NULL;
        CLEANUP_FREE char *name = mem_format("hung-%d", i);
        assert_ok(world_create(fx, REQUEST_MCP(.name = name), NULL, &hung, &err));
    }
    world_settle(fx);
    assert_ok(world_destroy(fx, running->meta.uid, NULL, &err));
    world_settle(fx);
    assert_string_equal(world_word(fx, running->meta.uid), "destroyed");
    assert_int_equal(fake_driver_calls(fx->world.driver, FAKE_CREATE), 1 + 8);
    fake_driver_inject(fx->world.driver, FAKE_CREATE, FAKE_OK, 0);
    fake_driver_release(fx->world.driver, FAKE_CREATE);
    world_settle(fx);
    assert_int_equal(fake_driver_runtimes(fx->world.driver), 12); // those that waited for a slot came in turn
}

static void a_removal_that_fails_is_visible_and_tried_again_until_it_is_confirmed(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *sandbox = world_create_running(fx);
    CLEANUP_RECORD struct record *again = NULL;
    struct error err = ERROR_INIT;
    fake_driver_inject(fx->world.driver, FAKE_REMOVE, FAKE_FAIL, 3);
    assert_ok(world_destroy(fx, sandbox->meta.uid, NULL, &err));
    world_settle(fx);
    assert_string_equal(world_word(fx, sandbox->meta.uid), "destroying");
    CLEANUP_RECORD struct record *fresh = world_get_record(fx, KIND_SANDBOX, sandbox->meta.uid);
    assert_true(record_is_true(fresh, CONDITION_STALLED));
    // Until it is confirmed gone the workspace stays held.
    assert_error(world_create(fx, REQUEST_MCP(.workspace_id = sandbox->status.sandbox.workspace_uid), NULL, &again, &err), ERROR_STATE);
    for (int i = 0; i < 5; i++)
        world_advance(fx, 60 * 1000);
    assert_string_equal(world_word(fx, sandbox->meta.uid), "destroyed");
}

static bool has_warning(struct world_fixture *fx, const char *uid, const char *reason)
{
    struct store_event_row *rows;
    size_t count;
    struct error err = ERROR_INIT;
    bool is_there = false;
    assert_ok(store_list_events(fx->world.store, uid, 100, &rows, &count, &err));
    for (size_t i = 0; i < count; i++)
        is_there |= strcmp(rows[i].reason, reason) == 0 && strcmp(rows[i].type, "Warning") == 0;
    store_events_free(rows, count);
    return is_there;
}

static void a_restart_removes_the_old_sandboxes_and_reports_them_failed(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *sandbox = world_create_running(fx);
    world_restart(fx);
    world_settle(fx);
    CLEANUP_RECORD struct record *fresh = world_get_record(fx, KIND_SANDBOX, sandbox->meta.uid);
    assert_string_equal(world_word(fx, sandbox->meta.uid), "failed");
    assert_string_equal(record_condition(fresh, CONDITION_FAILED)->reason, "ControllerRestarted");
    assert_true(has_warning(fx, sandbox->meta.uid, "ControllerRestarted"));
    assert_int_equal(fake_driver_runtimes(fx->world.driver), 0);
    assert_int_equal(fake_driver_names_reused(fx->world.driver), 0);
}

static void reconciling_settled_records_again_writes_nothing_and_calls_nobody(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *sandbox = world_create_running(fx);
    world_settle(fx);
    int64_t revision = store_revision(fx->world.store);
    int calls = fake_driver_calls(fx->world.driver, FAKE_CREATE) + fake_driver_calls(fx->world.driver, FAKE_SESSION) +
                fake_driver_calls(fx->world.driver, FAKE_REMOVE);
    for (int i = 0; i < 10; i++) // ten resyncs
        world_advance(fx, 66 * 1000);
    assert_int_equal(store_revision(fx->world.store), revision);
    assert_int_equal(fake_driver_calls(fx->world.driver, FAKE_CREATE) + fake_driver_calls(fx->world.driver, FAKE_SESSION) +
                         fake_driver_calls(fx->world.driver, FAKE_REMOVE),
                     calls);
}

static void more_creates_than_allowed_in_a_minute_are_refused_with_a_sentence(void **state)
{
    struct world_fixture *fx = *state;
    struct error err = ERROR_INIT;
    for (int i = 0; i < LIMIT_CREATES_A_MINUTE; i++) {
        CLEANUP_RECORD struct record *sandbox = NULL;
        CLEANUP_FREE char *name = mem_format("many-%d", i);
        assert_ok(world_create(fx, REQUEST_MCP(.name = name), NULL, &sandbox, &err));
    }
    struct record *extra = NULL;
    assert_error(world_create(fx, REQUEST_MCP(), NULL, &extra, &err), ERROR_LIMIT);
    world_settle(fx);
    clock_advance(fx->world.clock, 61 * 1000);
    assert_ok(world_create(fx, REQUEST_MCP(), NULL, &extra, &err));
    record_free(extra);
    world_settle(fx);
}

static void contradicting_arguments_store_nothing(void **state)
{
    struct world_fixture *fx = *state;
    struct record *none = NULL;
    struct error err = ERROR_INIT;
    int64_t revision = store_revision(fx->world.store);
    assert_error(world_create(fx, REQUEST_MCP(.workspace_id = "ws_x", .workspace_path = "/x"), NULL, &none, &err), ERROR_INVALID);
    assert_error(world_create(fx, REQUEST_MCP(.workspace_mode = "clone"), NULL, &none, &err), ERROR_INVALID);
    assert_error(world_create(fx, REQUEST_MCP(.workspace_path = "/x", .workspace_mode = "managed"), NULL, &none, &err), ERROR_INVALID);
    assert_error(world_create(fx, REQUEST_MCP(.workspace_mode = "none"), NULL, &none, &err), ERROR_INVALID);
    assert_error(world_create(fx, REQUEST_MCP(.workspace_id = "ws_aaaaaaaaaaaaaaaaaaaaaaaaaa"), NULL, &none, &err), ERROR_NOT_FOUND);
    assert_int_equal(store_revision(fx->world.store), revision);
}

static void a_mode_that_does_not_match_the_workspace_is_an_error(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *sandbox = world_create_running(fx);
    struct record *none = NULL;
    struct error err = ERROR_INIT;
    assert_error(world_create(fx, REQUEST_MCP(.workspace_id = sandbox->status.sandbox.workspace_uid, .workspace_mode = "direct"), NULL, &none, &err),
                 ERROR_INVALID);
}

#define LIFE_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LIFE_TEST(a_new_sandbox_runs_in_a_fresh_private_directory),
        LIFE_TEST(destroying_leaves_a_tombstone_and_a_retained_workspace),
        LIFE_TEST(a_retained_workspace_can_be_attached_again),
        LIFE_TEST(after_thirty_days_a_workspace_moves_to_the_trash_and_loses_nothing),
        LIFE_TEST(a_day_without_a_call_ends_a_sandbox),
        LIFE_TEST(a_call_that_fails_counts_and_looking_does_not),
        LIFE_TEST(a_wall_clock_that_steps_back_expires_nothing),
        LIFE_TEST(an_hour_that_the_wall_clock_jumps_harms_no_create_no_call_and_no_sandbox),
        LIFE_TEST(an_expiry_that_cannot_be_committed_keeps_the_sandbox),
        LIFE_TEST(creating_again_on_a_workspace_returns_the_running_one),
        LIFE_TEST(an_identical_request_joins_the_one_in_progress_and_a_later_one_does_not),
        LIFE_TEST(a_failed_create_removes_what_was_half_done_and_blocks_the_workspace),
        LIFE_TEST(a_failed_sandbox_waits_for_its_user_and_does_not_expire),
        LIFE_TEST(a_runtime_that_dies_fails_its_sandbox_with_the_reason),
        LIFE_TEST(destroying_cancels_a_create_that_hangs),
        LIFE_TEST(hung_creates_do_not_block_a_removal),
        LIFE_TEST(a_removal_that_fails_is_visible_and_tried_again_until_it_is_confirmed),
        LIFE_TEST(a_restart_removes_the_old_sandboxes_and_reports_them_failed),
        LIFE_TEST(reconciling_settled_records_again_writes_nothing_and_calls_nobody),
        LIFE_TEST(more_creates_than_allowed_in_a_minute_are_refused_with_a_sentence),
        LIFE_TEST(contradicting_arguments_store_nothing),
        LIFE_TEST(a_mode_that_does_not_match_the_workspace_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
