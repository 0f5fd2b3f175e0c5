#include "controller/store/internal.h"
#include "controller/base/memory.h"
#include "controller/policy.h"
#include <stdio.h>
#include <string.h>

void activity_init(struct activity *activity)
{
    pthread_mutex_init(&activity->lock, NULL);
}

void activity_free(struct activity *activity)
{
    for (size_t i = 0; i < ACTIVITY_BUCKETS; i++)
        while (activity->buckets[i]) {
            struct activity_entry *entry = activity->buckets[i];
            activity->buckets[i] = entry->next;
            free(entry);
        }
    pthread_mutex_destroy(&activity->lock);
}

static struct activity_entry **find(struct activity *activity, const char *uid)
{
    uint32_t hash = 2166136261u;
    for (const char *at = uid; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    struct activity_entry **at = &activity->buckets[hash % ACTIVITY_BUCKETS];
    while (*at && strcmp((*at)->uid, uid) != 0)
        at = &(*at)->next;
    return at;
}

void activity_begin(struct store *store, const char *uid, struct wall_time at)
{
    struct activity *activity = &store->activity;
    pthread_mutex_lock(&activity->lock);
    struct activity_entry **slot = find(activity, uid);
    if (!*slot && strlen(uid) < sizeof((*slot)->uid)) {
        *slot = mem_alloc(sizeof(**slot));
        snprintf((*slot)->uid, sizeof((*slot)->uid), "%s", uid);
        (*slot)->at_ms = at.ms;
    }
    pthread_mutex_unlock(&activity->lock);
}

void activity_end(struct store *store, const char *uid)
{
    struct activity *activity = &store->activity;
    pthread_mutex_lock(&activity->lock);
    struct activity_entry **slot = find(activity, uid), *entry = *slot;
    if (entry)
        *slot = entry->next;
    pthread_mutex_unlock(&activity->lock);
    free(entry);
}

int activity_load(struct store *store, struct error *err)
{
    struct sql *sql = &store->writer.sql;
    sqlite3_stmt *stmt = sql_query(sql, SQL_ACTIVITY_ALL, err, "");
    int row = stmt ? 1 : -1;
    while (row > 0 && (row = sql_next(sql, stmt, err)) > 0)
        activity_begin(store, sql_text(stmt, 0), (struct wall_time){sqlite3_column_int64(stmt, 1)});
    return row;
}

// Only live sandboxes have an entry, so unknown uids from outside cost nothing.
void store_touch_activity(struct store *store, const char *sandbox_uid, struct wall_time at)
{
    struct activity *activity = &store->activity;
    bool is_first = false;
    pthread_mutex_lock(&activity->lock);
    struct activity_entry *entry = *find(activity, sandbox_uid);
    if (entry && at.ms > entry->at_ms) {
        entry->at_ms = at.ms;
        entry->is_dirty = true;
        atomic_fetch_add(&activity->changes, 1);
        is_first = !activity->dirty_since_ms;
        if (is_first)
            activity->dirty_since_ms = clock_boot(store->clock).ms + 1; // never 0
    }
    pthread_mutex_unlock(&activity->lock);
    if (is_first)
        writer_wake(store);
}

struct wall_time store_activity(struct store *store, const char *sandbox_uid)
{
    pthread_mutex_lock(&store->activity.lock);
    struct activity_entry *entry = *find(&store->activity, sandbox_uid);
    struct wall_time at = {entry ? entry->at_ms : 0};
    pthread_mutex_unlock(&store->activity.lock);
    return at;
}

struct record_activity activity_of(struct store *store, const char *uid, struct wall_time created_at)
{
    struct wall_time at = store_activity(store, uid);
    if (at.ms < created_at.ms) // its create is in this very transaction
        at = created_at;
    return (struct record_activity){at, {at.ms + SANDBOX_IDLE_MS}};
}

void activity_merge(struct store *store, struct record *sandbox)
{
    struct record_activity activity = activity_of(store, sandbox->meta.uid, sandbox->meta.created_at);
    sandbox->status.sandbox.last_activity_at = activity.last_at;
    sandbox->status.sandbox.expires_at = activity.expires_at;
}

int64_t activity_due_ms(struct store *store)
{
    pthread_mutex_lock(&store->activity.lock);
    int64_t since = store->activity.dirty_since_ms;
    pthread_mutex_unlock(&store->activity.lock);
    return since ? since + ACTIVITY_FLUSH_MS : INT64_MAX;
}

int activity_flush(struct store *store, struct sql *sql, struct error *err)
{
    struct activity *activity = &store->activity;
    int r = 0;
    pthread_mutex_lock(&activity->lock);
    for (size_t i = 0; i < ACTIVITY_BUCKETS; i++)
        for (struct activity_entry *entry = activity->buckets[i]; entry && r == 0; entry = entry->next)
            if (entry->is_dirty && (r = sql_run(sql, SQL_ACTIVITY_PUT, err, "ti", entry->uid, entry->at_ms)) == 0)
                entry->is_dirty = false;
    activity->dirty_since_ms = 0;
    pthread_mutex_unlock(&activity->lock);
    return r;
}

// The commit failed: which entries it held is not remembered, so all are written next time.
void activity_unflush(struct store *store)
{
    struct activity *activity = &store->activity;
    pthread_mutex_lock(&activity->lock);
    for (size_t i = 0; i < ACTIVITY_BUCKETS; i++)
        for (struct activity_entry *entry = activity->buckets[i]; entry; entry = entry->next)
            entry->is_dirty = true;
    activity->dirty_since_ms = clock_boot(store->clock).ms + 1;
    pthread_mutex_unlock(&activity->lock);
}
