#include "tests/support/support.h"
#include "controller/base/cleanup.h"
#include "reconcilers/egress/lockdown.h"
#include "reconcilers/egress/route.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_UNSUPPORTED 99

// Runs inside the lock-down; the exit status is the number of the first attempt that went wrong.
static int is_denied(long result)
{
    return result < 0 && errno == EPERM;
}

static int try_files(void)
{
    if (!is_denied(open("/", O_RDONLY | O_DIRECTORY)))
        return 10;
    if (!is_denied(syscall(SYS_openat2, AT_FDCWD, "/", NULL, 0)))
        return 11;
    if (!is_denied(mkdir("/x", 0700)) || !is_denied(chdir("/")) || !is_denied(syscall(SYS_memfd_create, "x", 0)))
        return 12;
    return 0;
}

static int try_processes(void)
{
    char *const argv[] = {"true", NULL};
    if (!is_denied(execve("/bin/true", argv, argv)))
        return 20;
    if (!is_denied(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) || !is_denied(syscall(SYS_fork)))
        return 21;
    if (!is_denied(kill(1, 0)) || !is_denied(syscall(SYS_ptrace, 0, 0, 0, 0)))
        return 22;
    if (!is_denied(unshare(CLONE_NEWUSER)) || !is_denied(setuid(0)) || !is_denied(prctl(PR_SET_DUMPABLE, 1)))
        return 23;
    if (!is_denied((long)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)))
        return 24;
    return 0;
}

static int try_sockets(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || close(fd) < 0)
        return 30;
    if (!is_denied(socket(AF_UNIX, SOCK_STREAM, 0)) || !is_denied(socket(AF_NETLINK, SOCK_RAW, 0)) ||
        !is_denied(socket(AF_INET, SOCK_RAW, 1)) || !is_denied(socket(AF_VSOCK, SOCK_STREAM, 0)))
        return 31;
    int pair[2];
    if (!is_denied(socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) || !is_denied(bind(0, NULL, 0)))
        return 32;
    return 0;
}

static int try_everything(int netlink_fd)
{
    struct address loopback = {.family = AF_INET, .bytes = {127, 0, 0, 1}};
    int result = try_files();
    result = result ? result : try_processes();
    result = result ? result : try_sockets();
    if (!result && route_ask(netlink_fd, &loopback) != ROUTE_OWN)
        result = 40;
    if (!result && write(netlink_fd + 1, "x", 1) == 1) // was not on the list of what to keep
        result = 41;
    return result;
}

// User namespaces may be switched off here; everything else is a failure.
static int refused(const struct error *err)
{
    dprintf(STDERR_FILENO, "%s\n", err->message);
    return strstr(err->message, "user namespace") ? EXIT_UNSUPPORTED : 1;
}

static void run_locked_down(void)
{
    struct error err = ERROR_INIT;
    int netlink_fd = route_open(&err);
    dup2(STDERR_FILENO, netlink_fd + 1);
    if (lockdown_enter(&(struct lockdown){.keep_fds = &netlink_fd, .keep_count = 1}, &err) < 0)
        _exit(refused(&err));
    _exit(try_everything(netlink_fd));
}

static int wait_status(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

static void nothing_but_internet_sockets_is_left(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0)
        run_locked_down();
    int status = wait_status(child);
    if (status == EXIT_UNSUPPORTED)
        skip();
    assert_int_equal(status, 0);
}

static void the_exit_status_is_passed_on(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        struct error err = ERROR_INIT;
        int result = lockdown_enter(&(struct lockdown){.keep_count = 0}, &err);
        _exit(result < 0 ? refused(&err) : 7);
    }
    int status = wait_status(child);
    if (status == EXIT_UNSUPPORTED)
        skip();
    assert_int_equal(status, 7);
}

static void the_waiting_process_can_only_wait(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        struct error err = ERROR_INIT;
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (lockdown_filter_waiting(&err) < 0)
            _exit(1);
        bool is_tight = is_denied(write(1, "", 0)) && is_denied(socket(AF_INET, SOCK_STREAM, 0)) && is_denied(getppid());
        syscall(SYS_exit_group, is_tight ? 0 : 2); // a sanitizer's _exit would want more
    }
    assert_int_equal(wait_status(child), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_but_internet_sockets_is_left),
        cmocka_unit_test(the_exit_status_is_passed_on),
        cmocka_unit_test(the_waiting_process_can_only_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
