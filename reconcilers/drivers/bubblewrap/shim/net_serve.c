// The net helper's work: connects to a port inside for each request. A server may listen on 127.0.0.1, on every address,
// or on ::1 alone, so ::1 is tried where 127.0.0.1 refuses.
#include "controller/base/cleanup.h"
#include "controller/base/egress_protocol.h"
#include "controller/base/socket.h"
#include "controller/base/time.h"
#include "reconcilers/drivers/bubblewrap/shim/net.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>

struct pending {
    struct egress_connect request;
    int fd;
    bool is_second; // ::1 is being tried
    struct boot_time deadline;
};
struct server {
    int connector_fd;
    struct pending pending[NET_MAX_PENDING];
    size_t count;
};

static int start_connect(uint16_t port, bool is_second)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    CLEANUP_CLOSE int fd = socket(is_second ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    const struct sockaddr *at = is_second ? (struct sockaddr *)&six : (struct sockaddr *)&four;
    if (connect(fd, at, is_second ? sizeof(six) : sizeof(four)) < 0 && errno != EINPROGRESS)
        return -1;
    return TAKE_FD(fd);
}

static void answer(struct server *server, const struct egress_connect *request, int errno_value, int fd)
{
    struct egress_connected message = {.seq = request->seq, .errno_value = errno_value};
    socket_send_fds(server->connector_fd, &message, sizeof(message), &fd, errno_value ? 0 : 1);
}

static void add(struct server *server, const struct egress_connect *request)
{
    if (server->count == NET_MAX_PENDING || request->port == 0) {
        answer(server, request, request->port ? EAGAIN : EINVAL, -1);
        return;
    }
    bool is_second = false;
    int fd = start_connect(request->port, false);
    if (fd < 0 && errno == ECONNREFUSED) {
        is_second = true;
        fd = start_connect(request->port, true);
    }
    if (fd < 0) {
        answer(server, request, errno == EADDRNOTAVAIL ? ECONNREFUSED : errno, -1);
        return;
    }
    server->pending[server->count++] = (struct pending){.request = *request, .fd = fd, .is_second = is_second,
                                                        .deadline = {boot_time_now().ms + NET_CONNECT_DEADLINE_MS}};
}

static void finish(struct server *server, size_t i, int errno_value)
{
    answer(server, &server->pending[i].request, errno_value, server->pending[i].fd);
    close(server->pending[i].fd);
    server->pending[i] = server->pending[--server->count];
}

static void step(struct server *server, size_t i, short events)
{
    struct pending *pending = &server->pending[i];
    int error_value = 0;
    socklen_t size = sizeof(error_value);
    if (events == 0) {
        if (boot_time_now().ms >= pending->deadline.ms)
            finish(server, i, ETIMEDOUT);
        return;
    }
    getsockopt(pending->fd, SOL_SOCKET, SO_ERROR, &error_value, &size);
    int second_fd = error_value == ECONNREFUSED && !pending->is_second ? start_connect(pending->request.port, true) : -1;
    if (second_fd < 0) {
        finish(server, i, error_value);
        return;
    }
    close(pending->fd);
    pending->fd = second_fd;
    pending->is_second = true;
}

// False at the end of the connector.
static bool receive(struct server *server)
{
    struct egress_connect request;
    ssize_t n = socket_receive_fds(server->connector_fd, &request, sizeof(request), NULL, NULL);
    if (n == (ssize_t)sizeof(request))
        add(server, &request);
    return n != 0 && !(n < 0 && errno != EMSGSIZE);
}

void net_serve(int connector_fd)
{
    struct server server = {.connector_fd = connector_fd};
    for (;;) {
        struct pollfd polls[NET_MAX_PENDING + 1];
        for (size_t i = 0; i < server.count; i++)
            polls[i] = (struct pollfd){.fd = server.pending[i].fd, .events = POLLOUT};
        polls[server.count] = (struct pollfd){.fd = connector_fd, .events = POLLIN};
        size_t polled = server.count;
        if (poll(polls, polled + 1, polled ? 1000 : -1) < 0 && errno != EINTR)
            return;
        for (size_t i = polled; i-- > 0;) // backwards: finish() fills the hole with the last one
            step(&server, i, polls[i].revents);
        if (polls[polled].revents && !receive(&server))
            return;
    }
}
