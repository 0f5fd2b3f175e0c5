// A small HTTP/1.1 client for our own daemon: one exchange on a connection of its own, over the operator's Unix socket or
// (for `mcp`) loopback TCP. Blocking, for programs with nothing else to do meanwhile. Everything is bounded: the answer's
// head and body by size, the whole exchange by a deadline.
//
//     CLEANUP(http_answered_clear) struct http_answered answer = {0};
//     if (http_exchange(&target, &request, &answer, err) < 0) return -1;
#pragma once
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/error.h"
#include <stdbool.h>
#include <stddef.h>

#define HTTP_ANSWER_HEAD_MAX_BYTES (32 * 1024)
#define HTTP_ANSWER_BODY_MAX_BYTES (64u * 1024 * 1024)

struct http_target {
    const char *socket_path; // a Unix socket; or NULL and
    const char *host;        // an IPv4 address
    int port;
};
struct http_ask {
    const char *method, *path;       // path with its query, already escaped
    const char *content_type;        // NULL = no body
    const char *upgrade;             // NULL, or the protocol that the connection shall change to
    const char *const *headers;      // further lines "Name: value", NULL-terminated; NULL = none
    const void *body;
    size_t body_len;
    int timeout_ms;                  // of the whole exchange
};
struct http_answered {
    int status;
    char *content_type; // NULL if not stated
    char *warnings;     // its Warning headers, joined by ", "; NULL if there are none
    char *body;         // NUL-terminated
    size_t body_len;
};
void http_answered_clear(struct http_answered *answer);

// ERROR_UNREACHABLE: nothing listens there. ERROR_TIMEOUT, ERROR_UNAVAILABLE (ended in the middle), ERROR_INTERNAL (not HTTP).
int http_exchange(const struct http_target *target, const struct http_ask *ask, struct http_answered *ret, struct error *err);

// An answer that comes piece by piece, such as a watch: opened when its head is there; what its body has so far is in
// reader.body, from which the caller consumes.
struct answer_stream;
// timeout_ms: until the head is there. The caller frees *ret with answer_stream_free.
int answer_stream_open(const struct http_target *target, const struct http_ask *ask, struct answer_stream **ret, struct error *err);
void answer_stream_free(struct answer_stream **stream);
int answer_stream_fd(const struct answer_stream *stream);     // to poll for POLLIN
int answer_stream_status(const struct answer_stream *stream);
struct buffer *answer_stream_body(struct answer_stream *stream);
// Takes what is there, without waiting. 1: more may come, 0: that was all.
int answer_stream_read(struct answer_stream *stream, struct error *err);

// An exchange that turns the connection into a byte stream (ask->upgrade). *ret_fd, blocking, is the caller's, with what came of
// the stream already in *early (the caller's buffer); or -1 if the server answered something else than 101, which is *ret.
int http_upgrade_ask(const struct http_target *target, const struct http_ask *ask, int *ret_fd, struct buffer *early,
                     struct http_answered *ret, struct error *err);

// Escapes all but unreserved characters, for one segment or query value. The caller owns it.
char *http_escape(const char *text);

// ---- the reader, by itself for tests --------------------------------------------------------------------------------
enum answer_state { ANSWER_HEAD, ANSWER_LENGTH, ANSWER_CHUNK_HEAD, ANSWER_CHUNK, ANSWER_CHUNK_END, ANSWER_TRAILER, ANSWER_UNTIL_END, ANSWER_DONE };
struct answer_reader {
    enum answer_state state;
    struct buffer line; // the head or the line being read
    struct buffer body;
    size_t left;        // bytes of the body or chunk
    int status;
    char *content_type, *warnings;
    bool must_close; // the peer will not answer again on this connection
    bool may_upgrade; // 101 is the answer: what comes behind its head is in body
};
void answer_reader_init(struct answer_reader *reader);
void answer_reader_clear(struct answer_reader *reader);
int answer_reader_feed(struct answer_reader *reader, const char *bytes, size_t len, struct error *err);
int answer_reader_end(struct answer_reader *reader, struct error *err); // the peer closed
