// Published ports: a listener on every IPv4 address of the host that the egress process accepts on, and connects each
// connection to the port inside.
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "reconcilers/drivers/bubblewrap/bubblewrap.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

struct port_call {
    struct bubblewrap *bw;
    char *name;
    int port;
    driver_port_fn port_done;
    driver_done_fn done;
    void *arg;
};

static struct port_call *call_new(struct driver *driver, const char *name, int port, void *arg)
{
    struct port_call *call = mem_alloc(sizeof(*call));
    *call = (struct port_call){.bw = (struct bubblewrap *)driver, .name = mem_strdup(name), .port = port, .arg = arg};
    return call;
}

static void call_end(struct port_call *call, int host_port, const struct error *err)
{
    if (call->port_done)
        call->port_done(call->arg, err ? -1 : 0, host_port, err);
    else
        call->done(call->arg, err ? -1 : 0, err);
    free(call->name);
    free(call);
}

static struct runtime_port *find_port(struct runtime *runtime, int port)
{
    for (size_t i = 0; i < runtime->port_count; i++)
        if (runtime->ports[i].port == port)
            return &runtime->ports[i];
    return NULL;
}

static void forget_port(struct runtime *runtime, int port)
{
    struct runtime_port *at = find_port(runtime, port);
    if (at == NULL)
        return;
    close(at->listener_fd);
    *at = runtime->ports[--runtime->port_count];
}

// The running runtime with its network, or an error that says what is missing.
static struct runtime *find_running(struct port_call *call, struct error *err)
{
    struct runtime *runtime = runtime_find(call->bw, call->name);
    if (runtime == NULL || runtime->state != RUNTIME_RUNNING || runtime->is_removing)
        error_set(err, ERROR_STATE, NULL, "the sandbox is not running");
    else if (runtime->egress == NULL)
        error_set(err, ERROR_UNAVAILABLE, "try again in a moment", "the sandbox's network process is not running");
    else
        return runtime;
    return NULL;
}

static int open_listener(int *ret_port, struct error *err)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_ANY)}};
    socklen_t size = sizeof(at);
    CLEANUP_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, size) < 0 || listen(fd, 128) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) < 0)
        return error_errno(err, errno, NULL, "cannot open a port on the host");
    *ret_port = ntohs(at.sin_port);
    return TAKE_FD(fd);
}

static void on_published(void *arg, struct channel_message *message, const struct error *err)
{
    struct port_call *call = arg;
    (void)message;
    struct runtime *runtime = runtime_find(call->bw, call->name);
    struct runtime_port *port = runtime ? find_port(runtime, call->port) : NULL;
    struct error gone = ERROR_INIT;
    if (port == NULL && err == NULL) {
        error_set(&gone, ERROR_CANCELLED, NULL, "the port was unpublished meanwhile");
        err = &gone;
    }
    if (err && port)
        forget_port(runtime, call->port);
    else if (port)
        port->is_ready = true;
    call_end(call, err ? 0 : port->host_port, err);
}

static void publish_on_loop(void *arg)
{
    struct port_call *call = arg;
    struct error err = ERROR_INIT;
    struct runtime *runtime = find_running(call, &err);
    struct runtime_port *known = runtime ? find_port(runtime, call->port) : NULL;
    if (runtime == NULL || known) {
        call_end(call, known ? known->host_port : 0, runtime ? NULL : &err);
        return;
    }
    int host_port = 0, fd = -1;
    if (runtime->port_count == BUBBLEWRAP_MAX_PORTS)
        error_set(&err, ERROR_LIMIT, "unpublish one", "a sandbox can publish at most %d ports", BUBBLEWRAP_MAX_PORTS);
    else
        fd = open_listener(&host_port, &err);
    if (fd < 0) {
        call_end(call, 0, &err);
        return;
    }
    runtime->ports[runtime->port_count++] = (struct runtime_port){.port = call->port, .host_port = host_port, .listener_fd = fd};
    channel_call(runtime->egress, json_pack("{s:s, s:i}", "op", "publish", "port", call->port), fd, BUBBLEWRAP_CALL_DEADLINE_MS,
                 on_published, call);
}

void ports_publish(struct driver *driver, const char *name, int port, driver_port_fn done, void *arg)
{
    struct port_call *call = call_new(driver, name, port, arg);
    call->port_done = done;
    loop_post(call->bw->loop, publish_on_loop, call);
}

static void on_answered(void *arg, struct channel_message *message, const struct error *err)
{
    (void)message;
    call_end(arg, 0, err);
}

// Gone with its sandbox is unpublished as well.
static void unpublish_on_loop(void *arg)
{
    struct port_call *call = arg;
    struct runtime *runtime = runtime_find(call->bw, call->name);
    bool was_known = runtime && find_port(runtime, call->port);
    if (was_known)
        forget_port(runtime, call->port);
    if (was_known && runtime->egress)
        channel_call(runtime->egress, json_pack("{s:s, s:i}", "op", "unpublish", "port", call->port), -1,
                     BUBBLEWRAP_CALL_DEADLINE_MS, on_answered, call);
    else
        call_end(call, 0, NULL);
}

void ports_unpublish(struct driver *driver, const char *name, int port, driver_done_fn done, void *arg)
{
    struct port_call *call = call_new(driver, name, port, arg);
    call->done = done;
    loop_post(call->bw->loop, unpublish_on_loop, call);
}

static void probe_on_loop(void *arg)
{
    struct port_call *call = arg;
    struct error err = ERROR_INIT;
    struct runtime *runtime = find_running(call, &err);
    if (runtime == NULL)
        call_end(call, 0, &err);
    else
        channel_call(runtime->egress, json_pack("{s:s, s:i}", "op", "probe", "port", call->port), -1, BUBBLEWRAP_CALL_DEADLINE_MS,
                     on_answered, call);
}

void ports_probe(struct driver *driver, const char *name, int port, driver_done_fn done, void *arg)
{
    struct port_call *call = call_new(driver, name, port, arg);
    call->done = done;
    loop_post(call->bw->loop, probe_on_loop, call);
}

static void on_restored(void *arg, struct channel_message *message, const struct error *err)
{
    (void)arg;
    (void)message;
    (void)err; // a lost one shows in the exposure's probe
}

void ports_restore(struct runtime *runtime)
{
    for (size_t i = 0; i < runtime->port_count; i++)
        if (runtime->ports[i].is_ready)
            channel_call(runtime->egress, json_pack("{s:s, s:i}", "op", "publish", "port", runtime->ports[i].port),
                         runtime->ports[i].listener_fd, BUBBLEWRAP_CALL_DEADLINE_MS, on_restored, NULL);
}
