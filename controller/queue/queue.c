#include "controller/queue/queue.h"
#include "controller/base/memory.h"
#include "controller/base/random.h"
#include "controller/metrics.h"
#include "controller/queue/entries.h"
#include "controller/thread.h"
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#define PRIORITIES 2
#define RESYNC_SHARE 16 // one take in so many serves resyncs first, so that steady changes do not starve them

TAILQ_HEAD(ready_list, entry);

struct queue {
    struct queue_options options;
    pthread_mutex_t lock; // guards all below
    pthread_cond_t moved; // a key became ready, an earlier delay came, time advanced, shut down
    struct entry_table entries;
    struct ready_list ready[PRIORITIES];
    size_t ready_count;
    struct heap delayed;
    uint64_t takes;
    bool is_shut_down;
    void (*on_ready)(void *arg);
    void *on_ready_arg;
};

static void look_again(void *arg)
{
    struct queue *queue = arg;
    pthread_mutex_lock(&queue->lock);
    pthread_cond_broadcast(&queue->moved);
    pthread_mutex_unlock(&queue->lock);
}

struct queue *queue_new(const struct queue_options *options)
{
    struct queue *queue = mem_alloc(sizeof(*queue));
    queue->options = *options;
    pthread_mutex_init(&queue->lock, NULL);
    thread_cond_init(&queue->moved);
    for (int i = 0; i < PRIORITIES; i++)
        TAILQ_INIT(&queue->ready[i]);
    clock_on_advance(options->clock, look_again, queue);
    return queue;
}

void queue_free(struct queue *queue)
{
    if (!queue)
        return;
    clock_off_advance(queue->options.clock, queue);
    entries_free(&queue->entries);
    heap_free(&queue->delayed);
    pthread_mutex_destroy(&queue->lock);
    pthread_cond_destroy(&queue->moved);
    free(queue);
}

void queue_on_ready(struct queue *queue, void (*fn)(void *arg), void *arg)
{
    pthread_mutex_lock(&queue->lock);
    queue->on_ready = fn;
    queue->on_ready_arg = arg;
    pthread_mutex_unlock(&queue->lock);
}

// ---- with the lock held -------------------------------------------------------------------------

static void make_ready(struct queue *queue, struct entry *entry, enum queue_priority priority)
{
    if (!entry->is_ready)
        entry->ready_us = boot_time_us();
    entry->is_ready = true;
    entry->priority = priority;
    TAILQ_INSERT_TAIL(&queue->ready[priority], entry, place);
    queue->ready_count++;
}

// Returns true if a worker has something new to do.
static bool add(struct queue *queue, struct entry *entry, enum queue_priority priority)
{
    if (entry->is_processing) {
        if (!entry->is_dirty || priority > entry->priority)
            entry->priority = priority;
        entry->is_dirty = true;
        return false;
    }
    if (!entry->is_ready) {
        make_ready(queue, entry, priority);
        return true;
    }
    if (priority > entry->priority) { // a fresh change lifts a waiting resync
        TAILQ_REMOVE(&queue->ready[entry->priority], entry, place);
        queue->ready_count--;
        make_ready(queue, entry, priority);
    }
    return false;
}

// Returns true if the next due time became earlier.
static bool add_at(struct queue *queue, struct entry *entry, int64_t due_ms)
{
    if (heap_has(&entry->delay) && entry->delay.deadline_ms <= due_ms)
        return false;
    heap_remove(&queue->delayed, &entry->delay);
    heap_put(&queue->delayed, &entry->delay, due_ms);
    return heap_first(&queue->delayed) == &entry->delay;
}

static bool add_in(struct queue *queue, struct entry *entry, int64_t delay_ms)
{
    if (delay_ms <= 0)
        return add(queue, entry, QUEUE_CHANGE);
    int64_t now_ms = clock_boot(queue->options.clock).ms;
    return add_at(queue, entry, delay_ms < INT64_MAX - now_ms ? now_ms + delay_ms : INT64_MAX);
}

static void promote_due(struct queue *queue)
{
    if (!heap_first(&queue->delayed))
        return;
    int64_t now_ms = clock_boot(queue->options.clock).ms;
    for (struct heap_node *node; (node = heap_first(&queue->delayed)) && node->deadline_ms <= now_ms;) {
        heap_remove(&queue->delayed, node);
        add(queue, (struct entry *)node, QUEUE_CHANGE);
    }
}

static struct entry *first_ready(struct queue *queue)
{
    bool is_resyncs_turn = ++queue->takes % RESYNC_SHARE == 0;
    int order[PRIORITIES] = {is_resyncs_turn ? QUEUE_RESYNC : QUEUE_CHANGE,
                             is_resyncs_turn ? QUEUE_CHANGE : QUEUE_RESYNC};
    for (int i = 0; i < PRIORITIES; i++)
        if (!TAILQ_EMPTY(&queue->ready[order[i]]))
            return TAILQ_FIRST(&queue->ready[order[i]]);
    return NULL;
}

static char *take_ready(struct queue *queue)
{
    promote_due(queue);
    struct entry *entry = queue->is_shut_down || !queue->ready_count ? NULL : first_ready(queue);
    if (!entry)
        return NULL;
    TAILQ_REMOVE(&queue->ready[entry->priority], entry, place);
    queue->ready_count--;
    entry->is_ready = false;
    entry->is_processing = true;
    if (queue->options.name)
        metrics_time(METRIC_QUEUE_WAIT, queue->options.name, NULL, boot_time_us() - entry->ready_us);
    return mem_strdup(entry->key);
}

static long long wait_ms(struct queue *queue)
{
    struct heap_node *first = heap_first(&queue->delayed);
    if (!first || clock_is_fake(queue->options.clock)) // a fake clock tells when it moves
        return INT64_MAX;
    int64_t left_ms = first->deadline_ms - clock_boot(queue->options.clock).ms;
    return left_ms < 0 ? 0 : left_ms < CLOCK_MAX_WAIT_MS ? left_ms : CLOCK_MAX_WAIT_MS;
}

static int64_t jittered(int64_t ms)
{
    return ms * (900 + random_below(201)) / 1000;
}

static int64_t backoff_ms(const struct queue *queue, int failures)
{
    int64_t max_ms = queue->options.backoff_max_ms, ms = queue->options.backoff_base_ms;
    for (int i = 0; i < failures && ms < max_ms; i++)
        ms *= 2;
    ms = jittered(ms < max_ms ? ms : max_ms);
    return ms < max_ms ? ms : max_ms;
}

// ---- adding -------------------------------------------------------------------------------------

// Ends every function that adds: wakes a waiting take, and after the unlock the pool.
static void unlock_and_tell(struct queue *queue, bool is_news)
{
    void (*fn)(void *arg) = is_news ? queue->on_ready : NULL;
    void *arg = queue->on_ready_arg;
    if (is_news)
        pthread_cond_signal(&queue->moved);
    pthread_mutex_unlock(&queue->lock);
    if (fn)
        fn(arg);
}

void queue_add(struct queue *queue, const char *key, enum queue_priority priority)
{
    pthread_mutex_lock(&queue->lock);
    bool is_news = !queue->is_shut_down && add(queue, entries_get(&queue->entries, key), priority);
    unlock_and_tell(queue, is_news);
}

void queue_add_after(struct queue *queue, const char *key, int64_t delay_ms)
{
    pthread_mutex_lock(&queue->lock);
    bool is_news = !queue->is_shut_down && add_in(queue, entries_get(&queue->entries, key), delay_ms);
    unlock_and_tell(queue, is_news);
}

void queue_add_failed(struct queue *queue, const char *key)
{
    pthread_mutex_lock(&queue->lock);
    bool is_news = false;
    if (!queue->is_shut_down) {
        struct entry *entry = entries_get(&queue->entries, key);
        is_news = add_in(queue, entry, backoff_ms(queue, entry->failures));
        entry->failures++;
        entry->conflicts = 0;
    }
    unlock_and_tell(queue, is_news);
}

bool queue_add_conflicted(struct queue *queue, const char *key)
{
    pthread_mutex_lock(&queue->lock);
    struct entry *entry = queue->is_shut_down ? NULL : entries_get(&queue->entries, key);
    bool is_retry = entry && entry->conflicts < QUEUE_CONFLICT_RETRIES, is_news = false;
    if (is_retry) {
        entry->conflicts++;
        is_news = add_in(queue, entry, jittered(QUEUE_CONFLICT_DELAY_MS * 10) / 10);
    }
    unlock_and_tell(queue, is_news);
    if (!is_retry)
        queue_add_failed(queue, key);
    return is_retry;
}

void queue_forget(struct queue *queue, const char *key)
{
    pthread_mutex_lock(&queue->lock);
    struct entry *entry = entries_find(&queue->entries, key);
    if (entry) {
        entry->failures = entry->conflicts = 0;
        entries_drop_if_idle(&queue->entries, entry);
    }
    pthread_mutex_unlock(&queue->lock);
}

// ---- taking -------------------------------------------------------------------------------------

char *queue_take(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    char *key;
    while (!(key = take_ready(queue)) && !queue->is_shut_down)
        thread_cond_wait_ms(&queue->moved, &queue->lock, wait_ms(queue));
    if (key && queue->ready_count) // several may have become due at once
        pthread_cond_signal(&queue->moved);
    pthread_mutex_unlock(&queue->lock);
    return key;
}

char *queue_try_take(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    char *key = take_ready(queue);
    pthread_mutex_unlock(&queue->lock);
    return key;
}

void queue_done(struct queue *queue, const char *key)
{
    pthread_mutex_lock(&queue->lock);
    struct entry *entry = entries_find(&queue->entries, key);
    assert(entry && entry->is_processing);
    entry->is_processing = false;
    bool is_news = entry->is_dirty && !queue->is_shut_down;
    entry->is_dirty = false;
    if (is_news)
        make_ready(queue, entry, entry->priority);
    entries_drop_if_idle(&queue->entries, entry);
    unlock_and_tell(queue, is_news);
}

void queue_shut_down(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->is_shut_down = true;
    pthread_cond_broadcast(&queue->moved);
    pthread_mutex_unlock(&queue->lock);
}

// ---- looking ------------------------------------------------------------------------------------

size_t queue_depth(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    promote_due(queue);
    size_t depth = queue->ready_count;
    pthread_mutex_unlock(&queue->lock);
    return depth;
}

int queue_failures(struct queue *queue, const char *key)
{
    pthread_mutex_lock(&queue->lock);
    struct entry *entry = entries_find(&queue->entries, key);
    int failures = entry ? entry->failures : 0;
    pthread_mutex_unlock(&queue->lock);
    return failures;
}

struct boot_time queue_next_due(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    struct heap_node *first = heap_first(&queue->delayed);
    struct boot_time due = {first ? first->deadline_ms : INT64_MAX};
    pthread_mutex_unlock(&queue->lock);
    return due;
}
