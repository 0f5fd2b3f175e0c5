// One client connection of the proxy, shared by the files that each carry a part of its life:
//
//     conn.c      a head is read → CONNECT: tunnel.c, absolute form: exchange.c, anything else: refused
//     tunnel.c    dialing → 200 → the relay until its end (the first bytes judged while names are denied)
//     exchange.c  dialing → request and response pass → conn_next: the next head, or conn_linger
//     conn_refuse from anywhere before a response began: an answer, then conn_linger: the client reads it
#pragma once
#include "controller/base/buffer.h"
#include "reconcilers/egress/dial.h"
#include "reconcilers/egress/http.h"
#include "reconcilers/egress/relay.h"

#define CONN_MAX_IN_BYTES (48 * 1024) // a head, what was read behind it, or a ClientHello

struct exchange;

struct conn {
    struct relay relay;       // side 0: the client, side 1: the server
    struct deadline deadline; // of the current step
    struct buffer in;         // read from the client and not used yet
    size_t scanned;           // of `in`, for http_head_end
    struct dial *dial;
    struct exchange *exchange;
    struct endpoint to;
    bool is_head_request;
    bool is_over_limit;
};

#define conn_client(conn) (&(conn)->relay.side[0])
#define conn_server(conn) (&(conn)->relay.side[1])

void conn_refuse(struct conn *conn, int status, const char *word, const char *text);
// Flushes what is left for the client, then waits shortly for it to hang up (closing at once could destroy
// an answer that it has not read).
void conn_linger(struct conn *conn);
void conn_next(struct conn *conn);                 // reads the next head; `in` may hold one already
void conn_close(struct conn *conn, bool is_reset); // at once
void conn_step(struct conn *conn, enum deadline_kind kind, void (*expired)(struct deadline *deadline));

void tunnel_begin(struct conn *conn, const struct http_head *head, size_t head_size);
void exchange_begin(struct conn *conn, const struct http_head *head, size_t head_size);
void exchange_free(struct conn *conn);
