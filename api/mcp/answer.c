// The answers of an exchange: one text a call, and the HTTP answer when the last is there. JSON, unless the client takes
// events only or a stream has begun; then each is an event.
#include "api/mcp/event_stream.h"
#include "api/mcp/exchange.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"

// A batch's answers in memory: 50 of them, each at most what a tool server may send.
#define BATCH_ANSWER_MAX_BYTES (64 * 1024 * 1024)
#define EVENT_ROOM_BYTES 64 // what an event has beside its message

static const struct http_reply json_reply = {.status = 200, .content_type = "application/json"};

void mcp_exchange_unref(struct mcp_exchange *exchange)
{
    if (atomic_fetch_sub(&exchange->refs, 1) != 1)
        return;
    for (size_t i = 0; i < exchange->count; i++)
        free(exchange->calls[i].answer);
    jsonrpc_text_clear(&exchange->text);
    mcp_headers_clear(&exchange->headers);
    pthread_mutex_destroy(&exchange->lock);
    mcp_server_unref(exchange->server);
    free(exchange);
}

void mcp_refuse_text(struct http_request *request, int http_status, char *body, size_t len)
{
    struct http_reply reply = json_reply;
    reply.status = http_status;
    http_respond(request, &reply, body, len);
}

// ---- the text ---------------------------------------------------------------------------------------------
// Too much together: the rest is left out rather than the whole.
static void shorten(struct mcp_call *call)
{
    free(call->answer);
    call->answer = jsonrpc_error_text(call->message.id_text, JSONRPC_INTERNAL_ERROR,
                                      "the batch's answers are too large together", NULL, &call->answer_len);
}

static char *join_answers(struct mcp_exchange *exchange, size_t *ret_len)
{
    struct buffer joined = BUFFER_INIT(BATCH_ANSWER_MAX_BYTES);
    for (size_t i = 0; i < exchange->count; i++) {
        struct mcp_call *call = &exchange->calls[i];
        if (!call->answer)
            continue;
        buffer_append_char(&joined, joined.len ? ',' : '[');
        if (joined.len + call->answer_len + 2 > joined.max)
            shorten(call);
        buffer_append(&joined, call->answer, call->answer_len);
    }
    if (!joined.len)
        return NULL;
    buffer_append_char(&joined, ']');
    *ret_len = joined.len;
    return buffer_take_string(&joined);
}

static char *make_events(struct mcp_exchange *exchange, size_t *ret_len)
{
    size_t one_len = exchange->calls[0].answer_len + EVENT_ROOM_BYTES;
    struct buffer events = BUFFER_INIT(exchange->is_batch ? BATCH_ANSWER_MAX_BYTES : one_len);
    for (size_t i = 0; i < exchange->count; i++) {
        struct mcp_call *call = &exchange->calls[i];
        if (!call->answer || event_stream_wrap(&events, call->answer, call->answer_len) == 0)
            continue;
        shorten(call);
        event_stream_wrap(&events, call->answer, call->answer_len);
    }
    *ret_len = events.len;
    return events.len ? buffer_take_string(&events) : NULL;
}

static char *make_json(struct mcp_exchange *exchange, size_t *ret_len)
{
    if (exchange->is_batch)
        return join_answers(exchange, ret_len);
    *ret_len = exchange->calls[0].answer_len;
    return TAKE_PTR(exchange->calls[0].answer);
}

// ---- the HTTP answer --------------------------------------------------------------------------------------
// Whether an answer was cancelled and nothing is left to say: a stream that ends says that better than an empty 202.
static bool is_silenced(struct mcp_exchange *exchange)
{
    for (size_t i = 0; i < exchange->count; i++)
        if (exchange->calls[i].is_cancelled)
            return exchange->takes_events;
    return false;
}

static void add_header(struct http_reply *reply, const char *name, const char *value)
{
    size_t i = 0;
    while (reply->headers[i].name)
        i++;
    reply->headers[i] = (struct http_header){name, value};
}

static void respond_in_one(struct mcp_exchange *exchange)
{
    size_t len = 0;
    bool is_event = exchange->is_event;
    char *body = is_event ? make_events(exchange, &len) : make_json(exchange, &len);
    struct http_reply reply = is_event ? event_stream_reply : json_reply;
    if (body)
        reply.status = exchange->is_batch ? 200 : exchange->http_status;
    else
        reply = is_silenced(exchange) ? event_stream_reply : (struct http_reply){.status = 202};
    if (exchange->challenge)
        add_header(&reply, "WWW-Authenticate", exchange->challenge);
    http_respond(exchange->http, &reply, body, len);
}

static void respond(void *arg)
{
    struct mcp_exchange *exchange = arg;
    mcp_callers_remove(exchange);
    struct event_stream *stream = exchange->watch ? mcp_watch_end(exchange) : NULL;
    if (stream) {
        size_t len = 0;
        char *events = make_events(exchange, &len);
        event_stream_end(stream, events, len);
    } else {
        respond_in_one(exchange);
    }
    mcp_exchange_unref(exchange);
}

void mcp_exchange_hold(struct mcp_exchange *exchange)
{
    pthread_mutex_lock(&exchange->lock);
    exchange->pending++;
    pthread_mutex_unlock(&exchange->lock);
}

bool mcp_exchange_try_hold(struct mcp_exchange *exchange)
{
    pthread_mutex_lock(&exchange->lock);
    bool is_waiting = exchange->pending > 0;
    exchange->pending += is_waiting;
    pthread_mutex_unlock(&exchange->lock);
    return is_waiting;
}

void mcp_exchange_release(struct mcp_exchange *exchange)
{
    struct loop *loop = exchange->server->world->loop;
    pthread_mutex_lock(&exchange->lock);
    bool is_last = --exchange->pending == 0;
    pthread_mutex_unlock(&exchange->lock);
    if (!is_last)
        return;
    if (exchange->watch && !loop_is_current(loop))
        loop_post(loop, respond, exchange);
    else
        respond(exchange);
}

// ---- answers of calls -------------------------------------------------------------------------------------
// What whoever takes no event stream gets for a call that he cancelled.
static char *make_cancelled(struct mcp_call *call, size_t *ret_len)
{
    return jsonrpc_error_text(call->message.id_text, MCP_REQUEST_CANCELLED, "the request was cancelled by its client", NULL,
                              ret_len);
}

static void put_answer(struct mcp_call *call, int http_status, char *answer, size_t len)
{
    struct mcp_exchange *exchange = call->exchange;
    if (call->is_tracked)
        in_flight_end(&exchange->server->in_flight, &call->in_flight);
    pthread_mutex_lock(&exchange->lock);
    call->is_done = true;
    if (call->is_cancelled) {
        free(answer);
        answer = exchange->takes_events ? NULL : make_cancelled(call, &len);
        http_status = 200;
    }
    if (call->is_revoked) {
        free(answer);
        answer = jsonrpc_error_text(call->message.id_text, JSONRPC_INVALID_REQUEST, MCP_REVOKED_TEXT, NULL, &len);
        http_status = 401;
        exchange->challenge = exchange->is_batch ? NULL : exchange->server->challenge_invalid;
    }
    call->answer = answer;
    call->answer_len = answer ? len : 0;
    exchange->http_status = http_status;
    pthread_mutex_unlock(&exchange->lock);
    mcp_exchange_release(exchange);
}

void mcp_call_result(struct mcp_call *call, const char *result, size_t result_len)
{
    size_t len;
    char *text = jsonrpc_result_text(call->message.id_text, result, result_len, &len);
    put_answer(call, 200, text, len);
}

void mcp_call_error(struct mcp_call *call, int http_status, int code, const char *message, json_t *data)
{
    size_t len;
    char *text = jsonrpc_error_text(call->message.id_text, code, message, data, &len);
    put_answer(call, http_status, text, len);
}

void mcp_call_refuse_scope(struct mcp_call *call, enum auth_scope scope)
{
    struct mcp_exchange *exchange = call->exchange;
    CLEANUP_FREE char *message =
        mem_format("this caller may not do that: its token lacks the scope %s; use one that has it", auth_scope_word(scope));
    if (!exchange->is_batch && exchange->server->front.auth)
        exchange->challenge = auth_challenge_scope(exchange->server->front.auth, scope);
    mcp_call_error(call, 403, JSONRPC_INVALID_REQUEST, message, NULL);
}

void mcp_call_nothing(struct mcp_call *call)
{
    put_answer(call, 202, NULL, 0);
}
