// The Bash sessions of the product policy. A start takes its turn in the lane; waiting for output or exit does not.
// One read of a session is under way at a time, the others queue; output whose caller has left is kept for the next
// one, so nothing is lost and nothing is given twice.
#include "reconcilers/session/lane.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include "controller/ids.h"
#include <stdlib.h>
#include <string.h>

#define SESSIONS_MAX (2 * GUEST_MAX_BASH_SESSIONS) // the tool server runs half as many at most
#define STOP_MS LANE_GRACE_MS // SIGKILL comes after 1.5 s
// Output kept for the next reader. A client can only pile it up by hanging up on stops: past the first figure it has
// to poll before it may stop again, past the second the newest is dropped.
#define UNDELIVERED_STOP_BYTES (64 * 1024)
#define UNDELIVERED_MAX_BYTES (256 * 1024)

// ---- the sessions of a lane ----------------------------------------------------------------------------------------

static struct bash_session *session_find(struct lane *lane, const char *id)
{
    struct bash_session *session;
    LIST_FOREACH(session, &lane->sessions, link)
        if (strcmp(session->id, id) == 0)
            return session;
    return NULL;
}

static struct bash_session *session_add(struct lane *lane, const char *id)
{
    struct bash_session *session = mem_alloc(sizeof(*session));
    *session = (struct bash_session){.lane = lane,
                                     .id = mem_strdup(id),
                                     .undelivered = BUFFER_INIT(UNDELIVERED_MAX_BYTES),
                                     .last = snapshot_running(id)};
    LIST_INIT(&session->delivering);
    LIST_INSERT_HEAD(&lane->sessions, session, link);
    lane->session_count++;
    return session;
}

static void session_free(struct bash_session *session)
{
    struct lane_call *call;
    LIST_FOREACH(call, &session->delivering, delivering)
        call->session = NULL;
    LIST_REMOVE(session, link);
    session->lane->session_count--;
    buffer_free(&session->undelivered);
    json_decref(session->last);
    free(session->id);
    free(session);
}

void bash_sessions_free(struct lane *lane)
{
    while (!LIST_EMPTY(&lane->sessions))
        session_free(LIST_FIRST(&lane->sessions));
}

static bool is_used(const struct bash_session *session)
{
    struct lane_call *call;
    TAILQ_FOREACH(call, &session->lane->calls, link)
        if (call->session == session)
            return true;
    return session->reading || !LIST_EMPTY(&session->delivering);
}

// Sessions live as long as their sandbox, up to the limit. The tool server itself refuses to run too many commands and
// forgets ended ones; here the one goes that nobody has asked about for longest (the list is in order of use, newest
// first), preferably one that has told its end.
static void make_room(struct lane *lane)
{
    if (lane->session_count < SESSIONS_MAX)
        return;
    struct bash_session *session, *oldest = NULL, *oldest_told = NULL;
    LIST_FOREACH(session, &lane->sessions, link)
    {
        if (is_used(session))
            continue;
        oldest = session;
        if (snapshot_is_final(session->last) && !session->undelivered.len)
            oldest_told = session;
    }
    if (oldest) // else all are waited for, which LANE_WAITS_MAX rules out
        session_free(oldest_told ? oldest_told : oldest);
}

static void note_use(struct bash_session *session)
{
    LIST_REMOVE(session, link);
    LIST_INSERT_HEAD(&session->lane->sessions, session, link);
}

// ---- output that waits for a reader --------------------------------------------------------------------------------

static void keep_output(struct bash_session *session, const json_t *snapshot)
{
    const json_t *output = json_object_get(snapshot, "output");
    buffer_append(&session->undelivered, json_string_value(output), json_string_length(output));
}

// What the caller gets: undelivered output first. borrows snapshot; new reference.
static json_t *compose(struct bash_session *session, json_t *snapshot)
{
    struct buffer *kept = &session->undelivered;
    if (!kept->len)
        return json_incref(snapshot);
    keep_output(session, snapshot);
    size_t len = utf8_cut(kept->data, kept->len < BASH_OUTPUT_BYTES ? kept->len : BASH_OUTPUT_BYTES);
    json_t *answer = json_copy(snapshot);
    json_object_set_new(answer, "output", json_from_bytes(kept->data, len));
    buffer_consume(kept, len);
    if (kept->len)
        json_object_set_new(answer, "has_more_output", json_true());
    else
        buffer_free(kept);
    return answer;
}

static void note_snapshot(struct bash_session *session, const json_t *snapshot)
{
    json_decref(session->last);
    session->last = snapshot_without_output(snapshot);
}

void bash_settled(struct exchange *exchange, json_t *result)
{
    struct bash_session *session = exchange->session;
    if (session->reading == exchange)
        session->reading = NULL;
    CLEANUP_JSON json_t *snapshot = snapshot_read(result, session->id);
    if (!snapshot)
        return;
    note_snapshot(session, snapshot);
    if (!exchange->call)
        keep_output(session, snapshot);
}

void bash_delivered(struct lane_call *call, bool is_taken)
{
    struct bash_session *session = TAKE_PTR(call->session);
    LIST_REMOVE(call, delivering);
    if (!is_taken)
        keep_output(session, call->answer);
    bash_pump(session->lane);
}

static void end_with_snapshot(struct lane_call *call, json_t *snapshot)
{
    CLEANUP_JSON json_t *answer = compose(call->session, snapshot);
    call_end(call, answer, NULL);
}

static void end_running(struct lane_call *call)
{
    CLEANUP_JSON json_t *snapshot = snapshot_running(call->session->id);
    end_with_snapshot(call, snapshot);
}

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

// ---- reads ---------------------------------------------------------------------------------------------------------

static int read_session(struct lane_call *call, const char *wait, int64_t wait_ms, struct error *err)
{
    json_t *params = json_pack("{s:s, s:s, s:I, s:i}", "session_id", call->session->id, "wait", wait, "wait_ms", (json_int_t)wait_ms,
                               "max_bytes", BASH_OUTPUT_BYTES);
    if (call_exchange(call, CALL_READING, "chat2shell/bash_read", params, err) < 0)
        return -1;
    call_arm(call, wait_ms + LANE_GRACE_MS);
    return 0;
}

static void poll_read(struct lane_call *call)
{
    struct error err = ERROR_INIT;
    int64_t left_ms = call->yield_until.ms - clock_boot(loop_clock(call->lanes->loop)).ms;
    if (call->session->undelivered.len)
        end_with_snapshot(call, call->session->last);
    else if (read_session(call, "output", left_ms > 0 ? left_ms : 0, &err) < 0)
        call_end(call, NULL, &err);
}

void bash_pump(struct lane *lane)
{
    struct lane_call *call = TAILQ_FIRST(&lane->calls);
    while (call && lane->state == LANE_OPEN) {
        struct lane_call *next = TAILQ_NEXT(call, link);
        if (call->step == CALL_WAITS_READ && !call->session->reading && LIST_EMPTY(&call->session->delivering))
            poll_read(call); // takes the read, or ends this call
        call = next;
    }
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
    make_room(call->lane);
    call->session = session_add(call->lane, call->session_id);
    if (read_session(call, "exit", call->yield_ms, NULL) < 0)
        end_running(call);
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
        end_with_snapshot(call, snapshot);
    else if (err && rpc_is_broken(call->lane->rpc))
        call_end(call, NULL, err);
    else
        end_running(call);
}

static void bash_expired(struct lane_call *call)
{
    if (call->step == CALL_READING)
        end_running(call);
    else if (call->step == CALL_WAITS_TURN)
        call_fail(call, ERROR_TIMEOUT, "wait for the earlier calls to this sandbox to end, then call again",
                  "the command waited %d minutes for its turn and was not started", LANE_CALL_DEADLINE_MS / 60000);
    else
        call_fail(call, ERROR_TIMEOUT, "look with another bash call whether it runs", "the sandbox did not start the command in time");
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
    call->session = session_find(call->lane, call->session_id);
    if (call->session)
        note_use(call->session);
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
        end_with_snapshot(call, snapshot);
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
        end_running(call);
    else if (call->step == CALL_WAITS_READ && !is_late)
        call_arm(call, LANE_GRACE_MS);
    else
        call_fail(call, ERROR_TIMEOUT, "poll again", "the sandbox did not answer the poll in time");
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
    if (call->session->undelivered.len > UNDELIVERED_STOP_BYTES)
        call_fail(call, ERROR_LIMIT, "read it with bash_poll, then stop the session", "the session has too much unread output");
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
