// A small pool of worker threads for work that somebody else holds. A worker asks for a piece of work until
// there is none, then waits until it is told that there is more or until the next piece is due. Threads are
// made when they are needed: a quiet daemon has two. One idle worker watches the time, the others sleep until
// called.
#pragma once
#include "controller/clock.h"
#include "controller/base/error.h"

struct pool; // thread-safe
struct pool_options {
    struct clock *clock;
    int worker_count;
    // Takes one piece of work and does it; false if nothing is ready. Calls pool_took between taking and
    // doing.
    bool (*work)(void *arg);
    // When the next piece becomes ready by time; {INT64_MAX} if none will.
    struct boot_time (*next_due)(void *arg);
    void *arg;
};
struct pool *pool_new(const struct pool_options *options);
int pool_start(struct pool *pool, struct error *err);
// There may be work, or the next due time became earlier. Any thread, cheap; before the start it does
// nothing.
void pool_tell(struct pool *pool);
// From work(): this worker is busy now. Another one takes what else is ready (has_more) and watches the time.
void pool_took(struct pool *pool, bool has_more);
// Takes no more work and waits at most deadline_ms (real time) for the workers to end. False if some did not.
bool pool_stop(struct pool *pool, int64_t deadline_ms);
// After a pool_stop that returned true (or without a start). NULL allowed.
void pool_free(struct pool *pool);
