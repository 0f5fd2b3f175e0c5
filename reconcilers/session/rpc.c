// What both kinds of session share: ids, the table of pending requests, cancelling, the one end.
#include "reconcilers/session/rpc_transport.h"
#include "controller/base/memory.h"
#include <stdlib.h>
#include <string.h>

#define HINT_RECREATE "destroy this sandbox with sandbox_destroy, then create a new one with sandbox_create"

// ---- answers -----------------------------------------------------------------------------------------------------

static struct rpc_pending *find(const struct rpc *rpc, int64_t id)
{
    struct rpc_pending *pending;
    LIST_FOREACH(pending, &rpc->pending, link)
        if (pending->id == id)
            return pending;
    return NULL;
}

bool rpc_is_pending(const struct rpc *rpc, int64_t id)
{
    return find(rpc, id) != NULL;
}

// Takes it out of the table; the caller answers it and frees it.
static void take_out(struct rpc_pending *pending)
{
    LIST_REMOVE(pending, link);
    pending->rpc->pending_count--;
    pending->rpc->probe_count -= pending->is_probe;
    loop_cancel(TAKE_PTR(pending->cancelled));
}

static void settle(struct rpc_pending *pending, json_t *result, const struct error *err)
{
    struct rpc *rpc = pending->rpc;
    take_out(pending);
    pending->fn(pending->arg, result, err);
    free(pending);
    health_note_answered(rpc);
}

void rpc_settle(struct rpc *rpc, int64_t id, json_t *result, const struct error *err)
{
    struct rpc_pending *pending = find(rpc, id);
    if (pending)
        settle(pending, result, err);
}

void rpc_give_up(struct rpc *rpc, int64_t id)
{
    struct error err = ERROR_INIT;
    error_set(&err, ERROR_CANCELLED, NULL, "the call was given up while it ran");
    rpc_settle(rpc, id, NULL, &err);
}

// ---- ends --------------------------------------------------------------------------------------------------------

static void answer_all(struct rpc *rpc, const char *reason)
{
    struct error err = ERROR_INIT;
    error_set(&err, ERROR_UNAVAILABLE, HINT_RECREATE, "the tool server of this sandbox has failed: %s", reason);
    while (!LIST_EMPTY(&rpc->pending))
        settle(LIST_FIRST(&rpc->pending), NULL, &err);
}

static void end(struct rpc *rpc, const char *reason)
{
    rpc->is_broken = true;
    health_stop(rpc);
    rpc->ops->close(rpc);
    answer_all(rpc, reason);
}

void rpc_break(struct rpc *rpc, const char *reason)
{
    if (rpc->is_broken)
        return;
    end(rpc, reason);
    rpc->broken(rpc->arg, reason);
}

void rpc_free(struct rpc *rpc)
{
    if (!rpc)
        return;
    end(rpc, "the sandbox is going away");
    rpc->ops->free(rpc);
}

void rpc_strike(struct rpc *rpc, const char *what)
{
    if (++rpc->strikes < RPC_STRIKES_MAX)
        return;
    CLEANUP_FREE char *reason = mem_format("it broke the protocol %d times, the last time with %s", rpc->strikes, what);
    rpc_break(rpc, reason);
}

bool rpc_is_broken(const struct rpc *rpc)
{
    return rpc->is_broken;
}

const struct text_list *rpc_last_lines(const struct rpc *rpc)
{
    return rpc->ops->last_lines(rpc);
}

void rpc_on_printed(struct rpc *rpc, rpc_printed_fn fn)
{
    rpc->printed = fn;
}

void rpc_tell_printed(struct rpc *rpc, const char *line)
{
    if (rpc->printed)
        rpc->printed(rpc->arg, line);
}

// ---- requests ----------------------------------------------------------------------------------------------------

struct rpc *rpc_new(const struct rpc_place *place, struct driver_session *session, rpc_broken_fn broken, void *arg)
{
    struct rpc *rpc = session->port ? http_rpc_new(place, session) : stdio_rpc_new(place, session);
    rpc->loop = place->loop;
    rpc->broken = broken;
    rpc->arg = arg;
    LIST_INIT(&rpc->pending);
    return rpc;
}

// Borrows params.
static int64_t send(struct rpc *rpc, const char *method, json_t *params, struct rpc_pending wanted, struct error *err)
{
    int64_t id = rpc->last_id + 1;
    if (rpc->ops->send(rpc, id, method, params, err) < 0)
        return -1;
    struct rpc_pending *pending = mem_alloc(sizeof(*pending));
    *pending = wanted;
    pending->rpc = rpc;
    pending->id = rpc->last_id = id;
    LIST_INSERT_HEAD(&rpc->pending, pending, link);
    rpc->pending_count++;
    rpc->probe_count += pending->is_probe;
    return id;
}

int64_t rpc_request(struct rpc *rpc, const char *method, json_t *params, rpc_answer_fn fn, void *arg, struct error *err)
{
    CLEANUP_JSON json_t *mine = params;
    if (rpc->is_broken)
        return error_set(err, ERROR_UNAVAILABLE, HINT_RECREATE, "the tool server of this sandbox has failed");
    if (rpc->pending_count - rpc->probe_count >= RPC_PENDING_MAX)
        return error_set(err, ERROR_LIMIT, "wait for some of them to end, then try again",
                         "%d calls to this sandbox are in progress, which is the limit", RPC_PENDING_MAX);
    int64_t id = send(rpc, method, mine, (struct rpc_pending){.is_tool = strcmp(method, "tools/call") == 0, .fn = fn, .arg = arg}, err);
    health_note_request(rpc);
    return id;
}

void rpc_notify(struct rpc *rpc, const char *method, json_t *params)
{
    CLEANUP_JSON json_t *mine = params;
    if (!rpc->is_broken)
        rpc->ops->notify(rpc, method, mine);
}

static void on_pong(void *arg, json_t *result, const struct error *err)
{
    (void)arg, (void)result, (void)err; // its bytes were the sign of life
}

void rpc_ping(struct rpc *rpc)
{
    send(rpc, "ping", NULL, (struct rpc_pending){.fn = on_pong, .is_probe = true}, NULL);
}

static void on_cancel_ignored(void *arg)
{
    struct rpc_pending *pending = arg;
    pending->cancelled = NULL;
    pending->rpc->ops->overdue(pending->rpc, pending->id, pending->is_tool);
}

void rpc_cancel(struct rpc *rpc, int64_t id)
{
    struct rpc_pending *pending = find(rpc, id);
    if (!pending || pending->cancelled || rpc->is_broken)
        return;
    pending->cancelled = loop_after(rpc->loop, RPC_CANCEL_MS, on_cancel_ignored, pending);
    rpc->ops->cancel(rpc, id);
}

void rpc_on_notice(struct rpc *rpc, rpc_notice_fn fn)
{
    rpc->notice = fn;
}

void rpc_watch_health(struct rpc *rpc)
{
    health_start(rpc);
}
