// One call's life: entering a lane, its turn, its exchanges with the tool server, its deadline, its one end.
#include "reconcilers/session/lane.h"
#include "controller/metrics.h"
#include "controller/base/memory.h"
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

#define CALL_OF(at_, member) ((struct lane_call *)((char *)(at_)-offsetof(struct lane_call, member)))

static void call_free(struct lane_call *call)
{
    free(call->sandbox_uid);
    free(call->name);
    free(call->session_id);
    json_decref(call->arguments);
    json_decref(call->answer);
    free(call->error);
    free(call);
}

// ---- the end -----------------------------------------------------------------------------------------------------

// Whoever comes last frees: this, or `leave` when the caller has left.
static void tell(struct notice *notice)
{
    struct lane_call *call = CALL_OF(notice, notice);
    int waits = CALLER_WAITS;
    bool is_taken = atomic_compare_exchange_strong(&call->interest, &waits, CALLER_ANSWERED);
    if (call->session)
        bash_delivered(call, is_taken);
    if (is_taken)
        call->done(call->arg, call->answer ? 0 : -1, call->answer, call->error);
    if (is_taken || call->has_left)
        call_free(call);
    else
        call->is_told = true;
}

// The request may still run in the sandbox: it keeps its turn or its session's read until it is answered.
static void abandon_exchange(struct lane_call *call)
{
    if (!call->exchange)
        return;
    call->exchange->call = NULL;
    rpc_cancel(call->lane->rpc, call->exchange->id);
    call->exchange = NULL;
}

static struct fair_line *line_of(const struct lane_call *call, struct lane *lane)
{
    return call->kind->takes_turn ? &lane->turns : &lane->waits;
}

static void leave_lane(struct lane_call *call)
{
    if (!call->lane)
        return;
    abandon_exchange(call);
    TAILQ_REMOVE(&call->lane->calls, call, link);
    fair_leave(line_of(call, call->lane), &call->place);
    if (!call->kind->is_own)
        lane_touch(call->lane);
    call->lane = NULL;
}

void call_end(struct lane_call *call, json_t *answer, const struct error *err)
{
    assert(call->step != CALL_ENDED);
    call->step = CALL_ENDED;
    loop_cancel(TAKE_PTR(call->timer));
    leave_lane(call);
    call->answer = json_incref(answer);
    if (!answer) {
        call->error = mem_alloc(sizeof(*call->error));
        *call->error = *err;
    }
    if (call->session && answer)
        LIST_INSERT_HEAD(&call->session->delivering, call, delivering);
    else
        call->session = NULL;
    lanes_notify(call->lanes, &call->notice);
}

void call_fail(struct lane_call *call, enum error_code code, const char *hint, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *message = mem_vformat(format, args);
    va_end(args);
    struct error err = ERROR_INIT;
    error_set(&err, code, hint, "%s", message);
    call_end(call, NULL, &err);
}

// ---- time --------------------------------------------------------------------------------------------------------

static void on_timer(void *arg)
{
    struct lane_call *call = arg;
    call->timer = NULL;
    call->kind->expired(call);
}

void call_arm(struct lane_call *call, int64_t ms)
{
    loop_cancel(TAKE_PTR(call->timer));
    call->timer = loop_after(call->lanes->loop, ms, on_timer, call);
}

// ---- entering ----------------------------------------------------------------------------------------------------

void lane_call_set_asker(struct lane_call *call, uint64_t asker)
{
    assert(loop_is_current(call->lanes->loop));
    call->asker = asker;
}

static int take_place(struct lane_call *call, struct lane *lane, struct error *err)
{
    if (call->kind->needs_sessions && !lane->has_sessions)
        return error_set(err, ERROR_UNSUPPORTED, "use the file tools, and ask the operator for a sandbox with another tool server",
                         "the tool server of this sandbox has no background Bash sessions");
    if (fair_enter(line_of(call, lane), call->asker, &call->place))
        return 0;
    if (call->kind->takes_turn)
        return error_set(err, ERROR_LIMIT, "wait for answers before calling again; start long commands with a short yield_time_ms",
                         "too many calls already wait for their turn in this sandbox: of %d places one caller may hold four times as many as are left",
                         LANE_QUEUE_MAX);
    return error_set(err, ERROR_LIMIT, "wait for answers before calling again",
                     "too many polls and other waits are in progress in this sandbox: of %d places one caller may hold four times as many as are left",
                     LANE_WAITS_MAX);
}

static void enter(struct lane_call *call, struct lane *lane)
{
    struct error err = ERROR_INIT;
    if (!call->kind->is_own)
        lane_touch(lane); // a call that reaches the sandbox counts, a failing one too
    if (take_place(call, lane, &err) < 0) {
        call_end(call, NULL, &err);
        return;
    }
    call->lane = lane;
    TAILQ_INSERT_TAIL(&lane->calls, call, link);
    call_arm(call, call->deadline_ms);
    if (call->kind->takes_turn) {
        call->entered_us = boot_time_us();
        fair_push(&lane->turns, &call->place);
        lane_pump(lane);
    } else {
        call->kind->start(call);
    }
}

static void arrive(struct lane_op *op)
{
    struct lane_call *call = CALL_OF(op, arrival);
    struct lane *lane = lanes_find(call->lanes, call->sandbox_uid);
    struct error err = ERROR_INIT;
    if (atomic_load(&call->interest) == CALLER_LEFT)
        call_fail(call, ERROR_CANCELLED, NULL, "the caller has left");
    else if (!lane)
        call_fail(call, ERROR_NOT_FOUND, "look with sandbox_list for those that are there", "no running sandbox has the id %s",
                  call->sandbox_uid);
    else if (lane_check_open(lane, call->kind->is_own, &err) < 0)
        call_end(call, NULL, &err);
    else
        enter(call, lane);
}

// The caller has left. What waits ends; what the tool server is doing in the lane goes on, unless it is not wanted any more,
// and its answer is dropped.
static void leave(struct lane_op *op)
{
    struct lane_call *call = CALL_OF(op, leaving);
    call->has_left = true;
    if (call->is_told)
        call_free(call);
    else if (call->step != CALL_ENDED && (call->must_stop || call->step != CALL_IN_TURN))
        call_fail(call, ERROR_CANCELLED, NULL, "the caller has left");
}

struct lane_call *call_new(struct lanes *lanes, const char *uid, const struct call_kind *kind, lane_answer_fn done, void *arg)
{
    struct lane_call *call = mem_alloc(sizeof(*call));
    *call = (struct lane_call){.lanes = lanes,
                               .kind = kind,
                               .arrival.run = arrive,
                               .leaving.run = leave,
                               .notice.run = tell,
                               .sandbox_uid = mem_strdup(uid),
                               .deadline_ms = LANE_CALL_DEADLINE_MS,
                               .done = done,
                               .arg = arg};
    return call;
}

static bool lose_caller(struct lane_call *call, bool must_stop)
{
    int waits = CALLER_WAITS;
    struct lanes *lanes = call->lanes;
    if (!atomic_compare_exchange_strong(&call->interest, &waits, CALLER_LEFT))
        return false;
    call->must_stop = must_stop;
    lanes_post(lanes, &call->leaving);
    return true;
}

bool lane_call_cancel(struct lane_call *call)
{
    return lose_caller(call, false);
}

bool lane_call_stop(struct lane_call *call)
{
    return lose_caller(call, true);
}

// ---- looking on ----------------------------------------------------------------------------------------------------

void call_news(struct lane_call *call)
{
    if (call->news && atomic_load(&call->interest) == CALLER_WAITS)
        call->news(call->arg);
}

void lane_call_watch(struct lane_call *call, lane_news_fn news)
{
    assert(loop_is_current(call->lanes->loop));
    call->news = news;
}

static size_t count_ahead(const struct lane_call *call)
{
    size_t count = call->lane->turn != NULL;
    const struct lane_call *at;
    for (at = TAILQ_FIRST(&call->lane->calls); at && at != call; at = TAILQ_NEXT(at, link))
        count += at->step == CALL_WAITS_TURN && at->kind->takes_turn;
    return count;
}

void lane_call_look(const struct lane_call *call, struct lane_look *ret)
{
    *ret = (struct lane_look){.stage = call->step == CALL_IN_TURN || call->step == CALL_REQUESTING ? LANE_STAGE_RUNNING
                                       : call->step == CALL_WAITS_TURN                            ? LANE_STAGE_QUEUED
                                                                                                  : LANE_STAGE_WAITING};
    if (ret->stage == LANE_STAGE_QUEUED && call->lane)
        ret->ahead = count_ahead(call);
    if (call->session) {
        ret->session_id = call->session_id;
        ret->printed_bytes = call->session->printed_bytes;
    }
}

// ---- turns and exchanges -----------------------------------------------------------------------------------------

void lane_pump(struct lane *lane)
{
    struct fair_item *item;
    while (!lane->turn && lane->state == LANE_OPEN && (item = fair_pop(&lane->turns))) {
        struct lane_call *call = CALL_OF(item, place);
        fair_leave(&lane->turns, item);
        metrics_time(METRIC_LANE_WAIT, NULL, NULL, boot_time_us() - call->entered_us);
        if (atomic_load(&call->interest) != CALLER_LEFT) // else `leave` is on its way: it is not run
            call->kind->start(call);                     // takes the turn, or ends this call
    }
}

static void on_answer(void *arg, json_t *result, const struct error *err)
{
    CLEANUP_FREE struct exchange *exchange = arg;
    struct lane *lane = exchange->lane;
    struct lane_call *call = exchange->call;
    if (lane->turn == exchange)
        lane->turn = NULL;
    if (exchange->session)
        bash_settled(exchange, result);
    if (call) {
        call->exchange = NULL;
        call->kind->answered(call, result, err);
    }
    lane_pump(lane);
    bash_pump(lane);
}

int call_exchange(struct lane_call *call, enum call_step step, const char *method, json_t *params, struct error *err)
{
    struct exchange *exchange = mem_alloc(sizeof(*exchange));
    *exchange = (struct exchange){.lane = call->lane, .call = call, .session = call->session};
    exchange->id = rpc_request(call->lane->rpc, method, params, on_answer, exchange, err);
    if (exchange->id < 0) {
        free(exchange);
        return -1;
    }
    call->exchange = exchange;
    call->step = step;
    if (call->session)
        call->session->exchange_count++;
    if (step == CALL_IN_TURN)
        call->lane->turn = exchange;
    if (step == CALL_READING)
        call->session->reading = exchange;
    call_news(call);
    return 0;
}
