// One POST: its messages, their answers, and the one HTTP answer when the last is there. A batch is several
// calls of one exchange; a single message is a batch of one whose answer is not put into an array.
#pragma once
#include "api/auth/caller.h"
#include "api/http/http.h"
#include "api/mcp/jsonrpc_text.h"
#include "api/mcp/ready.h"
#include "api/mcp/revision.h"
#include "api/tools/tools.h"
#include <pthread.h>

struct mcp_server {
    struct world *world;
    struct http_server *http;
    int port;
    _Atomic int refs; // one for the owner, one an exchange
    struct catalogue catalogue;
    struct tool_gate gate;
    struct mcp_ready ready;
};
void mcp_server_unref(struct mcp_server *server);

struct mcp_exchange;
struct mcp_call {
    struct mcp_exchange *exchange;
    struct jsonrpc_message message; // borrows from exchange->text
    enum mcp_era era;
    bool has_tool; // tool runs
    struct tool_call tool;
    char *answer; // JSON text; NULL until answered, and for what gets none
    size_t answer_len;
};
struct mcp_exchange {
    struct mcp_server *server;
    struct http_request *http;
    struct caller caller;
    struct jsonrpc_text text; // the body
    struct mcp_headers headers;
    pthread_mutex_t lock; // guards pending and the calls' answers
    size_t pending;       // calls without an answer, and holds
    int http_status;      // of a single message
    bool is_batch;
    bool is_event; // the client takes its answer as an event only
    size_t count;
    struct mcp_call calls[];
};

// Handles one POST to the endpoint. The request is answered, now or later.
void mcp_exchange_start(struct mcp_server *server, struct http_request *request);
// The answers of one call, exactly one of them, once. Any thread.
void mcp_call_result(struct mcp_call *call, const char *result, size_t len); // JSON text, copied
void mcp_call_error(struct mcp_call *call, int http_status, int code, const char *message, json_t *data);
void mcp_call_nothing(struct mcp_call *call); // notifications and responses: 202
// ---- methods.c
void mcp_method_run(struct mcp_call *call);
