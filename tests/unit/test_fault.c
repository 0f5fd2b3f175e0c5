#include "tests/support/support.h"
#include "controller/fault.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef CHAT2SHELL_FAULTS
// The exit status of a process with this plan that hits point "a" four times and "b" once: a bit for each hit
// that failed (a: 1 2 4 8, b: 16), or 128+N for death by signal N.
static int run_with(const char *plan)
{
    pid_t pid = fork();
    if (pid == 0) {
        int failed = 0;
        setenv("CHAT2SHELL_FAULT", plan, 1);
        unsetenv("CHAT2SHELL_FAULT_LOG");
        close(STDERR_FILENO);
        for (int i = 0; i < 4; i++)
            failed |= fault_hit("a") ? 1 << i : 0;
        failed |= fault_hit("b") ? 16 : 0;
        _exit(failed);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void only_the_chosen_hit_of_the_chosen_point_fails(void **state)
{
    (void)state;
    assert_int_equal(run_with("a:1:error"), 1);
    assert_int_equal(run_with("a:3:error"), 4);
    assert_int_equal(run_with("a:2+:error"), 14);
    assert_int_equal(run_with("b:1:error"), 16);
    assert_int_equal(run_with("c:1:error"), 0);
    assert_int_equal(run_with("a:5:error"), 0);
}

static void exit_ends_the_process_there_and_sleep_goes_on(void **state)
{
    (void)state;
    assert_int_equal(run_with("a:2:exit"), 137);
    assert_int_equal(run_with("a:2:sleep=1"), 0);
}

static void a_plan_that_makes_no_sense_aborts_instead_of_testing_nothing(void **state)
{
    (void)state;
    const char *wrong[] = {"a", "a:1", "a:0:error", "a:x:error", ":1:error", "a:1:explode", "a:1:sleepy"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(run_with(wrong[i]), 128 + SIGABRT);
}
#else
static void fault_points_are_nothing_in_this_build(void **state)
{
    (void)state;
    assert_false(FAULT("a"));
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef CHAT2SHELL_FAULTS
        cmocka_unit_test(only_the_chosen_hit_of_the_chosen_point_fails),
        cmocka_unit_test(exit_ends_the_process_there_and_sleep_goes_on),
        cmocka_unit_test(a_plan_that_makes_no_sense_aborts_instead_of_testing_nothing),
#else
        cmocka_unit_test(fault_points_are_nothing_in_this_build),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
