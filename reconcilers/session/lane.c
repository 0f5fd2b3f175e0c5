// One lane's life: the handshake, the table of states and events, the words for its callers.
#include "reconcilers/session/lane.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SERVER_WORD_CHARS 64
#define HINT_RECREATE "destroy this sandbox with sandbox_destroy, then create a new one with sandbox_create"

// ---- life --------------------------------------------------------------------------------------------------------

#define STAY (-1) // the event means nothing here
static const int8_t next_state[LANE_STATE_COUNT][LANE_EVENT_COUNT] = {
    //                     ready        break      close              reopen
    [LANE_OPENING]      = {LANE_OPEN,   LANE_DEAD, LANE_CLOSED_EARLY, STAY},
    [LANE_OPEN]         = {STAY,        LANE_DEAD, LANE_CLOSED,       STAY},
    [LANE_CLOSED_EARLY] = {LANE_CLOSED, LANE_DEAD, LANE_CLOSED_EARLY, LANE_OPENING},
    [LANE_CLOSED]       = {STAY,        LANE_DEAD, LANE_CLOSED,       LANE_OPEN},
    [LANE_DEAD]         = {STAY,        STAY,      LANE_DEAD,         LANE_DEAD},
};

bool lane_step(struct lane *lane, enum lane_event event)
{
    int8_t next = next_state[lane->state][event];
    if (next == STAY)
        return false;
    lane->state = (enum lane_state)next;
    assert(lane->state == LANE_OPENING || lane->state == LANE_CLOSED_EARLY || !lane->handshake);
    return true;
}

bool lane_is_idle(const struct lane *lane)
{
    const struct lane_call *call;
    TAILQ_FOREACH(call, &lane->calls, link)
        if (!call->kind->is_own)
            return false;
    return !lane->turn;
}

int lane_check_open(const struct lane *lane, bool is_own, struct error *err)
{
    if (is_own && lane->state == LANE_CLOSED)
        return 0;
    if (lane->closed_message)
        return error_set(err, ERROR_STATE, "create a new sandbox with sandbox_create", "%s", lane->closed_message);
    if (lane->state == LANE_DEAD)
        return error_set(err, ERROR_UNAVAILABLE, HINT_RECREATE, "the tool server of this sandbox has failed: %s", lane->death_reason);
    if (lane->state == LANE_OPENING)
        return error_set(err, ERROR_STATE, "look with sandbox_get until it is running, then call again",
                         "the sandbox is still being created");
    if (lane->state != LANE_OPEN)
        return error_set(err, ERROR_STATE, "create a new sandbox with sandbox_create", "the sandbox is being destroyed");
    return 0;
}

void lane_touch(struct lane *lane)
{
    struct wall_time now = clock_wall(loop_clock(lane->lanes->loop));
    if (now.ms > lane->last_activity.ms) // a clock that steps back does not shorten the promise
        lane->last_activity = now;
    if (lane->lanes->store)
        store_touch_activity(lane->lanes->store, lane->uid, now);
}

void lane_end_calls(struct lane *lane, enum error_code code, const char *hint, const char *message)
{
    while (!TAILQ_EMPTY(&lane->calls))
        call_fail(TAILQ_FIRST(&lane->calls), code, hint, "%s", message);
}

// ---- the owner's callbacks -----------------------------------------------------------------------------------------

#define LANE_OF(notice_, member) ((struct lane *)((char *)(notice_)-offsetof(struct lane, member)))

static void free_now(struct lane *lane)
{
    free(lane->uid);
    free(lane->public_workspace_id);
    free(lane->inner_workspace_id);
    free(lane->closed_message);
    free(lane->death_reason);
    free(lane->server_name);
    free(lane->server_version);
    fair_clear(&lane->turns);
    fair_clear(&lane->waits);
    free(lane);
}

static void tell_ready(struct notice *notice)
{
    struct lane *lane = LANE_OF(notice, ready_notice);
    struct lane_hello hello = {lane->server_name, lane->server_version, lane->has_sessions};
    bool is_ready = lane->ready_error.code == ERROR_NONE;
    lane->is_ready_told = true;
    bool is_dropped = lane->is_dropped; // `ready` may drop the lane itself, which then frees it
    lane->ready(lane->arg, is_ready ? 0 : -1, is_ready ? &hello : NULL, is_ready ? NULL : &lane->ready_error);
    if (is_dropped)
        free_now(lane);
}

static void tell_died(struct notice *notice)
{
    struct lane *lane = LANE_OF(notice, died_notice);
    lane->died(lane->arg, lane->uid, lane->death_reason, rpc_last_lines(lane->rpc));
}

void lane_fail_ready(struct lane *lane, enum error_code code, const char *why)
{
    if (lane->is_ready_told || lane->ready_error.code != ERROR_NONE)
        return;
    error_set(&lane->ready_error, code, NULL, "%s", why);
    lanes_notify(lane->lanes, &lane->ready_notice);
}

// ---- handshake -----------------------------------------------------------------------------------------------------

static void on_broken(void *arg, const char *reason)
{
    struct lane *lane = arg;
    bool was_starting = lane->handshake != NULL;
    loop_cancel(TAKE_PTR(lane->handshake));
    lane->death_reason = mem_strdup(reason);
    CLEANUP_FREE char *ended = mem_format("(the tool server ended: %s)", reason);
    journals_add(lane->lanes->journals, lane->uid, &(struct journal_line){.source = JOURNAL_SERVER, .text = ended});
    lane_step(lane, LANE_BREAK);
    CLEANUP_FREE char *message = mem_format("the tool server of this sandbox has failed: %s", reason);
    lane_end_calls(lane, ERROR_UNAVAILABLE, HINT_RECREATE, message);
    if (!was_starting) {
        lanes_notify(lane->lanes, &lane->died_notice);
        return;
    }
    const struct text_list *lines = rpc_last_lines(lane->rpc);
    CLEANUP_FREE char *why = mem_format("the tool server did not start: %s%s%s", reason, lines->count ? "; it last said: " : "",
                                        lines->count ? lines->items[lines->count - 1] : "");
    lane_fail_ready(lane, ERROR_UNAVAILABLE, why);
}

static bool on_notice(void *arg, const char *method, const json_t *params)
{
    return strcmp(method, "notifications/progress") == 0 && bash_take_progress(arg, params);
}

static void on_printed(void *arg, const char *line)
{
    const struct lane *lane = arg;
    journals_add(lane->lanes->journals, lane->uid, &(struct journal_line){.source = JOURNAL_SERVER, .text = line});
}

static void on_handshake_late(void *arg)
{
    struct lane *lane = arg;
    CLEANUP_FREE char *reason = mem_format("it did not answer the handshake within %d s", LANE_HANDSHAKE_MS / 1000);
    rpc_break(lane->rpc, reason);
}

// A word of the server about itself: printable and short.
static char *server_word(const json_t *info, const char *key)
{
    const json_t *word = json_object_get(info, key);
    const char *bytes = json_is_string(word) ? json_string_value(word) : "unknown";
    size_t len = strlen(bytes) < SERVER_WORD_CHARS ? strlen(bytes) : SERVER_WORD_CHARS;
    char *text = utf8_to_printable(bytes, utf8_cut(bytes, len), false);
    text[utf8_cut(text, strlen(text) < SERVER_WORD_CHARS ? strlen(text) : SERVER_WORD_CHARS)] = '\0';
    return text;
}

static bool has_sessions(const json_t *result)
{
    const json_t *experimental = json_object_get(json_object_get(result, "capabilities"), "experimental");
    return json_get_int(json_object_get(experimental, GUEST_SESSIONS_CAPABILITY), "version", 0) == 1;
}

static void on_initialized(void *arg, json_t *result, const struct error *err)
{
    struct lane *lane = arg;
    if (!lane->handshake)
        return; // it broke; on_broken words it
    if (err || !json_get_text(result, "protocolVersion")) {
        CLEANUP_FREE char *reason = mem_format("it refused the handshake: %s", err ? err->message : "its answer has no protocolVersion");
        rpc_break(lane->rpc, reason);
        return;
    }
    loop_cancel(TAKE_PTR(lane->handshake));
    lane->server_name = server_word(json_object_get(result, "serverInfo"), "name");
    lane->server_version = server_word(json_object_get(result, "serverInfo"), "version");
    lane->has_sessions = has_sessions(result);
    rpc_notify(lane->rpc, "notifications/initialized", NULL);
    rpc_watch_health(lane->rpc);
    lane_step(lane, LANE_READY);
    lanes_notify(lane->lanes, &lane->ready_notice);
}

void lane_start(struct lane *lane, struct driver_session *session)
{
    const struct rpc_place place = {.loop = lane->lanes->loop, .farewells = lane->lanes->farewells};
    lane->rpc = rpc_new(&place, session, on_broken, lane);
    rpc_on_notice(lane->rpc, on_notice);
    rpc_on_printed(lane->rpc, on_printed);
    json_t *params = json_pack("{s:s, s:{}, s:{s:s, s:s}}", "protocolVersion", "2025-11-25", "capabilities", "clientInfo", "name",
                               "chat2shell", "version", CHAT2SHELL_VERSION);
    rpc_request(lane->rpc, "initialize", params, on_initialized, lane, NULL);
    // After the request, so that a transport that has the same limit is first to say what it waited for.
    lane->handshake = loop_after(lane->lanes->loop, LANE_HANDSHAKE_MS, on_handshake_late, lane);
}

// ---- birth and end -------------------------------------------------------------------------------------------------

struct lane *lane_new(struct lanes *lanes, const char *uid, const char *public_workspace_id, lane_ready_fn ready, lane_died_fn died,
                      void *arg)
{
    struct lane *lane = mem_alloc(sizeof(*lane));
    *lane = (struct lane){.lanes = lanes,
                          .uid = mem_strdup(uid),
                          .public_workspace_id = mem_strdup(public_workspace_id),
                          .ready = ready,
                          .died = died,
                          .arg = arg,
                          .ready_notice.run = tell_ready,
                          .died_notice.run = tell_died};
    TAILQ_INIT(&lane->calls);
    fair_init(&lane->turns, LANE_QUEUE_MAX);
    fair_init(&lane->waits, LANE_WAITS_MAX);
    LIST_INIT(&lane->sessions);
    return lane;
}

void lane_free(struct lane *lane)
{
    assert(TAILQ_EMPTY(&lane->calls));
    loop_cancel(TAKE_PTR(lane->handshake));
    lane->state = LANE_DEAD;
    rpc_free(TAKE_PTR(lane->rpc));
    bash_sessions_free(lane);
    lanes_forget(lane->lanes, &lane->died_notice);
    lane->is_dropped = true;
    if (lane->is_ready_told)
        free_now(lane);
}
