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
#include <sys/socket.h>

#define MAX_RESTARTS 20
#define RESTART_DELAY_MS 250

static void schedule_restart(struct runtime *runtime);

static void on_egress_exit(void *arg, int exit_code)
{
    struct runtime *runtime = arg;
    (void)exit_code;
    channel_free(TAKE_PTR(runtime->egress));
    if (runtime->state == RUNTIME_RUNNING && !runtime->is_removing)
        schedule_restart(runtime);
}

// A new process is started when the old one is reaped; until then requests are answered "ended".
static void on_end(void *arg)
{
    struct runtime *runtime = arg;
    child_signal(&runtime->egress_process, SIGKILL);
    child_await_end(&runtime->egress_process);
}

static int spawn_egress(struct runtime *runtime, int control_fd, int proxy_fd, int connector_fd, pid_t *ret_pid)
{
    static const char *const argv[] = {"chat2shell-egress", "--control-fd", "3", "--proxy-fd", "4", "--connector-fd", "5",
                                       "--deny", "openrouter.ai", NULL};
    CLEANUP_FREE char *path = mem_format("%s/chat2shell-egress", runtime->bw->program_dir);
    struct spawn_options options = {.path = path,
                                    .argv = argv,
                                    .fds = {{control_fd, 3}, {proxy_fd, 4}, {connector_fd, 5}},
                                    .fd_count = 3,
                                    .dies_with_us = true};
    CLEANUP_CLOSE int pidfd = -1; // its socket tells its end
    return spawn_process(runtime->bw->spawner, &options, ret_pid, &pidfd, NULL);
}

void egress_start(struct runtime *runtime, int proxy_fd, int connector_fd)
{
    int ends[2];
    pid_t pid;
    runtime->netns_cookie = dial_netns_cookie(proxy_fd);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
        schedule_restart(runtime);
        return;
    }
    CLEANUP_CLOSE int own_fd = ends[0];
    CLEANUP_CLOSE int other_fd = ends[1];
    if (spawn_egress(runtime, other_fd, proxy_fd, connector_fd, &pid) < 0) {
        schedule_restart(runtime);
        return;
    }
    struct channel_events events = {.on_end = on_end, .arg = runtime};
    runtime->egress = channel_new(runtime->bw->loop, TAKE_FD(own_fd), EGRESS_MESSAGE_MAX_BYTES, "the sandbox's network process", &events);
    child_hold(&runtime->egress_process, runtime->bw->loop, pid, on_egress_exit, runtime);
    ports_restore(runtime);
}

// Without the shim the runtime is being taken apart: its pending requests are answered then.
static void on_network(void *arg, struct channel_message *message, const struct error *err)
{
    struct runtime *runtime = arg;
    if (runtime->state != RUNTIME_RUNNING || runtime->is_removing || runtime->shim == NULL)
        return;
    if (err == NULL && message->fd_count == 2)
        egress_start(runtime, message->fds[0], message->fds[1]);
    else
        schedule_restart(runtime);
}

static void restart(void *arg)
{
    struct runtime *runtime = arg;
    runtime->egress_timer = NULL;
    if (runtime->shim)
        channel_call(runtime->shim, json_pack("{s:s}", "op", "network"), -1, BUBBLEWRAP_CALL_DEADLINE_MS, on_network, runtime);
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
    child_signal(&runtime->egress_process, SIGKILL);
    child_wait(&runtime->egress_process, 1000); // a killed process without children: microseconds
    child_let_go(&runtime->egress_process);
}
