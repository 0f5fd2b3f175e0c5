// What one POST brought, as JSON-RPC: exactly one answer with the request's id, in a body of application/json or in a
// text/event-stream where other events may stand around it. For HTTP errors, the sentence that the body may hold.
#pragma once
#include "reconcilers/session/codexpro/http.h"
#include "reconcilers/session/codexpro/sse.h"
#include "reconcilers/session/rpc_message.h"

#define MCP_REFUSAL_BYTES (64 * 1024) // of an HTTP error's body; the rest is not read

struct mcp_answer {
    int64_t id;   // of the request
    size_t *held; // bytes that all answers of the session hold; bounded by MCP_HELD_MAX_BYTES
    size_t mine;  // of them
    struct buffer body;
    struct sse sse;
    struct rpc_message message; // root != NULL: the answer
    const char *fault;          // the server broke the protocol with …
    const char *over;           // … or a bound: words
};
#define MCP_HELD_MAX_BYTES (3 * (size_t)GUEST_MESSAGE_MAX_BYTES)

void mcp_answer_init(struct mcp_answer *answer, int64_t id, size_t *held);
void mcp_answer_free(struct mcp_answer *answer);
bool mcp_answer_feed(struct mcp_answer *answer, const struct http_answer *head, const char *bytes, size_t len); // http_events.body
// After the body's end, on status 200: message is set, or fault or over says why not.
void mcp_answer_end(struct mcp_answer *answer, const struct http_answer *head);
// Of an HTTP error: the sentence in its body (ret_err's message and code), or false.
bool mcp_answer_refusal(const struct mcp_answer *answer, struct error *ret_err);
