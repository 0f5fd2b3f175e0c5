// The Bash sessions of a lane: who they are, what they have said, and whose turn it is to hear it. One read of a
// session is under way at a time, the others queue; output whose caller has left is kept for the next one, so nothing
// is lost and nothing is given twice.
#include "reconcilers/session/lane.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <stdlib.h>
#include <string.h>

#define SESSIONS_MAX (2 * GUEST_MAX_BASH_SESSIONS) // the tool server runs half as many at most
// Output kept for the next reader. A client can only pile it up by hanging up on stops: past the first figure it has
// to poll before it may stop again, past the second the newest is dropped.
#define UNDELIVERED_STOP_BYTES (64 * 1024)
#define UNDELIVERED_MAX_BYTES (256 * 1024)
#define PROGRESS_PAUSE_MS 500 // the tool server says it once a second

// ---- the sessions of a lane ----------------------------------------------------------------------------------------

struct bash_session *bash_session_find(struct lane *lane, const char *id)
{
    struct bash_session *session;
    LIST_FOREACH(session, &lane->sessions, link)
        if (strcmp(session->id, id) == 0)
            return session;
    return NULL;
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
    return session->exchange_count || !LIST_EMPTY(&session->delivering);
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

struct bash_session *bash_session_add(struct lane *lane, const char *id)
{
    make_room(lane);
    struct bash_session *session = mem_alloc(sizeof(*session));
    *session = (struct bash_session){.lane = lane,
                                     .id = mem_strdup(id),
                                     .undelivered = BUFFER_INIT(UNDELIVERED_MAX_BYTES),
                                     .last = snapshot_running(id)};
    session->printed_at.ms = clock_boot(loop_clock(lane->lanes->loop)).ms - PROGRESS_PAUSE_MS;
    LIST_INIT(&session->delivering);
    LIST_INSERT_HEAD(&lane->sessions, session, link);
    lane->session_count++;
    return session;
}

void bash_session_use(struct bash_session *session)
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

bool bash_session_is_full(const struct bash_session *session)
{
    return session->undelivered.len > UNDELIVERED_STOP_BYTES;
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
    session->read_bytes += (int64_t)json_string_length(json_object_get(snapshot, "output"));
    if (session->printed_bytes < session->read_bytes)
        session->printed_bytes = session->read_bytes;
}

void bash_settled(struct exchange *exchange, json_t *result)
{
    struct bash_session *session = exchange->session;
    session->exchange_count--;
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

void bash_end(struct lane_call *call, json_t *snapshot)
{
    CLEANUP_JSON json_t *answer = compose(call->session, snapshot);
    call_end(call, answer, NULL);
}

void bash_end_running(struct lane_call *call)
{
    CLEANUP_JSON json_t *snapshot = snapshot_running(call->session->id);
    bash_end(call, snapshot);
}

// ---- reads ---------------------------------------------------------------------------------------------------------

int bash_read(struct lane_call *call, const char *wait, int64_t wait_ms, struct error *err)
{
    json_t *params = json_pack("{s:s, s:s, s:I, s:i}", "session_id", call->session->id, "wait", wait, "wait_ms", (json_int_t)wait_ms,
                               "max_bytes", BASH_OUTPUT_BYTES);
    if (call->news)
        json_object_set_new(params, "_meta", json_pack("{s:s}", "progressToken", call->session->id));
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
        bash_end(call, call->session->last);
    else if (bash_read(call, "output", left_ms > 0 ? left_ms : 0, &err) < 0)
        call_end(call, NULL, &err);
}

bool bash_take_progress(struct lane *lane, const json_t *params)
{
    const char *id = json_get_text(params, "progressToken");
    struct bash_session *session = id ? bash_session_find(lane, id) : NULL;
    struct lane_call *call = session && session->reading ? session->reading->call : NULL;
    struct boot_time now = clock_boot(loop_clock(lane->lanes->loop));
    int64_t bytes = json_get_int(params, "progress", -1);
    if (!call || !call->news || bytes <= session->printed_bytes || now.ms < session->printed_at.ms + PROGRESS_PAUSE_MS)
        return false;
    session->printed_bytes = bytes;
    session->printed_at = now;
    call_news(call);
    return true;
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
