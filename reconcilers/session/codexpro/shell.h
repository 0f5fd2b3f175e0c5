// The extension methods of controller/base/guest_protocol.h (bash_*, exec_*, git_unsaved) on top of CodexPro's own bash
// tool, which masks what looks like a secret, ends commands at 600 s and kills one that prints more than its cap. So no
// output of a command travels through that tool as it is: it goes to files in the sandbox, and comes out in pieces that are
// encoded, bounded and checked. Every byte that comes back is untrusted.
//
// Waiting is done inside the sandbox by a bounded bash call, beside the lane: CodexPro runs calls concurrently.
// Loop thread only.
#pragma once
#include "controller/base/json.h"
#include "controller/loop.h"
#include "reconcilers/session/rpc.h"

#define CODEXPRO_CALL_MAX_MS 600000   // longest timeout_ms of its bash tool
#define CODEXPRO_OUTPUT_BYTES 120000  // it kills a command that prints more, both streams together

struct shell; // of one session
struct shell_host { // what carries a call to CodexPro
    struct loop *loop;
    // Calls the tool `bash` {command, cwd, timeout_ms}; cwd NULL = the workspace. fn gets the CallToolResult (borrowed) or
    // an error, once, never from inside this call. Returns the call's id (> 0), or -1 with err.
    int64_t (*run)(void *arg, const char *command, const char *cwd, int64_t timeout_ms, rpc_answer_fn fn, void *fn_arg, struct error *err);
    // Nobody waits for it any more: fn will not be called. The command may run on in the sandbox until its timeout.
    void (*abandon)(void *arg, int64_t id);
    void *arg;
};
struct shell *shell_new(const struct shell_host *host);
// Requests that are pending are forgotten without an answer (their owner answers them); NULL allowed.
void shell_free(struct shell *shell);
bool shell_has_method(const char *method); // "chat2shell/bash_start", …
// One request as guest_protocol.h words it; params: reference taken. fn once, never from inside this call, with the result
// or with an error whose code is what the guest's would become (ERROR_NOT_FOUND unknown session, ERROR_LIMIT, ERROR_INVALID …).
// Returns an id > 0 for shell_cancel, or -1 with err.
int64_t shell_request(struct shell *shell, const char *method, json_t *params, rpc_answer_fn fn, void *arg, struct error *err);
// Ends a wait: fn is called soon with ERROR_CANCELLED, and no output is lost by it. Unknown id: nothing.
void shell_cancel(struct shell *shell, int64_t id);
