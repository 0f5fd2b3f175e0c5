// What the files of api/http share. Not for others.
//
// Life of a request: made at its request line, one reference for the library (dropped when the library
// completes the request), one for the handler once it was handed over (dropped by its answer), one for the
// hang-up watch. Who changes what: `lock` guards everything under it; the rest belongs to the connection's
// HTTP thread.
#pragma once
#include "api/http/http.h"
#include "controller/base/buffer.h"
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#define DEADLINE_NONE INT64_MAX
// The library's memory for one connection: a head of the largest size, what it notes about 100 fields, the
// answer's head.
#define HTTP_MEMORY_BYTES (20 * 1024)

enum http_phase {
    HTTP_FRESH,        // no request line yet
    HTTP_IDLE,         // between two requests
    HTTP_READING_HEAD, // from the request line on
    HTTP_READING_BODY,
    HTTP_WORKING, // a handler has its request, or a stream is its answer: not to be evicted
    HTTP_REPLYING,
    HTTP_CUT, // shut down; the library has not closed it yet
};
// One socket. The sweep cuts it when its deadline passes.
struct http_connection {
    TAILQ_ENTRY(http_connection) link; // server->lock: in server->waiting or ->working
    enum http_phase phase;             // server->lock
    int fd;
    uint64_t number;
    _Atomic int64_t deadline_ms; // boot time
};

struct http_server {
    struct MHD_Daemon *daemon;
    struct http_server_options options;
    bool is_tls;
    size_t connections_max, connections_full; // what the limit on open files leaves room for
    _Atomic int refs; // one for the owner, one a request
    _Atomic size_t body_bytes;
    struct loop_timer *sweep; // loop thread
    struct http_upgrade *upgrades; // loop thread
    pthread_mutex_t lock;     // guards the rest
    pthread_cond_t drained;   // a count below became 0
    TAILQ_HEAD(http_list, http_connection) waiting, working; // for the client, for us; longest unchanged first
    struct http_request *suspended; // waiting for somebody to claim them
    size_t connection_count;
    size_t suspended_count; // until the library knows that they go on
    size_t active_count;    // requests that the library has not completed
    size_t upgrade_count;   // connections that left HTTP, or are about to, and that the library has not got back
    bool is_stopping;               // nothing is suspended from now on
};

struct http_request {
    struct http_server *server;
    struct http_connection *connection; // NULL where the library knows none
    struct MHD_Connection *mhd;         // only while the library holds its reference
    const char *method, *path;
    const char *raw_target; // where the library reads it
    char *target;
    struct http_refusal *refusal; // to be answered once the body was read away; NULL when it is
    bool takes_chunks; // it came in HTTP/1.1: an answer in pieces goes in chunks, else it ends with the connection
    bool is_head_seen, is_draining, is_handed;
    struct buffer body;
    size_t body_counted; // of server->body_bytes
    int64_t received;
    _Atomic int refs;
    struct http_request *next, *prev; // server->lock: in server->suspended
    bool is_listed;                   // server->lock

    pthread_mutex_t lock;
    bool is_answered;  // response holds the answer, or the answer is that there is none
    bool is_gone;      // the client hung up
    bool is_suspended; // whoever clears it resumes
    bool is_queued;    // the library has the response
    bool must_close;
    int status;
    struct MHD_Response *response;
    struct loop_source *watch;
    http_gone_fn on_gone;
    void *gone_arg;
    void *kept; // check_head's, freed with the request
    void (*release_kept)(void *kept);
    struct http_stream *stream; // NULL unless the answer is one; freed with the request
    struct http_upgrade *upgrade; // the same
};

// ---- server.c
void http_server_ref(struct http_server *server);
void http_server_unref(struct http_server *server);
int64_t http_server_now_ms(const struct http_server *server);
void http_server_count_active(struct http_server *server, int change);
// ---- connection.c; a NULL connection is allowed
enum MHD_Result http_connection_may_enter(void *server, const struct sockaddr *address, socklen_t len);
void http_connection_changed(void *server, struct MHD_Connection *mhd, void **context,
                             enum MHD_ConnectionNotificationCode code);
// False: it was cut meanwhile, and nothing may be written to it any more.
bool http_connection_enter(struct http_server *server, struct http_connection *connection,
                           enum http_phase phase, int64_t deadline_ms);
void http_connection_set_deadline(struct http_connection *connection, int64_t deadline_ms);
bool http_connection_peer(const struct http_connection *connection, struct ucred *ret);
void http_sweep_start(void *server); // loop thread
void http_sweep_stop(void *server);  // loop thread
void http_connections_shut(struct http_server *server); // holding the lock: all of them, without a word
// ---- exchange.c: the library's callbacks
void *http_exchange_begin(void *server, const char *target, struct MHD_Connection *mhd);
enum MHD_Result http_exchange_access(void *server, struct MHD_Connection *mhd, const char *url,
                                     const char *method, const char *version, const char *upload,
                                     size_t *upload_size, void **state);
void http_exchange_completed(void *server, struct MHD_Connection *mhd, void **state,
                             enum MHD_RequestTerminationCode code);
void http_request_ref(struct http_request *request);
void http_request_unref(struct http_request *request);
struct MHD_Response *http_reply_make(const struct http_reply *reply, char *body, size_t len);
void http_reply_add_headers(struct MHD_Response *response, const struct http_reply *reply);
// Makes the answer of a request unless it has one. Takes response. True if it became the answer.
bool http_request_answer(struct http_request *request, int status, bool must_close,
                         struct MHD_Response *response);
struct MHD_Response *http_stopping_reply(struct http_server *server);
// ---- suspend.c
bool http_request_suspend(
    struct http_request *request); // holding request->lock, on its HTTP thread; false = stopping
bool http_request_claim_resume(
    struct http_request *request); // holding request->lock: true = then call the next, unlocked
void http_request_resume(struct http_request *request);
void http_request_unwatch(struct http_request *request);
// Ends the wait as a hang-up does; with a response (taken) it becomes the answer. on_gone runs on the loop
// thread, before this returns where this is it.
void http_request_end_wait(struct http_request *request, int status, struct MHD_Response *response);
// ---- stream.c
void http_stream_free(struct http_stream *stream);
// ---- upgrade.c
void http_upgrade_free(struct http_upgrade *upgrade);
void http_upgrade_completed(struct http_request *request); // the library is done with it
void http_upgrades_stop(struct http_server *server);       // loop thread
// ---- head_read.c
int http_head_read(struct http_request *request, const char *method, const char *version, int *ret_status,
                   struct error *err);
