// What the bubblewrap driver says that a sandbox uses, from cgroups where this machine has them, and from the process tree.
#include "tests/support/driver_bench.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "reconcilers/drivers/bubblewrap/bubblewrap.h"
#include <stdlib.h>
#include <unistd.h>

struct rig {
    struct driver_bench bench;
    struct bench_session session;
    size_t cgroup_count;
};

static int set_up(void **state)
{
    struct rig *rig = mem_alloc(sizeof(*rig));
    bench_open(&rig->bench, NULL);
    CLEANUP_FREE char *root = bench_workspace(&rig->bench, "work");
    struct bench_created created = bench_create_simple(&rig->bench, bench_name(), root);
    if (created.result < 0)
        fail_msg("%s (%s)", created.err.message, created.err.hint);
    rig->session = bench_session(&rig->bench, bench_name());
    rig->cgroup_count = ((struct bubblewrap *)rig->bench.driver)->cgroups.count;
    *state = rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;
    struct error err = ERROR_INIT;
    ((struct bubblewrap *)rig->bench.driver)->cgroups.count = rig->cgroup_count;
    bench_session_close(&rig->session);
    assert_ok(bench_remove(&rig->bench, bench_name(), &err));
    bench_destroy(&rig->bench);
    free(rig);
    return 0;
}

static struct driver_usage look(struct rig *rig)
{
    struct driver_usage usage = DRIVER_USAGE_UNKNOWN;
    struct error err = ERROR_INIT;
    assert_ok(rig->bench.driver->ops->usage(rig->bench.driver, bench_name(), &usage, &err));
    return usage;
}

static void shell(struct rig *rig, const char *command)
{
    char output[256];
    assert_int_equal(bench_shell(&rig->session, command, output, sizeof(output)), 0);
}

// Long enough to be seen in ticks of 10 ms.
#define BURN "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"
#define HOLD "(x=$(head -c 30000000 /dev/zero | tr '\\0' x); sleep 1000; : $x) >/dev/null 2>&1 &" // two processes, 30 MB

static void grows_as_it_should(struct rig *rig)
{
    struct driver_usage before = look(rig);
    assert_true(before.processes >= 1 && before.memory_bytes > 0 && before.cpu_us >= 0);
    shell(rig, BURN);
    shell(rig, HOLD);
    struct driver_usage after = look(rig);
    for (int i = 0; i < SUPPORT_PATIENCE_MS / 50 && (after.processes != before.processes + 2 || after.memory_bytes < before.memory_bytes + 25000000); i++) {
        usleep(50000);
        after = look(rig);
    }
    assert_int_equal(after.processes, before.processes + 2);
    assert_true(after.memory_bytes >= before.memory_bytes + 25000000);
    assert_true(after.cpu_us > before.cpu_us + 50000);
}

static void usage_comes_from_cgroups_where_there_are_some(void **state)
{
    struct rig *rig = *state;
    if (!rig->cgroup_count)
        skip();
    grows_as_it_should(rig);
}

static void usage_comes_from_the_process_tree_where_there_are_none(void **state)
{
    struct rig *rig = *state;
    ((struct bubblewrap *)rig->bench.driver)->cgroups.count = 0;
    grows_as_it_should(rig);
    assert_int_equal(look(rig).memory_limit_bytes, -1);
}

static void what_does_not_run_uses_nothing_and_says_so(void **state)
{
    struct rig *rig = *state;
    struct driver_usage usage = DRIVER_USAGE_UNKNOWN;
    struct error err = ERROR_INIT;
    assert_error(rig->bench.driver->ops->usage(rig->bench.driver, "c2s-none", &usage, &err), ERROR_STATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(usage_comes_from_cgroups_where_there_are_some, set_up, tear_down),
        cmocka_unit_test_setup_teardown(usage_comes_from_the_process_tree_where_there_are_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_does_not_run_uses_nothing_and_says_so, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
