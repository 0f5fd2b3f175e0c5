#include "tests/support/support.h"
#include "controller/spawn.h"
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

static int set_up(void **state)
{
    struct error err = ERROR_INIT;
    struct spawner *spawner;
    assert_ok(spawner_start(&spawner, &err));
    *state = spawner;
    return 0;
}

static int tear_down(void **state)
{
    spawner_stop(*state);
    return 0;
}

struct child {
    pid_t pid;
    int pidfd;
};

static struct child start_with(struct spawner *spawner, const struct spawn_options *options)
{
    struct error err = ERROR_INIT;
    struct child child;
    assert_ok(spawn_process(spawner, options, &child.pid, &child.pidfd, &err));
    return child;
}

// Tests may use a shell; the daemon never does.
static struct child start_shell(struct spawner *spawner, const char *script, bool dies_with_us)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    struct spawn_options options = {.path = "/bin/sh", .argv = argv, .dies_with_us = dies_with_us};
    return start_with(spawner, &options);
}

static int end_of(struct child child)
{
    int code = -1;
    assert_int_equal(spawn_wait(child.pidfd, 20000, &code), 0);
    close(child.pidfd);
    return code;
}

// Runs argv with its stdout in a pipe and returns what it printed.
static char *output_of(struct spawner *spawner, const char *const *argv, struct spawn_options options)
{
    struct error err = ERROR_INIT;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    options.path = argv[0];
    options.argv = argv;
    options.fds[options.fd_count++] = (struct spawn_fd){ends[1], 1};
    struct child child = start_with(spawner, &options);
    close(ends[1]);
    struct buffer text = BUFFER_INIT(100000);
    assert_ok(fs_read_all(ends[0], &text, &err));
    close(ends[0]);
    assert_int_equal(end_of(child), 0);
    return buffer_take_string(&text);
}

static void the_exit_code_comes_back_and_only_once(void **state)
{
    struct child child = start_shell(*state, "exit 7", false);
    int code = -1;
    assert_int_equal(spawn_wait(child.pidfd, 20000, &code), 0);
    assert_int_equal(code, 7);
    assert_int_equal(spawn_reap(child.pidfd, &code), -1);
    assert_int_equal(errno, ECHILD);
    assert_int_equal(spawn_signal_group(child.pid, child.pidfd, SIGKILL), -1);
    assert_int_equal(errno, ESRCH);
    close(child.pidfd);
}

static void a_running_child_is_not_reaped_and_dies_of_a_group_signal(void **state)
{
    struct child child = start_shell(*state, "sleep 1000 & sleep 1000", false);
    int code = -1;
    assert_int_equal(spawn_reap(child.pidfd, &code), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(spawn_wait(child.pidfd, 10, &code), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(spawn_signal_group(child.pid, child.pidfd, SIGKILL), 0);
    assert_int_equal(end_of(child), 128 + SIGKILL);
    assert_true(support_await(1, kill(-child.pid, 0) == -1)); // the grandchild goes too
}

static void a_missing_program_is_an_error_with_its_name(void **state)
{
    struct error err = ERROR_INIT;
    const char *argv[] = {"nothing", NULL};
    struct spawn_options options = {.path = "/nonexistent/program", .argv = argv};
    pid_t pid = 11;
    int pidfd = 12;
    assert_error(spawn_process(*state, &options, &pid, &pidfd, &err), ERROR_NOT_FOUND);
    assert_string_equal(err.message, "cannot start /nonexistent/program: No such file or directory");
    assert_int_equal(pid, 11);
    assert_int_equal(pidfd, 12);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); // nothing is left to reap
    assert_int_equal(errno, ECHILD);
}

static void a_file_that_is_no_program_is_refused(void **state)
{
    struct error err = ERROR_INIT;
    const char *argv[] = {"passwd", NULL};
    struct spawn_options options = {.path = "/etc/passwd", .argv = argv};
    pid_t pid;
    int pidfd;
    assert_error(spawn_process(*state, &options, &pid, &pidfd, &err), ERROR_REFUSED);
}

static void the_environment_is_exactly_what_was_given(void **state)
{
    const char *argv[] = {"/usr/bin/env", NULL}, *environment[] = {"A=1", "B=two", NULL};
    CLEANUP_FREE char *empty = output_of(*state, argv, (struct spawn_options){0});
    assert_string_equal(empty, "");
    CLEANUP_FREE char *given = output_of(*state, argv, (struct spawn_options){.environment = environment});
    assert_string_equal(given, "A=1\nB=two\n");
}

static void a_child_holds_no_descriptor_that_was_not_named(void **state)
{
    CLEANUP_CLOSE int leaky = open("/dev/zero", O_RDONLY); // deliberately without close-on-exec
    assert_true(leaky >= 0);
    const char *argv[] = {"/bin/ls", "/proc/self/fd", NULL};
    CLEANUP_FREE char *open_fds = output_of(*state, argv, (struct spawn_options){0});
    assert_string_equal(open_fds, "0\n1\n2\n3\n"); // 3 is the directory that ls reads
    const char *where[] = {"/bin/readlink", "/proc/self/fd/0", "/proc/self/fd/2", "/proc/self/cwd", NULL};
    CLEANUP_FREE char *links = output_of(*state, where, (struct spawn_options){0});
    assert_string_equal(links, "/dev/null\n/dev/null\n/\n");
}

static int temporary_fd(const char *text)
{
    FILE *file = tmpfile();
    fputs(text, file);
    fflush(file);
    int fd = fcntl(fileno(file), F_DUPFD_CLOEXEC, 3);
    lseek(fd, 0, SEEK_SET);
    fclose(file);
    return fd;
}

static void descriptors_may_swap_their_numbers(void **state)
{
    CLEANUP_CLOSE int a = temporary_fd("a"), b = temporary_fd("b");
    const char *argv[] = {"/bin/sh", "-c", NULL, NULL};
    CLEANUP_FREE char *script = mem_format("cat /proc/self/fd/%d /proc/self/fd/%d", a, b);
    argv[2] = script;
    struct spawn_options options = {.fds = {{a, b}, {b, a}}, .fd_count = 2};
    CLEANUP_FREE char *text = output_of(*state, argv, options);
    assert_string_equal(text, "ba");
    struct spawn_options same = {.fds = {{a, a}, {a, b}}, .fd_count = 2};
    lseek(a, 0, SEEK_SET);
    lseek(b, 0, SEEK_SET);
    CLEANUP_FREE char *again = output_of(*state, argv, same);
    assert_string_equal(again, "aa");
}

static void signals_are_at_their_defaults_and_unblocked(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    const char *argv[] = {"/bin/grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status", NULL};
    CLEANUP_FREE char *text = output_of(*state, argv, (struct spawn_options){0});
    pthread_sigmask(SIG_UNBLOCK, &blocked, NULL);
    signal(SIGPIPE, SIG_DFL);
    assert_string_equal(text, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

static void a_child_leads_its_own_session(void **state)
{
    struct child child = start_shell(*state, "exec sleep 1000", false);
    assert_int_equal(getsid(child.pid), child.pid);
    assert_int_equal(getpgid(child.pid), child.pid);
    assert_int_equal(spawn_signal(child.pidfd, SIGTERM), 0);
    assert_int_equal(end_of(child), 128 + SIGTERM);
}

static void *start_from_a_short_thread(void *arg)
{
    static struct child child;
    child = start_shell(arg, "exec sleep 1000", true);
    return &child;
}

static void a_child_outlives_the_thread_that_asked_but_not_the_spawner(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct spawner *spawner;
    assert_ok(spawner_start(&spawner, &err));
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, start_from_a_short_thread, spawner), 0);
    pthread_join(thread, &result);
    struct child child = *(struct child *)result;
    int code;
    assert_int_equal(spawn_wait(child.pidfd, 50, &code), -1); // still there
    spawner_stop(spawner);
    assert_int_equal(end_of(child), 128 + SIGKILL);
}

static void *start_many(void *arg)
{
    for (int i = 0; i < 25; i++) {
        struct child child = start_shell(arg, "exit 3", i % 2);
        if (end_of(child) != 3)
            abort();
    }
    return NULL;
}

static void many_threads_may_start_processes_at_once(void **state)
{
    pthread_t threads[4];
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, start_many, *state), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
}

#define WITH_SPAWNER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SPAWNER(the_exit_code_comes_back_and_only_once),
        WITH_SPAWNER(a_running_child_is_not_reaped_and_dies_of_a_group_signal),
        WITH_SPAWNER(a_missing_program_is_an_error_with_its_name),
        WITH_SPAWNER(a_file_that_is_no_program_is_refused),
        WITH_SPAWNER(the_environment_is_exactly_what_was_given),
        WITH_SPAWNER(a_child_holds_no_descriptor_that_was_not_named),
        WITH_SPAWNER(descriptors_may_swap_their_numbers),
        WITH_SPAWNER(signals_are_at_their_defaults_and_unblocked),
        WITH_SPAWNER(a_child_leads_its_own_session),
        cmocka_unit_test(a_child_outlives_the_thread_that_asked_but_not_the_spawner),
        WITH_SPAWNER(many_threads_may_start_processes_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
