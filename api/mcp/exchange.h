// One POST: its messages, their answers, and the one HTTP answer when the last is there. A batch is several
// calls of one exchange; a single message is a batch of one whose answer is not put into an array.
//
// exchange.c: what a POST asks for; answer.c: its answers; watch.c: what happens while it waits.
#pragma once
#include "api/mcp/callers.h"
#include "api/mcp/front.h"
#include "api/mcp/in_flight.h"
#include "api/mcp/jsonrpc_text.h"
#include "api/mcp/progress.h"
#include "api/mcp/ready.h"
#include "api/mcp/revision.h"
#include "api/tools/tools.h"
#include <pthread.h>

struct mcp_server {
    struct world *world;
    struct http_server *http;
    int port;
    _Atomic int refs; // one for the owner, one an exchange
    struct mcp_front front;
    char *public_host; // NULL: none
    char *challenge_invalid; // auth's, for as long as exchanges live; NULL: nobody is asked
    struct mcp_callers callers;
    struct catalogue catalogue;
    struct tool_gate gate;
    struct mcp_ready ready;
    struct in_flight in_flight; // tools' calls of the eras that know notifications/cancelled
};
void mcp_server_unref(struct mcp_server *server);

struct mcp_exchange;
struct mcp_watch;
struct mcp_call {
    struct mcp_exchange *exchange;
    struct jsonrpc_message message; // borrows from exchange->text
    enum mcp_era era;
    bool has_tool;   // tool runs
    bool is_tracked; // notifications/cancelled may name it
    struct tool_call tool;
    struct in_flight_entry in_flight;
    struct progress progress; // loop thread
    bool has_begun;           // loop thread: its tool runs
    bool is_started;   // exchange->lock: its tool is the loop's from now on
    bool is_done;      // exchange->lock: it has its answer
    bool is_cancelled; // exchange->lock: its client said so, and takes no answer
    bool is_revoked;   // exchange->lock: its caller's token went, and it gets no other answer
    char *answer; // JSON text; NULL until answered, and for what gets none
    size_t answer_len;
};
struct mcp_exchange {
    struct mcp_server *server;
    struct http_request *http;
    struct caller caller;
    LIST_ENTRY(mcp_exchange) of_caller; // server->callers.lock
    bool is_listed;                     // set before it can be answered
    uint64_t asker; // whose share of places and turns it takes: the connection's, or of whoever was recognised
    struct jsonrpc_text text; // the body
    struct mcp_headers headers;
    struct mcp_watch *watch;  // NULL: the answer is one piece, at the end
    _Atomic int refs;         // one until the answer, one for each that may outlive it
    pthread_mutex_t lock; // guards pending and the calls' answers
    size_t pending;       // calls without an answer, and holds
    int http_status;      // of a single message
    const char *challenge; // its WWW-Authenticate; NULL: none
    bool is_batch;
    bool is_event;     // the client takes its answer as an event only
    bool takes_events; // it takes one or several
    bool is_over;      // loop thread, with a watch: it was answered
    size_t count;
    struct mcp_call calls[];
};

#define MCP_REVOKED_TEXT "the token of this request was revoked"

// Handles one POST to the endpoint. The request is answered, now or later.
void mcp_exchange_start(struct mcp_server *server, struct http_request *request);
// The answers of one call, exactly one of them, once. Any thread.
void mcp_call_result(struct mcp_call *call, const char *result, size_t len); // JSON text, copied
void mcp_call_error(struct mcp_call *call, int http_status, int code, const char *message, json_t *data);
void mcp_call_refuse_scope(struct mcp_call *call, enum auth_scope scope); // 403: the caller may not
void mcp_call_nothing(struct mcp_call *call); // notifications and responses: 202
// Runs a tool for the call. arguments: reference taken. Of the message only the id and the token are left then.
void mcp_call_run_tool(struct mcp_call *call, const struct tool *tool, json_t *arguments, tool_finish_fn finish);

// ---- answer.c
void mcp_exchange_unref(struct mcp_exchange *exchange);
// A hold keeps the answer from going out; the last release sends it.
void mcp_exchange_hold(struct mcp_exchange *exchange);
bool mcp_exchange_try_hold(struct mcp_exchange *exchange); // false: the last release was, and the answer is on its way
void mcp_exchange_release(struct mcp_exchange *exchange);
// An answer to what is no exchange. body: allocated, taken.
void mcp_refuse_text(struct http_request *request, int http_status, char *body, size_t len);
// ---- watch.c
// Loop thread: the client has gone.
void mcp_exchange_gone(void *exchange);
// Before the call's tool starts: the exchange is watched from now on if the call may have something to say meanwhile.
void mcp_watch_call(struct mcp_call *call);
// Loop thread: ends the watch. The stream that the answer goes on with, or NULL.
struct event_stream *mcp_watch_end(struct mcp_exchange *exchange);
// ---- methods.c
void mcp_method_run(struct mcp_call *call);
