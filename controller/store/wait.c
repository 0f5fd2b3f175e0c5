// Waiting for a change of one record. A waiter is registered first and the record is looked at after that: a commit
// before the look is seen by it, one after it finds the waiter. Whoever takes the waiter out of the registry resumes it.
//
// What callers hold is a number that looks like a pointer and is never followed, so cancelling one that ran already
// is harmless. The deadline's timer belongs to the loop thread alone: armed, and disarmed or run, there, in the order
// of posting.
#include "controller/store/internal.h"
#include "controller/base/memory.h"
#include "controller/loop.h"
#include <stdio.h>
#include <string.h>

struct deadline {
    uintptr_t id; // of its waiter
    struct loop *loop;
    struct boot_time at;
    struct loop_timer *timer; // loop thread only
};

struct waiter {
    struct waiter *next;
    uintptr_t id;
    struct store *store;
    char uid[48];
    int64_t after_revision;
    struct deadline *deadline;
    void (*fn)(void *arg, bool is_timeout);
    void *arg;
};

#define BUCKETS 128
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER; // guards the two below
static struct waiter *registry[BUCKETS];                          // by uid
static uintptr_t last_id;

static struct waiter **bucket_of(const char *uid)
{
    uint32_t hash = 2166136261u;
    for (const char *at = uid; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    return &registry[hash % BUCKETS];
}

// Moves the waiters of one bucket that `is_wanted` names to *taken. Under the lock.
static void take_from(struct waiter **at, bool (*is_wanted)(const struct waiter *waiter, const void *arg), const void *arg,
                      struct waiter **taken)
{
    while (*at) {
        struct waiter *waiter = *at;
        if (!is_wanted(waiter, arg)) {
            at = &waiter->next;
            continue;
        }
        *at = waiter->next;
        waiter->next = *taken;
        *taken = waiter;
    }
}

static struct waiter *take_everywhere(bool (*is_wanted)(const struct waiter *waiter, const void *arg), const void *arg)
{
    struct waiter *taken = NULL;
    pthread_mutex_lock(&registry_lock);
    for (size_t i = 0; i < BUCKETS; i++)
        take_from(&registry[i], is_wanted, arg, &taken);
    pthread_mutex_unlock(&registry_lock);
    return taken;
}

static bool has_id(const struct waiter *waiter, const void *arg)
{
    return waiter->id == *(const uintptr_t *)arg;
}

static struct waiter *take_id(uintptr_t id)
{
    return take_everywhere(has_id, &id);
}

// ---- the loop's side --------------------------------------------------------------------------------------------

static void disarm(void *arg)
{
    struct deadline *deadline = arg;
    loop_cancel(deadline->timer);
    free(deadline);
}

static void on_deadline(void *arg)
{
    struct deadline *deadline = arg;
    deadline->timer = NULL;
    struct waiter *waiter = take_id(deadline->id);
    if (!waiter)
        return; // the taker's disarm is on its way
    free(deadline);
    waiter->fn(waiter->arg, true);
    free(waiter);
}

static void arm(void *arg)
{
    struct deadline *deadline = arg;
    deadline->timer = loop_at(deadline->loop, deadline->at, on_deadline, deadline);
}

static void resume(struct waiter *waiter, bool is_timeout)
{
    loop_post(waiter->deadline->loop, disarm, waiter->deadline);
    waiter->fn(waiter->arg, is_timeout);
    free(waiter);
}

static void resume_all(struct waiter *taken, bool is_timeout)
{
    while (taken) {
        struct waiter *waiter = taken;
        taken = waiter->next;
        resume(waiter, is_timeout);
    }
}

static void resume_posted(void *arg)
{
    resume_all(take_id((uintptr_t)arg), false);
}

// ---- registering --------------------------------------------------------------------------------------------------

// From the unlocking on, the waiter is whoever's takes it.
static uintptr_t add(struct waiter *waiter)
{
    pthread_mutex_lock(&registry_lock);
    uintptr_t id = waiter->id = waiter->deadline->id = ++last_id;
    struct waiter **bucket = bucket_of(waiter->uid);
    waiter->next = *bucket;
    *bucket = waiter;
    loop_post(waiter->deadline->loop, arm, waiter->deadline); // before anybody can take it and post the disarming
    pthread_mutex_unlock(&registry_lock);
    return id;
}

// Also where the record is not there (any more) or cannot be read: the caller looks again and finds out.
static bool is_due(struct store *store, const char *uid, int64_t after_revision)
{
    int64_t version = 0;
    struct sql *sql = readers_take(&store->readers, NULL);
    if (!sql)
        return true;
    int r = sql_number(sql, SQL_VERSION_OF, &version, NULL, "t", uid);
    readers_release(&store->readers, sql);
    return r < 0 || version == 0 || version > after_revision;
}

struct store_waiter *store_wait(struct store *store, struct loop *loop, const char *uid, int64_t after_revision,
                                struct boot_time deadline, void (*fn)(void *arg, bool is_timeout), void *arg)
{
    struct waiter *waiter = mem_alloc(sizeof(*waiter));
    *waiter = (struct waiter){.store = store, .after_revision = after_revision, .fn = fn, .arg = arg};
    snprintf(waiter->uid, sizeof(waiter->uid), "%s", uid);
    waiter->deadline = mem_alloc(sizeof(*waiter->deadline));
    *waiter->deadline = (struct deadline){.loop = loop, .at = deadline};
    uintptr_t id = add(waiter);
    if (is_due(store, uid, after_revision))
        loop_post(loop, resume_posted, (void *)id);
    return (struct store_waiter *)id;
}

bool store_wait_cancel(struct store_waiter *waiter)
{
    struct waiter *taken = take_id((uintptr_t)waiter);
    if (!taken)
        return false;
    loop_post(taken->deadline->loop, disarm, taken->deadline);
    free(taken);
    return true;
}

// ---- the store thread's side ---------------------------------------------------------------------------------------

static bool is_changed(const struct waiter *waiter, const void *arg)
{
    const struct store_change *change = arg;
    return change->revision > waiter->after_revision && strcmp(waiter->uid, change->uid) == 0;
}

void waiters_publish(struct store *store, const struct store_change *changes, size_t count)
{
    (void)store; // uids are unique beyond one store
    struct waiter *taken = NULL;
    pthread_mutex_lock(&registry_lock);
    for (size_t i = 0; i < count; i++)
        take_from(bucket_of(changes[i].uid), is_changed, &changes[i], &taken);
    pthread_mutex_unlock(&registry_lock);
    resume_all(taken, false);
}

static bool is_of_store(const struct waiter *waiter, const void *arg)
{
    return waiter->store == arg;
}

void waiters_end(struct store *store)
{
    resume_all(take_everywhere(is_of_store, store), true);
}
