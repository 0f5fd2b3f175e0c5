// Connections to ports inside, for the operator. sbx reaches a sandbox through ports that it publishes, so a port that has an
// exposure is dialled on the host's loopback; publishing one for a single connection would take a second each, and would open
// it to others meanwhile.
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "reconcilers/drivers/sbx/sbx.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define DIAL_MS 5000

struct dial {
    struct sbx *sbx;
    char *name;
    int port, fd;
    struct loop_source *source;
    struct loop_timer *timer;
    driver_dial_fn done;
    void *arg;
};

static void finish(struct dial *dial, const struct error *err)
{
    loop_cancel(TAKE_PTR(dial->timer));
    loop_unwatch(TAKE_PTR(dial->source));
    CLEANUP_CLOSE int fd = dial->fd;
    dial->done(dial->arg, err ? -1 : TAKE_FD(fd), err);
    free(dial->name);
    free(dial);
}

static void fail(struct dial *dial, int errno_value)
{
    struct error err = ERROR_INIT;
    error_set(&err, ERROR_UNAVAILABLE, "start the server in the sandbox, on 0.0.0.0", "port %d cannot be reached: %s", dial->port,
              strerrordesc_np(errno_value));
    finish(dial, &err);
}

static void on_late(void *arg)
{
    struct dial *dial = arg;
    dial->timer = NULL;
    fail(dial, ETIMEDOUT);
}

static void on_connected(void *arg, uint32_t events)
{
    struct dial *dial = arg;
    int wrong = 0;
    socklen_t size = sizeof(wrong);
    (void)events;
    getsockopt(dial->fd, SOL_SOCKET, SO_ERROR, &wrong, &size);
    if (wrong)
        fail(dial, wrong);
    else
        finish(dial, NULL);
}

static int find_host_port(const struct dial *dial, struct error *err)
{
    const struct runtime *runtime = sbx_runtime_find(dial->sbx, dial->name);
    if (!runtime || !sbx_runtime_runs(runtime))
        return error_set(err, ERROR_STATE, NULL, "the sandbox is not running");
    for (size_t i = 0; i < runtime->port_count; i++)
        if (runtime->ports[i].port == dial->port && !runtime->ports[i].is_pending)
            return runtime->ports[i].host_port;
    return error_set(err, ERROR_UNSUPPORTED, "expose the port first: apply an Exposure of it", "sbx reaches port %d of a sandbox only while it is exposed",
                     dial->port);
}

static void dial_on_loop(void *arg)
{
    struct dial *dial = arg;
    struct error err = ERROR_INIT;
    int host_port = find_host_port(dial, &err);
    if (host_port < 0) {
        finish(dial, &err);
        return;
    }
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)host_port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    dial->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (dial->fd < 0 || (connect(dial->fd, (struct sockaddr *)&to, sizeof(to)) < 0 && errno != EINPROGRESS)) {
        fail(dial, errno);
        return;
    }
    dial->timer = loop_after(dial->sbx->loop, DIAL_MS, on_late, dial);
    dial->source = loop_watch(dial->sbx->loop, dial->fd, EPOLLOUT, on_connected, dial);
}

void sbx_ports_dial(struct driver *driver, const char *name, int port, driver_dial_fn done, void *arg)
{
    struct dial *dial = mem_alloc(sizeof(*dial));
    *dial = (struct dial){.sbx = sbx_of(driver), .name = mem_strdup(name), .port = port, .fd = -1, .done = done, .arg = arg};
    loop_post(dial->sbx->loop, dial_on_loop, dial);
}
