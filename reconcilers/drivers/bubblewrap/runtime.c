#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/spawn.h"
#include "reconcilers/drivers/bubblewrap/bubblewrap.h"
#include <signal.h>
#include <string.h>

struct runtime *runtime_find(struct bubblewrap *bw, const char *name)
{
    for (struct runtime *runtime = bw->runtimes; runtime; runtime = runtime->next)
        if (strcmp(runtime->name, name) == 0)
            return runtime;
    return NULL;
}

struct runtime *runtime_add(struct bubblewrap *bw, const char *name, const struct runtime_events *events)
{
    struct runtime *runtime = mem_alloc(sizeof(*runtime));
    *runtime = (struct runtime){.next = bw->runtimes, .bw = bw, .name = mem_strdup(name), .events = *events, .init_pidfd = -1,
                                .exit_code = -1};
    bw->runtimes = runtime;
    return runtime;
}

static void close_if_open(int *fd)
{
    if (*fd >= 0)
        close(TAKE_FD(*fd));
}

void runtime_free(struct runtime *runtime)
{
    struct runtime **at = &runtime->bw->runtimes;
    while (*at != runtime)
        at = &(*at)->next;
    *at = runtime->next;
    loop_cancel(TAKE_PTR(runtime->deadline));
    egress_end(runtime);
    channel_free(TAKE_PTR(runtime->shim));
    child_let_go(&runtime->supervisor);
    close_if_open(&runtime->init_pidfd);
    for (size_t i = 0; i < runtime->port_count; i++)
        close(runtime->ports[i].listener_fd);
    if (runtime->free_arg)
        runtime->free_arg(runtime->events.arg);
    free(runtime->reason);
    free(runtime->last_words);
    free(runtime->name);
    free(runtime);
}

void runtime_fail(struct runtime *runtime, const struct error *err)
{
    if (runtime->state != RUNTIME_STARTING)
        return;
    runtime->state = RUNTIME_ENDED;
    loop_cancel(TAKE_PTR(runtime->deadline));
    runtime->events.failed(runtime->events.arg, runtime, err);
}

static void on_ready(struct runtime *runtime, struct channel_message *message)
{
    if (runtime->state != RUNTIME_STARTING)
        return;
    runtime->state = RUNTIME_RUNNING;
    loop_cancel(TAKE_PTR(runtime->deadline));
    if (message->fd_count > 0)
        runtime->init_pidfd = TAKE_FD(message->fds[0]);
    if (message->fd_count == 3)
        egress_start(runtime, message->fds[1], message->fds[2]);
    runtime->events.ready(runtime->events.arg, runtime, message->object);
}

static enum error_code code_named(const char *name)
{
    for (int code = 1; name && code < ERROR_CODE_COUNT; code++)
        if (strcmp(error_meaning((enum error_code)code)->name, name) == 0)
            return (enum error_code)code;
    return ERROR_INTERNAL;
}

static void on_failed(struct runtime *runtime, struct channel_message *message)
{
    struct error err = ERROR_INIT;
    const char *sentence = json_get_text(message->object, "error"), *hint = json_get_text(message->object, "hint");
    error_set(&err, code_named(json_get_text(message->object, "code")), hint, "%s", sentence ? sentence : "the sandbox could not be made");
    runtime_fail(runtime, &err);
}

static void on_exited(struct runtime *runtime, struct channel_message *message)
{
    mem_replace(&runtime->reason, json_get_text(message->object, "reason"));
    mem_replace(&runtime->last_words, json_get_text(message->object, "last_words"));
    runtime->exit_code = (int)json_get_int(message->object, "exit_code", -1);
}

static const struct shim_event {
    const char *name;
    void (*run)(struct runtime *runtime, struct channel_message *message);
} shim_events[] = {{"ready", on_ready}, {"failed", on_failed}, {"exited", on_exited}};

static void on_event(void *arg, struct channel_message *message)
{
    const char *name = json_get_text(message->object, "event");
    for (size_t i = 0; name && i < ARRAY_LEN(shim_events); i++)
        if (strcmp(shim_events[i].name, name) == 0) {
            shim_events[i].run(arg, message);
            return;
        }
}

// The end of the conversation comes just before the end of the process, which tells the rest.
static void on_end(void *arg)
{
    struct runtime *runtime = arg;
    child_await_end(&runtime->supervisor);
}

static void report_end(struct runtime *runtime)
{
    bool was_running = runtime->state == RUNTIME_RUNNING;
    struct error err = ERROR_INIT;
    error_set(&err, ERROR_INTERNAL, NULL, "the sandbox's supervisor ended while the sandbox was starting");
    runtime_fail(runtime, &err);
    runtime->state = RUNTIME_ENDED;
    if (!was_running)
        return;
    struct runtime_end end = {.exit_code = runtime->exit_code,
                              .reason = runtime->reason ? runtime->reason : "the sandbox's supervisor was killed",
                              .last_words = runtime->last_words ? runtime->last_words : ""};
    runtime->events.ended(runtime->events.arg, runtime, &end);
}

static void on_shim_exit(void *arg, int exit_code)
{
    struct runtime *runtime = arg;
    (void)exit_code; // what counts is what it said
    // A supervisor that was killed could not end what it held. Its death signal did; this makes it certain.
    if (runtime->init_pidfd >= 0)
        spawn_signal(runtime->init_pidfd, SIGKILL);
    egress_end(runtime);
    channel_free(TAKE_PTR(runtime->shim));
    char *name = mem_strdup(runtime->name);
    struct bubblewrap *bw = runtime->bw;
    report_end(runtime);
    runtime = runtime_find(bw, name); // the callback may have begun and ended its removal
    free(name);
    if (runtime && runtime->is_removing)
        remove_shim_ended(runtime);
}

static void on_deadline(void *arg)
{
    struct runtime *runtime = arg;
    struct error err = ERROR_INIT;
    runtime->deadline = NULL;
    error_set(&err, ERROR_TIMEOUT, "look at the load of the machine", "the sandbox did not start within %d s",
              BUBBLEWRAP_CREATE_DEADLINE_MS / 1000);
    runtime_fail(runtime, &err);
}

void runtime_attach(struct runtime *runtime, const struct launched *launched)
{
    struct loop *loop = runtime->bw->loop;
    struct channel_events events = {.on_event = on_event, .on_end = on_end, .arg = runtime};
    child_hold(&runtime->supervisor, loop, launched->pid, on_shim_exit, runtime);
    runtime->shim = channel_new(loop, launched->control_fd, SHIM_MESSAGE_MAX_BYTES, "the sandbox's supervisor", &events);
    runtime->deadline = loop_after(loop, BUBBLEWRAP_CREATE_DEADLINE_MS, on_deadline, runtime);
}
