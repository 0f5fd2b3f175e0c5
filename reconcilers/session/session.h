// Sessions: the control plane's side of the tool servers in sandboxes. One lane a sandbox: its serial call queue. A
// lane holds the MCP connection to the tool server (rpc.h: stdio or HTTP), one tool call at a
// time, at most LANE_QUEUE_MAX waiting: in order of arrival those of one asker, and in turn those of several. Waiting for a Bash session's output never occupies the
// lane. The lane decides about life: closing is an operation on it (design 3: "the lane decides about life").
//
// Everything here runs on the loop thread; functions may be called from any thread unless stated, callbacks come on the
// loop thread, exactly once. Bytes from the tool server are untrusted: bounded lines, strict parsing.
#pragma once
#include "controller/base/json.h"
#include "controller/loop.h"
#include "controller/store/store.h"
#include "reconcilers/drivers/driver.h"
#include "reconcilers/session/journal.h"

#define LANE_QUEUE_MAX 80 // of one asker at most FAIR_MOST of it
#define LANE_CALL_DEADLINE_MS (10 * 60 * 1000)

struct lanes; // all lanes, by sandbox uid
struct lanes *lanes_new(struct loop *loop, struct store *store);
struct journals *lanes_journals(struct lanes *lanes); // what happens in the sandboxes; lives as long as the lanes
void lanes_free(struct lanes *lanes); // answers every call with ERROR_UNAVAILABLE first

// ---- life (called by the session and sandbox reconcilers) -------------------------------------------------------
struct lane_hello {
    const char *server_name, *server_version; // sanitized, bounded
    bool has_sessions;                        // the extension of controller/base/guest_protocol.h
};
// Opens the lane over a started tool server (takes the descriptors) and does the MCP handshake within LANE_HANDSHAKE_MS.
// ready: exactly once: result 0 with hello, or -1 (also when the lane is dropped first; the callback may come after that).
// died: after a ready of 0, once, when the connection ends (reason + last stderr lines); never once lane_drop returned.
typedef void (*lane_ready_fn)(void *arg, int result, const struct lane_hello *hello, const struct error *err);
typedef void (*lane_died_fn)(void *arg, const char *sandbox_uid, const char *reason, const struct text_list *last_lines);
void lane_open(struct lanes *lanes, const char *sandbox_uid, const char *public_workspace_id, struct driver_session *session,
               lane_ready_fn ready, lane_died_fn died, void *arg);
// Expiry: closes the lane only if no call is queued or running and no activity (a call, an exec, a poll) is newer than
// `idle_since`; returns true if no call can enter any more (closed, dead, or no such lane). A closed lane refuses calls
// with `closed_message`. This and the other functions that return something wait for the loop thread: do not hold a lock
// that a callback takes. The calls, lane_open, lane_close and lane_reopen never wait.
bool lane_close_if_idle(struct lanes *lanes, const char *sandbox_uid, struct wall_time idle_since, const char *closed_message);
void lane_reopen(struct lanes *lanes, const char *sandbox_uid); // the deletion could not be committed
// Destroy: closes at once; queued and running calls are answered ERROR_STATE "destroyed".
void lane_close(struct lanes *lanes, const char *sandbox_uid, const char *closed_message);
void lane_drop(struct lanes *lanes, const char *sandbox_uid); // forget it (descriptors closed); absent is fine
// Newest activity, or {0}.
struct wall_time lane_last_activity(struct lanes *lanes, const char *sandbox_uid);
void lane_note_activity(struct lanes *lanes, const char *sandbox_uid); // loop thread: somebody uses the sandbox past its tool server
bool lane_is_open(struct lanes *lanes, const char *sandbox_uid);
struct lane_load {
    size_t running, waiting; // tool calls in the lane; a Bash command that runs on by itself is none
    struct wall_time last_activity;
};
bool lane_get_load(struct lanes *lanes, const char *sandbox_uid, struct lane_load *ret); // false: there is no open lane

// ---- calls (api/) --------------------------------------------------------------------------------------------------
// result 0: `answer` is borrowed for the callback. -1: err (ERROR_NOT_FOUND no lane, ERROR_STATE closed/destroyed,
// ERROR_LIMIT queue full, ERROR_TIMEOUT, ERROR_UNAVAILABLE tool server died).
typedef void (*lane_answer_fn)(void *arg, int result, json_t *answer, const struct error *err);
struct lane_call; // handle for cancelling the *wait*
// Whose share of the lane's places and turns a call takes; 0 unless it is said. On the loop thread, at once after the function that
// made the call.
void lane_call_set_asker(struct lane_call *call, uint64_t asker);
// Forwards tools/call {name, arguments} in the lane. answer: the tool's CallToolResult (content, structuredContent,
// isError) with the tool server's own workspace ids replaced by the public one. Counts as activity. arguments: new reference taken.
struct lane_call *lane_call_tool(struct lanes *lanes, const char *sandbox_uid, const char *tool, json_t *arguments, lane_answer_fn done, void *arg);
// The same for a tool that only waits, at most wait_ms: it takes no turn, so other calls go through meanwhile.
struct lane_call *lane_call_waiting_tool(struct lanes *lanes, const char *sandbox_uid, const char *tool, json_t *arguments,
                                         int64_t wait_ms, lane_answer_fn done, void *arg);
// The Bash sessions of the product policy. answer: {session_id, status, exit_code, output, has_more_output}. bash_start
// takes its turn in the lane for the start alone; waiting, polls and stops do not occupy it. Unknown session → ERROR_NOT_FOUND
// "Unknown Bash session: ID".
struct lane_call *lane_bash(struct lanes *lanes, const char *sandbox_uid, const char *command, const char *cwd, int64_t yield_time_ms,
                            int64_t timeout_ms /* 0 = none */, lane_answer_fn done, void *arg);
struct lane_call *lane_bash_poll(struct lanes *lanes, const char *sandbox_uid, const char *session_id, int64_t yield_time_ms,
                                 lane_answer_fn done, void *arg);
struct lane_call *lane_bash_stop(struct lanes *lanes, const char *sandbox_uid, const char *session_id, lane_answer_fn done, void *arg);
// Extension methods that do not take the lane's turn but count as activity: exec_*, git_unsaved (params reference taken).
struct lane_call *lane_request(struct lanes *lanes, const char *sandbox_uid, const char *method, json_t *params, int64_t deadline_ms,
                               lane_answer_fn done, void *arg);
// The control plane's own last requests (the bundle of a private clone at expiry): also on a lane that lane_close_if_idle
// closed; does not count as activity.
struct lane_call *lane_request_closed(struct lanes *lanes, const char *sandbox_uid, const char *method, json_t *params,
                                      int64_t deadline_ms, lane_answer_fn done, void *arg);
// Ends the caller's interest: done will not run after this returns true; false: it ran or is running. Never waits, so it may
// be called under the lock that `done` takes. What waits (for its turn, for output) ends; a tool that runs in the lane goes
// on and keeps its turn; output of a Bash session that comes too late is kept for the next poll.
bool lane_call_cancel(struct lane_call *call);
// The same, and the work is not wanted either: a tool that runs in the lane is told to stop (rpc.h: rpc_cancel). The lane
// goes on with the next call once the tool server has confirmed that, or after a bounded time; a late answer is dropped.
bool lane_call_stop(struct lane_call *call);
// What a call is doing, for its caller's eyes. Loop thread, while its handle is valid.
enum lane_stage { LANE_STAGE_QUEUED, LANE_STAGE_RUNNING, LANE_STAGE_WAITING };
struct lane_look {
    enum lane_stage stage;
    size_t ahead;           // QUEUED: calls before it, the running one included
    const char *session_id; // of a Bash session that is known by now, else NULL; borrowed from the call
    int64_t printed_bytes;  // by that session's command so far, as far as known
};
void lane_call_look(const struct lane_call *call, struct lane_look *ret);
// Loop thread, in the same step that made the call: news runs (with the call's arg) whenever a look would show something
// new, until the handle ends. It must not call back into lanes.
typedef void (*lane_news_fn)(void *arg);
void lane_call_watch(struct lane_call *call, lane_news_fn news);
// Every call ends by itself within LANE_CALL_DEADLINE_MS (waits: their own bound + 30 s), so handles need no free:
// a handle is valid until done ran or cancel returned.
