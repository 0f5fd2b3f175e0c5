// Does something listen on a published port inside? sbx accepts on the host whether or not: what tells is that the connection
// is then given up at once. No call of sbx is needed.
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "reconcilers/drivers/sbx/sbx.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define JUDGE_MS 500 // open that long, or talking: somebody listens

struct probe {
    struct sbx *sbx;
    char *name;
    int port, fd;
    struct loop_source *source;
    struct loop_timer *timer;
    driver_done_fn done;
    void *arg;
};

static void finish(struct probe *probe, bool is_listening)
{
    struct error err = ERROR_INIT;
    loop_cancel(TAKE_PTR(probe->timer));
    loop_unwatch(TAKE_PTR(probe->source));
    if (probe->fd >= 0)
        close(TAKE_FD(probe->fd));
    if (!is_listening)
        error_set(&err, ERROR_UNAVAILABLE, "start the server in the sandbox, on 0.0.0.0", "nothing listens on port %d of the sandbox", probe->port);
    probe->done(probe->arg, is_listening ? 0 : -1, is_listening ? NULL : &err);
    free(probe->name);
    free(probe);
}

static void on_judged(void *arg)
{
    struct probe *probe = arg;
    int wrong = 0;
    socklen_t size = sizeof(wrong);
    struct sockaddr_in peer;
    socklen_t peer_size = sizeof(peer);
    probe->timer = NULL;
    getsockopt(probe->fd, SOL_SOCKET, SO_ERROR, &wrong, &size);
    finish(probe, wrong == 0 && getpeername(probe->fd, (struct sockaddr *)&peer, &peer_size) == 0);
}

static void on_readable(void *arg, uint32_t events)
{
    struct probe *probe = arg;
    char byte;
    (void)events;
    ssize_t n = recv(probe->fd, &byte, 1, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    finish(probe, n > 0);
}

static void begin(struct probe *probe, int host_port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)host_port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    probe->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe->fd < 0 || (connect(probe->fd, (struct sockaddr *)&to, sizeof(to)) < 0 && errno != EINPROGRESS)) {
        finish(probe, false);
        return;
    }
    probe->timer = loop_after(probe->sbx->loop, JUDGE_MS, on_judged, probe);
    probe->source = loop_watch(probe->sbx->loop, probe->fd, EPOLLIN | EPOLLRDHUP, on_readable, probe);
}

static void probe_on_loop(void *arg)
{
    struct probe *probe = arg;
    const struct runtime *runtime = sbx_runtime_find(probe->sbx, probe->name);
    int host_port = 0;
    for (size_t i = 0; runtime && sbx_runtime_runs(runtime) && i < runtime->port_count; i++)
        if (runtime->ports[i].port == probe->port && !runtime->ports[i].is_pending)
            host_port = runtime->ports[i].host_port;
    if (host_port)
        begin(probe, host_port);
    else
        finish(probe, false);
}

void sbx_ports_probe(struct driver *driver, const char *name, int port, driver_done_fn done, void *arg)
{
    struct probe *probe = mem_alloc(sizeof(*probe));
    *probe = (struct probe){.sbx = sbx_of(driver), .name = mem_strdup(name), .port = port, .fd = -1, .done = done, .arg = arg};
    loop_post(probe->sbx->loop, probe_on_loop, probe);
}
