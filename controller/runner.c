#include "controller/metrics.h"
#include "controller/runner.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/fault.h"
#include "controller/hash.h"
#include "controller/log.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define BACKOFF_BASE_MS 200
#define BACKOFF_BASE_STORE_ONLY_MS 5
#define BACKOFF_MAX_MS 60000
#define LOGGED_ROOM 256

struct runner {
    struct reconciler reconciler;
    struct queue *queue;
    _Atomic int64_t runs, failures, retries;
    pthread_mutex_t lock; // guards logged
    // What was last logged about a key, by the key's hash. Two failing keys on one place cost a repeated
    // line, no more.
    struct logged {
        uint64_t key, message;
    } logged[LOGGED_ROOM];
};

struct runner *runner_new(const struct reconciler *reconciler, struct clock *clock)
{
    struct runner *runner = mem_alloc(sizeof(*runner));
    runner->reconciler = *reconciler;
    runner->reconciler.name = mem_strdup(reconciler->name);
    int64_t base_ms = reconciler->is_store_only ? BACKOFF_BASE_STORE_ONLY_MS : BACKOFF_BASE_MS;
    runner->queue = queue_new(&(struct queue_options){clock, base_ms, BACKOFF_MAX_MS, runner->reconciler.name});
    pthread_mutex_init(&runner->lock, NULL);
    return runner;
}

void runner_free(struct runner *runner)
{
    if (!runner)
        return;
    queue_free(runner->queue);
    pthread_mutex_destroy(&runner->lock);
    free((char *)runner->reconciler.name);
    free(runner);
}

const struct reconciler *runner_reconciler(const struct runner *runner)
{
    return &runner->reconciler;
}

struct queue *runner_queue(struct runner *runner)
{
    return runner->queue;
}

// Remembers that `message` (NULL: nothing) is the last word about the key; true if that is new.
static bool remember(struct runner *runner, const char *key, const char *message)
{
    uint64_t key_hash = hash_text(key), message_hash = message ? hash_text(message) : 0;
    pthread_mutex_lock(&runner->lock);
    struct logged *at = &runner->logged[key_hash % LOGGED_ROOM];
    bool is_same_key = at->key == key_hash;
    bool is_new = message && !(is_same_key && at->message == message_hash);
    if (message)
        *at = (struct logged){key_hash, message_hash};
    else if (is_same_key)
        *at = (struct logged){0};
    pthread_mutex_unlock(&runner->lock);
    return is_new;
}

static void settle_failure(struct runner *runner, const char *key, const struct error *err)
{
    runner->retries++;
    if (err->code == ERROR_CONFLICT && queue_add_conflicted(runner->queue, key))
        return; // another writer was first: expected, and settled by the fresh read
    if (err->code != ERROR_CONFLICT)
        queue_add_failed(runner->queue, key);
    runner->failures++;
    if (remember(runner, key, err->message))
        log_warning("%s %s: %s%s%s", runner->reconciler.name, key, err->message, err->hint[0] ? "; " : "",
                    err->hint);
}

static void settle(struct runner *runner, const char *key, enum reconcile_verdict verdict,
                   const struct reconcile_outcome *outcome, const struct error *err)
{
    if (verdict == RECONCILE_FAILED) {
        settle_failure(runner, key, err);
        return;
    }
    queue_forget(runner->queue, key);
    remember(runner, key, NULL);
    if (verdict == RECONCILE_AFTER)
        queue_add_after(runner->queue, key, outcome->after_ms > 0 ? outcome->after_ms : 1);
}

static enum reconcile_verdict reconcile(struct runner *runner, const char *key,
                                        struct reconcile_outcome *outcome, struct error *err)
{
    const struct reconciler *reconciler = &runner->reconciler;
    if (FAULT("manager.reconcile.before")) {
        error_set(err, ERROR_INTERNAL, NULL, "fault point");
        return RECONCILE_FAILED;
    }
    static const char *const results[] = {
        [RECONCILE_DONE] = "done", [RECONCILE_AFTER] = "later", [RECONCILE_FAILED] = "failed"};
    int64_t began_us = boot_time_us();
    enum reconcile_verdict verdict = reconciler->reconcile(reconciler->arg, key, outcome, err);
    metrics_time(METRIC_RECONCILE, reconciler->name, results[verdict], boot_time_us() - began_us);
    if (verdict == RECONCILE_FAILED && err->code == ERROR_NONE)
        error_set(err, ERROR_INTERNAL, NULL, "failed without a reason");
    return verdict;
}

void runner_run(struct runner *runner, char *key)
{
    CLEANUP_FREE char *owned = key;
    struct reconcile_outcome outcome = {0};
    struct error err = ERROR_INIT;
    runner->runs++;
    enum reconcile_verdict verdict = reconcile(runner, owned, &outcome, &err);
    settle(runner, owned, verdict, &outcome, &err);
    queue_done(runner->queue, owned);
}

void runner_get_stats(struct runner *runner, struct manager_stats *ret)
{
    *ret = (struct manager_stats){
        .name = runner->reconciler.name,
        .depth = queue_depth(runner->queue),
        .runs = runner->runs,
        .failures = runner->failures,
        .retries = runner->retries,
    };
}
