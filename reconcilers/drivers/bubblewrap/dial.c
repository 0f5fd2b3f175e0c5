// Connections to ports inside, for the operator: made by the net helper, handed out by the egress process, checked here. The
// egress process reads what hostile programs send, so what it hands out must be what was asked for: a TCP connection to that
// port, in that sandbox's network.
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "reconcilers/drivers/bubblewrap/bubblewrap.h"
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

struct dial {
    struct bubblewrap *bw;
    char *name;
    int port;
    driver_dial_fn done;
    void *arg;
};

static void finish(struct dial *dial, int fd, const struct error *err)
{
    dial->done(dial->arg, fd, err);
    free(dial->name);
    free(dial);
}

static bool option(int fd, int name, void *value, socklen_t size)
{
    socklen_t got = size;
    return getsockopt(fd, SOL_SOCKET, name, value, &got) == 0 && got == size;
}

uint64_t dial_netns_cookie(int socket_fd)
{
    uint64_t cookie = 0;
    return option(socket_fd, SO_NETNS_COOKIE, &cookie, sizeof(cookie)) ? cookie : 0;
}

static int peer_port(int fd)
{
    struct sockaddr_storage peer = {0};
    socklen_t size = sizeof(peer);
    if (getpeername(fd, (struct sockaddr *)&peer, &size) < 0)
        return 0;
    return ntohs(peer.ss_family == AF_INET ? ((struct sockaddr_in *)&peer)->sin_port : ((struct sockaddr_in6 *)&peer)->sin6_port);
}

static bool is_what_was_asked(const struct runtime *runtime, int fd, int port)
{
    int domain = 0, type = 0, protocol = 0;
    return option(fd, SO_DOMAIN, &domain, sizeof(domain)) && (domain == AF_INET || domain == AF_INET6) && option(fd, SO_TYPE, &type, sizeof(type)) &&
           type == SOCK_STREAM && option(fd, SO_PROTOCOL, &protocol, sizeof(protocol)) && protocol == IPPROTO_TCP &&
           runtime->netns_cookie != 0 && dial_netns_cookie(fd) == runtime->netns_cookie &&
           peer_port(fd) == port;
}

static void on_connected(void *arg, struct channel_message *message, const struct error *err)
{
    struct dial *dial = arg;
    struct error wrong = ERROR_INIT;
    const struct runtime *runtime = runtime_find(dial->bw, dial->name);
    CLEANUP_CLOSE int fd = message && message->fd_count ? TAKE_FD(message->fds[0]) : -1;
    if (!err && (!runtime || runtime->is_removing))
        error_set(&wrong, ERROR_STATE, NULL, "the sandbox ended meanwhile");
    else if (!err && (fd < 0 || !is_what_was_asked(runtime, fd, dial->port) || fs_set_nonblocking(fd, true) < 0))
        error_set(&wrong, ERROR_INTERNAL, "delete the sandbox if it goes on", "the sandbox's network process handed out something else than that connection");
    if (err || wrong.code)
        finish(dial, -1, err ? err : &wrong);
    else
        finish(dial, TAKE_FD(fd), NULL);
}

static void dial_on_loop(void *arg)
{
    struct dial *dial = arg;
    struct error err = ERROR_INIT;
    struct runtime *runtime = runtime_find(dial->bw, dial->name);
    if (!runtime || runtime->state != RUNTIME_RUNNING || runtime->is_removing)
        error_set(&err, ERROR_STATE, NULL, "the sandbox is not running");
    else if (!runtime->egress)
        error_set(&err, ERROR_UNAVAILABLE, "try again in a moment", "the sandbox's network process is not running");
    if (err.code)
        finish(dial, -1, &err);
    else
        channel_call(runtime->egress, json_pack("{s:s, s:i}", "op", "connect", "port", dial->port), -1, BUBBLEWRAP_CALL_DEADLINE_MS, on_connected, dial);
}

void ports_dial(struct driver *driver, const char *name, int port, driver_dial_fn done, void *arg)
{
    struct dial *dial = mem_alloc(sizeof(*dial));
    *dial = (struct dial){.bw = (struct bubblewrap *)driver, .name = mem_strdup(name), .port = port, .done = done, .arg = arg};
    loop_post(dial->bw->loop, dial_on_loop, dial);
}
