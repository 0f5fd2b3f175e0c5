#include "reconcilers/session/codexpro/mcp_answer.h"
#include <string.h>

void mcp_answer_init(struct mcp_answer *answer, int64_t id, size_t *held)
{
    *answer = (struct mcp_answer){.id = id, .held = held, .body = BUFFER_INIT(GUEST_MESSAGE_MAX_BYTES), .sse = SSE_INIT};
}

// The bytes are not needed any more.
static void release(struct mcp_answer *answer)
{
    *answer->held -= answer->mine;
    answer->mine = 0;
    buffer_free(&answer->body);
    sse_free(&answer->sse);
}

void mcp_answer_free(struct mcp_answer *answer)
{
    if (!answer->held)
        return;
    release(answer);
    json_decref(answer->message.root);
    *answer = (struct mcp_answer){0};
}

static bool is_stream(const struct http_answer *head)
{
    return strcmp(head->content_type, "text/event-stream") == 0;
}

// Is this text the answer? Sets message, or fault.
static void take_text(struct mcp_answer *answer, const char *bytes, size_t len)
{
    struct rpc_message message;
    const char *fault = NULL;
    enum rpc_message_kind kind = rpc_message_parse(bytes, len, &message, &fault);
    if (kind == RPC_MESSAGE_ANSWER && message.id == answer->id) {
        answer->message = message;
        return;
    }
    json_decref(message.root);
    if (kind == RPC_MESSAGE_HUGE)
        answer->over = RPC_MESSAGE_HUGE_WORDS;
    else if (kind == RPC_MESSAGE_BAD)
        answer->fault = fault;
}

// Notifications, requests and answers to others are skipped; a malformed message is remembered unless the answer comes.
static bool on_event(void *arg, const char *data, size_t len)
{
    struct mcp_answer *answer = arg;
    take_text(answer, data, len);
    return !answer->message.root && !answer->over;
}

static bool feed_stream(struct mcp_answer *answer, const char *bytes, size_t len)
{
    bool is_enough;
    const char *over = sse_feed(&answer->sse, bytes, len, on_event, answer, &is_enough);
    if (over && !answer->over)
        answer->over = over;
    return !is_enough && !answer->over;
}

static bool feed_body(struct mcp_answer *answer, const char *bytes, size_t len)
{
    if (buffer_append(&answer->body, bytes, len) < 0)
        answer->over = "its answer is over the limit of 24 MiB";
    return !answer->over;
}

// An HTTP error: its sentence is at the beginning, if there is one.
static bool feed_refusal(struct mcp_answer *answer, const char *bytes, size_t len)
{
    size_t room = MCP_REFUSAL_BYTES - answer->body.len;
    buffer_append(&answer->body, bytes, len < room ? len : room);
    return answer->body.len < MCP_REFUSAL_BYTES;
}

bool mcp_answer_feed(struct mcp_answer *answer, const struct http_answer *head, const char *bytes, size_t len)
{
    if (head->status != 200)
        return feed_refusal(answer, bytes, len);
    answer->mine += len;
    *answer->held += len;
    if (*answer->held > MCP_HELD_MAX_BYTES) {
        answer->over = "its answers are over the limit of 72 MiB at once";
        return false;
    }
    return is_stream(head) ? feed_stream(answer, bytes, len) : feed_body(answer, bytes, len);
}

void mcp_answer_end(struct mcp_answer *answer, const struct http_answer *head)
{
    if (!is_stream(head) && !answer->over) {
        if (strcmp(head->content_type, "application/json") == 0)
            take_text(answer, buffer_text(&answer->body), answer->body.len);
        else
            answer->fault = "an answer that is neither JSON nor an event stream";
    }
    release(answer);
    if (!answer->message.root && !answer->over && !answer->fault)
        answer->fault = "an answer without the result of the call";
}

bool mcp_answer_refusal(const struct mcp_answer *answer, struct error *ret_err)
{
    CLEANUP_JSON json_t *body = NULL;
    if (!answer->body.len || json_parse(answer->body.data, answer->body.len, &body, NULL) < 0)
        return false;
    const json_t *error = json_object_get(body, "error");
    if (!rpc_message_is_error(error))
        return false;
    rpc_message_error(error, ret_err);
    return true;
}
