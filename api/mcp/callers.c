#include "api/mcp/callers.h"
#include "api/mcp/exchange.h"

void mcp_callers_init(struct mcp_callers *callers)
{
    pthread_mutex_init(&callers->lock, NULL);
    LIST_INIT(&callers->exchanges);
}

void mcp_callers_clear(struct mcp_callers *callers)
{
    pthread_mutex_destroy(&callers->lock);
}

static void end_calls(void *arg) // loop thread; holds a reference
{
    struct mcp_exchange *exchange = arg;
    for (size_t i = 0; i < exchange->count; i++) {
        struct mcp_call *call = &exchange->calls[i];
        pthread_mutex_lock(&exchange->lock);
        bool is_live = call->has_tool && !call->is_done;
        call->is_revoked |= is_live;
        pthread_mutex_unlock(&exchange->lock);
        if (is_live)
            tool_call_cancel(&call->tool);
    }
    mcp_exchange_unref(exchange);
}

// Holding the lock: while it is listed it has a reference of its answer's.
static void end_soon(struct mcp_exchange *exchange)
{
    atomic_fetch_add(&exchange->refs, 1);
    loop_post(exchange->server->world->loop, end_calls, exchange);
}

void mcp_callers_add(struct mcp_exchange *exchange)
{
    struct mcp_callers *callers = &exchange->server->callers;
    pthread_mutex_lock(&callers->lock);
    LIST_INSERT_HEAD(&callers->exchanges, exchange, of_caller);
    exchange->is_listed = true;
    pthread_mutex_unlock(&callers->lock);
    if (auth_is_still_good(exchange->server->front.auth, &exchange->caller))
        return; // whoever revokes it from now on finds it listed
    pthread_mutex_lock(&callers->lock);
    end_soon(exchange);
    pthread_mutex_unlock(&callers->lock);
}

void mcp_callers_remove(struct mcp_exchange *exchange)
{
    if (!exchange->is_listed)
        return;
    struct mcp_callers *callers = &exchange->server->callers;
    pthread_mutex_lock(&callers->lock);
    LIST_REMOVE(exchange, of_caller);
    pthread_mutex_unlock(&callers->lock);
}

void mcp_callers_revoked(void *arg, int64_t token_id)
{
    struct mcp_server *server = arg;
    struct mcp_exchange *exchange;
    pthread_mutex_lock(&server->callers.lock);
    for (exchange = LIST_FIRST(&server->callers.exchanges); exchange; exchange = LIST_NEXT(exchange, of_caller))
        if (exchange->caller.token_id == token_id)
            end_soon(exchange);
    pthread_mutex_unlock(&server->callers.lock);
}
