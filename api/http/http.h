// The HTTP front shared by the MCP listener (loopback TCP) and the operator's listeners (Unix socket, TLS over loopback TCP): server
// life, strict request heads, bodies with limits, answers from any thread, streams, and hang-ups of waiting
// clients.
//
// A request is given to `handle` on an HTTP thread once its body is complete. The handler answers at once, or
// keeps the pointer and answers later from any thread: exactly one http_respond, http_stream_start or
// http_upgrade a request, also after on_gone (then it only releases). While nobody answered, the connection
// is suspended and holds no thread. Handlers never block.
//
//     static void handle(void *arg, struct http_request *request)
//     {
//         const struct http_reply reply = {.status = 200, .content_type = "application/json"};
//         http_respond(request, &reply, mem_strdup("{}"), 2);
//     }
//
// What the library below lets through unseen: chunk extensions, trailers (read and dropped), and chunk lines
// that end in a bare LF. No second parser stands behind this one, so none of them can smuggle a request to
// somebody else.
#pragma once
#include "controller/base/error.h"
#include "controller/loop.h"
#include <stddef.h>
#include <sys/socket.h>

#define HTTP_HEAD_MAX_BYTES (12 * 1024)           // whole head: 431 beyond
#define HTTP_BODY_MAX_BYTES (20 * 1024 * 1024)    // one body: 413 beyond
#define HTTP_BODIES_MAX_BYTES (128 * 1024 * 1024) // all bodies in memory at once; one may take half of what it finds free: 503 beyond
#define HTTP_REFUSED_BODY_MAX_BYTES (64 * 1024) // of a refused request, kept until its answer
#define HTTP_DRAIN_MAX_BYTES                                                                                 \
    (256LL * 1024 * 1024) // of a refused body read and dropped, so that the answer arrives
// Connections of a listener, or half of the process's limit on open files if that is less. An idle one takes
// 21 KiB of memory, all of them 84 MiB at the most.
#define HTTP_CONNECTIONS_MAX 4096
#define HTTP_CONNECTIONS_FULL 3584 // from here on each new one costs the one that stands still longest its place
#define HTTP_IDLE_MS (75 * 1000)   // kept-alive connection without a request
// From the connection to its first request line, the TLS handshake included; from a request line to the head's end.
#define HTTP_HEAD_MS (20 * 1000)
#define HTTP_UPLOAD_MS (60 * 1000) // from the head's end to the body's last byte
#define HTTP_REPLY_MS (120 * 1000) // for the client to read an answer; of a stream, to take the next piece

struct http_server;
struct http_request;
struct http_stream;
struct http_upgrade;

struct http_header {
    const char *name, *value;
};

// Why a request is refused before its body is looked at.
struct http_refusal {
    int status;
    struct http_header headers[2]; // until a NULL name; texts that live as long as the server (Allow, WWW-Authenticate)
    struct error error;
};

struct http_server_options {
    struct loop *loop;
    int listen_fd;         // taken, also on failure: see http_listen_tcp and socket_listen_at
    int thread_count;      // 1 or 2
    bool has_peer;         // Unix socket: SO_PEERCRED is read for each connection
    const char *name;      // in the metrics, static; NULL: unix or tcp
    const char *tls_pem;   // a private key and its certificate: TLS 1.3 is spoken, by nothing else; NULL: plain. Read at the start only
    size_t connections_max; // 0 = HTTP_CONNECTIONS_MAX
    size_t body_max_bytes; // 0 = HTTP_BODY_MAX_BYTES
    // HTTP thread, when the head is complete and its form was found right: true to go on, false with *refusal
    // filled. May be NULL.
    bool (*check_head)(void *arg, struct http_request *request, struct http_refusal *refusal);
    void (*handle)(void *arg, struct http_request *request);
    // Words a refusal (of check_head or the server's own) as a JSON body; the result is freed by the server. body: what the
    // refused request carried, for what an answer must repeat of it; NULL where it did not come in whole or is larger than
    // HTTP_REFUSED_BODY_MAX_BYTES.
    char *(*error_body)(void *arg, int status, const struct error *err, const char *body, size_t len);
    void *arg;
};

// host: a numeric loopback or other address. port 0 = any free one. Returns the descriptor; ERROR_UNAVAILABLE
// where the port is taken, saying so.
int http_listen_tcp(const char *host, int port, struct error *err);
int http_listen_port(int fd); // the port a TCP socket is bound to, or -1

int http_server_start(const struct http_server_options *options, struct http_server **ret, struct error *err);
// Takes no new connection, answers every waiting request 503 (their on_gone run first), ends streams, joins
// the threads. Requests may still be answered afterwards: that only releases them. Never on the loop or an
// HTTP thread.
void http_server_stop(struct http_server *server);
struct http_server_stats {
    size_t connections, waiting, body_bytes;
};
void http_server_get_stats(struct http_server *server, struct http_server_stats *ret);

// ---- the request: only inside check_head and handle, except the body, which lives until the answer
// -----------------
const char *http_request_method(const struct http_request *request);
const char *http_request_path(const struct http_request *request); // decoded, without the query
// The value without blanks around it, copied; NULL if absent. Headers that HTTP lets come once only are there at
// most once; of others this is the first, and http_request_count_header tells how many there are.
char *http_request_header(const struct http_request *request, const char *name);
bool http_request_has_header(const struct http_request *request, const char *name);
size_t http_request_count_header(const struct http_request *request, const char *name);
// Is it this name, with or without a port? host: what a Host header says, or an Origin behind its scheme.
bool http_host_is(const char *host, const char *name);
// The query argument's decoded value, "" if given without one, NULL if absent. Valid inside the handler.
const char *http_request_query(const struct http_request *request, const char *name);
const char *http_request_body(const struct http_request *request, size_t *ret_len); // NUL-terminated
void http_request_drop_body(struct http_request *request); // frees it early; it counts until the answer
// What check_head found out about a request, for handle: one value, given to `release` (NULL: not at all) when the
// request ends. http_request_kept: NULL if there is none; valid inside handle.
void http_request_keep(struct http_request *request, void *value, void (*release)(void *value));
const void *http_request_kept(const struct http_request *request);
// Unix sockets only: who connected. False if not known.
bool http_request_peer(const struct http_request *request, struct ucred *ret);
uint64_t http_request_connection(const struct http_request *request); // its number in this process, from 1; 0 if not known
int http_request_socket(const struct http_request *request); // the connection, borrowed: for getsockopt only; -1 if not known
// Inside handle, before it returns unanswered: fn runs at most once, on the loop thread, when the client
// hangs up (or the server stops) before the answer. It never runs after http_respond returned on the loop
// thread.
typedef void (*http_gone_fn)(void *arg);
void http_request_on_gone(struct http_request *request, http_gone_fn fn, void *arg);

// ---- answers ----------------------------------------------------------------------------------------------
struct http_reply {
    int status;
    const char *content_type; // NULL = none
    bool must_close;
    struct http_header headers[4]; // until a NULL name
};
// body: allocated, taken; NULL with len 0 = empty.
void http_respond(struct http_request *request, const struct http_reply *reply, char *body, size_t len);

// An answer in pieces (chunked). The queue holds at most queue_max bytes. on_writable (NULL allowed) runs on
// the loop thread when a queue that refused a piece is at most half full again; on_gone when the client hung
// up or the server stops. After on_gone, and after http_stream_close, neither runs. Any thread; close exactly
// once, also after on_gone.
struct http_stream_options {
    size_t queue_max;
    void (*on_writable)(void *arg);
    http_gone_fn on_gone;
    void *arg;
};
struct http_stream *http_stream_start(struct http_request *request, const struct http_reply *reply,
                                      const struct http_stream_options *options);
// 0: queued whole. -1: nothing queued, because it does not fit now (errno EAGAIN), never can (EMSGSIZE) or
// the client is gone (EPIPE).
int http_stream_write(struct http_stream *stream, const void *bytes, size_t len);
void http_stream_close(struct http_stream *stream); // what is queued is still sent; then the answer ends
// In place of http_stream_close: a last piece of any size (allocated, taken; NULL with len 0: none) goes out behind what
// is queued. A client that has not read all of it within HTTP_REPLY_MS loses its connection.
void http_stream_end(struct http_stream *stream, char *body, size_t len);

// An answer that ends HTTP on this connection (101 with `Upgrade: protocol`): from then on it is a byte stream. Any thread.
struct http_upgrade_options {
    const char *protocol; // lives as long as the server
    // Loop thread, exactly once. fd is nonblocking, the handler's to watch, read, write and shut down until http_upgrade_close,
    // and never to be closed. early: bytes that came right behind the request, valid in the call. upgrade NULL: the client
    // has gone, or the server stops; there is no stream.
    void (*started)(void *arg, struct http_upgrade *upgrade, int fd, const char *early, size_t early_len);
    void *arg;
};
// Does the client ask for it (Connection: Upgrade, Upgrade: protocol)? Inside check_head and handle.
bool http_request_wants_upgrade(const struct http_request *request, const char *protocol);
void http_upgrade(struct http_request *request, const struct http_upgrade_options *options);
// Inside `started`: fn runs on the loop thread when the server stops, and has called http_upgrade_close when it returns.
void http_upgrade_on_stop(struct http_upgrade *upgrade, void (*fn)(void *arg), void *arg);
void http_upgrade_close(struct http_upgrade *upgrade); // loop thread, once; fd must not be watched any more
