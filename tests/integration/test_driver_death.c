// What is left when processes are killed in the wrong moment: nothing that runs, and nothing that remove does not settle.
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "tests/support/driver_bench.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char output[65536];

// A "daemon": makes a sandbox in dir in which `sleep MARK` runs for ever, tells it, and waits to be killed.
static _Noreturn void be_daemon(const char *dir, const char *mark, int ready_fd)
{
    struct driver_bench bench;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bench_open(&bench, dir);
    char *root = bench_workspace(&bench, "ws");
    struct bench_created created = bench_create_simple(&bench, bench_name(), root);
    struct bench_session session = bench_session(&bench, bench_name());
    char *command = mem_format("setsid sleep %s > /dev/null 2>&1 & echo started", mark);
    if (created.result < 0 || bench_shell(&session, command, output, sizeof(output)) != 0 || write(ready_fd, "r", 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

static pid_t start_daemon(const char *dir, const char *mark)
{
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0)
        be_daemon(dir, mark, ends[1]);
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    return pid;
}

static int count_processes(const char *pattern)
{
    CLEANUP_FREE char *command = mem_format("pgrep -f -c '%s'", pattern);
    FILE *pipe = popen(command, "r");
    int count = -1;
    assert_non_null(pipe);
    if (fscanf(pipe, "%d", &count) != 1)
        count = -1;
    pclose(pipe);
    return count;
}

static bool end_within(const char *pattern, int timeout_ms)
{
    for (int waited_ms = 0; waited_ms <= timeout_ms; waited_ms += 20) {
        if (count_processes(pattern) <= 0)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return false;
}

static void remove_after_restart(const char *dir)
{
    struct driver_bench bench;
    struct error err = ERROR_INIT;
    bench_open(&bench, dir);
    assert_int_equal(bench_list_count(&bench), 1);
    assert_ok(bench_remove(&bench, bench_name(), &err));
    assert_int_equal(bench_list_count(&bench), 0);
    assert_ok(bench_remove(&bench, bench_name(), &err));
    bench_destroy(&bench);
}

static char *make_mark(void)
{
    return mem_format("%d.%06ld", 700000 + getpid() % 100000, random() % 1000000);
}

static void the_death_of_the_daemon_ends_its_sandboxes(void **state)
{
    (void)state;
    CLEANUP_FREE char *dir = support_make_dir();
    CLEANUP_FREE char *mark = make_mark();
    CLEANUP_FREE char *pattern = mem_format("^sleep %s", mark);
    pid_t pid = start_daemon(dir, mark);
    assert_int_equal(count_processes(pattern) >= 1 ? 1 : 0, 1);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_true(end_within(pattern, SUPPORT_PATIENCE_MS));
    remove_after_restart(dir);
}

static void daemon_and_shim_killed_together_leave_nothing_that_runs(void **state)
{
    (void)state;
    CLEANUP_FREE char *dir = support_make_dir();
    CLEANUP_FREE char *mark = make_mark();
    CLEANUP_FREE char *pattern = mem_format("^sleep %s", mark);
    pid_t pid = start_daemon(dir, mark);
    CLEANUP_FREE char *command = mem_format("pkill -KILL -P %d -x chat2shell-shim; kill -KILL %d", pid, pid);
    assert_int_equal(system(command), 0);
    waitpid(pid, NULL, 0);
    assert_true(end_within(pattern, SUPPORT_PATIENCE_MS));
    remove_after_restart(dir);
}

static void a_daemon_killed_during_a_create_leaves_what_remove_settles(void **state)
{
    (void)state;
    for (int delay_ms = 0; delay_ms < 120; delay_ms += 8) {
        CLEANUP_FREE char *dir = support_make_dir();
        pid_t pid = fork();
        if (pid == 0) {
            struct driver_bench bench;
            bench_open(&bench, dir);
            char *root = bench_workspace(&bench, "ws");
            bench_create_simple(&bench, bench_name(), root);
            for (;;)
                pause();
        }
        nanosleep(&(struct timespec){.tv_nsec = delay_ms * 1000000L}, NULL);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        struct driver_bench bench;
        struct error err = ERROR_INIT;
        bench_open(&bench, dir);
        assert_ok(bench_remove(&bench, bench_name(), &err));
        assert_int_equal(bench_list_count(&bench), 0);
        bench_destroy(&bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_death_of_the_daemon_ends_its_sandboxes),
        cmocka_unit_test(daemon_and_shim_killed_together_leave_nothing_that_runs),
        cmocka_unit_test(a_daemon_killed_during_a_create_leaves_what_remove_settles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
