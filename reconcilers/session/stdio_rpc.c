// JSON-RPC 2.0 over a line channel: chat2shell-guest on the stdio of the session's foreground process.
#include "reconcilers/session/line_channel.h"
#include "reconcilers/session/rpc_message.h"
#include "reconcilers/session/rpc_transport.h"
#include "controller/base/memory.h"
#include <stdlib.h>
#include <string.h>

struct stdio_rpc {
    struct rpc base;
    struct line_channel *channel;
    int unasked;
    int64_t given_up[RPC_GIVEN_UP_MAX]; // ids of tools' calls whose answer may come late; 0 = free
};

static struct stdio_rpc *stdio_of(struct rpc *rpc)
{
    return (struct stdio_rpc *)rpc;
}

// ---- what comes ----------------------------------------------------------------------------------------------------

static int64_t *find_given_up(struct stdio_rpc *rpc, int64_t id)
{
    for (size_t i = 0; i < RPC_GIVEN_UP_MAX; i++)
        if (rpc->given_up[i] == id)
            return &rpc->given_up[i];
    return NULL;
}

static void take_answer(struct stdio_rpc *rpc, const struct rpc_message *message)
{
    int64_t *late = message->id > 0 ? find_given_up(rpc, message->id) : NULL;
    if (late) {
        *late = 0;
        return;
    }
    if (!rpc_is_pending(&rpc->base, message->id)) {
        rpc_strike(&rpc->base, "an answer to a request that was not made");
        return;
    }
    struct error err = ERROR_INIT;
    rpc->unasked = 0;
    if (message->error)
        rpc_message_error(message->error, &err);
    rpc_settle(&rpc->base, message->id, message->result, message->error ? &err : NULL);
}

static void send_and_drop(struct stdio_rpc *rpc, json_t *message)
{
    line_channel_send(rpc->channel, message, NULL); // a server that does not read is found by its pending requests
    json_decref(message);
}

// MCP lets a server ping; nothing else that a server may ask for is offered.
static void answer_request(struct stdio_rpc *rpc, const char *method, json_t *id)
{
    if (strcmp(method, "ping") == 0)
        send_and_drop(rpc, json_pack("{s:s, s:O, s:{}}", "jsonrpc", "2.0", "id", id, "result"));
    else
        send_and_drop(rpc, json_pack("{s:s, s:O, s:{s:i, s:s}}", "jsonrpc", "2.0", "id", id, "error", "code", -32601, "message",
                                     "this client offers no such method"));
}

static void take_unasked(struct stdio_rpc *rpc, const struct rpc_message *message)
{
    const struct rpc *base = &rpc->base;
    if (!message->method_id && base->notice && base->notice(base->arg, message->method, json_object_get(message->root, "params")))
        return;
    if (++rpc->unasked > RPC_UNASKED_MAX)
        rpc_break(&rpc->base, "it flooded the connection with messages that nobody asked for");
    else if (message->method_id)
        answer_request(rpc, message->method, message->method_id);
}

static void on_line(void *arg, const char *bytes, size_t len)
{
    struct stdio_rpc *rpc = arg;
    struct rpc_message message;
    const char *fault = "";
    switch (rpc_message_parse(bytes, len, &message, &fault)) {
    case RPC_MESSAGE_BAD:
        rpc_strike(&rpc->base, fault);
        break;
    case RPC_MESSAGE_HUGE:
        rpc_break(&rpc->base, RPC_MESSAGE_HUGE_WORDS);
        break;
    case RPC_MESSAGE_ANSWER:
        take_answer(rpc, &message);
        break;
    case RPC_MESSAGE_UNASKED:
        take_unasked(rpc, &message);
        break;
    }
    json_decref(message.root);
}

static void on_moved(void *arg)
{
    health_note_heard(arg);
}

static void on_ended(void *arg, const char *reason)
{
    rpc_break(arg, reason);
}

static void on_printed(void *arg, const char *line)
{
    rpc_tell_printed(arg, line);
}

// ---- the transport's part -------------------------------------------------------------------------------------------

static int stdio_send(struct rpc *rpc, int64_t id, const char *method, json_t *params, struct error *err)
{
    CLEANUP_JSON json_t *message = rpc_message_request(id, method, params);
    return line_channel_send(stdio_of(rpc)->channel, message, err);
}

static void stdio_notify(struct rpc *rpc, const char *method, json_t *params)
{
    send_and_drop(stdio_of(rpc), rpc_message_request(0, method, params));
}

static void stdio_cancel(struct rpc *rpc, int64_t id)
{
    rpc_notify(rpc, "notifications/cancelled", json_pack("{s:I}", "requestId", (json_int_t)id));
}

static void stdio_overdue(struct rpc *rpc, int64_t id, bool is_tool)
{
    int64_t *free_place = is_tool ? find_given_up(stdio_of(rpc), 0) : NULL;
    if (!free_place) {
        rpc_break(rpc, is_tool ? "it went on with nine cancelled calls" : "it did not end a cancelled call within 10 s");
        return;
    }
    *free_place = id;
    rpc_give_up(rpc, id);
}

static void stdio_close(struct rpc *rpc)
{
    line_channel_close(stdio_of(rpc)->channel);
}

static void stdio_free(struct rpc *rpc)
{
    line_channel_free(stdio_of(rpc)->channel);
    free(rpc);
}

static const struct text_list *stdio_last_lines(const struct rpc *rpc)
{
    return line_channel_last_lines(((const struct stdio_rpc *)rpc)->channel);
}

struct rpc *stdio_rpc_new(const struct rpc_place *place, struct driver_session *session)
{
    static const struct rpc_ops ops = {
        .send = stdio_send,
        .notify = stdio_notify,
        .cancel = stdio_cancel,
        .overdue = stdio_overdue,
        .probe = rpc_ping,
        .close = stdio_close,
        .free = stdio_free,
        .last_lines = stdio_last_lines,
    };
    static const struct line_channel_events events = {.line = on_line, .moved = on_moved, .ended = on_ended, .printed = on_printed};
    struct stdio_rpc *rpc = mem_alloc(sizeof(*rpc));
    rpc->base.ops = &ops;
    rpc->channel = line_channel_new(place->loop, session, &events, rpc);
    return &rpc->base;
}
