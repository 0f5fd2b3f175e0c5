#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "reconcilers/egress/conn.h"
#include "reconcilers/egress/rewrite.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

// One request and its response. Each request gets a connection of its own to the server, so that nothing a server sends
// can be taken for the answer to another request; the client's connection is kept.
struct exchange {
    struct buffer head;     // the request's, until the server is connected; then the response's while it arrives
    size_t scanned;
    struct http_body request, response;
    bool has_response;      // its final head was forwarded
    bool is_request_broken; // the server takes no more of it
    bool is_kept_alive;     // the client's connection, afterwards
    int minor_version;      // the client's
};

static void settle(struct conn *conn);

void exchange_free(struct conn *conn)
{
    if (!conn->exchange)
        return;
    buffer_free(&conn->exchange->head);
    free(TAKE_PTR(conn->exchange));
}

// Ends it with an answer of ours where that is still possible.
static void fail(struct conn *conn, int status, const char *format, const char *detail)
{
    char text[512];
    bool has_response = conn->exchange->has_response;
    exchange_free(conn);
    if (has_response) {
        conn_close(conn, true);
        return;
    }
    snprintf(text, sizeof(text), format, conn->to.host, detail);
    conn_refuse(conn, status, NULL, text);
}

#define BAD_ANSWER "The answer of %s cannot be forwarded: %s. It is the server's fault; another address may work."

static void took_too_long(struct deadline *deadline)
{
    struct conn *conn = CONTAINER_OF(deadline, struct conn, deadline);
    fail(conn, 504, "%s did not answer in time%s. Try again later.", "");
}

static void finish(struct conn *conn)
{
    bool may_go_on = conn->exchange->is_kept_alive && conn->exchange->request.is_done;
    watch_close(&conn->relay.egress->loop, &conn_server(conn)->watch);
    outbox_clear(conn->relay.egress, &conn_server(conn)->out);
    exchange_free(conn);
    if (may_go_on)
        conn_next(conn);
    else
        conn_linger(conn);
}

static int send_to_client(struct conn *conn, const char *bytes, size_t len)
{
    struct relay_side *client = conn_client(conn);
    if (outbox_send(conn->relay.egress, &client->out, client->watch.fd, bytes, len) == 0)
        return 0;
    conn_close(conn, true);
    return -1;
}

// Bytes of the client behind the head: the body goes on, what follows it is the next request's. -1: it has ended.
static int take_from_client(struct conn *conn, const char *bytes, size_t len)
{
    struct exchange *exchange = conn->exchange;
    struct relay_side *server = conn_server(conn);
    size_t of_body = http_body_take(&exchange->request, bytes, len);
    if (exchange->request.problem) {
        fail(conn, 400, "The request to %s cannot be forwarded: %s. Correct it.", exchange->request.problem);
        return -1;
    }
    if (outbox_send(conn->relay.egress, &server->out, server->watch.fd, bytes, of_body) < 0)
        exchange->is_request_broken = true; // perhaps it has answered already: read that
    if (exchange->request.is_done)
        buffer_append(&conn->in, bytes + of_body, len - of_body);
    return 0;
}

static int take_body(struct conn *conn, const char *bytes, size_t len)
{
    struct exchange *exchange = conn->exchange;
    size_t of_body = http_body_take(&exchange->response, bytes, len);
    if (exchange->response.problem) {
        conn_close(conn, true); // the client must not take it for complete
        return -1;
    }
    return send_to_client(conn, bytes, of_body);
}

// Whether the client can read the body as the server framed it.
static const char *response_problem(const struct exchange *exchange, const struct http_head *head)
{
    if (head->status == 101)
        return "it switches protocols, which was not asked for";
    if (head->is_chunked && exchange->minor_version == 0)
        return "it is chunked, which HTTP/1.0 does not have";
    return NULL;
}

// Forwards one complete response head of `size` bytes at the front of exchange->head. -1: the exchange has ended.
static int forward_head(struct conn *conn, size_t size)
{
    CLEANUP(buffer_free) struct buffer rewritten = BUFFER_INIT(REWRITE_MAX_BYTES);
    struct exchange *exchange = conn->exchange;
    struct http_head head;
    const char *problem;
    if (http_parse_response(exchange->head.data, size, &head) < 0)
        problem = head.problem;
    else
        problem = response_problem(exchange, &head);
    if (problem) {
        fail(conn, 502, BAD_ANSWER, problem);
        return -1;
    }
    if (head.status >= 200) {
        exchange->has_response = true;
        exchange->response = http_response_body(&head, conn->is_head_request);
        exchange->is_kept_alive &= exchange->response.kind != HTTP_BODY_UNTIL_CLOSE;
    } else if (exchange->minor_version == 0) {
        return 0; // interim answers are nothing for HTTP/1.0
    }
    rewrite_response(&head, exchange->is_kept_alive, &rewritten);
    return send_to_client(conn, rewritten.data, rewritten.len);
}

static int take_from_server(struct conn *conn, const char *bytes, size_t len)
{
    struct exchange *exchange = conn->exchange;
    const char *problem = NULL;
    if (exchange->has_response)
        return take_body(conn, bytes, len);
    buffer_append(&exchange->head, bytes, len);
    while (exchange->head.len && !exchange->has_response) {
        ssize_t size = http_head_end(exchange->head.data, exchange->head.len, &exchange->scanned, &problem);
        if (size < 0) {
            fail(conn, 502, BAD_ANSWER, problem);
            return -1;
        }
        if (size == 0)
            return 0;
        if (forward_head(conn, (size_t)size) < 0)
            return -1;
        buffer_consume(&exchange->head, (size_t)size);
        exchange->scanned = 0;
    }
    CLEANUP(buffer_free) struct buffer rest = exchange->head;
    exchange->head = (struct buffer)BUFFER_INIT(2 * HTTP_MAX_HEAD_BYTES);
    return rest.len ? take_body(conn, rest.data, rest.len) : 0;
}

static int server_ended(struct conn *conn, bool is_error)
{
    struct exchange *exchange = conn->exchange;
    if (!exchange->has_response) {
        fail(conn, 502, "%s closed the connection without an answer%s. Try again later.", "");
        return -1;
    }
    if (exchange->response.kind != HTTP_BODY_UNTIL_CLOSE || is_error) {
        conn_close(conn, true);
        return -1;
    }
    exchange->response.is_done = true;
    return 0;
}

static int read_server(struct conn *conn)
{
    size_t most = conn->exchange->has_response ? egress_read_size(conn->relay.egress) : HTTP_MAX_HEAD_BYTES;
    ssize_t len = recv(conn_server(conn)->watch.fd, egress_scratch, most, MSG_DONTWAIT);
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return len > 0 ? take_from_server(conn, egress_scratch, (size_t)len) : server_ended(conn, len < 0);
}

static void server_ready(struct watch *watch, uint32_t events)
{
    struct conn *conn = CONTAINER_OF(watch, struct conn, relay.side[1].watch);
    if (outbox_flush(conn->relay.egress, &conn_server(conn)->out, watch->fd) < 0) {
        outbox_clear(conn->relay.egress, &conn_server(conn)->out);
        conn->exchange->is_request_broken = true;
    }
    bool may_read = outbox_is_empty(&conn_client(conn)->out) && !conn->exchange->response.is_done;
    if (may_read && events & (EPOLLIN | EPOLLHUP | EPOLLERR) && read_server(conn) < 0)
        return;
    settle(conn);
}

static int read_client(struct conn *conn)
{
    ssize_t len = recv(conn_client(conn)->watch.fd, egress_scratch, SCRATCH_SMALL_BYTES, MSG_DONTWAIT);
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (len > 0)
        return take_from_client(conn, egress_scratch, (size_t)len);
    conn_close(conn, true); // in the middle of its request
    return -1;
}

static bool reads_client(const struct conn *conn)
{
    const struct exchange *exchange = conn->exchange;
    return !exchange->request.is_done && !exchange->is_request_broken && outbox_is_empty(&conn_server(conn)->out);
}

static void client_ready(struct watch *watch, uint32_t events)
{
    struct conn *conn = CONTAINER_OF(watch, struct conn, relay.side[0].watch);
    bool is_gone = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);
    if (outbox_flush(conn->relay.egress, &conn_client(conn)->out, watch->fd) < 0 || (is_gone && !reads_client(conn))) {
        conn_close(conn, true); // nobody is left to answer
        return;
    }
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && reads_client(conn) && read_client(conn) < 0)
        return;
    settle(conn);
}

static void settle(struct conn *conn)
{
    struct exchange *exchange = conn->exchange;
    bool has_output = !outbox_is_empty(&conn_client(conn)->out);
    if (exchange->response.is_done && !has_output) {
        finish(conn);
        return;
    }
    uint32_t of_client = (reads_client(conn) ? EPOLLIN : EPOLLRDHUP) | (has_output ? EPOLLOUT : 0);
    uint32_t of_server = (!has_output && !exchange->response.is_done ? EPOLLIN : 0) |
                         (outbox_is_empty(&conn_server(conn)->out) ? 0 : EPOLLOUT);
    watch_want(&conn->relay.egress->loop, &conn_client(conn)->watch, of_client);
    watch_want(&conn->relay.egress->loop, &conn_server(conn)->watch, of_server);
    conn_step(conn, exchange->has_response ? DEADLINE_IDLE : DEADLINE_ANSWER, took_too_long);
}

static void exchange_dialed(void *data, int fd, const struct dial_failure *failure)
{
    struct conn *conn = data;
    struct relay_side *server = conn_server(conn);
    conn->dial = NULL;
    if (failure) {
        exchange_free(conn);
        conn_refuse(conn, failure->status, failure->word, failure->text);
        return;
    }
    server->watch = (struct watch){.fd = fd, .ready = server_ready};
    conn_client(conn)->watch.ready = client_ready;
    CLEANUP(buffer_free) struct buffer head = conn->exchange->head;
    conn->exchange->head = (struct buffer)BUFFER_INIT(2 * HTTP_MAX_HEAD_BYTES);
    if (outbox_send(conn->relay.egress, &server->out, fd, head.data, head.len) < 0)
        conn->exchange->is_request_broken = true;
    CLEANUP(buffer_free) struct buffer early = conn->in;
    conn->in = (struct buffer)BUFFER_INIT(CONN_MAX_IN_BYTES);
    if (early.len && take_from_client(conn, early.data, early.len) < 0)
        return;
    settle(conn);
}

static bool keeps_alive(const struct http_head *head)
{
    return !head->says_close && (head->minor_version == 1 || head->says_keep_alive);
}

void exchange_begin(struct conn *conn, const struct http_head *head, size_t head_size)
{
    const char *problem;
    struct http_text path;
    char text[512];
    if (rewrite_split_target(head->target, &conn->to, &path, &problem) < 0) {
        snprintf(text, sizeof(text), "The request cannot be forwarded: %s.", problem);
        conn_refuse(conn, 400, NULL, text);
        return;
    }
    struct exchange *exchange = conn->exchange = mem_alloc(sizeof(*exchange));
    *exchange = (struct exchange){.head = BUFFER_INIT(REWRITE_MAX_BYTES),
                                  .request = http_body_of_request(head),
                                  .is_kept_alive = keeps_alive(head),
                                  .minor_version = head->minor_version};
    rewrite_request(head, &conn->to, path, &exchange->head);
    buffer_consume(&conn->in, head_size);
    conn->dial = dial_new(conn->relay.egress, &conn->to, exchange_dialed, conn);
    dial_run(conn->dial);
}
