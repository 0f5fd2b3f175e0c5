#include "controller/spawn.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include "controller/spawn_child.h"
#include "controller/thread.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

struct request { // on the stack of the thread that waits for it
    struct request *next;
    const struct spawn_options *options;
    pid_t pid;
    int pidfd;
    int result;
    struct error *err;
    bool is_done;
};

struct spawner {
    pthread_t thread;
    int null_fd;
    pthread_mutex_t lock; // guards all below and the requests
    pthread_cond_t asked, answered;
    struct request *requests, **requests_end;
    bool is_stopping;
};

// ---- the spawner thread -------------------------------------------------------------------------

static int word_failure(const struct spawn_failure *failure, const char *path, struct error *err)
{
    const char *hint =
        failure->stage == SPAWN_STAGE_EXEC ? "check that it is installed and can be executed" : NULL;
    return error_errno(err, failure->errno_value, hint, "cannot start %s%s", path,
                       spawn_stage_words(failure->stage));
}

// The write end is closed by exec, so end-of-file means that the program runs.
static int await_exec(int failure_fd, pid_t pid, const char *path, struct error *err)
{
    struct spawn_failure failure = {0};
    ssize_t got;
    do
        got = read(failure_fd, &failure, sizeof(failure));
    while (got < 0 && errno == EINTR);
    if (got == 0)
        return 0;
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return word_failure(&failure, path, err);
}

static int start_child(struct spawner *spawner, struct request *request)
{
    const char *path = request->options->path;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_errno(request->err, errno, "raise the limit on open files (ulimit -n)",
                           "cannot start %s", path);
    CLEANUP_CLOSE int read_end = ends[0];
    CLEANUP_CLOSE int write_end = ends[1];
    struct spawn_child child = {request->options, spawner->null_fd, write_end, getpid()};
    pid_t pid = spawn_child_fork(&child);
    if (pid < 0)
        return error_errno(request->err, errno, "raise the limit on processes (ulimit -u)", "cannot start %s",
                           path);
    close(TAKE_FD(write_end));
    if (await_exec(read_end, pid, path, request->err) < 0)
        return -1;
    int pidfd = pidfd_open(pid, 0); // not reaped yet: the pid is certainly this child
    if (pidfd < 0) {
        error_errno(request->err, errno, "raise the limit on open files (ulimit -n)", "cannot hold on to %s",
                    path);
        kill(-pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return -1;
    }
    request->pid = pid;
    request->pidfd = pidfd;
    return 0;
}

static struct request *next_request(struct spawner *spawner)
{
    while (!spawner->requests && !spawner->is_stopping)
        pthread_cond_wait(&spawner->asked, &spawner->lock);
    struct request *request = spawner->requests;
    if (request) {
        spawner->requests = request->next;
        if (!spawner->requests)
            spawner->requests_end = &spawner->requests;
    }
    return request;
}

static void *run(void *arg)
{
    struct spawner *spawner = arg;
    pthread_mutex_lock(&spawner->lock);
    for (struct request *request; (request = next_request(spawner));) {
        pthread_mutex_unlock(&spawner->lock);
        int result = start_child(spawner, request);
        pthread_mutex_lock(&spawner->lock);
        request->result = result;
        request->is_done = true;
        pthread_cond_broadcast(&spawner->answered);
    }
    pthread_mutex_unlock(&spawner->lock);
    return NULL;
}

// ---- life ---------------------------------------------------------------------------------------

// A parent that ignores SIGCHLD hands that down, and then the kernel reaps our children behind our back.
static void keep_zombies(void)
{
    struct sigaction action;
    if (sigaction(SIGCHLD, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
        signal(SIGCHLD, SIG_DFL);
}

static void spawner_free(struct spawner *spawner)
{
    close(spawner->null_fd);
    pthread_mutex_destroy(&spawner->lock);
    pthread_cond_destroy(&spawner->asked);
    pthread_cond_destroy(&spawner->answered);
    free(spawner);
}

int spawner_start(struct spawner **ret, struct error *err)
{
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd < 0)
        return error_errno(err, errno, NULL, "cannot open /dev/null");
    keep_zombies();
    struct spawner *spawner = mem_alloc(sizeof(*spawner));
    spawner->null_fd = null_fd;
    spawner->requests_end = &spawner->requests;
    pthread_mutex_init(&spawner->lock, NULL);
    thread_cond_init(&spawner->asked);
    thread_cond_init(&spawner->answered);
    if (thread_start(&spawner->thread, "spawner", run, spawner, err) < 0) {
        spawner_free(spawner);
        return -1;
    }
    *ret = spawner;
    return 0;
}

void spawner_stop(struct spawner *spawner)
{
    if (!spawner)
        return;
    pthread_mutex_lock(&spawner->lock);
    spawner->is_stopping = true;
    pthread_cond_signal(&spawner->asked);
    pthread_mutex_unlock(&spawner->lock);
    pthread_join(spawner->thread, NULL);
    spawner_free(spawner);
}

static void check_options(const struct spawn_options *options)
{
    assert(options->path && options->path[0] == '/' && options->argv && options->argv[0]);
    assert(options->fd_count <= SPAWN_MAX_FDS);
    for (size_t i = 0; i < options->fd_count; i++) {
        assert(options->fds[i].fd >= 0 && options->fds[i].target_fd >= 0);
        assert(options->fds[i].target_fd < SPAWN_MAX_TARGET);
        for (size_t j = 0; j < i; j++)
            assert(options->fds[i].target_fd != options->fds[j].target_fd);
    }
}

int spawn_process(struct spawner *spawner, const struct spawn_options *options, pid_t *ret_pid,
                  int *ret_pidfd, struct error *err)
{
    check_options(options);
    struct request request = {.options = options, .err = err};
    pthread_mutex_lock(&spawner->lock);
    assert(!spawner->is_stopping);
    *spawner->requests_end = &request;
    spawner->requests_end = &request.next;
    pthread_cond_signal(&spawner->asked);
    while (!request.is_done)
        pthread_cond_wait(&spawner->answered, &spawner->lock);
    pthread_mutex_unlock(&spawner->lock);
    if (request.result < 0)
        return -1;
    *ret_pid = request.pid;
    *ret_pidfd = request.pidfd;
    return 0;
}

// ---- ends ---------------------------------------------------------------------------------------

int spawn_reap(int pidfd, int *ret_exit_code)
{
    siginfo_t info = {0};
    int result;
    do
        result = waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG);
    while (result < 0 && errno == EINTR);
    if (result < 0)
        return -1;
    if (info.si_pid == 0) {
        errno = EAGAIN;
        return -1;
    }
    *ret_exit_code = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
    return 0;
}

int spawn_wait(int pidfd, int timeout_ms, int *ret_exit_code)
{
    int64_t until_ms = boot_time_now().ms + timeout_ms;
    for (;;) {
        int64_t left_ms = until_ms - boot_time_now().ms;
        struct pollfd wanted = {.fd = pidfd, .events = POLLIN};
        int ready = poll(&wanted, 1, timeout_ms < 0 ? -1 : left_ms > 0 ? (int)left_ms : 0);
        if (ready >= 0)
            return spawn_reap(pidfd, ret_exit_code);
        if (errno != EINTR)
            return -1;
    }
}

int spawn_hold(pid_t pid)
{
    return pidfd_open(pid, 0);
}

int spawn_signal(int pidfd, int signal)
{
    return pidfd_send_signal(pidfd, signal, NULL, 0);
}

int spawn_signal_group(pid_t pid, int pidfd, int signal)
{
    if (pidfd_send_signal(pidfd, 0, NULL, 0) < 0)
        return -1;
    return kill(-pid, signal);
}
