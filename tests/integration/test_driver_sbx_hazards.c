// What Docker Sandboxes is known to do wrong, injected one by one: each has an outcome that is right.
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "reconcilers/drivers/sbx/sbx.h"
#include "tests/support/sbx_rig.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define NAME BENCH_PREFIX "aaaaaaaaaaaaaaaaaaaaaaaaaa-1"
#define OTHER BENCH_PREFIX "bbbbbbbbbbbbbbbbbbbbbbbbbb-1"

static struct driver_bench bench;
static char output[64 * 1024];
static char *root;

static int setup(void **state)
{
    (void)state;
    bench_open_sbx(&bench, NULL);
    sbx_rig_hurry(&bench);
    sbx_rig_init(&bench);
    root = bench_workspace(&bench, "work");
    return 0;
}
static int teardown(void **state)
{
    (void)state;
    bench_close(&bench);
    sbx_rig_stop(&bench);
    support_remove_dir(bench.dir);
    free(root);
    return 0;
}

static struct bench_created create(const char *name, const char *path)
{
    struct stat info = {0};
    stat(path, &info);
    struct driver_spec spec = {.runtime_name = name, .sandbox_uid = "sbx_test", .workspace_root = path, .device = (int64_t)info.st_dev,
                               .inode = (int64_t)info.st_ino, .has_network = true, .session = SESSION_GUEST};
    return bench_create(&bench, &spec);
}

static void create_well(const char *name)
{
    struct bench_created created = create(name, root);
    if (created.result < 0)
        fail_msg("create failed: %s (%s)", created.err.message, created.err.hint);
}

static struct bench_session start(const char *name)
{
    create_well(name);
    struct bench_session session = bench_session(&bench, name);
    if (session.result < 0)
        fail_msg("the session did not start: %s (%s)", session.err.message, session.err.hint);
    return session;
}

static void remove_well(const char *name)
{
    struct error err = ERROR_INIT;
    assert_ok(bench_remove(&bench, name, &err));
    assert_false(sbx_rig_has(&bench, name));
}

// The create fails with this code and words in its sentence, and leaves nothing.
static void expect_failure(const char *settings, const char *faults, enum error_code code, const char *words)
{
    sbx_rig_set(&bench, settings, faults);
    struct bench_created created = create(NAME, root);
    assert_int_equal(created.result, -1);
    if (created.err.code != code || strstr(created.err.message, words) == NULL)
        fail_msg("unexpected (%d): %s (%s)", created.err.code, created.err.message, created.err.hint);
    assert_null(strstr(created.err.message, NAME));
    sbx_rig_set(&bench, "", "");
    remove_well(NAME);
}

// ---- what it prints ----------------------------------------------------------------------------------------------------

static void banners_before_everything_harm_nothing(void **state)
{
    (void)state;
    sbx_rig_set(&bench, "", "{\"on\": \"*\", \"do\": \"banner\", \"times\": 0}, {\"on\": \"*\", \"do\": \"notice\", \"text\": \"[new] {see} docs\", \"times\": 0}");
    struct bench_session session = start(NAME);
    assert_int_equal(bench_shell(&session, "echo fine", output, sizeof(output)), 0);
    assert_string_equal(output, "fine\n");
    bench_session_close(&session);
    remove_well(NAME);
}

static void json_with_unknown_keys_and_without_optional_ones_is_read(void **state)
{
    (void)state;
    sbx_rig_set(&bench, "",
                "{\"on\": \"*\", \"do\": \"json-add\", \"keys\": {\"zz\": {\"a\": [1, null]}}, \"times\": 0},"
                "{\"on\": \"ls\", \"do\": \"json-drop\", \"keys\": [\"id\", \"agent\", \"status\", \"workspaces\", \"ports\"], \"times\": 0},"
                "{\"on\": \"policy ls\", \"do\": \"json-drop\", \"keys\": [\"id\", \"policy_id\", \"status\", \"resource_type\"], \"times\": 0}");
    create_well(NAME);
    remove_well(NAME);
}

static void a_list_that_is_no_json_is_no_proof(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    create_well(NAME);
    sbx_rig_set(&bench, "", "{\"on\": \"ls\", \"do\": \"garbage\", \"text\": \"<html>\"}");
    assert_error(bench_remove(&bench, NAME, &err), ERROR_UNAVAILABLE);
    remove_well(NAME);
}

static void merged_streams_harm_nothing(void **state)
{
    (void)state;
    sbx_rig_set(&bench, "", "{\"on\": \"exec\", \"do\": \"merge-streams\", \"times\": 0}");
    struct bench_session session = start(NAME);
    assert_int_equal(bench_shell(&session, "echo fine", output, sizeof(output)), 0);
    bench_session_close(&session);
    remove_well(NAME);
}

// ---- creates -----------------------------------------------------------------------------------------------------------

static void a_create_that_only_claims_success_is_seen_through(void **state)
{
    (void)state;
    expect_failure("", "{\"on\": \"create\", \"do\": \"create-ghost\"}", ERROR_CONFLICT, "does not list it");
}

static void a_create_that_fails_and_yet_makes_one_is_cleaned_up(void **state)
{
    (void)state;
    expect_failure("", "{\"on\": \"create\", \"do\": \"create-there\"}", ERROR_CONFLICT, "what was made of it is removed");
}

static void a_name_that_is_taken_is_told_as_such(void **state)
{
    (void)state;
    expect_failure("", "{\"on\": \"create\", \"do\": \"conflict\"}", ERROR_EXISTS, "there already");
}

static void a_create_that_hangs_ends_and_what_comes_later_is_removed(void **state)
{
    (void)state;
    sbx_of(bench.driver)->deadlines.create_call_ms = 3000;
    expect_failure("\"create_delay_ms\": 3300, \"killed_create\": \"finish\"", "", ERROR_TIMEOUT, "did not answer within");
}

static void a_half_created_sandbox_is_let_go(void **state)
{
    (void)state;
    sbx_rig_set(&bench, "", "{\"on\": \"create\", \"do\": \"create-half\"}");
    struct bench_created created = create(NAME, root);
    assert_int_equal(created.result, -1);
    remove_well(NAME);
    create_well(OTHER); // the next attempt has another name
    remove_well(OTHER);
}

static void an_expired_sign_in_names_the_command(void **state)
{
    (void)state;
    sbx_rig_set(&bench, "", "{\"on\": \"create\", \"do\": \"session-expired\"}");
    struct bench_created created = create(NAME, root);
    assert_int_equal(created.err.code, ERROR_UNAVAILABLE);
    assert_string_equal(created.err.hint, "run: sbx login");
    remove_well(NAME);
}

static void a_sign_in_that_waits_for_somebody_is_not_waited_for(void **state)
{
    (void)state;
    sbx_of(bench.driver)->deadlines.create_call_ms = 3000;
    expect_failure("", "{\"on\": \"create\", \"do\": \"session-expired\", \"wait\": true}", ERROR_UNAVAILABLE, "sign");
}

static void no_prompt_is_answered(void **state)
{
    (void)state;
    sbx_rig_set(&bench, "", "{\"on\": \"create\", \"do\": \"update-pending\"}");
    struct bench_created created = create(NAME, root);
    assert_int_equal(created.result, -1);
    assert_non_null(strstr(created.err.message, "waits for a restart"));
    remove_well(NAME);
}

static void a_missing_sandbox_is_not_taken_for_a_failed_command(void **state)
{
    (void)state;
    expect_failure("", "{\"on\": \"exec\", \"do\": \"fail\", \"text\": \"ERROR: no sandbox named 'x'\", \"exit\": 1}", ERROR_NOT_FOUND, "the sandbox is not there");
}

static void a_denial_that_was_lost_is_asked_for_again(void **state)
{
    (void)state;
    sbx_rig_set(&bench, "", "{\"on\": \"policy ls\", \"do\": \"json-drop\", \"keys\": [\"decision\"], \"times\": 1}");
    create_well(NAME);
    assert_int_equal(sbx_rig_count_calls(&bench, "policy deny network --sandbox " NAME), 1);
    remove_well(NAME);
}

static void without_a_confirmed_denial_there_is_no_sandbox(void **state)
{
    (void)state;
    expect_failure("", "{\"on\": \"policy ls\", \"do\": \"json-drop\", \"keys\": [\"decision\"], \"times\": 0}", ERROR_UNAVAILABLE, "denial of openrouter.ai cannot be confirmed");
}


// A create on a thread of its own.
struct background {
    pthread_t thread;
    char name[64];
    struct bench_created created;
};
static void *run_create(void *arg)
{
    struct background *it = arg;
    it->created = create(it->name, root);
    return NULL;
}
static void begin_create(struct background *it, const char *name)
{
    snprintf(it->name, sizeof(it->name), "%s", name);
    assert_int_equal(pthread_create(&it->thread, NULL, run_create, it), 0);
}
static void wait_for_call(const char *words)
{
    assert_true(support_await(5, sbx_rig_count_calls(&bench, words) > 0));
}

static void a_removal_ends_a_create_that_hangs(void **state)
{
    (void)state;
    struct background hung;
    sbx_of(bench.driver)->deadlines = sbx_default_deadlines; // it is not the deadline that ends it
    sbx_rig_set(&bench, "", "{\"on\": \"create\", \"do\": \"hang\"}");
    begin_create(&hung, NAME);
    wait_for_call("create");
    remove_well(NAME);
    pthread_join(hung.thread, NULL);
    assert_int_equal(hung.created.err.code, ERROR_CANCELLED);
}

static void a_list_that_hangs_delays_no_other_sandbox(void **state)
{
    (void)state;
    struct background hung;
    sbx_of(bench.driver)->deadlines.call_ms = 30000; // the other create fits into it on a busy machine, too
    sbx_rig_set(&bench, "", "{\"on\": \"ls\", \"do\": \"hang\"}");
    begin_create(&hung, NAME);
    wait_for_call("ls");
    create_well(OTHER); // while the other one still waits for its list
    assert_int_equal(sbx_rig_count_calls(&bench, "rm"), 0);
    pthread_join(hung.thread, NULL);
    assert_int_equal(hung.created.err.code, ERROR_TIMEOUT); // another attempt may help
    remove_well(OTHER);
    remove_well(NAME);
}

static void thirty_creates_at_once_all_succeed(void **state)
{
    (void)state;
    static struct background all[30];
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        CLEANUP_FREE char *name = mem_format(BENCH_PREFIX "%026zu-1", i);
        begin_create(&all[i], name);
    }
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        pthread_join(all[i].thread, NULL);
        if (all[i].created.result < 0)
            fail_msg("create failed: %s (%s)", all[i].created.err.message, all[i].created.err.hint);
    }
    assert_true(sbx_rig_count_calls(&bench, "ls") < ARRAY_LEN(all)); // lists are shared
    struct error err = ERROR_INIT;
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        assert_ok(bench_remove(&bench, all[i].name, &err));
    assert_int_equal(bench_list_count(&bench), 0);
}

// ---- places ------------------------------------------------------------------------------------------------------------

static void odd_paths_are_passed_on_as_they_are(void **state)
{
    (void)state;
    static const char *const names[] = {"with space", "quo\"te'$x", "zeile\nzwei", "gr\303\266\303\237e", "-dash"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CLEANUP_FREE char *name = mem_format(BENCH_PREFIX "%026zu-1", i), *path = bench_workspace(&bench, names[i]);
        struct bench_created created = create(name, path);
        if (created.result < 0)
            fail_msg("%s: %s", names[i], created.err.message);
        assert_string_equal(created.root, path);
        struct bench_session session = bench_session(&bench, name);
        assert_int_equal(session.result, 0);
        assert_int_equal(bench_shell(&session, "pwd", output, sizeof(output)), 0);
        output[strlen(output) - 1] = '\0';
        assert_string_equal(output, path);
        bench_session_close(&session);
        remove_well(name);
    }
}

static void a_path_that_sbx_would_misread_is_refused(void **state)
{
    (void)state;
    CLEANUP_FREE char *path = bench_workspace(&bench, "data:ro");
    struct bench_created created = create(NAME, path);
    assert_int_equal(created.err.code, ERROR_UNSUPPORTED);
    assert_non_null(strstr(created.err.message, "colon"));
    assert_int_equal(sbx_rig_count_calls(&bench, "create"), 0);
    remove_well(NAME);
}

static void a_workspace_that_vanished_is_told(void **state)
{
    (void)state;
    CLEANUP_FREE char *path = mem_format("%s/gone", bench.dir);
    struct bench_created created = create(NAME, path);
    assert_int_equal(created.err.code, ERROR_NOT_FOUND);
    assert_non_null(strstr(created.err.message, "is not there any more"));
    remove_well(NAME);
}

static void a_workspace_that_is_replaced_during_the_create_is_noticed(void **state)
{
    (void)state;
    struct background it;
    CLEANUP_FREE char *away = mem_format("%s/away", bench.dir);
    sbx_rig_set(&bench, "\"create_delay_ms\": 1500", "");
    begin_create(&it, NAME);
    wait_for_call("create");
    assert_int_equal(rename(root, away), 0);
    assert_int_equal(mkdir(root, 0700), 0);
    pthread_join(it.thread, NULL);
    assert_int_equal(it.created.err.code, ERROR_STATE);
    assert_non_null(strstr(it.created.err.message, "replaced while the sandbox was being made"));
    remove_well(NAME);
}

// ---- sessions ----------------------------------------------------------------------------------------------------------

static struct bench_session start_badly(const char *faults)
{
    create_well(NAME);
    sbx_rig_set(&bench, "", faults);
    struct bench_session session = bench_session(&bench, NAME);
    assert_int_equal(session.result, -1);
    assert_null(strstr(session.err.message, NAME));
    sbx_rig_set(&bench, "", "");
    remove_well(NAME);
    return session;
}

static void a_missing_tool_server_is_named(void **state)
{
    (void)state;
    struct bench_session session = start_badly("{\"on\": \"cp\", \"do\": \"fail\", \"text\": \"\", \"exit\": 0}"); // claims to have copied
    assert_int_equal(session.err.code, ERROR_NOT_FOUND);
    assert_non_null(strstr(session.err.message, "there is no " SBX_GUEST_PATH));
}

static void an_engine_error_on_stdout_is_the_reason(void **state)
{
    (void)state;
    struct bench_session session = start_badly("{\"on\": \"exec\", \"do\": \"fail\", \"exit\": 127, \"stream\": \"stdout\", \"text\": "
                                               "\"OCI runtime exec failed: exec failed: unable to start container process\\n\"}");
    assert_int_equal(session.err.code, ERROR_NOT_FOUND);
    assert_non_null(strstr(session.err.message, "OCI runtime exec failed"));
}

static bool ends(int fd)
{
    struct pollfd at = {.fd = fd, .events = POLLIN};
    char byte;
    return poll(&at, 1, SUPPORT_PATIENCE_MS) == 1 && read(fd, &byte, 1) == 0;
}

static void a_client_that_is_killed_ends_the_session_and_what_it_left_inside(void **state)
{
    (void)state;
    struct bench_session session = start(NAME);
    assert_int_equal(kill(sbx_rig_client_pid(&bench, "exec -i"), SIGKILL), 0);
    assert_true(ends(session.session.output_fd));
    const char *const look[] = {"exec", NAME, "sh", "-c", "kill -0 $(cat /tmp/.chat2shell-session)", NULL};
    assert_true(support_await(20, sbx_rig_run(&bench, NULL, 0, look) != 0));
    bench_session_close(&session);
    remove_well(NAME);
}

static void a_daemon_that_restarts_ends_the_session_at_once(void **state)
{
    (void)state;
    struct bench_session session = start(NAME);
    sbx_rig_run(&bench, NULL, 0, (const char *const[]){"daemon", "restart", NULL});
    assert_true(ends(session.session.output_fd));
    bench_session_close(&session);
    remove_well(NAME);
}

// ---- removals ----------------------------------------------------------------------------------------------------------

static void removing_what_is_not_there_succeeds_with_either_exit_code(void **state)
{
    (void)state;
    static const char *const settings[] = {"\"rm_absent_exit\": 0", "\"rm_absent_exit\": 1"};
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        sbx_rig_set(&bench, settings[i], "");
        remove_well(NAME);
    }
}

static void an_empty_list_is_no_proof_while_others_run(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct bench_session session = start(OTHER);
    create_well(NAME);
    sbx_rig_set(&bench, "", "{\"on\": \"ls\", \"do\": \"ls-empty\"}");
    assert_error(bench_remove(&bench, NAME, &err), ERROR_UNAVAILABLE);
    assert_non_null(strstr(err.message, "proves nothing"));
    remove_well(NAME);
    bench_session_close(&session);
    remove_well(OTHER);
}

static void a_sandbox_that_stays_listed_is_not_gone(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    create_well(NAME);
    sbx_rig_run(&bench, NULL, 0, (const char *const[]){"ls", "--json", NULL}); // the list that will be stale
    sbx_rig_set(&bench, "", "{\"on\": \"ls\", \"do\": \"ls-stale\", \"times\": 0}");
    assert_error(bench_remove(&bench, NAME, &err), ERROR_UNAVAILABLE);
    sbx_rig_set(&bench, "", "");
    remove_well(NAME);
}

static void a_stuck_backend_fails_the_removal_until_it_answers(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    create_well(NAME);
    sbx_rig_set(&bench, "", "{\"on\": \"rm\", \"do\": \"unavailable\"}");
    assert_error(bench_remove(&bench, NAME, &err), ERROR_UNAVAILABLE);
    assert_true(sbx_rig_has(&bench, NAME));
    remove_well(NAME);
}

static void sandboxes_of_others_are_never_touched(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    const char *const make[] = {"create", "--name", "c2s-fedcba98-a-1", "shell", root, NULL};
    assert_int_equal(sbx_rig_run(&bench, NULL, 0, make), 0);
    assert_ok(bench_remove(&bench, "c2s-fedcba98-a-1", &err));
    assert_true(sbx_rig_has(&bench, "c2s-fedcba98-a-1"));
    assert_int_equal(bench_list_count(&bench), 0);
    assert_int_equal(sbx_rig_count_calls(&bench, "rm"), 0);
}

#define TAKEN "ERROR: publish port: listen tcp4: bind: address already in use"

// ---- ports -------------------------------------------------------------------------------------------------------------

static void a_port_on_the_wrong_interface_is_taken_back(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    int host_port = 0;
    struct bench_session session = start(NAME);
    sbx_rig_set(&bench, "", "{\"on\": \"ports\", \"argv\": [\"--publish\"], \"do\": \"ports-wrong-interface\", \"address\": \"127.0.0.1\"}");
    assert_error(bench_publish(&bench, NAME, 3000, &host_port, &err), ERROR_REFUSED);
    sbx_rig_run(&bench, output, sizeof(output), (const char *const[]){"ports", NAME, "--json", NULL});
    assert_null(strstr(output, "3000"));
    assert_ok(bench_publish(&bench, NAME, 3000, &host_port, &err)); // another time
    bench_session_close(&session);
    remove_well(NAME);
}

static void a_host_port_that_is_taken_meanwhile_is_replaced_by_another(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    int host_port = 0, again = 0;
    struct bench_session session = start(NAME);
    sbx_rig_set(&bench, "", "{\"on\": \"ports\", \"argv\": [\"--publish\"], \"do\": \"fail\", \"text\": \"" TAKEN "\", \"times\": 2}");
    assert_ok(bench_publish(&bench, NAME, 3000, &host_port, &err));
    assert_int_equal(sbx_rig_count_calls(&bench, "ports " NAME " --publish"), 3);
    assert_ok(bench_publish(&bench, NAME, 3000, &again, &err)); // the same mapping
    assert_int_equal(again, host_port);
    assert_int_equal(sbx_rig_count_calls(&bench, "ports " NAME " --publish"), 3);
    assert_ok(bench_unpublish(&bench, NAME, 3000, &err));
    assert_ok(bench_unpublish(&bench, NAME, 3000, &err));
    sbx_rig_set(&bench, "", "{\"on\": \"ports\", \"argv\": [\"--publish\"], \"do\": \"fail\", \"text\": \"" TAKEN "\", \"times\": 0}");
    assert_error(bench_publish(&bench, NAME, 3000, &host_port, &err), ERROR_IO); // five times, then the reason
    assert_int_equal(sbx_rig_count_calls(&bench, "ports " NAME " --publish"), 8);
    bench_session_close(&session);
    remove_well(NAME);
}

static void a_probe_tells_whether_something_listens(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    int host_port = 0;
    struct bench_session session = start(NAME);
    assert_ok(bench_publish(&bench, NAME, 3000, &host_port, &err));
    assert_error(bench_probe_port(&bench, NAME, 3000, &err), ERROR_UNAVAILABLE);
    assert_int_equal(bench_shell(&session, "nohup python3 -m http.server 3000 > /dev/null 2>&1 & for i in $(seq 200); do "
                                           "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 3000))' 2> /dev/null && break; sleep 0.05; done", output, sizeof(output)), 0);
    assert_ok(bench_probe_port(&bench, NAME, 3000, &err));
    bench_session_close(&session);
    remove_well(NAME);
}

// ---- releases ----------------------------------------------------------------------------------------------------------

static void the_oldest_release_that_is_served_works(void **state)
{
    (void)state;
    sbx_rig_set(&bench, "\"version\": \"0.38.0\"", "");
    struct bench_session session = start(NAME);
    bench_session_close(&session);
    remove_well(NAME);
}

static void an_older_release_is_refused_with_a_sentence(void **state)
{
    (void)state;
    sbx_rig_set(&bench, "\"version\": \"0.37.2\"", "");
    struct bench_created created = create(NAME, root);
    assert_int_equal(created.err.code, ERROR_UNSUPPORTED);
    assert_non_null(strstr(created.err.message, "sbx is version 0.37.2, and chat2shell needs 0.38.0 or newer"));
    remove_well(NAME);
}

#define HAZARD(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HAZARD(banners_before_everything_harm_nothing),
        HAZARD(json_with_unknown_keys_and_without_optional_ones_is_read),
        HAZARD(a_list_that_is_no_json_is_no_proof),
        HAZARD(merged_streams_harm_nothing),
        HAZARD(a_create_that_only_claims_success_is_seen_through),
        HAZARD(a_create_that_fails_and_yet_makes_one_is_cleaned_up),
        HAZARD(a_name_that_is_taken_is_told_as_such),
        HAZARD(a_create_that_hangs_ends_and_what_comes_later_is_removed),
        HAZARD(a_half_created_sandbox_is_let_go),
        HAZARD(an_expired_sign_in_names_the_command),
        HAZARD(a_sign_in_that_waits_for_somebody_is_not_waited_for),
        HAZARD(no_prompt_is_answered),
        HAZARD(a_missing_sandbox_is_not_taken_for_a_failed_command),
        HAZARD(a_denial_that_was_lost_is_asked_for_again),
        HAZARD(without_a_confirmed_denial_there_is_no_sandbox),
        HAZARD(a_removal_ends_a_create_that_hangs),
        HAZARD(a_list_that_hangs_delays_no_other_sandbox),
        HAZARD(thirty_creates_at_once_all_succeed),
        HAZARD(odd_paths_are_passed_on_as_they_are),
        HAZARD(a_path_that_sbx_would_misread_is_refused),
        HAZARD(a_workspace_that_vanished_is_told),
        HAZARD(a_workspace_that_is_replaced_during_the_create_is_noticed),
        HAZARD(a_missing_tool_server_is_named),
        HAZARD(an_engine_error_on_stdout_is_the_reason),
        HAZARD(a_client_that_is_killed_ends_the_session_and_what_it_left_inside),
        HAZARD(a_daemon_that_restarts_ends_the_session_at_once),
        HAZARD(removing_what_is_not_there_succeeds_with_either_exit_code),
        HAZARD(an_empty_list_is_no_proof_while_others_run),
        HAZARD(a_sandbox_that_stays_listed_is_not_gone),
        HAZARD(a_stuck_backend_fails_the_removal_until_it_answers),
        HAZARD(sandboxes_of_others_are_never_touched),
        HAZARD(a_port_on_the_wrong_interface_is_taken_back),
        HAZARD(a_host_port_that_is_taken_meanwhile_is_replaced_by_another),
        HAZARD(a_probe_tells_whether_something_listens),
        HAZARD(the_oldest_release_that_is_served_works),
        HAZARD(an_older_release_is_refused_with_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
