#include "reconcilers/drivers/bubblewrap/child.h"
#include "controller/base/cleanup.h"
#include "controller/spawn.h"
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define AGAIN_MS 100
#define LOOK_MS 10

void child_hold(struct child *child, struct loop *loop, pid_t pid, void (*ended)(void *arg, int exit_code), void *arg)
{
    *child = (struct child){.loop = loop, .pid = pid, .ended = ended, .arg = arg};
}

bool child_is_there(const struct child *child)
{
    return child->pid > 0;
}

void child_signal(const struct child *child, int signal)
{
    if (child->pid > 0)
        kill(child->pid, signal);
}

void child_let_go(struct child *child)
{
    loop_cancel(TAKE_PTR(child->again));
    if (child->source) {
        loop_unwatch(TAKE_PTR(child->source));
        close(child->pidfd);
    }
    child->pid = 0;
}

static void on_exit_of(void *arg, uint32_t events)
{
    struct child *child = arg;
    int exit_code;
    (void)events;
    if (spawn_reap(child->pidfd, &exit_code) < 0)
        return;
    child_let_go(child);
    child->ended(child->arg, exit_code);
}

static void on_again(void *arg)
{
    struct child *child = arg;
    child->again = NULL;
    child_await_end(child);
}

void child_await_end(struct child *child)
{
    if (child->pid <= 0 || child->source || child->again)
        return;
    child->pidfd = spawn_hold(child->pid);
    if (child->pidfd < 0) // the limit on open files: others give theirs back
        child->again = loop_after(child->loop, AGAIN_MS, on_again, child);
    else
        child->source = loop_watch(child->loop, child->pidfd, EPOLLIN, on_exit_of, child);
}

// Where no descriptor can be had to wait with.
static bool wait_by_looking(pid_t pid, int timeout_ms)
{
    for (int waited_ms = 0;; waited_ms += LOOK_MS) {
        pid_t reaped = waitpid(pid, NULL, WNOHANG);
        if (reaped != 0 && !(reaped < 0 && errno == EINTR))
            return true;
        if (waited_ms >= timeout_ms)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    }
}

bool child_wait(struct child *child, int timeout_ms)
{
    if (child->pid <= 0)
        return true;
    CLEANUP_CLOSE int pidfd = spawn_hold(child->pid);
    int exit_code;
    bool is_reaped = pidfd >= 0 ? spawn_wait(pidfd, timeout_ms, &exit_code) == 0 : wait_by_looking(child->pid, timeout_ms);
    if (is_reaped)
        child_let_go(child);
    return is_reaped;
}
