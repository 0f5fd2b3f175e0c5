#include "api/mcp/exchange.h"
#include "controller/base/memory.h"
#include <stddef.h>
#include <string.h>

static void refuse(struct mcp_call *call, struct mcp_problem *problem)
{
    mcp_call_error(call, problem->http_status, problem->code, problem->message, problem->data);
}

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

// ---- cancelling -------------------------------------------------------------------------------------------
// Loop thread; holds a reference. A call that is being started right now is cancelled once it is.
static void cancel_call(void *arg)
{
    struct mcp_call *call = arg;
    struct mcp_exchange *exchange = call->exchange;
    pthread_mutex_lock(&exchange->lock);
    call->is_cancelled |= !call->is_done;
    bool is_live = call->is_started && !call->is_done;
    pthread_mutex_unlock(&exchange->lock);
    if (is_live)
        tool_call_cancel(&call->tool);
    mcp_exchange_unref(exchange);
}

#define CALL_OF(entry) ((struct mcp_call *)((char *)(entry)-offsetof(struct mcp_call, in_flight)))

static void keep_call(struct in_flight_entry *entry)
{
    atomic_fetch_add(&CALL_OF(entry)->exchange->refs, 1);
}

// Where a closed stream says it, nobody is told by a notification.
static void take_notification(struct mcp_call *call)
{
    struct mcp_exchange *exchange = call->exchange;
    const char *id = call->message.request_id_text;
    bool is_cancelling = call->era == MCP_LEGACY && strcmp(call->message.method, "notifications/cancelled") == 0 && id;
    struct in_flight_entry *entry =
        is_cancelling ? in_flight_find(&exchange->server->in_flight, exchange->caller.principal, id, keep_call) : NULL;
    if (entry)
        loop_post(exchange->server->world->loop, cancel_call, CALL_OF(entry));
    mcp_call_nothing(call); // also where there is nothing to cancel
}

static void note_started(struct mcp_call *call)
{
    pthread_mutex_lock(&call->exchange->lock);
    call->is_started = true;
    bool was_cancelled = call->is_cancelled && !call->is_done;
    pthread_mutex_unlock(&call->exchange->lock);
    if (!was_cancelled)
        return;
    keep_call(&call->in_flight);
    loop_post(call->exchange->server->world->loop, cancel_call, call);
}

void mcp_call_run_tool(struct mcp_call *call, const struct tool *tool, json_t *arguments, tool_finish_fn finish)
{
    struct mcp_exchange *exchange = call->exchange;
    struct mcp_server *server = exchange->server;
    bool is_at_once = tool->place == TOOL_READS;
    mcp_exchange_hold(exchange); // the call may end at any moment
    if (!exchange->is_batch) {
        call->message.params = NULL; // a call may wait for long, and it can be large
        call->message.method = NULL;
        json_decref(TAKE_PTR(exchange->text.value));
    }
    if (!is_at_once)
        mcp_watch_call(call);
    call->has_tool = true;
    call->is_tracked = !is_at_once && call->era == MCP_LEGACY;
    if (call->is_tracked)
        in_flight_add(&server->in_flight, &call->in_flight, exchange->caller.principal, call->message.id_text);
    tool_call_start(&call->tool, server->world, &server->catalogue, &server->gate, tool, exchange->caller.principal, exchange->asker,
                    arguments, finish, call);
    if (call->is_tracked)
        note_started(call);
    mcp_exchange_release(exchange);
}

// ---- one message ------------------------------------------------------------------------------------------
static void run_notification(struct mcp_call *call)
{
    struct mcp_problem problem = {0};
    if (mcp_find_era(&call->message, &call->exchange->headers, &call->era, &problem) < 0)
        refuse(call, &problem);
    else
        take_notification(call);
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
static struct mcp_exchange *exchange_new(struct mcp_server *server, struct http_request *request,
                                         struct jsonrpc_text *text)
{
    size_t count = text->raw_count ? text->raw_count : 1; // an empty batch's refusal takes one
    struct mcp_exchange *exchange = mem_alloc(sizeof(*exchange) + count * sizeof(exchange->calls[0]));
    atomic_fetch_add(&server->refs, 1);
    exchange->server = server;
    exchange->refs = 1;
    static const struct caller anybody = CALLER_ANYBODY;
    const struct caller *caller = http_request_kept(request); // who it is, where that is asked
    exchange->http = request;
    exchange->caller = caller ? *caller : anybody;
    exchange->asker = caller ? fair_asker_of(caller->principal) : http_request_connection(request);
    exchange->text = *text;
    exchange->count = exchange->pending = count;
    exchange->is_event = mcp_request_form(request) == MCP_FORM_EVENT;
    exchange->takes_events = exchange->is_event || mcp_request_takes_events(request);
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
    mcp_exchange_hold(exchange);
    for (size_t i = 0; i < exchange->count; i++) {
        jsonrpc_classify(json_array_get(exchange->text.value, i), &exchange->text.raws[i],
                         &exchange->calls[i].message);
        run_message(&exchange->calls[i]);
    }
    mcp_exchange_release(exchange);
}

static void run_all(struct mcp_exchange *exchange)
{
    if (json_is_array(exchange->text.value)) {
        start_batch(exchange);
        return;
    }
    jsonrpc_classify(exchange->text.value, &exchange->text.raws[0], &exchange->calls[0].message);
    run_message(&exchange->calls[0]);
}

static void refuse_text(struct http_request *request, struct jsonrpc_refusal *refusal)
{
    size_t len;
    char *text = jsonrpc_error_text(refusal->id_text, refusal->code, refusal->message, NULL, &len);
    free(refusal->id_text);
    mcp_refuse_text(request, 400, text, len);
}

static void refuse_revoked(struct mcp_server *server, struct http_request *request)
{
    size_t len;
    const char *bytes = http_request_body(request, &len);
    CLEANUP_FREE char *id = jsonrpc_request_id(bytes, len);
    char *text = jsonrpc_error_text(id, JSONRPC_INVALID_REQUEST, MCP_REVOKED_TEXT, NULL, &len);
    const struct http_reply reply = {.status = 401,
                                     .content_type = "application/json",
                                     .headers = {{"WWW-Authenticate", server->challenge_invalid}}};
    http_respond(request, &reply, text, len);
}

void mcp_exchange_start(struct mcp_server *server, struct http_request *request)
{
    size_t len;
    const char *bytes = http_request_body(request, &len);
    const struct caller *caller = http_request_kept(request);
    if (caller && !auth_is_still_good(server->front.auth, caller)) { // while the body came in
        refuse_revoked(server, request);
        return;
    }
    struct jsonrpc_text text;
    struct jsonrpc_refusal refusal;
    if (jsonrpc_text_read(bytes, len, &text, &refusal) < 0) {
        refuse_text(request, &refusal);
        return;
    }
    http_request_drop_body(request);
    struct mcp_exchange *exchange = exchange_new(server, request, &text);
    http_request_on_gone(request, mcp_exchange_gone, exchange);
    bool has_token = exchange->caller.token_id != 0;
    if (has_token)
        mcp_exchange_hold(exchange);
    run_all(exchange);
    if (!has_token)
        return;
    mcp_callers_add(exchange);
    mcp_exchange_release(exchange);
}
