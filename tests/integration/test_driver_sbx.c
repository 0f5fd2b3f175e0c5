// The driver for Docker Sandboxes over the stand-in: the ordinary life of a sandbox.
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "tests/support/sbx_rig.h"
#include <stdio.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_sandbox_is_made_used_and_removed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_create_takes_six_calls_and_a_removal_two, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
