#include "controller/manager.h"
#include "controller/base/memory.h"
#include "controller/base/random.h"
#include "controller/hash.h"
#include "controller/log.h"
#include "controller/pool.h"
#include "controller/runner.h"
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define MAX_RECONCILERS 16
#define DEFAULT_WORKERS 8 // started as they are needed; each waits for its commit most of the time, and those that wait at once share one
#define DEFAULT_RESYNC_MS 60000
#define DEFAULT_RESYNC_MAX 2000 // records of a kind

struct manager {
    struct manager_options options;
    struct runner *runners[MAX_RECONCILERS]; // fixed once started
    size_t runner_count;
    struct pool *pool; // NULL: manager_run_until_idle does the work
    struct store_subscription *subscription;
    bool is_stuck;          // a stop gave up on a running reconcile
    atomic_size_t turn;     // the queue that is asked first, so that all are served alike
    pthread_mutex_t lock;   // guards all below
    int64_t next_resync_ms; // boot time
    bool is_resyncing;
    int64_t resynced[KIND_COUNT]; // where the next resync goes on; only of the thread that resyncs
    uint64_t last_trouble; // what the last resync or upkeep logged, by its hash; 0 = nothing
};

struct manager *manager_new(const struct manager_options *options)
{
    struct manager *manager = mem_alloc(sizeof(*manager));
    manager->options = *options;
    if (!manager->options.worker_count)
        manager->options.worker_count = DEFAULT_WORKERS;
    if (!manager->options.resync_ms)
        manager->options.resync_ms = DEFAULT_RESYNC_MS;
    if (!manager->options.resync_max)
        manager->options.resync_max = DEFAULT_RESYNC_MAX;
    manager->next_resync_ms = INT64_MAX;
    pthread_mutex_init(&manager->lock, NULL);
    return manager;
}

void manager_free(struct manager *manager)
{
    if (!manager || manager->is_stuck)
        return;
    pool_free(manager->pool);
    for (size_t i = 0; i < manager->runner_count; i++)
        runner_free(manager->runners[i]);
    pthread_mutex_destroy(&manager->lock);
    free(manager);
}

void manager_add(struct manager *manager, const struct reconciler *reconciler)
{
    assert(manager->runner_count < MAX_RECONCILERS && !manager->pool);
    manager->runners[manager->runner_count++] = runner_new(reconciler, manager->options.clock);
}

// ---- keys ---------------------------------------------------------------------------------------

static void enqueue(struct manager *manager, enum kind kind, const char *uid, enum queue_priority priority)
{
    for (size_t i = 0; i < manager->runner_count; i++)
        if (runner_reconciler(manager->runners[i])->kind == kind)
            queue_add(runner_queue(manager->runners[i]), uid, priority);
}

void manager_enqueue(struct manager *manager, enum kind kind, const char *uid)
{
    enqueue(manager, kind, uid, QUEUE_CHANGE);
}

void manager_enqueue_after(struct manager *manager, enum kind kind, const char *uid, int64_t delay_ms)
{
    for (size_t i = 0; i < manager->runner_count; i++)
        if (runner_reconciler(manager->runners[i])->kind == kind)
            queue_add_after(runner_queue(manager->runners[i]), uid, delay_ms);
}

static void map_change(struct manager *manager, const struct store_change *change)
{
    enqueue(manager, change->kind, change->uid, QUEUE_CHANGE);
    for (size_t i = 0; i < manager->runner_count; i++) {
        const struct reconciler *reconciler = runner_reconciler(manager->runners[i]);
        if (reconciler->map_change)
            reconciler->map_change(reconciler->arg, manager, change);
    }
}

static void take_changes(void *arg, const struct store_change *changes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        map_change(arg, &changes[i]);
}

// ---- resync and upkeep --------------------------------------------------------------------------

struct resync_kind {
    struct manager *manager;
    enum kind kind;
};

static void enqueue_resync(void *arg, const char *uid)
{
    const struct resync_kind *of = arg;
    enqueue(of->manager, of->kind, uid, QUEUE_RESYNC);
}

static int enqueue_some(struct manager *manager, enum kind kind, size_t max, struct error *err)
{
    struct resync_kind of = {manager, kind};
    if (store_each_uid(manager->options.store, kind, max, &manager->resynced[kind], enqueue_resync, &of, err) < 0)
        return error_context(err, "cannot list the %s records", kind_info(kind)->singular);
    return 0;
}

// At most max of each kind: what is left has its turn the next time, so that many records cost no more at rest than some.
static int resync(struct manager *manager, size_t max, struct error *err)
{
    bool is_done[KIND_COUNT] = {false};
    for (size_t i = 0; i < manager->runner_count; i++) {
        enum kind kind = runner_reconciler(manager->runners[i])->kind;
        if (!is_done[kind] && enqueue_some(manager, kind, max, err) < 0)
            return -1;
        is_done[kind] = true;
    }
    return 0;
}

// ±10 %: several daemons and several loops do not beat in step.
static void plan_resync(struct manager *manager)
{
    int64_t spread_ms = manager->options.resync_ms / 5 + 1;
    int64_t delay_ms = manager->options.resync_ms - spread_ms / 2 + random_below((uint32_t)spread_ms);
    pthread_mutex_lock(&manager->lock);
    manager->next_resync_ms = clock_boot(manager->options.clock).ms + delay_ms;
    manager->is_resyncing = false;
    pthread_mutex_unlock(&manager->lock);
}

static bool claim_resync(struct manager *manager)
{
    pthread_mutex_lock(&manager->lock);
    bool is_mine = !manager->is_resyncing && clock_boot(manager->options.clock).ms >= manager->next_resync_ms;
    if (is_mine)
        manager->is_resyncing = true;
    pthread_mutex_unlock(&manager->lock);
    return is_mine;
}

// The same trouble every minute is one line. Only the thread that resyncs is here.
static void report_trouble(struct manager *manager, const char *trouble)
{
    uint64_t hash = trouble[0] ? hash_text(trouble) : 0;
    if (hash && hash != manager->last_trouble)
        log_warning("%s", trouble);
    manager->last_trouble = hash;
}

static void resync_now(struct manager *manager)
{
    struct error err = ERROR_INIT;
    if (resync(manager, manager->options.resync_max, &err) < 0 || store_upkeep(manager->options.store, &err) < 0)
        error_context(&err, "the minute's resync and upkeep");
    report_trouble(manager, err.message);
    plan_resync(manager);
}

// ---- work ---------------------------------------------------------------------------------------

static bool has_ready(struct manager *manager)
{
    for (size_t i = 0; i < manager->runner_count; i++)
        if (queue_depth(runner_queue(manager->runners[i])) > 0)
            return true;
    return false;
}

static void tell_taken(struct manager *manager)
{
    if (manager->pool)
        pool_took(manager->pool, has_ready(manager));
}

static bool run_one_key(struct manager *manager)
{
    size_t first = atomic_fetch_add(&manager->turn, 1);
    for (size_t i = 0; i < manager->runner_count; i++) {
        struct runner *runner = manager->runners[(first + i) % manager->runner_count];
        char *key = queue_try_take(runner_queue(runner));
        if (!key)
            continue;
        tell_taken(manager);
        runner_run(runner, key);
        return true;
    }
    return false;
}

static bool work(void *arg)
{
    struct manager *manager = arg;
    if (!claim_resync(manager))
        return run_one_key(manager);
    tell_taken(manager);
    resync_now(manager);
    return true;
}

static struct boot_time next_due(void *arg)
{
    struct manager *manager = arg;
    pthread_mutex_lock(&manager->lock);
    struct boot_time due = {manager->is_resyncing ? INT64_MAX : manager->next_resync_ms};
    pthread_mutex_unlock(&manager->lock);
    for (size_t i = 0; i < manager->runner_count; i++) {
        struct boot_time of_queue = queue_next_due(runner_queue(manager->runners[i]));
        if (of_queue.ms < due.ms)
            due = of_queue;
    }
    return due;
}

static void tell_pool(void *arg)
{
    pool_tell(arg);
}

// ---- life ---------------------------------------------------------------------------------------

static int recover_all(struct manager *manager, struct error *err)
{
    for (size_t i = 0; i < manager->runner_count; i++) {
        const struct reconciler *reconciler = runner_reconciler(manager->runners[i]);
        if (reconciler->recover && reconciler->recover(reconciler->arg, err) < 0)
            return error_context(err, "cannot settle what an earlier process left (%s)", reconciler->name);
    }
    return 0;
}

static int follow_store(struct manager *manager, struct error *err)
{
    if (!manager->options.store)
        return 0;
    manager->subscription = store_subscribe(manager->options.store, take_changes, manager);
    if (resync(manager, INT64_MAX, err) < 0)
        return -1;
    plan_resync(manager);
    return 0;
}

static int start_pool(struct manager *manager, struct error *err)
{
    if (manager->options.worker_count < 0)
        return 0;
    manager->pool = pool_new(&(struct pool_options){
        .clock = manager->options.clock,
        .worker_count = manager->options.worker_count,
        .work = work,
        .next_due = next_due,
        .arg = manager,
    });
    for (size_t i = 0; i < manager->runner_count; i++)
        queue_on_ready(runner_queue(manager->runners[i]), tell_pool, manager->pool);
    return pool_start(manager->pool, err);
}

int manager_start(struct manager *manager, struct error *err)
{
    if (recover_all(manager, err) == 0 && follow_store(manager, err) == 0 && start_pool(manager, err) == 0)
        return 0;
    manager_stop(manager, 0);
    return -1;
}

bool manager_stop(struct manager *manager, int64_t deadline_ms)
{
    if (manager->subscription)
        store_unsubscribe(manager->subscription);
    manager->subscription = NULL;
    for (size_t i = 0; i < manager->runner_count; i++)
        queue_shut_down(runner_queue(manager->runners[i]));
    manager->is_stuck = manager->pool && !pool_stop(manager->pool, deadline_ms);
    return !manager->is_stuck;
}

// ---- tests and figures --------------------------------------------------------------------------

static void nothing(void *arg)
{
    (void)arg;
}

static int write_nothing(struct store_tx *tx, void *arg, struct error *err)
{
    (void)tx;
    (void)arg;
    (void)err;
    return 0;
}

// What was posted to the loop and submitted to the store before has happened, changes delivered, when this
// returns.
static void settle_others(struct manager *manager)
{
    if (manager->options.loop)
        loop_call(manager->options.loop, nothing, NULL);
    if (manager->options.store)
        store_transact(manager->options.store, write_nothing, NULL, NULL);
    if (manager->options.loop)
        loop_call(manager->options.loop, nothing, NULL);
}

int manager_run_until_idle(struct manager *manager, int max_steps)
{
    int steps = 0;
    bool is_idle = false;
    while (!is_idle && steps < max_steps) {
        settle_others(manager);
        is_idle = true;
        for (; steps < max_steps && work(manager); steps++)
            is_idle = false;
    }
    return steps;
}

size_t manager_get_stats(struct manager *manager, struct manager_stats *ret, size_t room)
{
    size_t count = 0;
    for (; count < manager->runner_count && count < room; count++)
        runner_get_stats(manager->runners[count], &ret[count]);
    return count;
}
