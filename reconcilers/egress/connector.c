#include "reconcilers/egress/connector.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/base/socket.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

struct connector_request {
    struct connector_request *next; // in the queue
    struct egress *egress;
    struct deadline deadline;
    uint32_t seq;
    uint16_t port;
    bool is_sent;
    connector_done done;
    void *data;
};

// A request that was sent keeps its place until it is answered, also when nobody waits for it any more.
struct unanswered {
    uint32_t seq; // 0: free
    uint16_t port;
    struct connector_request *request; // NULL: forgotten
};

struct connector {
    struct egress *egress;
    struct watch watch;
    struct connector_request *first, **last;
    struct unanswered unanswered[CONNECTOR_MAX_UNANSWERED];
    uint32_t last_seq;
    uint64_t netns_cookie;
};

static int netns_cookie(int fd, uint64_t *ret)
{
    socklen_t size = sizeof(*ret);
    return getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, ret, &size);
}

static int socket_option(int fd, int option)
{
    int value = -1;
    socklen_t size = sizeof(value);
    return getsockopt(fd, SOL_SOCKET, option, &value, &size) < 0 ? -1 : value;
}

static uint16_t peer_port(int fd)
{
    struct sockaddr_storage peer;
    socklen_t size = sizeof(peer);
    if (getpeername(fd, (struct sockaddr *)&peer, &size) < 0)
        return 0;
    return ntohs(peer.ss_family == AF_INET ? ((struct sockaddr_in *)&peer)->sin_port
                                           : ((struct sockaddr_in6 *)&peer)->sin6_port);
}

static bool is_what_was_asked(const struct connector *connector, int fd, uint16_t port)
{
    uint64_t cookie;
    int domain = socket_option(fd, SO_DOMAIN);
    return (domain == AF_INET || domain == AF_INET6) && socket_option(fd, SO_TYPE) == SOCK_STREAM &&
           socket_option(fd, SO_PROTOCOL) == IPPROTO_TCP && socket_option(fd, SO_ACCEPTCONN) == 0 &&
           netns_cookie(fd, &cookie) == 0 && cookie == connector->netns_cookie && peer_port(fd) == port;
}

static void unlink_request(struct connector *connector, struct connector_request *request)
{
    for (struct connector_request **at = &connector->first; *at; at = &(*at)->next)
        if (*at == request) {
            *at = request->next;
            if (connector->last == &request->next)
                connector->last = at;
            return;
        }
}

static struct unanswered *find_unanswered(struct connector *connector, uint32_t seq)
{
    for (size_t i = 0; i < CONNECTOR_MAX_UNANSWERED; i++)
        if (connector->unanswered[i].seq == seq)
            return &connector->unanswered[i];
    return NULL;
}

void connector_forget(struct connector_request *request)
{
    if (!request)
        return;
    struct connector *connector = request->egress->connector;
    deadline_stop(&request->deadline);
    if (request->is_sent)
        find_unanswered(connector, request->seq)->request = NULL;
    else
        unlink_request(connector, request);
    loop_retire(&request->egress->loop, request);
}

static void finish(struct connector_request *request, int fd, int errno_value)
{
    connector_done done = request->done;
    void *data = request->data;
    connector_forget(request);
    done(data, fd, errno_value);
}

static void request_expired(struct deadline *deadline)
{
    finish(CONTAINER_OF(deadline, struct connector_request, deadline), -1, ETIMEDOUT);
}

// The helper is gone: everything that waits for it fails, the proxy goes on.
static void hung_up(struct connector *connector)
{
    watch_close(&connector->egress->loop, &connector->watch);
    for (size_t i = 0; i < CONNECTOR_MAX_UNANSWERED; i++) {
        if (connector->unanswered[i].request)
            finish(connector->unanswered[i].request, -1, EPIPE);
        connector->unanswered[i].seq = 0;
    }
    while (connector->first)
        finish(connector->first, -1, EPIPE);
}

static int send_request(struct connector *connector, struct connector_request *request, struct unanswered *place)
{
    struct egress_connect message = {.seq = request->seq, .port = request->port};
    if (send(connector->watch.fd, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return -1;
    unlink_request(connector, request);
    *place = (struct unanswered){request->seq, request->port, request};
    request->is_sent = true;
    return 0;
}

static void send_queued(struct connector *connector)
{
    struct unanswered *place;
    bool is_full = false;
    while (connector->watch.fd >= 0 && connector->first && (place = find_unanswered(connector, 0))) {
        if (send_request(connector, connector->first, place) == 0)
            continue;
        is_full = errno == EAGAIN || errno == ENOBUFS;
        if (!is_full)
            hung_up(connector);
        break;
    }
    watch_want(&connector->egress->loop, &connector->watch, EPOLLIN | (is_full ? EPOLLOUT : 0));
}

static void take_answer(struct connector *connector, const struct egress_connected *answer, int received)
{
    CLEANUP_CLOSE int fd = received;
    struct unanswered *place = answer->seq ? find_unanswered(connector, answer->seq) : NULL;
    if (!place)
        return;
    struct connector_request *request = place->request;
    uint16_t port = place->port;
    bool is_good = answer->errno_value == 0 && fd >= 0 && is_what_was_asked(connector, fd, port);
    if (request)
        finish(request, is_good ? TAKE_FD(fd) : -1, answer->errno_value);
    place->seq = 0;
}

static void connector_ready(struct watch *watch, uint32_t events)
{
    struct connector *connector = CONTAINER_OF(watch, struct connector, watch);
    struct egress_connected answer;
    int fd = -1;
    size_t fd_count = 1;
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        ssize_t len = socket_receive_fds(watch->fd, &answer, sizeof(answer), &fd, &fd_count);
        if (len == sizeof(answer)) {
            take_answer(connector, &answer, fd_count ? fd : -1);
        } else if (len >= 0 || errno != EAGAIN) { // its end, or not our protocol
            if (len > 0 && fd_count)
                close(fd);
            hung_up(connector);
            return;
        }
    }
    send_queued(connector);
}

static void asked_in_vain(struct deadline *deadline);

int connector_open(struct egress *egress, struct error *err)
{
    struct connector *connector = mem_alloc(sizeof(*connector));
    *connector = (struct connector){.egress = egress, .watch = {.fd = egress->options.connector_fd}};
    connector->last = &connector->first;
    connector->watch.ready = connector_ready;
    if (netns_cookie(egress->options.proxy_fd, &connector->netns_cookie) < 0) {
        int code = errno;
        free(connector);
        return error_errno(err, code, "Linux 5.14 or later is needed", "cannot tell the sandbox's network namespace");
    }
    egress->connector = connector;
    watch_want(&egress->loop, &connector->watch, EPOLLIN);
    return 0;
}

void connector_close(struct egress *egress)
{
    hung_up(egress->connector);
    free(TAKE_PTR(egress->connector));
}

struct connector_request *connector_ask(struct egress *egress, uint16_t port, connector_done done, void *data)
{
    struct connector *connector = egress->connector;
    struct connector_request *request = mem_alloc(sizeof(*request));
    if (++connector->last_seq == 0)
        connector->last_seq = 1; // 0 marks a free place
    *request = (struct connector_request){
        .egress = egress, .seq = connector->last_seq, .port = port, .done = done, .data = data};
    request->deadline.expired = request_expired;
    deadline_start(&egress->loop, &request->deadline, DEADLINE_DIAL);
    *connector->last = request;
    connector->last = &request->next;
    if (connector->watch.fd >= 0) {
        watch_want(&egress->loop, &connector->watch, EPOLLIN | EPOLLOUT); // sent from the loop
    } else {
        request->deadline.expired = asked_in_vain;
        deadline_start(&egress->loop, &request->deadline, DEADLINE_SOON);
    }
    return request;
}

// The helper was gone already when this was asked.
static void asked_in_vain(struct deadline *deadline)
{
    finish(CONTAINER_OF(deadline, struct connector_request, deadline), -1, EPIPE);
}
