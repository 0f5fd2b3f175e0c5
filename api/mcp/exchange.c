#include "api/mcp/exchange.h"
#include "api/mcp/front.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include <string.h>

// A batch's answers in memory: 50 of them, each at most what a tool server may send.
#define BATCH_ANSWER_MAX_BYTES (64 * 1024 * 1024)

static void exchange_free(struct mcp_exchange *exchange)
{
    for (size_t i = 0; i < exchange->count; i++)
        free(exchange->calls[i].answer);
    jsonrpc_text_clear(&exchange->text);
    mcp_headers_clear(&exchange->headers);
    pthread_mutex_destroy(&exchange->lock);
    mcp_server_unref(exchange->server);
    free(exchange);
}

// ---- the HTTP answer --------------------------------------------------------------------------------------
static const struct http_reply json_reply = {.status = 200, .content_type = "application/json"};
static const struct http_reply event_reply = {
    .status = 200,
    .content_type = "text/event-stream",
    .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}},
};

// A stream of one event. The JSON holds no raw line ends.
static char *wrap_event(char *taken, size_t *len)
{
    CLEANUP_FREE char *body = taken;
    static const char head[] = "event: message\ndata: ", tail[] = "\n\n";
    char *text = mem_alloc(*len + sizeof(head) + sizeof(tail));
    memcpy(text, head, sizeof(head) - 1);
    memcpy(text + sizeof(head) - 1, body, *len);
    memcpy(text + sizeof(head) - 1 + *len, tail, sizeof(tail));
    *len += sizeof(head) - 1 + sizeof(tail) - 1;
    return text;
}

static char *join_answers(struct mcp_exchange *exchange, size_t *ret_len)
{
    struct buffer joined = BUFFER_INIT(BATCH_ANSWER_MAX_BYTES);
    for (size_t i = 0; i < exchange->count; i++) {
        struct mcp_call *call = &exchange->calls[i];
        if (!call->answer)
            continue;
        buffer_append_char(&joined, joined.len ? ',' : '[');
        if (joined.len + call->answer_len + 2 > joined.max) { // leave the rest out rather than the whole
            free(call->answer);
            call->answer =
                jsonrpc_error_text(call->message.id_text, JSONRPC_INTERNAL_ERROR,
                                   "the batch's answers are too large together", NULL, &call->answer_len);
        }
        buffer_append(&joined, call->answer, call->answer_len);
    }
    if (!joined.len)
        return NULL;
    buffer_append_char(&joined, ']');
    *ret_len = joined.len;
    return buffer_take_string(&joined);
}

static void respond(struct mcp_exchange *exchange)
{
    size_t len = exchange->calls[0].answer_len;
    char *body = exchange->is_batch ? join_answers(exchange, &len) : TAKE_PTR(exchange->calls[0].answer);
    struct http_reply reply = exchange->is_event ? event_reply : json_reply;
    if (body && exchange->is_event)
        body = wrap_event(body, &len);
    if (body)
        reply.status = exchange->is_batch ? 200 : exchange->http_status;
    else
        reply = (struct http_reply){.status = 202};
    http_respond(exchange->http, &reply, body, body ? len : 0);
    exchange_free(exchange);
}

static void hold(struct mcp_exchange *exchange)
{
    pthread_mutex_lock(&exchange->lock);
    exchange->pending++;
    pthread_mutex_unlock(&exchange->lock);
}

static void release(struct mcp_exchange *exchange)
{
    pthread_mutex_lock(&exchange->lock);
    bool is_last = --exchange->pending == 0;
    pthread_mutex_unlock(&exchange->lock);
    if (is_last)
        respond(exchange);
}

// ---- answers of calls -------------------------------------------------------------------------------------
static void put_answer(struct mcp_call *call, int http_status, char *answer, size_t len)
{
    struct mcp_exchange *exchange = call->exchange;
    pthread_mutex_lock(&exchange->lock);
    call->answer = answer;
    call->answer_len = len;
    exchange->http_status = http_status;
    pthread_mutex_unlock(&exchange->lock);
    release(exchange);
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

void mcp_call_nothing(struct mcp_call *call)
{
    put_answer(call, 202, NULL, 0);
}

static void refuse(struct mcp_call *call, struct mcp_problem *problem)
{
    mcp_call_error(call, problem->http_status, problem->code, problem->message, problem->data);
}

// ---- one message ------------------------------------------------------------------------------------------
static void run_request(struct mcp_call *call)
{
    struct mcp_problem problem = {0};
    const struct mcp_headers *headers = &call->exchange->headers;
    if (mcp_find_era(&call->message, headers, &call->era, &problem) < 0 ||
        (call->era == MCP_MODERN && mcp_check_modern(&call->message, headers, &problem) < 0))
        refuse(call, &problem);
    else
        mcp_method_run(call);
}

static void run_notification(struct mcp_call *call)
{
    struct mcp_problem problem = {0};
    if (mcp_find_era(&call->message, &call->exchange->headers, &call->era, &problem) < 0)
        refuse(call, &problem);
    else
        mcp_call_nothing(call); // none of them asks for anything here
}

static void run_response(struct mcp_call *call)
{
    struct mcp_problem problem = {0};
    call->message.id_text = NULL; // it is not the id of a request of theirs
    if (mcp_check_response(&call->exchange->headers, &problem) < 0)
        refuse(call, &problem);
    else
        mcp_call_nothing(call); // nothing was asked, so nothing waits for it
}

static void run_message(struct mcp_call *call)
{
    switch (call->message.kind) {
    case JSONRPC_REQUEST:
        run_request(call);
        break;
    case JSONRPC_NOTIFICATION:
        run_notification(call);
        break;
    case JSONRPC_RESPONSE:
        run_response(call);
        break;
    case JSONRPC_INVALID:
        mcp_call_error(call, 400, JSONRPC_INVALID_REQUEST, call->message.problem, NULL);
        break;
    }
}

// ---- the whole --------------------------------------------------------------------------------------------
static void gone(void *arg) // loop thread; never after the answer
{
    struct mcp_exchange *exchange = arg;
    hold(exchange); // the last call's end frees it
    for (size_t i = 0; i < exchange->count; i++)
        if (exchange->calls[i].has_tool)
            tool_call_cancel(&exchange->calls[i].tool);
    release(exchange);
}

static struct mcp_exchange *exchange_new(struct mcp_server *server, struct http_request *request,
                                         struct jsonrpc_text *text)
{
    size_t count = text->raw_count ? text->raw_count : 1; // an empty batch's refusal takes one
    struct mcp_exchange *exchange = mem_alloc(sizeof(*exchange) + count * sizeof(exchange->calls[0]));
    atomic_fetch_add(&server->refs, 1);
    exchange->server = server;
    static const struct caller anybody = CALLER_ANYBODY;
    const struct caller *caller = http_request_kept(request); // who it is, where that is asked
    exchange->http = request;
    exchange->caller = caller ? *caller : anybody;
    exchange->text = *text;
    exchange->count = exchange->pending = count;
    exchange->is_event = mcp_request_form(request) == MCP_FORM_EVENT;
    mcp_headers_read(request, &exchange->headers);
    pthread_mutex_init(&exchange->lock, NULL);
    for (size_t i = 0; i < count; i++)
        exchange->calls[i].exchange = exchange;
    return exchange;
}

static void start_batch(struct mcp_exchange *exchange)
{
    struct mcp_problem problem = {0};
    if (mcp_check_batch(&exchange->text, &exchange->headers, &problem) < 0) {
        exchange->count = exchange->pending = 1;
        refuse(&exchange->calls[0], &problem);
        return;
    }
    exchange->is_batch = true;
    hold(exchange);
    for (size_t i = 0; i < exchange->count; i++) {
        jsonrpc_classify(json_array_get(exchange->text.value, i), &exchange->text.raws[i],
                         &exchange->calls[i].message);
        run_message(&exchange->calls[i]);
    }
    release(exchange);
}

static void refuse_text(struct http_request *request, struct jsonrpc_refusal *refusal)
{
    size_t len;
    char *text = jsonrpc_error_text(refusal->id_text, refusal->code, refusal->message, NULL, &len);
    struct http_reply reply = json_reply;
    reply.status = 400;
    free(refusal->id_text);
    http_respond(request, &reply, text, len);
}

void mcp_exchange_start(struct mcp_server *server, struct http_request *request)
{
    size_t len;
    const char *bytes = http_request_body(request, &len);
    struct jsonrpc_text text;
    struct jsonrpc_refusal refusal;
    if (jsonrpc_text_read(bytes, len, &text, &refusal) < 0) {
        refuse_text(request, &refusal);
        return;
    }
    http_request_drop_body(request);
    struct mcp_exchange *exchange = exchange_new(server, request, &text);
    http_request_on_gone(request, gone, exchange);
    if (json_is_array(exchange->text.value)) {
        start_batch(exchange);
        return;
    }
    jsonrpc_classify(exchange->text.value, &exchange->text.raws[0], &exchange->calls[0].message);
    run_message(&exchange->calls[0]);
}
