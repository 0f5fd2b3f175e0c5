#include "reconcilers/drivers/bubblewrap/shim/launch.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/utf8.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

struct launch_pipes {
    int input[2], output[2], errors[2], status[2], report[2], failure[2], go[2];
};

static int open_pipes(struct launch_pipes *pipes, struct error *err)
{
    int *const simple[] = {pipes->input, pipes->output, pipes->errors, pipes->status, pipes->failure, pipes->go};
    for (size_t i = 0; i < ARRAY_LEN(simple); i++)
        if (pipe2(simple[i], O_CLOEXEC) < 0)
            return error_errno(err, errno, NULL, "cannot make a pipe");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pipes->report) < 0)
        return error_errno(err, errno, NULL, "cannot make a socket");
    return 0;
}

// A description of its own: the sandbox holds it, and must not be able to let go of the shim's lock.
static int open_sandbox_lock(struct error *err)
{
    CLEANUP_CLOSE int fd = openat(SHIM_FD_DIRECTORY, SHIM_LOCK_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0)
        return error_errno(err, errno, NULL, "cannot lock the runtime directory");
    return TAKE_FD(fd);
}

static _Noreturn void run_stage(struct stage *stage, const struct launch_pipes *pipes)
{
    struct error failure = ERROR_INIT;
    char byte;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(pipes->go[1]);
    if (read(pipes->go[0], &byte, 1) != 1)
        _exit(1);
    stage_run(stage, &failure);
    fs_write_all(pipes->failure[1], &failure, sizeof(failure), NULL);
    _exit(1);
}

static void keep_own_ends(struct shim *shim, const struct launch_pipes *pipes)
{
    const int foreign[] = {pipes->input[0],  pipes->output[1],  pipes->errors[1], pipes->status[1],
                           pipes->report[1], pipes->failure[1], pipes->go[0]};
    for (size_t i = 0; i < ARRAY_LEN(foreign); i++)
        close(foreign[i]);
    shim->stdio[0] = pipes->input[1];
    shim->stdio[1] = pipes->output[0];
    shim->stdio[2] = pipes->errors[0];
    shim->status_fd = pipes->status[0];
    shim->report_fd = pipes->report[0];
}

// End-of-file says that bubblewrap has replaced the staging process.
static int read_failure(int fd, struct error *err)
{
    struct error failure;
    ssize_t n;
    do
        n = read(fd, &failure, sizeof(failure));
    while (n < 0 && errno == EINTR);
    if (n == 0)
        return 0;
    if (n != (ssize_t)sizeof(failure))
        return error_set(err, ERROR_INTERNAL, NULL, "the staging process ended without a reason");
    return error_copy(err, &failure);
}

static int follow_stage(struct shim *shim, const struct launch_pipes *pipes, struct error *err)
{
    CLEANUP_CLOSE int failure_fd = pipes->failure[0];
    CLEANUP_CLOSE int go_fd = pipes->go[1];
    shim->bwrap_pidfd = (int)syscall(SYS_pidfd_open, shim->bwrap_pid, 0);
    if (shim->bwrap_pidfd < 0)
        return error_errno(err, errno, NULL, "cannot watch the staging process");
    limits_join(&shim->limits, shim->bwrap_pid);
    if (write(go_fd, "g", 1) != 1)
        return error_errno(err, errno, NULL, "cannot start the staging process");
    return read_failure(failure_fd, err);
}

int launch_stage(struct shim *shim, struct error *err)
{
    struct launch_pipes pipes;
    if (open_pipes(&pipes, err) < 0) // the process ends with this failure: no descriptor outlives it
        return -1;
    CLEANUP_CLOSE int lock_fd = open_sandbox_lock(err);
    if (lock_fd < 0)
        return -1;
    struct stage stage = {.config = &shim->config,
                          .identity = &shim->identity,
                          .stdio = {pipes.input[0], pipes.output[1], pipes.errors[1]},
                          .status_fd = pipes.status[1],
                          .report_fd = pipes.report[1],
                          .lock_fd = lock_fd,
                          .limits_processes = !shim->limits.has_pids};
    if (stage_open_trees(&stage, err) < 0) {
        stage_close(&stage);
        return -1;
    }
    shim->bwrap_pid = fork();
    if (shim->bwrap_pid == 0)
        run_stage(&stage, &pipes);
    int fork_errno = errno;
    stage_close(&stage);
    keep_own_ends(shim, &pipes);
    if (shim->bwrap_pid < 0)
        return error_errno(err, fork_errno, NULL, "cannot start the staging process");
    return follow_stage(shim, &pipes, err);
}

// bubblewrap says why it failed on the stderr that it passes on.
static int bwrap_failed(struct shim *shim, const char *for_what, struct error *err)
{
    char text[512] = "";
    fs_set_nonblocking(shim->stdio[2], true);
    ssize_t n = read(shim->stdio[2], text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return error_set(err, ERROR_UNSUPPORTED, "run: chat2shell doctor", "bubblewrap ended before %s: %s", for_what,
                     text[0] ? text : "it gave no reason");
}

int launch_wait(struct shim *shim, int fd, struct boot_time deadline, const char *for_what, struct error *err)
{
    for (;;) {
        struct pollfd polls[] = {{.fd = fd, .events = POLLIN},
                                 {.fd = shim->controller_fd, .events = POLLIN},
                                 {.fd = shim->bwrap_pidfd, .events = POLLIN}};
        int64_t left_ms = deadline.ms - boot_time_now().ms;
        if (left_ms <= 0)
            return error_set(err, ERROR_TIMEOUT, NULL, "the sandbox did not start in time (waiting for %s)", for_what);
        if (poll(polls, ARRAY_LEN(polls), (int)left_ms) < 0 && errno != EINTR)
            return error_errno(err, errno, NULL, "cannot wait");
        if (polls[0].revents & POLLIN)
            return 0;
        if (polls[1].revents && !shim_may_go_on(shim))
            return error_set(err, ERROR_CANCELLED, NULL, "the sandbox was removed while it was starting");
        if (polls[2].revents || polls[0].revents)
            return bwrap_failed(shim, for_what, err);
    }
}
