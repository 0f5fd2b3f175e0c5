#include "controller/spawn_child.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define STANDARD_FDS 3

const char *spawn_stage_words(int stage)
{
    switch (stage) {
    case SPAWN_STAGE_PARENT:
        return " (the starting process ended)";
    case SPAWN_STAGE_DESCRIPTORS:
        return " (moving its descriptors)";
    case SPAWN_STAGE_SESSION:
        return " (entering its session and directory)";
    default:
        return "";
    }
}

static void fail(int failure_fd, enum spawn_stage stage)
{
    struct spawn_failure failure = {stage, errno};
    ssize_t ignored = write(failure_fd, &failure, sizeof(failure));
    (void)ignored;
    _exit(127);
}

static void reset_signals(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    for (int number = 1; number < NSIG; number++)
        sigaction(number, &action, NULL); // KILL, STOP and the C library's own refuse
}

static void die_with_parent(const struct spawn_child *child)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != child->parent) { // it ended before the line above
        errno = ESRCH;
        fail(child->failure_fd, SPAWN_STAGE_PARENT);
    }
}

static void mark_all_close_on_exec(void)
{
    if (close_range(0, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
        return;
    struct rlimit limit = {.rlim_cur = 1024}; // a kernel or filter without the call
    getrlimit(RLIMIT_NOFILE, &limit);
    for (int fd = 0; fd < (int)limit.rlim_cur && fd < 1 << 20; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static int source_of(const struct spawn_child *child, int target, const int *moved)
{
    for (size_t i = 0; i < child->options->fd_count; i++)
        if (child->options->fds[i].target_fd == target)
            return moved[i];
    return -1;
}

static int move_high(int fd, int failure_fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, SPAWN_MAX_TARGET);
    if (high < 0)
        fail(failure_fd, SPAWN_STAGE_DESCRIPTORS);
    return high;
}

// Everything is first copied above all targets, so that no target overwrites a source that is still needed.
static int place_descriptors(const struct spawn_child *child)
{
    const struct spawn_options *options = child->options;
    int failure_fd = move_high(child->failure_fd, child->failure_fd);
    int null_fd = move_high(child->null_fd, failure_fd);
    int moved[SPAWN_MAX_FDS];
    for (size_t i = 0; i < options->fd_count; i++)
        moved[i] = move_high(options->fds[i].fd, failure_fd);
    mark_all_close_on_exec();
    for (int target = 0; target < STANDARD_FDS; target++) // dup2 leaves the copy open over exec
        if (source_of(child, target, moved) < 0 && dup2(null_fd, target) < 0)
            fail(failure_fd, SPAWN_STAGE_DESCRIPTORS);
    for (size_t i = 0; i < options->fd_count; i++)
        if (dup2(moved[i], options->fds[i].target_fd) < 0)
            fail(failure_fd, SPAWN_STAGE_DESCRIPTORS);
    return failure_fd;
}

static void unblock_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

__attribute__((noinline)) static void run_child(const struct spawn_child *child)
{
    static char *const no_environment[] = {NULL};
    const struct spawn_options *options = child->options;
    reset_signals();
    if (setsid() < 0 || chdir(options->directory ? options->directory : "/") < 0)
        fail(child->failure_fd, SPAWN_STAGE_SESSION);
    if (options->dies_with_us)
        die_with_parent(child);
    int failure_fd = place_descriptors(child);
    unblock_signals();
    execve(options->path, (char *const *)options->argv,
           options->environment ? (char *const *)options->environment : no_environment);
    fail(failure_fd, SPAWN_STAGE_EXEC);
}

// vfork: the daemon's memory is not copied, and only the spawner thread waits until exec. The child shares
// that memory, so it writes to its own stack frames only. Sanitizers' runtimes do not survive that sharing:
// fork for them.
pid_t spawn_child_fork(const struct spawn_child *child)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    pid_t pid = fork();
#else
    pid_t pid = vfork();
#endif
    if (pid == 0)
        run_child(child);
    return pid;
}
