// How long `cp` waits for a program in a sandbox that does nothing.
#include "tests/support/support.h"
#include "cli/copy_inside.h"
#include "controller/base/cleanup.h"
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define IDLE_MS 50

struct rig {
    struct inside inside;
    int its_fd, no_signal_fds[2];
};

static int set_up(void **state)
{
    static struct rig rig;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) | pipe(rig.no_signal_fds), 0);
    rig.inside = (struct inside){.sandbox = "dev", .idle_ms = IDLE_MS, .fd = fds[0], .its_fd = -1, .signal_fd = rig.no_signal_fds[0], .words_fds = {-1, -1}};
    rig.its_fd = fds[1];
    *state = &rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;
    inside_clear(&rig->inside);
    close(rig->its_fd);
    close(rig->no_signal_fds[1]);
    return 0;
}

static void one_that_sends_nothing_is_given_up(void **state)
{
    struct rig *rig = *state;
    struct error err = ERROR_INIT;
    char bytes[8];
    assert_int_equal(write(rig->its_fd, "tar", 3), 3);
    assert_int_equal(inside_read(&rig->inside, bytes, sizeof(bytes), &err), 3);
    assert_false(rig->inside.is_left);
    assert_int_equal(inside_read(&rig->inside, bytes, sizeof(bytes), &err), -1);
    assert_int_equal(err.code, ERROR_TIMEOUT);
    assert_non_null(strstr(err.message, "the program in the sandbox dev has sent nothing for"));
    assert_true(rig->inside.is_left);
}

static void one_that_takes_nothing_is_given_up(void **state)
{
    struct rig *rig = *state;
    struct error err = ERROR_INIT;
    char bytes[4096] = {0};
    int r, taken = 0;
    while ((r = inside_write(&rig->inside, bytes, sizeof(bytes), &err)) == 0)
        taken++;
    assert_true(taken > 0);
    assert_int_equal(err.code, ERROR_TIMEOUT);
    assert_non_null(strstr(err.message, "has taken nothing for"));
}

static void one_that_has_all_and_does_not_end_is_given_up(void **state)
{
    struct rig *rig = *state;
    struct error err = ERROR_INIT;
    int exit_code = -1;
    rig->inside.stream = INSIDE_INPUT;
    rig->inside.has_thread = true; // that of a program which never ends
    assert_int_equal(inside_wait(&rig->inside, &exit_code, &err), -1);
    assert_int_equal(err.code, ERROR_TIMEOUT);
    assert_non_null(strstr(err.message, "has had all and not ended for"));
    assert_int_equal(exit_code, -1);
    rig->inside.has_thread = false;
}

static void a_signal_is_no_stall(void **state)
{
    struct rig *rig = *state;
    struct error err = ERROR_INIT;
    char bytes[8];
    assert_int_equal(write(rig->no_signal_fds[1], "!", 1), 1);
    assert_int_equal(inside_read(&rig->inside, bytes, sizeof(bytes), &err), -1);
    assert_int_equal(err.code, ERROR_CANCELLED);
    assert_string_equal(err.message, "interrupted: the rest was not copied");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_that_sends_nothing_is_given_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_takes_nothing_is_given_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_has_all_and_does_not_end_is_given_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_signal_is_no_stall, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
