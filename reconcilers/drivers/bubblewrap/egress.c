// The sandbox's egress process. It may end (it parses what untrusted programs send); the sandbox lives on and gets a new
// one, with the same listener inside and the same published ports.
#include "controller/base/cleanup.h"
#include "controller/base/egress_protocol.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/spawn.h"
#include "reconcilers/drivers/bubblewrap/bubblewrap.h"
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define MAX_RESTARTS 20
#define RESTART_DELAY_MS 250

static void schedule_restart(struct runtime *runtime);

static void on_egress_exit(void *arg, uint32_t events)
{
    struct runtime *runtime = arg;
    int exit_code;
    (void)events;
    if (spawn_reap(runtime->egress_pidfd, &exit_code) < 0)
        return;
    loop_unwatch(TAKE_PTR(runtime->egress_source));
    close(TAKE_FD(runtime->egress_pidfd));
    channel_free(TAKE_PTR(runtime->egress));
    if (runtime->state == RUNTIME_RUNNING && !runtime->is_removing)
        schedule_restart(runtime);
}

// A new process is started when the old one is reaped; until then requests are answered "ended".
static void on_end(void *arg)
{
    struct runtime *runtime = arg;
    if (runtime->egress_pidfd >= 0)
        spawn_signal(runtime->egress_pidfd, SIGKILL);
}

static int spawn_egress(struct runtime *runtime, int control_fd, struct error *err)
{
    static const char *const argv[] = {"chat2shell-egress", "--control-fd", "3", "--proxy-fd", "4", "--connector-fd", "5",
                                       "--deny", "openrouter.ai", NULL};
    CLEANUP_FREE char *path = mem_format("%s/chat2shell-egress", runtime->bw->program_dir);
    struct spawn_options options = {.path = path,
                                    .argv = argv,
                                    .fds = {{control_fd, 3}, {runtime->proxy_fd, 4}, {runtime->connector_fd, 5}},
                                    .fd_count = 3,
                                    .dies_with_us = true};
    pid_t pid;
    return spawn_process(runtime->bw->spawner, &options, &pid, &runtime->egress_pidfd, err);
}

void egress_start(struct runtime *runtime)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
        schedule_restart(runtime);
        return;
    }
    CLEANUP_CLOSE int own_fd = ends[0];
    CLEANUP_CLOSE int other_fd = ends[1];
    if (spawn_egress(runtime, other_fd, NULL) < 0) {
        schedule_restart(runtime);
        return;
    }
    struct channel_events events = {.on_end = on_end, .arg = runtime};
    runtime->egress = channel_new(runtime->bw->loop, TAKE_FD(own_fd), EGRESS_MESSAGE_MAX_BYTES, "the sandbox's network process", &events);
    runtime->egress_source = loop_watch(runtime->bw->loop, runtime->egress_pidfd, EPOLLIN, on_egress_exit, runtime);
    ports_restore(runtime);
}

static void restart(void *arg)
{
    struct runtime *runtime = arg;
    runtime->egress_timer = NULL;
    egress_start(runtime);
}

static void schedule_restart(struct runtime *runtime)
{
    if (runtime->egress_restarts++ < MAX_RESTARTS)
        runtime->egress_timer = loop_after(runtime->bw->loop, (int64_t)RESTART_DELAY_MS * runtime->egress_restarts, restart, runtime);
}

// Its control socket's end ends it; the spawner's child is reaped here all the same.
void egress_end(struct runtime *runtime)
{
    loop_cancel(TAKE_PTR(runtime->egress_timer));
    channel_free(TAKE_PTR(runtime->egress));
    if (runtime->egress_pidfd < 0)
        return;
    int exit_code;
    loop_unwatch(TAKE_PTR(runtime->egress_source));
    spawn_signal(runtime->egress_pidfd, SIGKILL);
    spawn_wait(runtime->egress_pidfd, 1000, &exit_code); // a killed process without children: microseconds
    close(TAKE_FD(runtime->egress_pidfd));
}
