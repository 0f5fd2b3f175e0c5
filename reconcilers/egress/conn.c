#include "reconcilers/egress/conn.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "reconcilers/egress/listener.h"
#include "reconcilers/egress/proxy.h"
#include "reconcilers/egress/rewrite.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

// Connections above the limit that still get a 503 instead of a reset.
#define REFUSAL_PLACES 16

static void relay_ended(struct relay *relay)
{
    struct conn *conn = CONTAINER_OF(relay, struct conn, relay);
    dial_cancel(TAKE_PTR(conn->dial));
    exchange_free(conn);
    deadline_stop(&conn->deadline);
    buffer_free(&conn->in);
    relay->egress->connection_count--;
    loop_retire(&relay->egress->loop, conn);
}

void conn_close(struct conn *conn, bool is_reset)
{
    relay_stop(&conn->relay, is_reset);
}

void conn_step(struct conn *conn, enum deadline_kind kind, void (*expired)(struct deadline *deadline))
{
    conn->deadline.expired = expired;
    deadline_start(&conn->relay.egress->loop, &conn->deadline, kind);
}

static struct conn *conn_of_client(struct watch *watch)
{
    return CONTAINER_OF(watch, struct conn, relay.side[0].watch);
}

static void linger_over(struct deadline *deadline)
{
    conn_close(CONTAINER_OF(deadline, struct conn, deadline), false);
}

static void linger_ready(struct watch *watch, uint32_t events)
{
    struct conn *conn = conn_of_client(watch);
    struct relay_side *client = conn_client(conn);
    if (outbox_flush(conn->relay.egress, &client->out, watch->fd) < 0) {
        conn_close(conn, true);
        return;
    }
    if (outbox_is_empty(&client->out) && !client->is_shut) {
        client->is_shut = true;
        shutdown(watch->fd, SHUT_WR);
    }
    watch_want(&conn->relay.egress->loop, watch, EPOLLIN | (client->is_shut ? 0 : EPOLLOUT));
    if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        return;
    ssize_t len = recv(watch->fd, egress_scratch, SCRATCH_SMALL_BYTES, MSG_DONTWAIT);
    if (len == 0 || (len < 0 && errno != EAGAIN && errno != EINTR))
        conn_close(conn, false);
}

void conn_linger(struct conn *conn)
{
    struct watch *watch = &conn_client(conn)->watch;
    buffer_free(&conn->in);
    watch->ready = linger_ready;
    conn_step(conn, DEADLINE_LINGER, linger_over);
    watch_want(&conn->relay.egress->loop, watch, EPOLLIN | EPOLLOUT);
}

void conn_refuse(struct conn *conn, int status, const char *word, const char *text)
{
    CLEANUP(buffer_free) struct buffer answer = BUFFER_INIT(REWRITE_MAX_BYTES);
    struct egress *egress = conn->relay.egress;
    rewrite_refusal(status, word, text, !conn->is_head_request, &answer);
    watch_close(&egress->loop, &conn_server(conn)->watch);
    outbox_clear(egress, &conn_server(conn)->out);
    if (outbox_send(egress, &conn_client(conn)->out, conn_client(conn)->watch.fd, answer.data, answer.len) < 0)
        conn_close(conn, true);
    else
        conn_linger(conn);
}

static void refuse_head(struct conn *conn, const char *problem)
{
    char text[512];
    snprintf(text, sizeof(text), "The request cannot be forwarded: %s. Correct the request.", problem);
    conn_refuse(conn, 400, NULL, text);
}

static void take_head(struct conn *conn, size_t size)
{
    struct http_head head;
    if (http_parse_request(conn->in.data, size, &head) < 0) {
        refuse_head(conn, head.problem);
        return;
    }
    conn->is_head_request = head.method.len == 4 && http_text_is(head.method, "HEAD");
    deadline_stop(&conn->deadline);
    watch_want(&conn->relay.egress->loop, &conn_client(conn)->watch, 0);
    if (conn->is_over_limit)
        conn_refuse(conn, 503, NULL,
                    "This sandbox has too many connections open. Close some, or wait and try again.");
    else if (head.method.len == 7 && memcmp(head.method.at, "CONNECT", 7) == 0)
        tunnel_begin(conn, &head, size);
    else
        exchange_begin(conn, &head, size);
}

static void head_expired(struct deadline *deadline)
{
    struct conn *conn = CONTAINER_OF(deadline, struct conn, deadline);
    if (conn->in.len)
        conn_refuse(conn, 408, NULL, "The request head did not arrive within 30 seconds. Send it again.");
    else
        conn_close(conn, false); // an idle kept-alive connection
}

// Uses a complete head if there is one.
static void look_for_head(struct conn *conn)
{
    const char *problem = NULL;
    ssize_t size = http_head_end(buffer_text(&conn->in), conn->in.len, &conn->scanned, &problem);
    if (size < 0)
        refuse_head(conn, problem);
    else if (size > 0)
        take_head(conn, (size_t)size);
}

static void head_ready(struct watch *watch, uint32_t events)
{
    struct conn *conn = conn_of_client(watch);
    bool is_first = conn->in.len == 0;
    (void)events;
    ssize_t len = recv(watch->fd, egress_scratch, HTTP_MAX_HEAD_BYTES - conn->in.len, MSG_DONTWAIT);
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (len <= 0) {
        conn_close(conn, len < 0);
        return;
    }
    buffer_append(&conn->in, egress_scratch, (size_t)len);
    if (is_first)
        conn_step(conn, DEADLINE_HEAD, head_expired);
    look_for_head(conn);
}

void conn_next(struct conn *conn)
{
    struct watch *watch = &conn_client(conn)->watch;
    conn->scanned = 0;
    conn->is_head_request = false;
    if (!conn->in.len)
        buffer_free(&conn->in);
    watch->ready = head_ready;
    conn_step(conn, DEADLINE_HEAD, head_expired);
    watch_want(&conn->relay.egress->loop, watch, EPOLLIN);
    look_for_head(conn);
}

static void conn_accepted(struct listener *listener, int fd)
{
    struct egress *egress = listener->egress;
    if (egress->connection_count >= egress->connection_max + REFUSAL_PLACES) {
        socket_set_reset(fd);
        close(fd);
        return;
    }
    struct conn *conn = mem_alloc(sizeof(*conn));
    *conn = (struct conn){.relay = {.egress = egress, .ended = relay_ended}, .in = BUFFER_INIT(CONN_MAX_IN_BYTES)};
    conn->is_over_limit = egress->connection_count >= egress->connection_max;
    conn_client(conn)->watch.fd = fd;
    conn_server(conn)->watch.fd = -1;
    egress->connection_count++;
    socket_set_nodelay(fd);
    conn_next(conn);
}

int proxy_open(struct egress *egress, struct error *err)
{
    struct listener *listener = mem_alloc(sizeof(*listener));
    if (listener_open(listener, egress, egress->options.proxy_fd, conn_accepted, err) < 0) {
        free(listener);
        return error_context(err, "--proxy-fd");
    }
    egress->proxy = listener;
    return 0;
}

void proxy_close(struct egress *egress)
{
    listener_close(egress->proxy);
    free(TAKE_PTR(egress->proxy));
}
