// One request from its request line to the end of its answer: the library's callbacks, the body with its
// limits, and the answer.
#include "api/http/internal.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

void http_request_ref(struct http_request *request)
{
    atomic_fetch_add_explicit(&request->refs, 1, memory_order_relaxed);
}

static void release_body(struct http_request *request)
{
    buffer_free(&request->body);
    atomic_fetch_sub(&request->server->body_bytes, request->body_counted);
    request->body_counted = 0;
}

void http_request_unref(struct http_request *request)
{
    if (atomic_fetch_sub(&request->refs, 1) != 1)
        return;
    release_body(request);
    free(request->refusal);
    if (request->response)
        MHD_destroy_response(request->response);
    http_stream_free(request->stream);
    http_upgrade_free(request->upgrade);
    if (request->release_kept)
        request->release_kept(request->kept);
    pthread_mutex_destroy(&request->lock);
    struct http_server *server = request->server;
    free(request->target);
    free(request);
    http_server_unref(server);
}

// ---- the answer -------------------------------------------------------------------------------------------
void http_reply_add_headers(struct MHD_Response *response, const struct http_reply *reply)
{
    if (reply->content_type)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply->content_type);
    if (reply->must_close)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    for (size_t i = 0; i < ARRAY_LEN(reply->headers) && reply->headers[i].name; i++)
        MHD_add_response_header(response, reply->headers[i].name, reply->headers[i].value);
}

struct MHD_Response *http_reply_make(const struct http_reply *reply, char *body, size_t len)
{
    struct MHD_Response *response = body ? MHD_create_response_from_buffer_with_free_callback(len, body, free)
                                         : MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
    if (!response)
        abort(); // out of memory: as controller/base/memory.h
    http_reply_add_headers(response, reply);
    return response;
}

bool http_request_answer(struct http_request *request, int status, bool must_close,
                         struct MHD_Response *response)
{
    pthread_mutex_lock(&request->lock);
    bool is_first = !request->is_answered && !request->is_gone;
    request->on_gone = NULL;
    if (is_first) {
        request->is_answered = true;
        request->must_close |= must_close;
        request->status = status;
        request->response = response;
    }
    bool must_resume = http_request_claim_resume(request);
    pthread_mutex_unlock(&request->lock);
    if (!is_first)
        MHD_destroy_response(response);
    if (must_resume)
        http_request_resume(request);
    return is_first;
}

void http_respond(struct http_request *request, const struct http_reply *reply, char *body, size_t len)
{
    http_request_answer(request, reply->status, reply->must_close, http_reply_make(reply, body, len));
    http_request_unref(request);
}

static enum MHD_Result queue_answer(struct http_request *request)
{
    request->is_queued = true;
    release_body(request);
    int64_t now = http_server_now_ms(request->server);
    if (!http_connection_enter(request->server, request->connection,
                               request->stream ? HTTP_WORKING : HTTP_REPLYING, now + HTTP_REPLY_MS))
        return MHD_NO;
    return MHD_queue_response(request->mhd, (unsigned)request->status, request->response);
}

static void answer_refusal(struct http_request *request, const struct http_refusal *refusal, bool must_close, const char *bytes, size_t len)
{
    const struct http_server_options *options = &request->server->options;
    char *body = options->error_body(options->arg, refusal->status, &refusal->error, bytes, len);
    struct http_reply reply = {.status = refusal->status, .content_type = "application/json", .must_close = must_close};
    memcpy(reply.headers, refusal->headers, sizeof(refusal->headers));
    http_request_answer(request, refusal->status, must_close, http_reply_make(&reply, body, strlen(body)));
    release_body(request);
}

// Refused by the server or check_head. What comes in of the body from now on is read away.
static void refuse(struct http_request *request, const struct http_refusal *refusal, bool must_close)
{
    answer_refusal(request, refusal, must_close, NULL, 0);
    request->is_draining = true;
}

// The same, but the answer waits for the body, of which it may have to repeat something.
static void refuse_after_body(struct http_request *request, const struct http_refusal *refusal)
{
    request->refusal = mem_alloc(sizeof(*refusal));
    *request->refusal = *refusal;
    request->body.max = HTTP_REFUSED_BODY_MAX_BYTES;
    request->is_draining = true;
}

static void end_refusal(struct http_request *request)
{
    CLEANUP_FREE struct http_refusal *refusal = TAKE_PTR(request->refusal);
    bool is_whole = request->body.len > 0 && (int64_t)request->body.len == request->received;
    if (refusal)
        answer_refusal(request, refusal, false, is_whole ? request->body.data : NULL, is_whole ? request->body.len : 0);
}

static void refuse_with(struct http_request *request, int status, enum error_code code, const char *hint,
                        const char *message)
{
    struct http_refusal refusal = {.status = status, .error = ERROR_INIT};
    error_set(&refusal.error, code, hint, "%s", message);
    refuse(request, &refusal, false);
}

// ---- head -------------------------------------------------------------------------------------------------
void *http_exchange_begin(void *arg, const char *target, struct MHD_Connection *mhd)
{
    struct http_server *server = arg;
    struct http_request *request = mem_alloc(sizeof(*request));
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    http_server_ref(server);
    http_server_count_active(server, 1);
    request->server = server;
    request->connection = info ? info->socket_context : NULL;
    request->mhd = mhd;
    request->refs = 1;
    request->raw_target = target;
    request->target = mem_strdup(target);
    request->body = (struct buffer)BUFFER_INIT(server->options.body_max_bytes);
    pthread_mutex_init(&request->lock, NULL);
    http_connection_enter(server, request->connection, HTTP_READING_HEAD,
                          http_server_now_ms(server) + HTTP_HEAD_MS);
    return request;
}

static int64_t announced_length(const struct http_request *request)
{
    const char *length =
        MHD_lookup_connection_value(request->mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return length ? strtoll(length, NULL, 10) : 0;
}

static void check_length(struct http_request *request)
{
    if (announced_length(request) > (int64_t)request->body.max)
        refuse_with(request, 413, ERROR_TOO_LARGE, "send less in one request",
                    "the request body is larger than this server takes");
}

// True: the answer must go out now, the body is not waited for.
static bool read_head(struct http_request *request, const char *method, const char *version)
{
    const struct http_server_options *options = &request->server->options;
    struct http_refusal refusal = {.status = 400, .error = ERROR_INIT};
    request->takes_chunks = strcmp(version, "HTTP/1.1") == 0;
    if (http_head_read(request, method, version, &refusal.status, &refusal.error) < 0) {
        refuse(request, &refusal, true);
        return true; // its framing cannot be trusted
    }
    if (options->check_head && !options->check_head(options->arg, request, &refusal))
        refuse_after_body(request, &refusal);
    else
        check_length(request);
    if (!request->is_draining)
        return false;
    // Whoever asked for leave to send must be answered before; whoever sends must be read out to see the
    // answer.
    bool is_now = http_request_has_header(request, "Expect") || announced_length(request) > HTTP_DRAIN_MAX_BYTES;
    if (is_now)
        end_refusal(request);
    return is_now;
}

// ---- body -------------------------------------------------------------------------------------------------
// A body may take as much as is still left for all the others, so the room that is short runs out for the
// largest first and a small one always finds some.
static bool count_body(struct http_request *request, size_t len)
{
    size_t total = atomic_fetch_add(&request->server->body_bytes, len) + len;
    request->body_counted += len;
    return total <= HTTP_BODIES_MAX_BYTES && request->body_counted <= HTTP_BODIES_MAX_BYTES - total;
}

// Of a refused request's body: kept whole or not at all.
static void keep_refused(struct http_request *request, const char *bytes, size_t len)
{
    if (!count_body(request, len) || buffer_append(&request->body, bytes, len) < 0)
        release_body(request);
}

static enum MHD_Result collect(struct http_request *request, const char *bytes, size_t len)
{
    bool is_whole = (int64_t)request->body.len == request->received;
    request->received += (int64_t)len;
    if (request->is_draining) {
        if (request->refusal && is_whole)
            keep_refused(request, bytes, len);
        return request->received > HTTP_DRAIN_MAX_BYTES ? MHD_NO : MHD_YES;
    }
    if (!count_body(request, len))
        refuse_with(request, 503, ERROR_LIMIT, "try again in a moment",
                    "too many request bodies are being received at once");
    else if (buffer_append(&request->body, bytes, len) < 0)
        refuse_with(request, 413, ERROR_TOO_LARGE, "send less in one request",
                    "the request body is larger than this server takes");
    return MHD_YES;
}

// ---- the whole request ------------------------------------------------------------------------------------
struct MHD_Response *http_stopping_reply(struct http_server *server)
{
    struct error error = ERROR_INIT;
    error_set(&error, ERROR_UNAVAILABLE, "connect again when it runs", "the server is shutting down");
    char *body = server->options.error_body(server->options.arg, 503, &error, NULL, 0);
    const struct http_reply reply = {.status = 503, .content_type = "application/json", .must_close = true};
    return http_reply_make(&reply, body, strlen(body));
}

// False: the client was cut off in this instant.
static bool hand_over(struct http_request *request)
{
    const struct http_server_options *options = &request->server->options;
    if (!http_connection_enter(request->server, request->connection, HTTP_WORKING, DEADLINE_NONE))
        return false;
    request->is_handed = true;
    http_request_ref(request);
    options->handle(options->arg, request);
    return true;
}

static enum MHD_Result finish(struct http_request *request)
{
    end_refusal(request);
    if (!request->is_handed && !request->is_draining && !hand_over(request))
        return MHD_NO;
    pthread_mutex_lock(&request->lock);
    bool is_answered = request->is_answered, is_gone = request->is_gone;
    bool is_waiting = !is_answered && !is_gone && http_request_suspend(request);
    pthread_mutex_unlock(&request->lock);
    if (is_waiting)
        return MHD_YES; // from here on whoever resumes it comes first
    if (!is_answered && !is_gone) {
        http_request_end_wait(request, 503, http_stopping_reply(request->server));
        is_answered = true;
    }
    return is_answered ? queue_answer(request) : MHD_NO; // gone: nobody is there to read an answer
}

enum MHD_Result http_exchange_access(void *server, struct MHD_Connection *mhd, const char *url,
                                     const char *method, const char *version, const char *upload,
                                     size_t *upload_size, void **state)
{
    (void)server;
    (void)mhd;
    struct http_request *request = *state;
    if (!request->is_head_seen) {
        request->is_head_seen = true;
        request->method = method;
        request->path = url;
        if (!http_connection_enter(request->server, request->connection, HTTP_READING_BODY,
                                   http_server_now_ms(request->server) + HTTP_UPLOAD_MS))
            return MHD_NO;
        return read_head(request, method, version) ? queue_answer(request) : MHD_YES;
    }
    if (!*upload_size)
        return request->is_queued ? MHD_YES : finish(request);
    enum MHD_Result result = collect(request, upload, *upload_size);
    *upload_size = 0;
    return result;
}

void http_exchange_completed(void *arg, struct MHD_Connection *mhd, void **state,
                             enum MHD_RequestTerminationCode code)
{
    (void)mhd;
    struct http_server *server = arg;
    struct http_request *request = *state;
    *state = NULL;
    if (!request)
        return;
    http_request_unwatch(request);
    if (code != MHD_REQUEST_TERMINATED_COMPLETED_OK)
        http_request_end_wait(request, 0, NULL);
    http_upgrade_completed(request);
    http_connection_enter(server, request->connection, HTTP_IDLE, http_server_now_ms(server) + HTTP_IDLE_MS);
    http_request_unref(request);
    http_server_count_active(server, -1);
}

// ---- what handlers ask ------------------------------------------------------------------------------------
const char *http_request_body(const struct http_request *request, size_t *ret_len)
{
    *ret_len = request->body.len;
    return request->body.data ? request->body.data : "";
}

void http_request_drop_body(struct http_request *request)
{
    buffer_free(&request->body); // still counted: what was made of it is as large
}

void http_request_keep(struct http_request *request, void *value, void (*release)(void *value))
{
    if (request->release_kept)
        request->release_kept(request->kept);
    request->kept = value;
    request->release_kept = release;
}

const void *http_request_kept(const struct http_request *request)
{
    return request->kept;
}

bool http_request_peer(const struct http_request *request, struct ucred *ret)
{
    return request->server->options.has_peer && http_connection_peer(request->connection, ret);
}

uint64_t http_request_connection(const struct http_request *request)
{
    return request->connection ? request->connection->number : 0;
}

int http_request_socket(const struct http_request *request)
{
    return request->connection ? request->connection->fd : -1;
}

void http_request_on_gone(struct http_request *request, http_gone_fn fn, void *arg)
{
    pthread_mutex_lock(&request->lock);
    request->on_gone = fn;
    request->gone_arg = arg;
    pthread_mutex_unlock(&request->lock);
}
