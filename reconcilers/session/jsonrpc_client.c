#include "reconcilers/session/jsonrpc_client.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define HINT_RECREATE "destroy this sandbox with sandbox_destroy, then create a new one with sandbox_create"

struct pending {
    LIST_ENTRY(pending) link;
    struct rpc *rpc;
    int64_t id;
    rpc_answer_fn fn;
    void *arg;
    struct loop_timer *cancelled; // runs since the cancel
};

struct rpc {
    struct loop *loop;
    struct line_channel *channel;
    rpc_broken_fn broken;
    void *arg;
    LIST_HEAD(, pending) pending;
    size_t pending_count;
    int64_t last_id;
    int strikes, unasked;
    bool is_broken;
};

// ---- ends --------------------------------------------------------------------------------------------------------

static void settle(struct pending *pending, json_t *result, const struct error *err)
{
    LIST_REMOVE(pending, link);
    pending->rpc->pending_count--;
    loop_cancel(pending->cancelled);
    pending->fn(pending->arg, result, err);
    free(pending);
}

static void answer_all(struct rpc *rpc, const char *reason)
{
    struct error err = ERROR_INIT;
    error_set(&err, ERROR_UNAVAILABLE, HINT_RECREATE, "the tool server of this sandbox has failed: %s", reason);
    while (!LIST_EMPTY(&rpc->pending))
        settle(LIST_FIRST(&rpc->pending), NULL, &err);
}

void rpc_break(struct rpc *rpc, const char *reason)
{
    if (rpc->is_broken)
        return;
    rpc->is_broken = true;
    line_channel_close(rpc->channel);
    answer_all(rpc, reason);
    rpc->broken(rpc->arg, reason);
}

static void on_ended(void *arg, const char *reason)
{
    rpc_break(arg, reason);
}

void rpc_free(struct rpc *rpc)
{
    if (!rpc)
        return;
    rpc->is_broken = true;
    line_channel_close(rpc->channel);
    answer_all(rpc, "the sandbox is going away");
    line_channel_free(rpc->channel);
    free(rpc);
}

static void strike(struct rpc *rpc, const char *what)
{
    if (++rpc->strikes < RPC_STRIKES_MAX)
        return;
    CLEANUP_FREE char *reason = mem_format("it broke the protocol %d times, the last time with %s", rpc->strikes, what);
    rpc_break(rpc, reason);
}

// ---- answers -----------------------------------------------------------------------------------------------------

static struct pending *find(struct rpc *rpc, int64_t id)
{
    struct pending *pending;
    LIST_FOREACH(pending, &rpc->pending, link)
        if (pending->id == id)
            return pending;
    return NULL;
}

// Counts what a parser would have to allocate, before it allocates anything: values outside strings.
static bool has_too_many_values(const char *bytes, size_t len)
{
    size_t values = 0;
    bool in_string = false;
    for (size_t i = 0; i < len; i++) {
        char c = bytes[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else {
            in_string = c == '"';
            values += c == ',' || c == '[' || c == '{';
        }
    }
    return values > RPC_VALUES_MAX;
}

// What the codes of JSON-RPC and of the guest's protocol mean here.
static enum error_code code_of(json_int_t code)
{
    static const struct {
        json_int_t code;
        enum error_code meaning;
    } table[] = {
        {-32602, ERROR_INVALID},
        {-32601, ERROR_UNSUPPORTED},
        {GUEST_ERROR_CANCELLED, ERROR_CANCELLED},
        {GUEST_ERROR_UNKNOWN_SESSION, ERROR_NOT_FOUND},
        {GUEST_ERROR_LIMIT, ERROR_LIMIT},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].code == code)
            return table[i].meaning;
    return ERROR_UNAVAILABLE;
}

static void settle_error(struct pending *pending, const json_t *error)
{
    const json_t *message = json_object_get(error, "message");
    size_t len = json_string_length(message);
    CLEANUP_FREE char *text = utf8_to_printable(json_string_value(message), utf8_cut(json_string_value(message), len < 900 ? len : 900), false);
    struct error err = ERROR_INIT;
    error_set(&err, code_of(json_get_int(error, "code", 0)), NULL, "%s", *text ? text : "the tool server failed without saying why");
    settle(pending, NULL, &err);
}

static bool is_error_object(const json_t *error)
{
    return json_is_object(error) && json_is_integer(json_object_get(error, "code")) && json_is_string(json_object_get(error, "message"));
}

static void take_answer(struct rpc *rpc, const json_t *message)
{
    json_t *id = json_object_get(message, "id");
    json_t *result = json_object_get(message, "result"), *error = json_object_get(message, "error");
    if (!json_is_integer(id) || !result == !error || (error && !is_error_object(error))) {
        strike(rpc, "an answer that is not one");
        return;
    }
    struct pending *pending = find(rpc, json_integer_value(id));
    if (!pending) {
        strike(rpc, "an answer to a request that was not made");
        return;
    }
    rpc->unasked = 0;
    if (result)
        settle(pending, result, NULL);
    else
        settle_error(pending, error);
}

// ---- what the server says unasked ----------------------------------------------------------------------------------

static void send_and_drop(struct rpc *rpc, json_t *message)
{
    line_channel_send(rpc->channel, message, NULL); // a server that does not read is found by its pending requests
    json_decref(message);
}

// MCP lets a server ping; nothing else that a server may ask for is offered.
static void answer_request(struct rpc *rpc, const char *method, json_t *id)
{
    if (strcmp(method, "ping") == 0)
        send_and_drop(rpc, json_pack("{s:s, s:O, s:{}}", "jsonrpc", "2.0", "id", id, "result"));
    else
        send_and_drop(rpc, json_pack("{s:s, s:O, s:{s:i, s:s}}", "jsonrpc", "2.0", "id", id, "error", "code", -32601, "message",
                                     "this client offers no such method"));
}

static void take_unasked(struct rpc *rpc, const json_t *message)
{
    const char *method = json_get_text(message, "method");
    json_t *id = json_object_get(message, "id");
    bool is_good_id = json_is_integer(id) || (json_is_string(id) && json_string_length(id) <= 128);
    if (!method || (id && !is_good_id))
        strike(rpc, "a malformed request");
    else if (++rpc->unasked > RPC_UNASKED_MAX)
        rpc_break(rpc, "it flooded the connection with messages that nobody asked for");
    else if (id)
        answer_request(rpc, method, id);
}

static void on_line(void *arg, const char *bytes, size_t len)
{
    struct rpc *rpc = arg;
    if (has_too_many_values(bytes, len)) {
        rpc_break(rpc, "it sent a message of more than 200000 values");
        return;
    }
    CLEANUP_JSON json_t *message = NULL;
    if (json_parse_with_nul(bytes, len, &message, NULL) < 0 || !json_is_object(message)) {
        strike(rpc, "a line that is not a JSON object");
        return;
    }
    const char *version = json_get_text(message, "jsonrpc");
    if (!version || strcmp(version, "2.0") != 0)
        strike(rpc, "a message that is not JSON-RPC 2.0");
    else if (json_object_get(message, "method"))
        take_unasked(rpc, message);
    else
        take_answer(rpc, message);
}

// ---- requests ----------------------------------------------------------------------------------------------------

struct rpc *rpc_new(struct loop *loop, struct driver_session *session, rpc_broken_fn broken, void *arg)
{
    static const struct line_channel_events events = {on_line, on_ended};
    struct rpc *rpc = mem_alloc(sizeof(*rpc));
    *rpc = (struct rpc){.loop = loop, .broken = broken, .arg = arg};
    LIST_INIT(&rpc->pending);
    rpc->channel = line_channel_new(loop, session, &events, rpc);
    return rpc;
}

// Takes params.
static json_t *make_message(const char *method, json_t *params)
{
    json_t *message = json_pack("{s:s, s:s}", "jsonrpc", "2.0", "method", method);
    json_object_set_new(message, "params", params ? params : json_object());
    return message;
}

int64_t rpc_request(struct rpc *rpc, const char *method, json_t *params, rpc_answer_fn fn, void *arg, struct error *err)
{
    CLEANUP_JSON json_t *message = make_message(method, params);
    if (rpc->is_broken)
        return error_set(err, ERROR_UNAVAILABLE, HINT_RECREATE, "the tool server of this sandbox has failed");
    if (rpc->pending_count >= RPC_PENDING_MAX)
        return error_set(err, ERROR_LIMIT, "wait for some of them to end, then try again",
                         "%d calls to this sandbox are in progress, which is the limit", RPC_PENDING_MAX);
    json_object_set_new(message, "id", json_integer(rpc->last_id + 1));
    if (line_channel_send(rpc->channel, message, err) < 0)
        return -1;
    struct pending *pending = mem_alloc(sizeof(*pending));
    *pending = (struct pending){.rpc = rpc, .id = ++rpc->last_id, .fn = fn, .arg = arg};
    LIST_INSERT_HEAD(&rpc->pending, pending, link);
    rpc->pending_count++;
    return pending->id;
}

void rpc_notify(struct rpc *rpc, const char *method, json_t *params)
{
    send_and_drop(rpc, make_message(method, params));
}

static void on_cancel_ignored(void *arg)
{
    struct pending *pending = arg;
    pending->cancelled = NULL;
    rpc_break(pending->rpc, "it did not end a cancelled call within 10 s");
}

void rpc_cancel(struct rpc *rpc, int64_t id)
{
    struct pending *pending = find(rpc, id);
    if (!pending || pending->cancelled || rpc->is_broken)
        return;
    pending->cancelled = loop_after(rpc->loop, RPC_CANCEL_MS, on_cancel_ignored, pending);
    rpc_notify(rpc, "notifications/cancelled", json_pack("{s:I}", "requestId", (json_int_t)id));
}

bool rpc_is_broken(const struct rpc *rpc)
{
    return rpc->is_broken;
}

const struct text_list *rpc_last_lines(const struct rpc *rpc)
{
    return line_channel_last_lines(rpc->channel);
}
