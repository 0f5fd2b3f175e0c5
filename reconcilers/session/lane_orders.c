// What reconcilers ask and order of lanes, from any thread.
#include "reconcilers/session/lane.h"
#include "controller/base/memory.h"
#include <stdlib.h>

// ---- questions: answered on the loop thread, after everything that was asked before --------------------------------

struct question {
    struct lanes *lanes;
    const char *uid, *message;
    struct wall_time time; // in: idle since; out: last activity
    bool answer;
    struct lane_load load; // out
    void (*ask)(struct question *question, struct lane *lane); // lane: NULL if there is none
};

static void answer_question(void *arg)
{
    struct question *question = arg;
    lanes_drain(question->lanes);
    question->ask(question, lanes_find(question->lanes, question->uid));
}

static void ask(struct question *question)
{
    loop_call(question->lanes->loop, answer_question, question);
}

static void ask_close_if_idle(struct question *question, struct lane *lane)
{
    bool is_live = lane && (lane->state == LANE_OPEN || lane->state == LANE_OPENING);
    bool is_idle = is_live && lane->state == LANE_OPEN && lane_is_idle(lane) && lane->last_activity.ms <= question->time.ms;
    if (is_live && !is_idle)
        return;
    question->answer = true;
    if (lane && lane_step(lane, LANE_CLOSE))
        mem_replace(&lane->closed_message, question->message);
}

bool lane_close_if_idle(struct lanes *lanes, const char *sandbox_uid, struct wall_time idle_since, const char *closed_message)
{
    struct question question = {
        .lanes = lanes, .uid = sandbox_uid, .message = closed_message, .time = idle_since, .ask = ask_close_if_idle};
    ask(&question);
    return question.answer;
}

static void ask_activity(struct question *question, struct lane *lane)
{
    question->answer = lane && lane->state == LANE_OPEN;
    question->time = lane ? lane->last_activity : (struct wall_time){0};
}

struct wall_time lane_last_activity(struct lanes *lanes, const char *sandbox_uid)
{
    struct question question = {.lanes = lanes, .uid = sandbox_uid, .ask = ask_activity};
    ask(&question);
    return question.time;
}

bool lane_is_open(struct lanes *lanes, const char *sandbox_uid)
{
    struct question question = {.lanes = lanes, .uid = sandbox_uid, .ask = ask_activity};
    ask(&question);
    return question.answer;
}

static void ask_load(struct question *question, struct lane *lane)
{
    const struct lane_call *call;
    if (!lane || lane->state != LANE_OPEN)
        return;
    question->answer = true;
    question->load = (struct lane_load){.running = lane->turn != NULL, .last_activity = lane->last_activity};
    TAILQ_FOREACH(call, &lane->calls, link)
        question->load.waiting += call->kind->takes_turn && call->step == CALL_WAITS_TURN;
}

bool lane_get_load(struct lanes *lanes, const char *sandbox_uid, struct lane_load *ret)
{
    struct question question = {.lanes = lanes, .uid = sandbox_uid, .ask = ask_load};
    ask(&question);
    if (question.answer)
        *ret = question.load;
    return question.answer;
}

void lane_note_activity(struct lanes *lanes, const char *sandbox_uid)
{
    struct lane *lane = lanes_find(lanes, sandbox_uid);
    if (lane && lane->state == LANE_OPEN)
        lane_touch(lane);
}

static void drop(struct lane *lane)
{
    TAILQ_REMOVE(&lane->lanes->all, lane, link);
    lane_end_calls(lane, ERROR_STATE, "create a new sandbox with sandbox_create", "the sandbox was destroyed during this call");
    lane_fail_ready(lane, ERROR_CANCELLED, "the sandbox was destroyed before its tool server was ready");
    lane_free(lane);
}

static void ask_drop(struct question *question, struct lane *lane)
{
    (void)question;
    if (lane)
        drop(lane);
}

void lane_drop(struct lanes *lanes, const char *sandbox_uid)
{
    struct question question = {.lanes = lanes, .uid = sandbox_uid, .ask = ask_drop};
    ask(&question);
}

// ---- orders: nobody waits for them ---------------------------------------------------------------------------------

struct order {
    struct lane_op op;
    struct lanes *lanes;
    char *uid, *message;
    struct lane *lane; // to open
    struct driver_session session;
};

static void order_post(struct lanes *lanes, void (*run)(struct lane_op *op), struct order order)
{
    struct order *posted = mem_alloc(sizeof(*posted));
    *posted = order;
    posted->op.run = run;
    posted->lanes = lanes;
    lanes_post(lanes, &posted->op);
    if (loop_is_current(lanes->loop))
        lanes_drain(lanes);
}

static void order_free(struct order *order)
{
    free(order->uid);
    free(order->message);
    free(order);
}

static void run_open(struct lane_op *op)
{
    struct order *order = (struct order *)op;
    struct lane *there = lanes_find(order->lanes, order->lane->uid);
    if (there && there->state != LANE_DEAD) {
        driver_session_close(&order->session);
        lane_fail_ready(order->lane, ERROR_EXISTS, "the sandbox has a lane already");
        lane_free(order->lane);
    } else {
        if (there)
            drop(there);
        TAILQ_INSERT_TAIL(&order->lanes->all, order->lane, link);
        lane_start(order->lane, &order->session);
    }
    order_free(order);
}

void lane_open(struct lanes *lanes, const char *sandbox_uid, const char *public_workspace_id, struct driver_session *session,
               lane_ready_fn ready, lane_died_fn died, void *arg)
{
    struct lane *lane = lane_new(lanes, sandbox_uid, public_workspace_id, ready, died, arg);
    struct order order = {.lane = lane, .session = *session};
    *session = (struct driver_session){-1, -1, -1};
    order_post(lanes, run_open, order);
}

static void run_close(struct lane_op *op)
{
    struct order *order = (struct order *)op;
    struct lane *lane = lanes_find(order->lanes, order->uid);
    if (lane && lane_step(lane, LANE_CLOSE)) {
        mem_replace(&lane->closed_message, order->message);
        lane_end_calls(lane, ERROR_STATE, "create a new sandbox with sandbox_create", "the sandbox was destroyed during this call");
    }
    order_free(order);
}

void lane_close(struct lanes *lanes, const char *sandbox_uid, const char *closed_message)
{
    order_post(lanes, run_close, (struct order){.uid = mem_strdup(sandbox_uid), .message = mem_strdup_or_null(closed_message)});
}

static void run_reopen(struct lane_op *op)
{
    struct order *order = (struct order *)op;
    struct lane *lane = lanes_find(order->lanes, order->uid);
    if (lane && lane_step(lane, LANE_REOPEN))
        mem_replace(&lane->closed_message, NULL);
    order_free(order);
}

void lane_reopen(struct lanes *lanes, const char *sandbox_uid)
{
    order_post(lanes, run_reopen, (struct order){.uid = mem_strdup(sandbox_uid)});
}
