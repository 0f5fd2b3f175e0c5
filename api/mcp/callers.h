// The requests under way of callers who showed a static token, so that they end when it is revoked: whoever waits then, or
// reads a stream, gets nothing more but the word that the token is gone.
#pragma once
#include <pthread.h>
#include <stdint.h>
#include <sys/queue.h>

struct mcp_exchange;
struct mcp_callers {
    pthread_mutex_t lock; // guards the rest
    LIST_HEAD(, mcp_exchange) exchanges;
};
void mcp_callers_init(struct mcp_callers *callers);
void mcp_callers_clear(struct mcp_callers *callers); // nothing is listed any more
// Once, after its calls were begun, by who holds it. Where the token went meanwhile, they end now.
void mcp_callers_add(struct mcp_exchange *exchange);
// Before its answer goes out. Nothing if it was never added.
void mcp_callers_remove(struct mcp_exchange *exchange);
// A token was revoked. Any thread.
void mcp_callers_revoked(void *server, int64_t token_id);
