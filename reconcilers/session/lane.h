// Inside of reconcilers/session: the structures that lanes.c (registry, entry from other threads), lane.c (life, turns,
// ends), lane_calls.c (tools and plain requests) and bash_sessions.c share. All of it lives on the loop thread,
// except `inbox` (its mutex) and `lane_call.interest` (atomic).
//
// A call moves: inbox → lane->calls (a step of enum call_step) → lanes->notices → done → freed. An exchange is one
// request to the tool server; it outlives its call when the caller left or the deadline passed, and keeps the turn, or
// the session's read, until the server has answered. So serial order holds even over abandoned calls.
#pragma once
#include "controller/base/buffer.h"
#include "controller/queue/fair.h"
#include "reconcilers/session/rpc.h"
#include "reconcilers/session/session.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#define LANE_HANDSHAKE_MS 60000 // ample: who is late has failed for good, and many sandboxes may start at once
#define LANE_WAITS_MAX 1280 // calls outside the turn: waits, polls, stops, requests
#define LANE_GRACE_MS 30000 // what a wait gets beyond its own bound

enum lane_state {
    LANE_OPENING,
    LANE_OPEN,
    LANE_CLOSED_EARLY, // closed before the handshake was done
    LANE_CLOSED,
    LANE_DEAD,
    LANE_STATE_COUNT
};
enum lane_event { LANE_READY, LANE_BREAK, LANE_CLOSE, LANE_REOPEN, LANE_EVENT_COUNT };

// Work handed to the loop thread, in order of arrival. Embedded in what it is about.
struct lane_op {
    STAILQ_ENTRY(lane_op) link;
    void (*run)(struct lane_op *op);
};
// A callback into the caller's code, run from the loop with nothing of ours on the stack.
struct notice {
    TAILQ_ENTRY(notice) link;
    void (*run)(struct notice *notice);
    bool is_queued;
};

struct lanes {
    struct loop *loop;
    struct store *store;
    struct farewells *farewells;
    struct journals *journals;
    pthread_mutex_t mutex; // guards inbox, is_inbox_posted
    STAILQ_HEAD(, lane_op) inbox;
    bool is_inbox_posted;
    TAILQ_HEAD(lane_list, lane) all;
    TAILQ_HEAD(, notice) notices;
    bool is_notices_posted;
};

struct bash_session { // bash_sessions.c
    LIST_ENTRY(bash_session) link;
    struct lane *lane;
    char *id;
    struct exchange *reading;          // at most one read of a session is under way
    size_t exchange_count;             // that name this session
    LIST_HEAD(, lane_call) delivering; // answered, not told yet: its bytes come back here if the caller has left
    struct buffer undelivered;         // output whose caller had left: the next answer begins with it
    json_t *last;                      // the newest snapshot, its output empty
    int64_t read_bytes;                // given to readers, or kept for them
    int64_t printed_bytes;             // by the command so far, as far as known
    struct boot_time printed_at;       // when the tool server said so without being asked
};

struct lane {
    TAILQ_ENTRY(lane) link;
    struct lanes *lanes;
    char *uid, *public_workspace_id;
    char *inner_workspace_id; // the tool server's own, once a result named it
    enum lane_state state;
    struct rpc *rpc;
    bool has_sessions;
    TAILQ_HEAD(, lane_call) calls; // in order of arrival
    struct fair_line turns;        // those that wait for their turn
    struct fair_line waits;        // places of those that take none
    struct exchange *turn;         // the one call in the lane, NULL = free
    LIST_HEAD(, bash_session) sessions;
    size_t session_count;
    struct wall_time last_activity;
    char *closed_message, *death_reason;
    // the owner's callbacks
    lane_ready_fn ready;
    lane_died_fn died;
    void *arg;
    struct loop_timer *handshake;
    struct notice ready_notice, died_notice;
    struct error ready_error; // code 0 = it is ready
    bool is_ready_told, is_dropped;
    char *server_name, *server_version;
};

enum call_step { CALL_WAITS_TURN, CALL_IN_TURN, CALL_WAITS_READ, CALL_READING, CALL_REQUESTING, CALL_ENDED };
enum call_interest { CALLER_WAITS, CALLER_LEFT, CALLER_ANSWERED };

struct call_kind { // one row a kind of call
    bool takes_turn, needs_sessions;
    bool is_own; // the control plane's: enters a closed lane, is no activity, does not hold back expiry
    void (*start)(struct lane_call *call);                                              // its turn came
    void (*answered)(struct lane_call *call, json_t *result, const struct error *err); // its exchange ended
    void (*expired)(struct lane_call *call);                                            // its timer ran
};
struct lane_call {
    struct lane_op arrival, leaving;
    struct notice notice;
    TAILQ_ENTRY(lane_call) link;
    LIST_ENTRY(lane_call) delivering;
    struct lanes *lanes;
    struct lane *lane; // NULL before it arrived and after it ended
    const struct call_kind *kind;
    enum call_step step;
    uint64_t asker;
    struct fair_item place; // in the lane's turns or waits
    atomic_int interest; // enum call_interest
    bool has_left;       // `leaving` ran
    bool must_stop;      // the caller has left and does not want the work either
    bool is_told;        // `notice` ran after the caller had left
    char *sandbox_uid, *name, *session_id;
    json_t *arguments;
    int64_t yield_ms, deadline_ms;
    int64_t entered_us; // boot time, for /metrics
    struct boot_time yield_until;
    struct bash_session *session;
    struct loop_timer *timer;
    struct exchange *exchange;
    lane_answer_fn done;
    lane_news_fn news; // NULL: nobody watches
    void *arg;
    json_t *answer;      // NULL = error
    struct error *error; // owned; a waiting call does without its kilobyte
};

struct exchange {
    struct lane *lane;
    struct lane_call *call;       // NULL: nobody waits for it any more
    struct bash_session *session; // its answer carries output of that session
    int64_t id;
};

// ---- lanes.c -------------------------------------------------------------------------------------------------------
struct lane *lanes_find(struct lanes *lanes, const char *uid);
void lanes_post(struct lanes *lanes, struct lane_op *op); // any thread
void lanes_drain(void *lanes);                            // on the loop thread: everything that was asked before
void lanes_notify(struct lanes *lanes, struct notice *notice);
void lanes_forget(struct lanes *lanes, struct notice *notice);

// ---- lane.c --------------------------------------------------------------------------------------------------------
struct lane *lane_new(struct lanes *lanes, const char *uid, const char *public_workspace_id, lane_ready_fn ready, lane_died_fn died,
                      void *arg);
void lane_start(struct lane *lane, struct driver_session *session);
void lane_fail_ready(struct lane *lane, enum error_code code, const char *why); // unless ready was told
void lane_free(struct lane *lane);     // at once, or after `ready` was told; its calls have ended
bool lane_step(struct lane *lane, enum lane_event event); // false: the event means nothing in this state
int lane_check_open(const struct lane *lane, bool is_own, struct error *err);
bool lane_is_idle(const struct lane *lane); // no call queued or running
void lane_end_calls(struct lane *lane, enum error_code code, const char *hint, const char *message);
void lane_touch(struct lane *lane);

// ---- lane_call.c ---------------------------------------------------------------------------------------------------
struct lane_call *call_new(struct lanes *lanes, const char *uid, const struct call_kind *kind, lane_answer_fn done, void *arg);
void call_end(struct lane_call *call, json_t *answer /* borrowed */, const struct error *err);
void call_fail(struct lane_call *call, enum error_code code, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void call_arm(struct lane_call *call, int64_t ms); // its timer, anew
void call_news(struct lane_call *call);            // a look at it shows something new
// Sends one request for the call, which takes `step`. params: reference taken.
int call_exchange(struct lane_call *call, enum call_step step, const char *method, json_t *params, struct error *err);
void lane_pump(struct lane *lane); // gives a free turn to the next call

// ---- bash_sessions.c -----------------------------------------------------------------------------------------------
void bash_settled(struct exchange *exchange, json_t *result);     // an answer with output came, before its call hears of it
void bash_delivered(struct lane_call *call, bool is_taken);       // the caller was told, or had left
void bash_pump(struct lane *lane);                                // gives free reads to waiting polls
struct bash_session *bash_session_find(struct lane *lane, const char *id);
struct bash_session *bash_session_add(struct lane *lane, const char *id);
bool bash_session_is_full(const struct bash_session *session); // too much kept output to take more
void bash_session_use(struct bash_session *session); // somebody asked about it
int bash_read(struct lane_call *call, const char *wait, int64_t wait_ms, struct error *err); // takes the session's read
void bash_end(struct lane_call *call, json_t *snapshot /* borrowed */); // answers it, kept output first
void bash_end_running(struct lane_call *call);                          // running, nothing new
void bash_sessions_free(struct lane *lane);
// The tool server's word about a command whose end is awaited. False: nobody waits for that, or it comes too often.
bool bash_take_progress(struct lane *lane, const json_t *params);

// ---- bash_snapshot.c -----------------------------------------------------------------------------------------------
#define BASH_OUTPUT_BYTES 60000
json_t *snapshot_read(const json_t *result, const char *session_id); // strict copy of a bash_read answer, or NULL
json_t *snapshot_running(const char *session_id);                    // running, nothing new
json_t *snapshot_without_output(const json_t *snapshot);
bool snapshot_is_final(const json_t *snapshot); // exited, nothing left to read
