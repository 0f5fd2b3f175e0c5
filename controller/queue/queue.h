// A reconciler's work queue: fair (order of adding within a priority), deduplicating, the same key never on two
// workers, an add while the key is processed means exactly one more run after it. Two priorities: fresh changes pass
// resyncs. Delayed adds and per-key backoff (base × 2^n with ±10 % jitter up to the maximum, reset by queue_forget).
// Bounded: a key is held once, so it is as long as there are records.
#pragma once
#include "controller/clock.h"
#include <stdbool.h>
#include <stddef.h>

struct queue; // thread-safe
enum queue_priority { QUEUE_RESYNC, QUEUE_CHANGE };
struct queue_options {
    struct clock *clock;
    int64_t backoff_base_ms; // 200; 5 for store-only work
    int64_t backoff_max_ms;  // 60,000
    const char *name;        // whose waits are measured (controller/metrics.h), borrowed; NULL: nobody's
};
struct queue *queue_new(const struct queue_options *options);
void queue_free(struct queue *queue); // no worker may be inside
void queue_add(struct queue *queue, const char *key, enum queue_priority priority);
void queue_add_after(struct queue *queue, const char *key, int64_t delay_ms); // the earliest of several wins
void queue_add_failed(struct queue *queue, const char *key);                  // after the key's backoff
// After a write conflict: at once (10 ms ±10 %) from a fresh read, up to 5 times in a row, then as queue_add_failed.
// Returns true while it is one of the quick retries.
#define QUEUE_CONFLICT_RETRIES 5
#define QUEUE_CONFLICT_DELAY_MS 10
bool queue_add_conflicted(struct queue *queue, const char *key);
void queue_forget(struct queue *queue, const char *key);
// Adds after the shut-down are dropped. One take in 16 serves resyncs first, so that steady changes do not starve them.
// Takes the next key (owned by the caller), waiting until there is one; NULL once shut down. Follow with queue_done.
char *queue_take(struct queue *queue);
// Without waiting: NULL if nothing is ready now.
char *queue_try_take(struct queue *queue);
void queue_done(struct queue *queue, const char *key);
void queue_shut_down(struct queue *queue);
size_t queue_depth(struct queue *queue);     // ready keys
int queue_failures(struct queue *queue, const char *key);
// Called (without the queue's lock, on the adder's stack) when a key becomes ready or the next due time became earlier; lets
// a pool of workers serve many queues. Not called when a delayed key becomes due: the pool waits for queue_next_due.
void queue_on_ready(struct queue *queue, void (*fn)(void *arg), void *arg);
// When the next delayed key is due; {INT64_MAX} if none. A pool waits until then.
struct boot_time queue_next_due(struct queue *queue);
