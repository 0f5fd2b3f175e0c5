#include "controller/base/cleanup.h"
#include "reconcilers/egress/conn.h"
#include "reconcilers/egress/hello.h"
#include <stdio.h>
#include <sys/socket.h>

enum alert { ALERT_ACCESS_DENIED = 49, ALERT_DECODE_ERROR = 50, ALERT_MISSING_EXTENSION = 109 };

static struct conn *conn_of(struct relay *relay)
{
    return CONTAINER_OF(relay, struct conn, relay);
}

// A fatal TLS alert: a plain-text refusal inside a tunnel would show as "wrong version number". Sent only while the
// server has not spoken, which it does not before the ClientHello.
static enum relay_verdict refuse(struct conn *conn, enum alert alert)
{
    const unsigned char record[] = {21, 3, 3, 0, 2, 2, (unsigned char)alert};
    struct relay_side *client = conn_client(conn);
    if (outbox_is_empty(&client->out) &&
        send(client->watch.fd, record, sizeof(record), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        socket_set_reset(client->watch.fd);
    return RELAY_REFUSE;
}

static enum relay_verdict judge_hello(struct conn *conn, const struct hello *hello)
{
    const struct name_list *denied = &conn->relay.egress->options.denied;
    if (hello->kind == HELLO_BROKEN)
        return refuse(conn, ALERT_DECODE_ERROR);
    if (hello->kind == HELLO_TLS && name_list_match(denied, hello->name))
        return refuse(conn, ALERT_ACCESS_DENIED);
    // A bare address says nothing about whom it serves, so that TLS to it must name its server openly.
    if (hello->kind == HELLO_TLS && conn->to.is_address && (!hello->name[0] || hello->has_encrypted_hello))
        return refuse(conn, ALERT_MISSING_EXTENSION);
    return RELAY_PASS;
}

static void hello_expired(struct deadline *deadline)
{
    conn_close(CONTAINER_OF(deadline, struct conn, deadline), true);
}

static enum relay_verdict judge(struct relay *relay, const char **bytes, size_t *len, bool is_end)
{
    struct conn *conn = conn_of(relay);
    buffer_append(&conn->in, *bytes, *len); // fits: the relay reads little at once while there is a judge
    struct hello hello = hello_parse((const unsigned char *)buffer_text(&conn->in), conn->in.len);
    if (hello.kind == HELLO_INCOMPLETE && !is_end) {
        if (conn->in.len && !conn->deadline.next)
            conn_step(conn, DEADLINE_HEAD, hello_expired);
        return RELAY_WAIT;
    }
    if (hello.kind == HELLO_INCOMPLETE && conn->in.len)
        hello.kind = HELLO_BROKEN;
    *bytes = conn->in.data;
    *len = conn->in.len;
    return judge_hello(conn, &hello);
}

static void judged(struct relay *relay)
{
    struct conn *conn = conn_of(relay);
    deadline_stop(&conn->deadline);
    buffer_free(&conn->in);
}

static void tunnel_dialed(void *data, int fd, const struct dial_failure *failure)
{
    static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    struct conn *conn = data;
    struct relay *relay = &conn->relay;
    conn->dial = NULL;
    if (failure) {
        conn_refuse(conn, failure->status, failure->word, failure->text);
        return;
    }
    conn_server(conn)->watch.fd = fd;
    if (outbox_send(relay->egress, &conn_client(conn)->out, conn_client(conn)->watch.fd, established,
                    sizeof(established) - 1) < 0) {
        conn_close(conn, true);
        return;
    }
    CLEANUP(buffer_free) struct buffer early = conn->in;
    conn->in = (struct buffer)BUFFER_INIT(CONN_MAX_IN_BYTES);
    if (relay->egress->options.denied.count) {
        relay->judge = judge;
        relay->judged = judged;
    }
    relay_start(relay);
    if (early.len)
        relay_feed(relay, early.data, early.len);
}

void tunnel_begin(struct conn *conn, const struct http_head *head, size_t head_size)
{
    const char *problem = NULL;
    char text[512];
    if (head->is_chunked || head->length)
        problem = "a CONNECT request has no body";
    else if (endpoint_parse(head->target.at, head->target.len, 0, &conn->to, &problem) == 0)
        problem = NULL;
    if (problem) {
        snprintf(text, sizeof(text), "The CONNECT request cannot be followed: %s. Write CONNECT host:port.", problem);
        conn_refuse(conn, 400, NULL, text);
        return;
    }
    buffer_consume(&conn->in, head_size); // what is left are the tunnel's first bytes
    conn->dial = dial_new(conn->relay.egress, &conn->to, tunnel_dialed, conn);
    dial_run(conn->dial);
}
