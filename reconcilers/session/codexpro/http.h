// HTTP/1.1 to one server on 127.0.0.1, on the loop: no thread, no polling, any number of requests at once. libcurl's
// multi interface does the protocol; here are the bounds, the sockets and the words.
//
// One multi handle a session, because its connections carry that session's token to a port that another sandbox may
// have next. One connection a request: libcurl sends a request again by itself when a kept connection turns out to be
// dead, and a tool must never run twice. No proxy whatever the environment says, no redirect, no cookie, no other protocol,
// no decompression, no signals, sockets close-on-exec and only to the one address.
//
// The server is untrusted: head and body are bounded, and a deadline ends every exchange. Loop thread only.
#pragma once
#include "controller/base/error.h"
#include "controller/loop.h"
#include <stddef.h>

#define HTTP_HEAD_MAX_BYTES (64 * 1024) // header fields, trailers and interim responses of one exchange together
#define HTTP_TYPE_BYTES 128
#define HTTP_SESSION_BYTES 256

struct http;
struct http_exchange;
// libcurl is loaded if it is not yet: ERROR_UNSUPPORTED. token: copied, wiped when freed; every request carries it.
int http_new(struct loop *loop, int port, const char *token, struct http **ret, struct error *err);
void http_close(struct http *http); // no event comes afterwards; again is fine
void http_free(struct http *http);  // not from inside an event; NULL allowed

struct http_answer {
    int status;                           // 0: there was no answer
    char content_type[HTTP_TYPE_BYTES];   // lower case, without parameters; "" = none
    char session_id[HTTP_SESSION_BYTES];  // Mcp-Session-Id; "" = none or unusable
    int64_t retry_after_s;                // -1 = none
    const char *failure;                  // words, when there was no whole answer: "its port does not accept connections"
    bool is_late;                         // the failure is the deadline
};
struct http_events {
    // Bytes of the body, head known. False: enough (the exchange is done as if the body had ended). May not call into http.
    bool (*body)(void *arg, const struct http_answer *head, const char *bytes, size_t len);
    void (*done)(void *arg, const struct http_answer *answer); // once, never from inside http_send; may close the http
};
struct http_request {
    const char *method, *path;
    const char *session_id; // Mcp-Session-Id, or NULL
    const char *body;       // JSON; NULL = none. Borrowed until the exchange is done or abandoned
    size_t body_len;
    int64_t deadline_ms;
};
// Never fails: what cannot be done is told by `done`. NULL after http_close: no event comes.
struct http_exchange *http_send(struct http *http, const struct http_request *request, const struct http_events *events, void *arg);
void http_abandon(struct http_exchange *exchange); // no event afterwards; not from inside its events
