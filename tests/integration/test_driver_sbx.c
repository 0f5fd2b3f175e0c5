// The driver for Docker Sandboxes over the stand-in: the ordinary life of a sandbox.
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "reconcilers/drivers/sbx/sbx.h"
#include "tests/support/sbx_client.h"
#include "tests/support/sbx_rig.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NAME BENCH_PREFIX "aaaaaaaaaaaaaaaaaaaaaaaaaa-1"
#define OTHER BENCH_PREFIX "bbbbbbbbbbbbbbbbbbbbbbbbbb-1"

static struct driver_bench bench;
static char output[64 * 1024];

static int setup(void **state)
{
    (void)state;
    bench_open_sbx(&bench, NULL);
    sbx_rig_init(&bench);
    return 0;
}
static int teardown(void **state)
{
    (void)state;
    bench_close(&bench);
    sbx_rig_stop(&bench);
    support_remove_dir(bench.dir);
    return 0;
}

static struct bench_created create(const char *name, const char *root)
{
    struct stat info;
    assert_int_equal(stat(root, &info), 0);
    struct driver_spec spec = {.runtime_name = name, .sandbox_uid = "sbx_test", .workspace_root = root, .device = (int64_t)info.st_dev,
                               .inode = (int64_t)info.st_ino, .has_network = true, .session = SESSION_GUEST};
    return bench_create(&bench, &spec);
}

static void create_well(const char *name, const char *root)
{
    struct bench_created created = create(name, root);
    if (created.result < 0)
        fail_msg("create failed: %s (%s)", created.err.message, created.err.hint);
}

static struct bench_session start(const char *name, const char *root)
{
    create_well(name, root);
    struct bench_session session = bench_session(&bench, name);
    if (session.result < 0)
        fail_msg("the session did not start: %s (%s)", session.err.message, session.err.hint);
    return session;
}

static void a_sandbox_is_made_used_and_removed(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *root = bench_workspace(&bench, "work");
    struct bench_created created = create(NAME, root);
    if (created.result < 0)
        fail_msg("create failed: %s (%s)", created.err.message, created.err.hint);
    assert_string_equal(created.isolation, "microvm");
    assert_string_equal(created.root, root);
    struct bench_session session = bench_session(&bench, NAME);
    if (session.result < 0)
        fail_msg("the session did not start: %s (%s)", session.err.message, session.err.hint);
    assert_int_equal(bench_shell(&session, "echo inside > made && pwd", output, sizeof(output)), 0);
    CLEANUP_FREE char *expected = mem_format("%s\n", root), *made = mem_format("%s/made", root);
    assert_string_equal(output, expected);
    assert_int_equal(access(made, F_OK), 0);
    assert_int_equal(bench_list_count(&bench), 1);
    bench_session_close(&session);
    assert_ok(bench_remove(&bench, NAME, &err));
    assert_int_equal(bench_list_count(&bench), 0);
}

static void a_create_takes_six_calls_and_a_removal_two(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *root = bench_workspace(&bench, "work"), *second = bench_workspace(&bench, "second");
    create_well(OTHER, second); // the version is known from here on
    size_t before = sbx_rig_count_calls(&bench, "");
    struct bench_session session = start(NAME, root);
    assert_int_equal(sbx_rig_count_calls(&bench, "") - before, 6);
    bench_session_close(&session);
    before = sbx_rig_count_calls(&bench, "");
    assert_ok(bench_remove(&bench, NAME, &err));
    assert_int_equal(sbx_rig_count_calls(&bench, "") - before, 2);
    assert_ok(bench_remove(&bench, OTHER, &err));
}

// ---- clones ------------------------------------------------------------------------------------------------------------

static void run_git(const char *dir, const char *words)
{
    CLEANUP_FREE char *command = mem_format("cd '%s' && git -c user.name=t -c user.email=t@t -c init.defaultBranch=main %s", dir, words);
    if (system(command) != 0)
        fail_msg("%s", command);
}

static bool has_remote(const char *dir)
{
    CLEANUP_FREE char *command = mem_format("cd '%s' && git remote | grep -q '^sandbox-'", dir);
    return system(command) == 0;
}

static char *make_repository(void)
{
    char *dir = bench_workspace(&bench, "a checkout");
    run_git(dir, "init -q");
    run_git(dir, "commit -q --allow-empty -m first");
    return dir;
}

static struct bench_created create_clone(const char *name, const char *source)
{
    struct stat info;
    assert_int_equal(stat(source, &info), 0);
    struct driver_spec spec = {.runtime_name = name, .sandbox_uid = "sbx_test", .workspace_root = "/nowhere", .mode = WORKSPACE_CLONE,
                               .clone_source = source, .source_device = (int64_t)info.st_dev, .source_inode = (int64_t)info.st_ino,
                               .has_network = true, .session = SESSION_GUEST};
    return bench_create(&bench, &spec);
}

static void a_private_clone_is_worked_on_and_leaves_no_remote(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *source = make_repository();
    struct bench_created created = create_clone(NAME, source);
    if (created.result < 0)
        fail_msg("create failed: %s (%s)", created.err.message, created.err.hint);
    assert_true(has_remote(source));
    struct bench_session session = bench_session(&bench, NAME);
    assert_int_equal(session.result, 0);
    assert_int_equal(bench_shell(&session, "git log --format=%s && touch made", output, sizeof(output)), 0);
    assert_string_equal(output, "first\n");
    bench_session_close(&session);
    CLEANUP_FREE char *made = mem_format("%s/made", source);
    assert_int_not_equal(access(made, F_OK), 0);
    assert_ok(bench_remove(&bench, NAME, &err));
    assert_false(has_remote(source));
}

static void the_remote_of_an_earlier_run_is_removed_too(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *source = make_repository(), *dir = mem_strdup(bench.dir);
    assert_int_equal(create_clone(NAME, source).result, 0);
    bench_close(&bench);
    free(bench.dir);
    bench_open_sbx(&bench, dir);
    run_git(source, "remote add sandbox-" NAME " /nowhere"); // as a daemon that was killed leaves it
    assert_ok(bench_remove(&bench, NAME, &err));
    assert_false(has_remote(source));
}

static void a_directory_that_is_no_checkout_is_not_cloned(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *source = bench_workspace(&bench, "plain");
    struct bench_created created = create_clone(NAME, source);
    assert_int_equal(created.err.code, ERROR_UNSUPPORTED);
    assert_non_null(strstr(created.err.message, ".git"));
    assert_ok(bench_remove(&bench, NAME, &err));
    assert_int_equal(sbx_rig_count_calls(&bench, "create"), 0);
}

// ---- CodexPro ----------------------------------------------------------------------------------------------------------

static int setup_codexpro(void **state)
{
    CLEANUP_FREE char *programs = support_program_dir(), *guest = mem_format("\"guest\": \"%s/chat2shell-guest\"", programs);
    setup(state);
    sbx_rig_set(&bench, guest, "");
    CLEANUP_FREE char *root = bench_workspace(&bench, "boot");
    assert_int_equal(sbx_rig_run(&bench, NULL, 0, (const char *const[]){"create", "--name", "boot", "shell", root, NULL}), 0);
    const char *const install[] = {"exec", "-u", "root", "boot", "npm", "install", "-g", "codexpro@0.30.0", NULL};
    if (sbx_rig_run(&bench, output, sizeof(output), install) != 0)
        fail_msg("%s", output);
    sbx_rig_run(&bench, NULL, 0, (const char *const[]){"stop", "boot", NULL});
    assert_int_equal(sbx_rig_run(&bench, NULL, 0, (const char *const[]){"template", "save", "boot", "chat2shell-codexpro:0.30.0", NULL}), 0);
    sbx_rig_run(&bench, NULL, 0, (const char *const[]){"rm", "-f", "boot", NULL});
    return 0;
}

static struct bench_created create_codexpro(const char *root)
{
    struct driver_spec spec = {.runtime_name = NAME, .sandbox_uid = "sbx_test", .workspace_root = root, .has_network = true};
    return bench_create(&bench, &spec);
}

static void codexpro_listens_on_loopback_with_a_token_that_no_argument_holds(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *root = bench_workspace(&bench, "work");
    struct bench_created created = create_codexpro(root);
    if (created.result < 0)
        fail_msg("create failed: %s (%s)", created.err.message, created.err.hint);
    assert_string_equal(created.template_name, "chat2shell-codexpro:0.30.0");
    struct bench_session session = bench_session(&bench, NAME);
    if (session.result < 0)
        fail_msg("the session did not start: %s (%s)", session.err.message, session.err.hint);
    assert_true(session.session.port > 0);
    assert_int_equal(strlen(session.session.token), 64);
    CLEANUP_FREE char *calls = mem_format("grep -rq %s %s/home/.local/state/sandboxes/sandboxes/sandboxd/calls.jsonl", session.session.token, bench.dir);
    assert_int_not_equal(system(calls), 0);
    int host_port = 0;
    assert_error(bench_publish(&bench, NAME, 18790, &host_port, &err), ERROR_REFUSED); // the tool server is nobody else's
    driver_session_close(&session.session);
    assert_ok(bench_remove(&bench, NAME, &err));
}

static void a_tool_server_open_to_the_network_is_not_started(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *root = bench_workspace(&bench, "work");
    sbx_rig_set(&bench, "", "{\"on\": \"create\", \"do\": \"ports-wrong-interface\"}");
    assert_int_equal(create_codexpro(root).result, 0);
    struct bench_session session = bench_session(&bench, NAME);
    assert_int_equal(session.err.code, ERROR_REFUSED);
    assert_int_equal(sbx_rig_count_calls(&bench, "exec -i"), 0);
    assert_ok(bench_remove(&bench, NAME, &err));
}

static void without_its_template_codexpro_names_the_way_out(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *root = bench_workspace(&bench, "work");
    struct bench_created created = create_codexpro(root);
    assert_int_equal(created.result, -1);
    assert_non_null(strstr(created.err.hint, "chat2shell setup"));
    assert_ok(bench_remove(&bench, NAME, &err));
}

// ---- readiness ---------------------------------------------------------------------------------------------------------

static const struct finding *find(const struct finding_list *list, const char *check)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].check, check) == 0)
            return &list->items[i];
    fail_msg("there is no finding about %s", check);
    return NULL;
}

static void what_is_missing_is_found_with_its_command(void **state)
{
    (void)state;
    CLEANUP(finding_list_free) struct finding_list good = {0}, bad = {0};
    bench.driver->ops->probe(bench.driver, &good);
    assert_int_equal(find(&good, "sbx")->level, FINDING_PASS);
    assert_int_equal(find(&good, "sbx daemon")->level, FINDING_PASS);
    assert_int_equal(find(&good, "sbx login")->level, FINDING_PASS);
    assert_int_equal(find(&good, "network policy")->level, FINDING_PASS);
    assert_string_equal(find(&good, "template")->fix, "run: chat2shell setup");
    assert_int_equal(find(&good, "ssh agent")->level, FINDING_WARN); // on by default
    sbx_rig_set(&bench, "\"version\": \"0.37.0\"", "{\"on\": \"ls\", \"do\": \"session-expired\", \"times\": 0}");
    bench.driver->ops->probe(bench.driver, &bad);
    assert_int_equal(find(&bad, "sbx")->level, FINDING_FAIL);
    assert_string_equal(find(&bad, "sbx login")->fix, "run: sbx login");
}

static void looking_changes_nothing(void **state)
{
    (void)state;
    static const char *const changing[] = {"create", "rm", "stop", "policy init", "policy allow", "policy deny", "policy reset", "settings set",
                                           "secret set", "login", "logout", "prune", "reset", "daemon start", "daemon restart", "exec", "cp"};
    CLEANUP(finding_list_free) struct finding_list list = {0};
    size_t before = sbx_rig_count_calls(&bench, "policy init");
    bench.driver->ops->probe(bench.driver, &list);
    for (size_t i = 0; i < ARRAY_LEN(changing); i++)
        assert_int_equal(sbx_rig_count_calls(&bench, changing[i]), strcmp(changing[i], "policy init") == 0 ? before : 0);
}

// The finding that doctor prints about the choice, with its level and what to do.
static char *pick_driver(const char *program)
{
    struct error err = ERROR_INIT;
    struct driver *driver = NULL;
    CLEANUP(driver_choice_free) struct driver_choice choice = {0};
    CLEANUP(finding_list_free) struct finding_list list = {0};
    CLEANUP_FREE char *state_dir = mem_format("%s/state", bench.dir), *programs = support_program_dir();
    const struct driver_options options = {bench.clock, bench.loop, bench.spawner, programs, state_dir, bench.dir, BENCH_INSTANCE, program};
    assert_ok(driver_open("auto", &options, &driver, &choice, &err));
    driver_choice_tell(&choice, driver->ops->name, &list);
    driver->ops->free(driver);
    const struct finding *told = &list.items[0];
    return mem_format("%s: %s: %s", told->level == FINDING_WARN ? "warn" : "pass", told->what, told->fix ? told->fix : "");
}

static void auto_takes_sbx_where_it_answers_and_says_why_it_does_not(void **state)
{
    (void)state;
    CLEANUP_FREE char *good = pick_driver(sbx_client_program()), *wrong = pick_driver("no-such-program");
    assert_string_equal(good, "pass: sandboxes run on the driver 'sbx', because it answers: ");
    assert_non_null(strstr(wrong, "warn: sandboxes run on the driver 'bubblewrap', because sbx cannot be used"));
    sbx_rig_set(&bench, "", "{\"on\": \"ls\", \"do\": \"session-expired\"}");
    CLEANUP_FREE char *signed_out = pick_driver(sbx_client_program());
    assert_non_null(strstr(signed_out, "warn: sandboxes run on the driver 'bubblewrap'"));
    assert_non_null(strstr(signed_out, "sign-in to Docker has expired"));
    assert_non_null(strstr(signed_out, "run: sbx login; or set CHAT2SHELL_DRIVER=bubblewrap"));
}

static void without_the_program_creates_are_refused_and_records_can_go(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *root = bench_workspace(&bench, "work");
    free(sbx_of(bench.driver)->program);
    sbx_of(bench.driver)->program = mem_strdup("no-such-sbx");
    struct bench_created created = create(NAME, root);
    assert_int_equal(created.err.code, ERROR_NOT_FOUND);
    assert_non_null(strstr(created.err.hint, "CHAT2SHELL_SBX"));
    assert_ok(bench_remove(&bench, NAME, &err));
}

static void a_driver_that_ends_takes_its_sandboxes_along(void **state)
{
    (void)state;
    CLEANUP_FREE char *root = bench_workspace(&bench, "work"), *dir = mem_strdup(bench.dir);
    struct bench_session session = start(NAME, root);
    bench_close(&bench);
    assert_false(sbx_rig_has(&bench, NAME));
    bench_session_close(&session);
    free(bench.dir);
    bench_open_sbx(&bench, dir);
}

static void a_call_that_hangs_does_not_hold_up_the_end(void **state)
{
    (void)state;
    CLEANUP_FREE char *dir = mem_strdup(bench.dir);
    sbx_rig_set(&bench, "", "{\"on\": \"rm\", \"do\": \"hang\", \"times\": 0}, {\"on\": \"ls\", \"do\": \"hang\", \"times\": 0}");
    struct error err = ERROR_INIT;
    sbx_of(bench.driver)->deadlines.remove_call_ms = 500;
    assert_error(bench_remove(&bench, NAME, &err), ERROR_TIMEOUT);
    bench_close(&bench);
    free(bench.dir);
    bench_open_sbx(&bench, dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_sandbox_is_made_used_and_removed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_create_takes_six_calls_and_a_removal_two, setup, teardown),
        cmocka_unit_test_setup_teardown(a_private_clone_is_worked_on_and_leaves_no_remote, setup, teardown),
        cmocka_unit_test_setup_teardown(the_remote_of_an_earlier_run_is_removed_too, setup, teardown),
        cmocka_unit_test_setup_teardown(a_directory_that_is_no_checkout_is_not_cloned, setup, teardown),
        cmocka_unit_test_setup_teardown(codexpro_listens_on_loopback_with_a_token_that_no_argument_holds, setup_codexpro, teardown),
        cmocka_unit_test_setup_teardown(a_tool_server_open_to_the_network_is_not_started, setup_codexpro, teardown),
        cmocka_unit_test_setup_teardown(without_its_template_codexpro_names_the_way_out, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_missing_is_found_with_its_command, setup, teardown),
        cmocka_unit_test_setup_teardown(looking_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(auto_takes_sbx_where_it_answers_and_says_why_it_does_not, setup, teardown),
        cmocka_unit_test_setup_teardown(without_the_program_creates_are_refused_and_records_can_go, setup, teardown),
        cmocka_unit_test_setup_teardown(a_driver_that_ends_takes_its_sandboxes_along, setup, teardown),
        cmocka_unit_test_setup_teardown(a_call_that_hangs_does_not_hold_up_the_end, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
