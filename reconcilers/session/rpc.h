// One tool server, however it is reached: requests, each answered exactly once, cancelling, and the one end. Two kinds
// stand behind this, chosen by the session: JSON-RPC lines over the stdio of chat2shell-guest (stdio_rpc.c), and CodexPro
// over HTTP (codexpro/). The lane does not know which one it has.
//
// The server is untrusted: answers are parsed strictly, and a server that keeps breaking the protocol is declared broken.
// Every request is answered exactly once through its function: with the result, with the server's error (mapped to a code
// and a bounded, printable sentence), or with ERROR_UNAVAILABLE when the session ends. Loop thread only.
#pragma once
#include "controller/base/guest_protocol.h"
#include "controller/base/json.h"
#include "controller/loop.h"
#include "reconcilers/drivers/driver.h"

#define RPC_PENDING_MAX GUEST_MAX_IN_FLIGHT
#define RPC_STRIKES_MAX 16      // malformed messages and answers to nothing
#define RPC_UNASKED_MAX 1000    // notifications and requests of the server between two answers
#define RPC_VALUES_MAX 200000   // JSON values in one message: bounds the memory that parsing may take
#define RPC_CANCEL_MS 10000     // a cancelled request is answered within that
#define RPC_GIVEN_UP_MAX 8      // cancelled tools that a guest still owes an answer

struct rpc;
struct farewells; // codexpro/farewell.h
// result: borrowed; NULL with err. Never called from inside rpc_request.
typedef void (*rpc_answer_fn)(void *arg, json_t *result, const struct error *err);
typedef void (*rpc_broken_fn)(void *arg, const char *reason); // once; all requests were answered before; must not free

struct rpc_place {
    struct loop *loop;
    struct farewells *farewells; // outlives the rpc
};
// Takes the descriptors and the token. Comes into being in any case: what cannot be had is told by `broken`, later.
struct rpc *rpc_new(const struct rpc_place *place, struct driver_session *session, rpc_broken_fn broken, void *arg);
void rpc_free(struct rpc *rpc); // answers what is pending with ERROR_UNAVAILABLE; broken is not called; NULL allowed
// Returns the request's id (> 0), or -1: ERROR_LIMIT (too many pending, or the server does not read), ERROR_TOO_LARGE,
// ERROR_UNAVAILABLE. params: reference taken in any case; NULL = {}.
int64_t rpc_request(struct rpc *rpc, const char *method, json_t *params, rpc_answer_fn fn, void *arg, struct error *err);
void rpc_notify(struct rpc *rpc, const char *method, json_t *params); // params: reference taken
// Nobody waits any more. The request stays pending until the server has answered it, which has to be within RPC_CANCEL_MS.
// A tool's call is given up then and answered with ERROR_CANCELLED, and what comes for it later is dropped; a guest, which
// promises to end what is cancelled, is broken when it owes more than RPC_GIVEN_UP_MAX of them, or any other request.
// Unknown or cancelled already: nothing.
void rpc_cancel(struct rpc *rpc, int64_t id);
// The handshake is done: from now on a server that does not answer is found out (rpc_health.h).
void rpc_watch_health(struct rpc *rpc);
// What the server says without being asked: true if somebody wanted to know. What nobody wanted counts as flooding.
typedef bool (*rpc_notice_fn)(void *arg, const char *method, const json_t *params);
void rpc_on_notice(struct rpc *rpc, rpc_notice_fn fn); // arg: as for broken
// Each line that the server prints on its standard error: printable, cut, without its token. Also while it ends.
typedef void (*rpc_printed_fn)(void *arg, const char *line);
void rpc_on_printed(struct rpc *rpc, rpc_printed_fn fn); // arg: as for broken
void rpc_break(struct rpc *rpc, const char *reason); // the caller found it broken
bool rpc_is_broken(const struct rpc *rpc);
const struct text_list *rpc_last_lines(const struct rpc *rpc);
