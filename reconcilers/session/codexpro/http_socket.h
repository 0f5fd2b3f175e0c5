// The sockets of one http: opened close-on-exec to the one address, watched by the loop, unwatched before they are closed.
// And the header fields that matter.
#pragma once
#include "controller/curl_library.h"
#include "reconcilers/session/codexpro/http.h"
#include "controller/base/guest_protocol.h"
#include <sys/queue.h>

#define HTTP_BODY_MAX_BYTES GUEST_MESSAGE_MAX_BYTES

struct http_sockets {
    struct loop *loop;
    int port;
    void (*ready)(void *arg, int fd, int events /* CURL_CSELECT_* */);
    void *arg;
    LIST_HEAD(, http_socket) watched;
};
void http_sockets_init(struct http_sockets *sockets, struct loop *loop, int port, void (*ready)(void *arg, int fd, int events), void *arg);
void http_sockets_bind(struct http_sockets *sockets, const struct curl_library *curl, CURL *easy); // this request uses them
void http_sockets_set(struct http_sockets *sockets, int fd, int what /* CURL_POLL_* */);
void http_sockets_close(struct http_sockets *sockets); // unwatches what is left

// One line of a head: the status line, or a field.
void http_answer_field(struct http_answer *answer, const char *bytes, size_t len);
// Is the line a Transfer-Encoding that compresses?
bool http_field_is_coding(const char *bytes, size_t len);
