// Runs the reconcilers: a queue each, a small pool of workers for all, changes from the store's feed mapped to keys,
// a full resync at start (behind fresh changes) and one every minute with jitter (of very many records a part each time), store upkeep, bounded shutdown.
#pragma once
#include "controller/loop.h"
#include "controller/spawn.h"
#include "controller/store/store.h"

struct manager;

enum reconcile_verdict {
    RECONCILE_DONE,    // nothing to do until something changes; forgets the backoff
    RECONCILE_AFTER,   // look again after outcome.after_ms; forgets the backoff
    RECONCILE_FAILED,  // err is set: retried with backoff, counted, logged once a message. ERROR_CONFLICT: retried at once
                       // (10 ms) up to 5 times first, unlogged: reconcile starts from a fresh read
};
struct reconcile_outcome {
    int64_t after_ms;
};
struct reconciler {
    const char *name;       // "sandbox"
    enum kind kind;         // keys are uids of this kind
    bool is_store_only;     // backoff from 5 ms
    // May block for a commit, not for a driver: workers are few. Changes of its own kind, DELETED included, bring it here.
    enum reconcile_verdict (*reconcile)(void *arg, const char *uid, struct reconcile_outcome *outcome, struct error *err);
    // A change of another kind's record may concern ours: add keys with manager_enqueue. May be NULL. Store thread: quick.
    void (*map_change)(void *arg, struct manager *manager, const struct store_change *change);
    // Before serving: settles what an earlier process left (restart policy). May block. May be NULL.
    int (*recover)(void *arg, struct error *err);
    void *arg;
};
struct manager_options {
    struct clock *clock;
    struct loop *loop;
    struct store *store;     // NULL (tests): no feed, resync or upkeep
    int worker_count;        // at most; 0 = 8; negative: none, manager_run_until_idle does the work (tests)
    int64_t resync_ms;       // 0 = 60,000, ±10 %
    size_t resync_max;       // records of a kind that one resync looks at, the rest in their turn; 0 = 2,000. At the start: all
};
struct manager *manager_new(const struct manager_options *options);
void manager_add(struct manager *manager, const struct reconciler *reconciler); // copied; before start
int manager_start(struct manager *manager, struct error *err);                  // recover all, then resync, then workers
void manager_enqueue(struct manager *manager, enum kind kind, const char *uid); // any thread
void manager_enqueue_after(struct manager *manager, enum kind kind, const char *uid, int64_t delay_ms);
// Stops taking work and waits at most deadline_ms for the running reconciles. Returns false if some did not end.
bool manager_stop(struct manager *manager, int64_t deadline_ms);
// NULL allowed. After a manager_stop that returned false it frees nothing: a thread still uses it, and the caller should soon
// _exit, because that thread also uses the store and whatever its reconciler holds.
void manager_free(struct manager *manager);
// Tests (worker_count -1): runs everything that is ready, on the caller's thread, until nothing is (bounded by max_steps), what
// the loop and the store have under way included; returns steps.
int manager_run_until_idle(struct manager *manager, int max_steps);
struct manager_stats {
    const char *name;
    size_t depth;
    int64_t runs, failures, retries;
};
size_t manager_get_stats(struct manager *manager, struct manager_stats *ret, size_t room);
