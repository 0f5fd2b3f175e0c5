// bash, bash_poll, bash_stop. A start takes its turn in the lane; waiting for output or exit, polls and stops do not.
#include "reconcilers/session/lane.h"
#include "controller/base/memory.h"
#include "controller/ids.h"

#define STOP_MS LANE_GRACE_MS // SIGKILL comes after 1.5 s

static void fail_unknown(struct lane_call *call)
{
    call_fail(call, ERROR_NOT_FOUND, "use a session_id that bash returned for this sandbox", "Unknown Bash session: %s",
              call->session_id);
}

static void fail_garbled(struct lane_call *call)
{
    call_fail(call, ERROR_UNAVAILABLE, "call it again; if it keeps failing, destroy the sandbox and create a new one",
              "the tool server answered with something that is not the state of a Bash session");
}

// ---- bash ----------------------------------------------------------------------------------------------------------

static void bash_start(struct lane_call *call)
{
    struct error err = ERROR_INIT;
    if (call_exchange(call, CALL_IN_TURN, "chat2shell/bash_start", TAKE_PTR(call->arguments), &err) < 0)
        call_end(call, NULL, &err);
}

static void bash_launched(struct lane_call *call)
{
    if (call->has_left) { // nobody will ever know the session's id
        call_fail(call, ERROR_CANCELLED, NULL, "the caller has left");
        return;
    }
    call->session = bash_session_add(call->lane, call->session_id);
    if (bash_read(call, "exit", call->yield_ms, NULL) < 0)
        bash_end_running(call);
}

// Launched, but the first snapshot failed: the command runs and the caller needs its id.
static void bash_answered(struct lane_call *call, json_t *result, const struct error *err)
{
    if (call->step == CALL_IN_TURN) {
        if (err)
            call_end(call, NULL, err);
        else
            bash_launched(call);
        return;
    }
    CLEANUP_JSON json_t *snapshot = snapshot_read(result, call->session_id);
    if (snapshot)
        bash_end(call, snapshot);
    else if (err && rpc_is_broken(call->lane->rpc))
        call_end(call, NULL, err);
    else
        bash_end_running(call);
}

static void bash_expired(struct lane_call *call)
{
    if (call->step == CALL_READING)
        bash_end_running(call);
    else if (call->step == CALL_WAITS_TURN)
        call_fail(call, ERROR_TIMEOUT, "wait for the earlier calls to this sandbox to end, then call again",
                  "the command waited %d minutes for its turn and was not started", LANE_CALL_DEADLINE_MS / 60000);
    else
        call_fail(call, ERROR_TIMEOUT, "look with another bash call (ps aux) whether it runs before you start it again", "the sandbox did not start the command in time");
}

struct lane_call *lane_bash(struct lanes *lanes, const char *sandbox_uid, const char *command, const char *cwd, int64_t yield_time_ms,
                            int64_t timeout_ms, lane_answer_fn done, void *arg)
{
    static const struct call_kind kind = {
        .takes_turn = true, .needs_sessions = true, .start = bash_start, .answered = bash_answered, .expired = bash_expired};
    struct lane_call *call = call_new(lanes, sandbox_uid, &kind, done, arg);
    char id[ID_TEXT_SIZE];
    id_make_bash_session(id);
    call->session_id = mem_strdup(id);
    call->yield_ms = yield_time_ms;
    call->arguments = json_pack("{s:s}", "session_id", id);
    json_set_text(call->arguments, "command", command);
    json_set_text(call->arguments, "cwd", cwd);
    if (timeout_ms)
        json_object_set_new(call->arguments, "timeout_ms", json_integer(timeout_ms));
    lanes_post(lanes, &call->arrival);
    return call;
}

// ---- bash_poll -----------------------------------------------------------------------------------------------------

// False: the call has ended.
static bool take_session(struct lane_call *call)
{
    call->session = bash_session_find(call->lane, call->session_id);
    if (call->session)
        bash_session_use(call->session);
    else
        fail_unknown(call);
    return call->session != NULL;
}

static void poll_start(struct lane_call *call)
{
    call->yield_until.ms = clock_boot(loop_clock(call->lanes->loop)).ms + call->yield_ms;
    if (!take_session(call))
        return;
    call->step = CALL_WAITS_READ;
    call_arm(call, call->yield_ms);
    bash_pump(call->lane);
}

static void snapshot_answered(struct lane_call *call, json_t *result, const struct error *err)
{
    CLEANUP_JSON json_t *snapshot = snapshot_read(result, call->session_id);
    if (snapshot)
        bash_end(call, snapshot);
    else if (err && err->code == ERROR_NOT_FOUND)
        fail_unknown(call); // the tool server forgot it
    else if (err)
        call_end(call, NULL, err);
    else
        fail_garbled(call);
}

// In the queue behind a poll that still waits: there has been nothing new for that one, so there is nothing for this.
// Behind a read that is being cancelled: a little longer, then it is an error.
static void poll_expired(struct lane_call *call)
{
    struct exchange *ahead = call->session->reading;
    bool is_late = clock_boot(loop_clock(call->lanes->loop)).ms >= call->yield_until.ms + LANE_GRACE_MS;
    if (call->step == CALL_WAITS_READ && ahead && ahead->call)
        bash_end_running(call);
    else if (call->step == CALL_WAITS_READ && !is_late)
        call_arm(call, LANE_GRACE_MS);
    else
        call_fail(call, ERROR_TIMEOUT, "call bash_poll again with the same session_id", "the sandbox did not answer the poll in time");
}

struct lane_call *lane_bash_poll(struct lanes *lanes, const char *sandbox_uid, const char *session_id, int64_t yield_time_ms,
                                 lane_answer_fn done, void *arg)
{
    static const struct call_kind kind = {
        .needs_sessions = true, .start = poll_start, .answered = snapshot_answered, .expired = poll_expired};
    struct lane_call *call = call_new(lanes, sandbox_uid, &kind, done, arg);
    call->session_id = mem_strdup(session_id);
    call->yield_ms = yield_time_ms;
    call->deadline_ms = yield_time_ms + LANE_GRACE_MS;
    lanes_post(lanes, &call->arrival);
    return call;
}

// ---- bash_stop -----------------------------------------------------------------------------------------------------

static void stop_start(struct lane_call *call)
{
    struct error err = ERROR_INIT;
    if (!take_session(call))
        return;
    if (bash_session_is_full(call->session))
        call_fail(call, ERROR_LIMIT, "read it with bash_poll until has_more_output is false, then call bash_stop again", "the session has too much unread output");
    else if (call_exchange(call, CALL_REQUESTING, "chat2shell/bash_stop", json_pack("{s:s}", "session_id", call->session_id), &err) < 0)
        call_end(call, NULL, &err);
}

static void stop_expired(struct lane_call *call)
{
    call_fail(call, ERROR_TIMEOUT, "look with bash_poll whether it ended", "the sandbox did not stop the command in time");
}

struct lane_call *lane_bash_stop(struct lanes *lanes, const char *sandbox_uid, const char *session_id, lane_answer_fn done, void *arg)
{
    static const struct call_kind kind = {
        .needs_sessions = true, .start = stop_start, .answered = snapshot_answered, .expired = stop_expired};
    struct lane_call *call = call_new(lanes, sandbox_uid, &kind, done, arg);
    call->session_id = mem_strdup(session_id);
    call->deadline_ms = STOP_MS;
    lanes_post(lanes, &call->arrival);
    return call;
}
