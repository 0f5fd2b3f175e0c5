// The registry of lanes and the way in from other threads. What arrives from outside goes through one inbox, so
// operations take effect in the order in which they were asked for: a call that was made before an expiry asks is seen
// by it. What goes out (done, ready, died) goes through one list of notices and runs with nothing of ours on the
// stack, so callbacks may call back in.
#include "reconcilers/session/lane.h"
#include "reconcilers/session/codexpro/farewell.h"
#include "controller/base/memory.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct lane *lanes_find(struct lanes *lanes, const char *uid)
{
    struct lane *lane;
    TAILQ_FOREACH(lane, &lanes->all, link)
        if (strcmp(lane->uid, uid) == 0)
            return lane;
    return NULL;
}

// ---- inbox and notices -------------------------------------------------------------------------------------------

static struct lane_op *inbox_take(struct lanes *lanes)
{
    pthread_mutex_lock(&lanes->mutex);
    struct lane_op *op = STAILQ_FIRST(&lanes->inbox);
    if (op)
        STAILQ_REMOVE_HEAD(&lanes->inbox, link);
    else
        lanes->is_inbox_posted = false;
    pthread_mutex_unlock(&lanes->mutex);
    return op;
}

void lanes_drain(void *arg)
{
    struct lane_op *op;
    while ((op = inbox_take(arg)))
        op->run(op);
}

void lanes_post(struct lanes *lanes, struct lane_op *op)
{
    pthread_mutex_lock(&lanes->mutex);
    STAILQ_INSERT_TAIL(&lanes->inbox, op, link);
    bool is_first = !lanes->is_inbox_posted;
    lanes->is_inbox_posted = true;
    pthread_mutex_unlock(&lanes->mutex);
    if (is_first)
        loop_post(lanes->loop, lanes_drain, lanes);
}

static void run_notices(void *arg)
{
    struct lanes *lanes = arg;
    struct notice *notice;
    lanes->is_notices_posted = false;
    while ((notice = TAILQ_FIRST(&lanes->notices))) {
        lanes_forget(lanes, notice);
        notice->run(notice);
    }
}

void lanes_notify(struct lanes *lanes, struct notice *notice)
{
    if (notice->is_queued)
        return;
    notice->is_queued = true;
    TAILQ_INSERT_TAIL(&lanes->notices, notice, link);
    if (!lanes->is_notices_posted)
        loop_post(lanes->loop, run_notices, lanes);
    lanes->is_notices_posted = true;
}

void lanes_forget(struct lanes *lanes, struct notice *notice)
{
    if (notice->is_queued)
        TAILQ_REMOVE(&lanes->notices, notice, link);
    notice->is_queued = false;
}

// ---- birth and end -------------------------------------------------------------------------------------------------

// A tool server that closed its stdin must not end the controller: on this thread a write to it just fails.
static void block_sigpipe(void *arg)
{
    (void)arg;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

struct lanes *lanes_new(struct loop *loop, struct store *store)
{
    struct lanes *lanes = mem_alloc(sizeof(*lanes));
    lanes->loop = loop;
    lanes->store = store;
    lanes->farewells = farewells_new(loop);
    lanes->journals = journals_new(loop);
    pthread_mutex_init(&lanes->mutex, NULL);
    STAILQ_INIT(&lanes->inbox);
    TAILQ_INIT(&lanes->all);
    TAILQ_INIT(&lanes->notices);
    loop_call(loop, block_sigpipe, NULL);
    return lanes;
}

static void end_all(void *arg)
{
    struct lanes *lanes = arg;
    struct lane *lane;
    lanes_drain(lanes);
    while ((lane = TAILQ_FIRST(&lanes->all))) {
        TAILQ_REMOVE(&lanes->all, lane, link);
        lane_end_calls(lane, ERROR_UNAVAILABLE, "try again when it runs again", "chat2shell is shutting down");
        lane_fail_ready(lane, ERROR_UNAVAILABLE, "chat2shell is shutting down");
        lane_free(lane);
    }
    farewells_free(TAKE_PTR(lanes->farewells)); // the sandboxes end with the controller
    do { // callbacks may have made new calls, which find no lane
        run_notices(lanes);
        lanes_drain(lanes);
    } while (!TAILQ_EMPTY(&lanes->notices));
}

struct journals *lanes_journals(struct lanes *lanes)
{
    return lanes->journals;
}

static void free_memory(void *arg)
{
    struct lanes *lanes = arg;
    journals_free(lanes->journals);
    pthread_mutex_destroy(&lanes->mutex);
    free(lanes);
}

void lanes_free(struct lanes *lanes)
{
    if (!lanes)
        return;
    struct loop *loop = lanes->loop;
    loop_call(loop, end_all, lanes);
    // What was posted before this runs before it.
    if (loop_is_current(loop))
        loop_post(loop, free_memory, lanes);
    else
        loop_call(loop, free_memory, lanes);
}
