#include "controller/pool.h"
#include "controller/base/memory.h"
#include "controller/thread.h"
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct worker {
    struct pool *pool;
    pthread_t thread;
    bool is_ended; // still to be joined
};
struct pool {
    struct pool_options options;
    pthread_mutex_t lock;      // guards all below
    pthread_cond_t called;     // an idle worker that only sleeps
    pthread_cond_t time_moved; // the idle worker that watches the time
    pthread_cond_t ended;      // a worker ended
    uint64_t news;             // how often pool_tell was called: a worker that saw fewer looks again
    struct worker *workers;
    int started_count, alive_count, sleeping_count;
    bool has_timekeeper, is_running, is_stopping;
    int64_t kept_due_ms; // until when the timekeeper sleeps
};

static void *run(void *arg);

static int start_worker(struct pool *pool, struct error *err)
{
    struct worker *worker = &pool->workers[pool->started_count];
    worker->pool = pool;
    if (thread_start(&worker->thread, "reconcile", run, worker, err) < 0)
        return -1;
    pool->started_count++;
    pool->alive_count++;
    return 0;
}

// With the lock held. A thread that cannot be made now leaves the work to the workers that exist.
static void call_one(struct pool *pool)
{
    if (pool->sleeping_count > 0)
        pthread_cond_signal(&pool->called);
    else if (pool->has_timekeeper)
        pthread_cond_signal(&pool->time_moved);
    else if (pool->is_running && !pool->is_stopping && pool->started_count < pool->options.worker_count)
        start_worker(pool, NULL);
}

void pool_tell(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->news++;
    call_one(pool);
    pthread_mutex_unlock(&pool->lock);
}

void pool_took(struct pool *pool, bool has_more)
{
    pthread_mutex_lock(&pool->lock);
    if (has_more)
        pool->news++;
    if (has_more || !pool->has_timekeeper)
        call_one(pool);
    pthread_mutex_unlock(&pool->lock);
}

static void time_advanced(void *arg)
{
    pool_tell(arg);
}

// How long the timekeeper may sleep. A fake clock tells when it moves.
static long long wait_ms(const struct pool *pool, struct boot_time due)
{
    if (due.ms == INT64_MAX || clock_is_fake(pool->options.clock))
        return INT64_MAX;
    int64_t left_ms = due.ms - clock_boot(pool->options.clock).ms;
    return left_ms < 0 ? 0 : left_ms < CLOCK_MAX_WAIT_MS ? left_ms : CLOCK_MAX_WAIT_MS;
}

static void rest(struct pool *pool, struct boot_time due)
{
    if (pool->has_timekeeper) {
        if (due.ms < pool->kept_due_ms) // it fell asleep before this became known
            pthread_cond_signal(&pool->time_moved);
        pool->sleeping_count++;
        pthread_cond_wait(&pool->called, &pool->lock);
        pool->sleeping_count--;
        return;
    }
    pool->has_timekeeper = true;
    pool->kept_due_ms = due.ms;
    thread_cond_wait_ms(&pool->time_moved, &pool->lock, wait_ms(pool, due));
    pool->has_timekeeper = false;
}

static void *run(void *arg)
{
    struct worker *worker = arg;
    struct pool *pool = worker->pool;
    pthread_mutex_lock(&pool->lock);
    while (!pool->is_stopping) {
        uint64_t seen = pool->news;
        pthread_mutex_unlock(&pool->lock);
        bool has_worked = pool->options.work(pool->options.arg);
        struct boot_time due = has_worked ? (struct boot_time){0} : pool->options.next_due(pool->options.arg);
        pthread_mutex_lock(&pool->lock);
        if (!has_worked && seen == pool->news && !pool->is_stopping)
            rest(pool, due);
    }
    worker->is_ended = true;
    pool->alive_count--;
    pthread_cond_broadcast(&pool->ended);
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

struct pool *pool_new(const struct pool_options *options)
{
    assert(options->worker_count > 0);
    struct pool *pool = mem_alloc(sizeof(*pool));
    pool->options = *options;
    pool->workers = mem_alloc((size_t)options->worker_count * sizeof(struct worker));
    pthread_mutex_init(&pool->lock, NULL);
    thread_cond_init(&pool->called);
    thread_cond_init(&pool->time_moved);
    thread_cond_init(&pool->ended);
    clock_on_advance(options->clock, time_advanced, pool);
    return pool;
}

int pool_start(struct pool *pool, struct error *err)
{
    pthread_mutex_lock(&pool->lock);
    pool->is_running = true;
    int result = start_worker(pool, err);
    pthread_mutex_unlock(&pool->lock);
    return result;
}

static void await_end(struct pool *pool, int64_t deadline_ms)
{
    int64_t until_ms = boot_time_now().ms + deadline_ms;
    for (int64_t left_ms; pool->alive_count > 0 && (left_ms = until_ms - boot_time_now().ms) > 0;)
        thread_cond_wait_ms(&pool->ended, &pool->lock, left_ms);
}

bool pool_stop(struct pool *pool, int64_t deadline_ms)
{
    pthread_mutex_lock(&pool->lock);
    pool->is_stopping = true;
    pthread_cond_broadcast(&pool->called);
    pthread_cond_broadcast(&pool->time_moved);
    await_end(pool, deadline_ms);
    bool is_complete = pool->alive_count == 0;
    for (int i = 0; i < pool->started_count; i++)
        if (pool->workers[i].is_ended) {
            pthread_join(pool->workers[i].thread, NULL); // it let go of the lock before we got it
            pool->workers[i].is_ended = false;
        }
    pthread_mutex_unlock(&pool->lock);
    return is_complete;
}

void pool_free(struct pool *pool)
{
    if (!pool)
        return;
    assert(pool->alive_count == 0);
    clock_off_advance(pool->options.clock, pool);
    pthread_mutex_destroy(&pool->lock);
    pthread_cond_destroy(&pool->called);
    pthread_cond_destroy(&pool->time_moved);
    pthread_cond_destroy(&pool->ended);
    free(pool->workers);
    free(pool);
}
