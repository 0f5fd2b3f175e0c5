// A JSON-RPC 2.0 client over a line channel: ids, the table of pending requests, cancelling. The server is untrusted:
// answers are parsed strictly, and a server that keeps breaking the protocol is declared broken. Loop thread only.
//
// Every request is answered exactly once through its function: with the result, with the server's error (mapped to a
// code and a bounded, printable sentence), or with ERROR_UNAVAILABLE when the connection ends.
#pragma once
#include "reconcilers/session/line_channel.h"

#define RPC_PENDING_MAX GUEST_MAX_IN_FLIGHT
#define RPC_STRIKES_MAX 16      // malformed lines and answers to nothing
#define RPC_UNASKED_MAX 1000    // notifications and requests of the server between two answers
#define RPC_VALUES_MAX 200000   // JSON values in one message: bounds the memory that parsing may take
#define RPC_CANCEL_MS 10000     // a cancelled request is answered within that

struct rpc;
// result: borrowed; NULL with err. Never called from inside rpc_request.
typedef void (*rpc_answer_fn)(void *arg, json_t *result, const struct error *err);
typedef void (*rpc_broken_fn)(void *arg, const char *reason); // once; all requests were answered before; must not free

struct rpc *rpc_new(struct loop *loop, struct driver_session *session, rpc_broken_fn broken, void *arg); // takes the descriptors
void rpc_free(struct rpc *rpc); // answers what is pending with ERROR_UNAVAILABLE; broken is not called; NULL allowed
// Returns the request's id (> 0), or -1: ERROR_LIMIT (too many pending, or the server does not read), ERROR_TOO_LARGE,
// ERROR_UNAVAILABLE. params: reference taken in any case; NULL = {}.
int64_t rpc_request(struct rpc *rpc, const char *method, json_t *params, rpc_answer_fn fn, void *arg, struct error *err);
void rpc_notify(struct rpc *rpc, const char *method, json_t *params);
// Tells the server that nobody waits any more. The request stays pending until it is answered, which has to be within
// RPC_CANCEL_MS: else the server is broken. Unknown or cancelled already: nothing.
void rpc_cancel(struct rpc *rpc, int64_t id);
void rpc_break(struct rpc *rpc, const char *reason); // the caller found it broken
bool rpc_is_broken(const struct rpc *rpc);
const struct text_list *rpc_last_lines(const struct rpc *rpc);
