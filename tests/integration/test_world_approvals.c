// The one local approval boundary: host paths.
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "schemas/kinds/conditions.h"
#include "tests/support/world_fixture.h"
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

// Asks for the path; the answer must be an approval that waits. Returns its uid (the caller's).
static char *ask(struct world_fixture *fx, const char *path, const char *mode)
{
    struct record *approval = NULL;
    struct error err = ERROR_INIT;
    enum sandbox_outcome outcome;
    assert_ok(world_create(fx, REQUEST_MCP(.workspace_path = path, .workspace_mode = mode), &outcome, &approval, &err));
    assert_int_equal(outcome, SANDBOX_NEEDS_APPROVAL);
    assert_int_equal(approval->kind, KIND_APPROVAL);
    char *uid = mem_strdup(approval->meta.uid);
    record_free(approval);
    world_settle(fx);
    return uid;
}

static void asking_mounts_nothing_and_repeating_gives_the_same_approval(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *repo = world_make_repository(fx, "repo");
    CLEANUP_FREE char *first = ask(fx, repo, NULL);
    CLEANUP_FREE char *second = ask(fx, repo, "clone");
    CLEANUP_FREE char *direct = ask(fx, repo, "direct");
    assert_string_equal(first, second);
    assert_string_not_equal(first, direct);
    assert_int_equal(fake_driver_calls(fx->world.driver, FAKE_CREATE), 0);
}

static void an_approval_is_reused_for_the_same_path_and_mode(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *repo = world_make_repository(fx, "repo");
    CLEANUP_FREE char *uid = ask(fx, repo, NULL);
    CLEANUP_RECORD struct record *sandbox = NULL, *again = NULL;
    struct error err = ERROR_INIT;
    enum sandbox_outcome outcome;
    assert_ok(world_decide(fx, uid, "approved", 0, &err));
    CLEANUP_RECORD struct record *approval = world_get_record(fx, KIND_APPROVAL, uid);
    assert_non_null(approval->status.approval.workspace_ref);
    assert_string_equal(approval->status.approval.decided_by, "operator:uid=0");
    assert_ok(world_create(fx, REQUEST_MCP(.workspace_path = repo), &outcome, &sandbox, &err));
    assert_int_equal(outcome, SANDBOX_CREATED);
    assert_string_equal(sandbox->status.sandbox.workspace_uid, approval->status.approval.workspace_ref);
    world_settle(fx);
    assert_ok(world_destroy(fx, sandbox->meta.uid, NULL, &err));
    world_settle(fx);
    assert_ok(world_create(fx, REQUEST_MCP(.workspace_path = repo), &outcome, &again, &err));
    assert_int_equal(outcome, SANDBOX_CREATED);
}

static void after_a_rejection_a_later_request_asks_anew(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *repo = world_make_repository(fx, "repo");
    CLEANUP_FREE char *first = ask(fx, repo, NULL);
    struct error err = ERROR_INIT;
    assert_ok(world_decide(fx, first, "rejected", 0, &err));
    CLEANUP_FREE char *second = ask(fx, repo, NULL);
    assert_string_not_equal(first, second);
}

static void after_a_revocation_a_later_request_asks_anew_and_no_file_is_touched(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *repo = world_make_repository(fx, "repo");
    CLEANUP_FREE char *first = ask(fx, repo, NULL);
    struct error err = ERROR_INIT;
    assert_ok(world_decide(fx, first, "approved", 0, &err));
    CLEANUP_RECORD struct record *approval = world_get_record(fx, KIND_APPROVAL, first);
    assert_ok(world_delete(fx, KIND_WORKSPACE, approval->status.approval.workspace_ref, &err));
    CLEANUP_RECORD struct record *revoked = world_get_record(fx, KIND_APPROVAL, first);
    assert_true(record_is_true(revoked, CONDITION_REVOKED));
    assert_int_equal(access(repo, F_OK), 0);
    CLEANUP_FREE char *second = ask(fx, repo, NULL);
    assert_string_not_equal(first, second);
}

static void deleting_an_approval_revokes_its_workspace(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *repo = world_make_repository(fx, "repo");
    CLEANUP_FREE char *uid = ask(fx, repo, NULL);
    struct error err = ERROR_INIT;
    assert_ok(world_decide(fx, uid, "approved", 0, &err));
    CLEANUP_RECORD struct record *approval = world_get_record(fx, KIND_APPROVAL, uid);
    assert_ok(world_delete(fx, KIND_APPROVAL, uid, &err));
    CLEANUP_RECORD struct record *workspace = world_get_record(fx, KIND_WORKSPACE, approval->status.approval.workspace_ref);
    assert_int_not_equal(workspace->meta.removed_at.ms, 0);
    CLEANUP_FREE char *second = ask(fx, repo, NULL);
    assert_string_not_equal(uid, second);
}

static void a_directory_that_was_replaced_needs_a_new_approval(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *repo = world_make_repository(fx, "repo");
    CLEANUP_FREE char *first = ask(fx, repo, NULL);
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *aside = mem_format("%s-old", repo);
    assert_int_equal(rename(repo, aside), 0);
    CLEANUP_FREE char *other = world_make_repository(fx, "repo");
    assert_error(world_decide(fx, first, "approved", 0, &err), ERROR_CONFLICT);
    CLEANUP_FREE char *second = ask(fx, repo, NULL);
    assert_string_not_equal(first, second);
    assert_ok(world_decide(fx, second, "approved", 0, &err));
    // Replaced again after the approval: what was approved is not what is there.
    CLEANUP_FREE char *aside_again = mem_format("%s-older", repo);
    assert_int_equal(rename(repo, aside_again), 0);
    CLEANUP_FREE char *another = world_make_repository(fx, "repo");
    CLEANUP_FREE char *third = ask(fx, repo, NULL);
    assert_string_not_equal(second, third);
}

static void a_decision_on_something_else_than_was_shown_is_a_conflict(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *repo = world_make_repository(fx, "repo");
    CLEANUP_FREE char *uid = ask(fx, repo, NULL);
    CLEANUP_RECORD struct record *shown = world_get_record(fx, KIND_APPROVAL, uid);
    struct error err = ERROR_INIT;
    assert_error(world_decide(fx, uid, "approved", shown->meta.resource_version - 1, &err), ERROR_CONFLICT);
    assert_ok(world_decide(fx, uid, "approved", shown->meta.resource_version, &err));
    assert_error(world_decide(fx, uid, "rejected", 0, &err), ERROR_STATE);
}

static void every_refused_path_sounds_the_same_to_a_caller_and_tells_the_operator_why(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *plain = world_make_host_dir(fx, "plain");
    CLEANUP_FREE char *ssh = world_make_host_dir(fx, ".ssh");
    CLEANUP_FREE char *inner = world_make_host_dir(fx, ".ssh/inner");
    CLEANUP_FREE char *file = mem_format("%s/file", plain);
    CLEANUP_FREE char *link = mem_format("%s/link", plain);
    CLEANUP_FREE char *missing = mem_format("%s/missing", plain);
    CLEANUP_FREE char *allowed = mem_format("%s/repositories", fx->dir);
    fclose(fopen(file, "w"));
    assert_int_equal(symlink("/etc", link), 0);
    const char *paths[] = {"/etc", "/", allowed, ssh, inner, file, link, missing, fx->config.data_root, fx->config.state_dir, "relative", plain /* no repository */};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct record *none = NULL;
        struct error err = ERROR_INIT;
        struct host_path path;
        assert_error(world_create(fx, REQUEST_MCP(.workspace_path = paths[i]), NULL, &none, &err), ERROR_REFUSED);
        assert_string_equal(err.message, PATH_REFUSED_MESSAGE);
        assert_true(path_policy_check(&fx->config, paths[i], WORKSPACE_CLONE, true, &path, &err) < 0);
        assert_string_not_equal(err.message, PATH_REFUSED_MESSAGE);
    }
}

static void a_repository_that_borrows_objects_from_outside_is_no_clone_source(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *repo = world_make_repository(fx, "repo");
    CLEANUP_FREE char *alternates = mem_format("%s/.git/objects/info/alternates", repo);
    struct host_path path;
    struct error err = ERROR_INIT;
    FILE *file = fopen(alternates, "w");
    fputs("/etc\n", file);
    fclose(file);
    assert_error(path_policy_check(&fx->config, repo, WORKSPACE_CLONE, true, &path, &err), ERROR_REFUSED);
    assert_non_null(strstr(err.message, "outside"));
}

static void a_git_file_instead_of_a_directory_is_no_clone_source(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *dir = world_make_host_dir(fx, "worktree");
    CLEANUP_FREE char *git = mem_format("%s/.git", dir);
    struct host_path path;
    struct error err = ERROR_INIT;
    FILE *file = fopen(git, "w");
    fputs("gitdir: /elsewhere\n", file);
    fclose(file);
    assert_error(path_policy_check(&fx->config, dir, WORKSPACE_CLONE, true, &path, &err), ERROR_REFUSED);
}

static void a_direct_path_with_a_listening_socket_or_a_fifo_is_shown_or_refused(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *dir = world_make_host_dir(fx, "direct");
    CLEANUP_FREE char *fifo = mem_format("%s/pipe", dir);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    CLEANUP_FREE char *uid = ask(fx, dir, "direct");
    CLEANUP_RECORD struct record *approval = world_get_record(fx, KIND_APPROVAL, uid);
    CLEANUP_FREE char *shown = json_to_text(approval->status.approval.exposes);
    assert_non_null(strstr(shown, "named pipe"));
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/sock", dir);
    CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 1), 0);
    struct record *none = NULL;
    struct error err = ERROR_INIT;
    assert_error(world_create(fx, REQUEST_MCP(.workspace_path = dir, .workspace_mode = "direct"), NULL, &none, &err), ERROR_REFUSED);
}

static void overlapping_direct_workspaces_are_refused_while_one_is_mounted(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_FREE char *outer = world_make_host_dir(fx, "outer");
    CLEANUP_FREE char *inner = world_make_host_dir(fx, "outer/inner");
    CLEANUP_FREE char *a = ask(fx, outer, "direct");
    CLEANUP_FREE char *b = ask(fx, inner, "direct");
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *first = NULL, *second = NULL;
    assert_ok(world_decide(fx, a, "approved", 0, &err));
    assert_ok(world_decide(fx, b, "approved", 0, &err));
    assert_ok(world_create(fx, REQUEST_MCP(.workspace_path = outer, .workspace_mode = "direct"), NULL, &first, &err));
    world_settle(fx);
    assert_error(world_create(fx, REQUEST_MCP(.workspace_path = inner, .workspace_mode = "direct"), NULL, &second, &err), ERROR_STATE);
}

static void a_bound_managed_workspace_is_not_deleted_and_an_unbound_one_goes_to_the_trash(void **state)
{
    struct world_fixture *fx = *state;
    CLEANUP_RECORD struct record *sandbox = world_create_running(fx);
    const char *uid = sandbox->status.sandbox.workspace_uid;
    struct error err = ERROR_INIT;
    assert_error(world_delete(fx, KIND_WORKSPACE, uid, &err), ERROR_STATE);
    assert_ok(world_destroy(fx, sandbox->meta.uid, NULL, &err));
    world_settle(fx);
    assert_ok(world_delete(fx, KIND_WORKSPACE, uid, &err));
    CLEANUP_FREE char *trashed = mem_format("%s/.trash/%s/root", fx->config.workspace_root, uid);
    assert_int_equal(access(trashed, F_OK), 0);
    CLEANUP_RECORD struct record *workspace = world_get_record(fx, KIND_WORKSPACE, uid);
    CLEANUP_JSON json_t *words = render_workspace(workspace);
    assert_string_equal(json_get_text(words, "status"), "trashed");
}

static void at_most_so_many_approvals_wait_at_once(void **state)
{
    struct world_fixture *fx = *state;
    for (int i = 0; i < LIMIT_PENDING_APPROVALS; i++) {
        CLEANUP_FREE char *name = mem_format("dir-%d", i);
        CLEANUP_FREE char *dir = world_make_host_dir(fx, name);
        struct record *approval = NULL;
        struct error err = ERROR_INIT;
        assert_ok(world_create(fx, REQUEST_MCP(.workspace_path = dir, .workspace_mode = "direct"), NULL, &approval, &err));
        record_free(approval);
    }
    CLEANUP_FREE char *extra = world_make_host_dir(fx, "extra");
    struct record *none = NULL;
    struct error err = ERROR_INIT;
    assert_error(world_create(fx, REQUEST_MCP(.workspace_path = extra, .workspace_mode = "direct"), NULL, &none, &err), ERROR_LIMIT);
    world_settle(fx);
}

#define APPROVAL_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        APPROVAL_TEST(asking_mounts_nothing_and_repeating_gives_the_same_approval),
        APPROVAL_TEST(an_approval_is_reused_for_the_same_path_and_mode),
        APPROVAL_TEST(after_a_rejection_a_later_request_asks_anew),
        APPROVAL_TEST(after_a_revocation_a_later_request_asks_anew_and_no_file_is_touched),
        APPROVAL_TEST(deleting_an_approval_revokes_its_workspace),
        APPROVAL_TEST(a_directory_that_was_replaced_needs_a_new_approval),
        APPROVAL_TEST(a_decision_on_something_else_than_was_shown_is_a_conflict),
        APPROVAL_TEST(every_refused_path_sounds_the_same_to_a_caller_and_tells_the_operator_why),
        APPROVAL_TEST(a_repository_that_borrows_objects_from_outside_is_no_clone_source),
        APPROVAL_TEST(a_git_file_instead_of_a_directory_is_no_clone_source),
        APPROVAL_TEST(a_direct_path_with_a_listening_socket_or_a_fifo_is_shown_or_refused),
        APPROVAL_TEST(overlapping_direct_workspaces_are_refused_while_one_is_mounted),
        APPROVAL_TEST(a_bound_managed_workspace_is_not_deleted_and_an_unbound_one_goes_to_the_trash),
        APPROVAL_TEST(at_most_so_many_approvals_wait_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
