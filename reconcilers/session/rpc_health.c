#include "reconcilers/session/rpc_health.h"
#include "reconcilers/session/rpc_transport.h"
#include "controller/base/memory.h"

static bool is_awaited(const struct rpc *rpc)
{
    return rpc->pending_count > rpc->probe_count || rpc->health.is_suspect;
}

static void on_tick(void *arg);

static void arm(struct rpc *rpc, int64_t ms)
{
    rpc->health.is_heard = false;
    rpc->health.timer = loop_after(rpc->loop, ms, on_tick, rpc);
}

static void rest(struct rpc *rpc)
{
    loop_cancel(TAKE_PTR(rpc->health.timer));
    rpc->health.is_probing = false;
    rpc->health.missed = 0;
}

static void probe(struct rpc *rpc)
{
    rpc->health.is_probing = true;
    arm(rpc, HEALTH_INTERVAL_MS);
    rpc->ops->probe(rpc);
}

static void fail(struct rpc *rpc)
{
    CLEANUP_FREE char *reason =
        mem_format("it hangs or is gone: %d health probes in a row were not answered, each within %d s", HEALTH_MISSED_MAX, HEALTH_INTERVAL_MS / 1000);
    rpc_break(rpc, reason);
}

static void on_tick(void *arg)
{
    struct rpc *rpc = arg;
    struct health *health = &rpc->health;
    health->timer = NULL;
    health->missed = health->is_heard ? 0 : health->missed + health->is_probing;
    if (health->missed >= HEALTH_MISSED_MAX) {
        fail(rpc);
    } else if (!is_awaited(rpc)) {
        rest(rpc);
    } else if (health->is_heard) {
        health->is_probing = false;
        arm(rpc, HEALTH_SILENCE_MS);
    } else {
        probe(rpc);
    }
}

void health_start(struct rpc *rpc)
{
    rpc->health.is_on = !rpc->is_broken;
    health_note_request(rpc);
}

void health_stop(struct rpc *rpc)
{
    rpc->health.is_on = false;
    rest(rpc);
}

void health_note_request(struct rpc *rpc)
{
    if (rpc->health.is_on && !rpc->health.timer && is_awaited(rpc))
        arm(rpc, HEALTH_SILENCE_MS);
}

void health_note_answered(struct rpc *rpc)
{
    if (!is_awaited(rpc))
        rest(rpc);
}

void health_note_heard(struct rpc *rpc)
{
    rpc->health.is_heard = true;
    rpc->health.is_suspect = false;
}

void health_suspect(struct rpc *rpc)
{
    if (!rpc->health.is_on || rpc->health.is_suspect)
        return;
    rpc->health.is_suspect = true;
    if (rpc->health.is_probing)
        return;
    loop_cancel(TAKE_PTR(rpc->health.timer));
    probe(rpc);
}
