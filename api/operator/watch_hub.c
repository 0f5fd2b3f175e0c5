// The thread that serves all watches, and how requests, commits and timers reach it.
#include "api/operator/watch.h"
#include "controller/base/memory.h"
#include "controller/thread.h"
#include <assert.h>

#define NOT_ARMED INT64_MAX

// ---- what wakes the hub. Any thread.
static void poke(struct watch_hub *hub, enum resource_feed feed)
{
    pthread_mutex_lock(&hub->lock);
    if (hub->count) {
        hub->is_dirty[feed] = true;
        pthread_cond_signal(&hub->changed);
    }
    pthread_mutex_unlock(&hub->lock);
}

static void on_changes(void *arg, const struct store_change *changes, size_t count)
{
    (void)changes, (void)count;
    poke(arg, FEED_RECORDS);
}

static void on_event(void *arg)
{
    poke(arg, FEED_EVENTS);
}

static void on_timer(void *arg)
{
    struct watch_hub *hub = arg;
    hub->timer = NULL;
    pthread_mutex_lock(&hub->lock);
    hub->armed.ms = NOT_ARMED;
    hub->is_poked = true;
    pthread_cond_signal(&hub->changed);
    pthread_mutex_unlock(&hub->lock);
}

static void arm(void *arg)
{
    struct watch_hub *hub = arg;
    pthread_mutex_lock(&hub->lock);
    struct boot_time due = hub->armed;
    pthread_mutex_unlock(&hub->lock);
    loop_cancel(hub->timer);
    hub->timer = due.ms == NOT_ARMED ? NULL : loop_at(hub->world->loop, due, on_timer, hub);
}

static void disarm(void *arg)
{
    struct watch_hub *hub = arg;
    loop_cancel(hub->timer);
    hub->timer = NULL;
}

static void mark(struct watcher *watcher, int *flag)
{
    struct watch_hub *hub = watcher->hub;
    pthread_mutex_lock(&hub->lock);
    *flag = true;
    hub->is_poked = true;
    pthread_cond_signal(&hub->changed);
    pthread_mutex_unlock(&hub->lock);
}

static void on_gone(void *arg)
{
    struct watcher *watcher = arg;
    mark(watcher, &watcher->is_gone);
}

static void on_writable(void *arg)
{
    struct watcher *watcher = arg;
    mark(watcher, &watcher->is_writable);
}

// ---- the watchers. Hub thread.
static void free_watcher(void *arg)
{
    watcher_free(arg);
}

// The stream is closed, but one of its callbacks may be running on the loop thread: it is freed behind that.
static void release(struct watch_hub *hub, struct watcher *watcher)
{
    struct watch_ring *ring = &hub->rings[watcher->query.resource->feed];
    if (--hub->watching[ring->feed] == 0)
        watch_ring_reset(ring, 0);
    loop_post(hub->world->loop, free_watcher, watcher);
}

static void reap(struct watch_hub *hub)
{
    size_t ended = 0;
    for (struct watcher **at = &hub->watchers; *at;) {
        struct watcher *watcher = *at;
        if (!watcher->is_ended) {
            at = &watcher->next;
            continue;
        }
        *at = watcher->next;
        release(hub, watcher);
        ended++;
    }
    pthread_mutex_lock(&hub->lock);
    hub->count -= ended;
    pthread_mutex_unlock(&hub->lock);
}

// Holding the lock.
static void take_arrivals(struct watch_hub *hub)
{
    while (hub->arrivals) {
        struct watcher *watcher = hub->arrivals;
        enum resource_feed feed = watcher->query.resource->feed;
        hub->arrivals = watcher->next;
        watcher->next = hub->watchers;
        hub->watchers = watcher;
        hub->watching[feed]++;
        hub->is_dirty[feed] = true;
    }
}

// Holding the lock.
static void take_flags(struct watch_hub *hub)
{
    for (struct watcher *at = hub->watchers; at; at = at->next) {
        at->is_ending |= at->is_gone != 0;
        if (at->is_gone || at->is_writable)
            at->is_blocked =
                false; // a client that is gone is found out by the next write, or ended by is_ending
        at->is_writable = false;
    }
}

static bool read_feeds(struct watch_hub *hub, const bool dirty[FEED_COUNT])
{
    bool has_more = false;
    for (int feed = 0; feed < FEED_COUNT; feed++) {
        struct watch_ring *ring = &hub->rings[feed];
        if (!dirty[feed] || !hub->watching[feed])
            continue;
        if (!ring->newest)
            watch_ring_reset(ring, resource_newest(hub->world->store, ring->feed));
        if (watch_ring_read(ring, hub->world->store) == 0)
            continue;
        has_more = true;
        pthread_mutex_lock(&hub->lock);
        hub->is_dirty[feed] = true;
        pthread_mutex_unlock(&hub->lock);
    }
    return has_more;
}

static void arm_for(struct watch_hub *hub, struct boot_time due)
{
    pthread_mutex_lock(&hub->lock);
    bool is_earlier = due.ms < hub->armed.ms;
    if (is_earlier)
        hub->armed = due;
    pthread_mutex_unlock(&hub->lock);
    if (is_earlier)
        loop_post(hub->world->loop, arm, hub);
}

// True: there is more to do at once.
static bool turn(struct watch_hub *hub, const bool dirty[FEED_COUNT])
{
    bool has_more = read_feeds(hub, dirty);
    struct boot_time now = clock_boot(hub->world->clock), due = {NOT_ARMED};
    for (struct watcher *at = hub->watchers; at; at = at->next) {
        watcher_pump(at, &has_more);
        if (!at->is_ended && now.ms >= watcher_due(at).ms)
            watcher_tick(at, now);
        if (!at->is_ended && watcher_due(at).ms < due.ms)
            due = watcher_due(at);
    }
    reap(hub);
    arm_for(hub, due);
    return has_more;
}

static void finish_all(struct watch_hub *hub)
{
    for (struct watcher *at = hub->watchers; at; at = at->next)
        watcher_finish(at);
    reap(hub);
}

// Holding the lock.
static bool has_work(const struct watch_hub *hub)
{
    bool is_dirty = false;
    for (int feed = 0; feed < FEED_COUNT; feed++)
        is_dirty |= hub->is_dirty[feed];
    return is_dirty || hub->is_poked || hub->is_stopping || hub->arrivals;
}

static void *run(void *arg)
{
    struct watch_hub *hub = arg;
    bool has_more = false, is_stopping = false;
    while (!is_stopping) {
        bool dirty[FEED_COUNT];
        pthread_mutex_lock(&hub->lock);
        while (!has_more && !has_work(hub))
            pthread_cond_wait(&hub->changed, &hub->lock);
        take_arrivals(hub);
        take_flags(hub);
        for (int feed = 0; feed < FEED_COUNT; feed++) {
            dirty[feed] = hub->is_dirty[feed];
            hub->is_dirty[feed] = false;
        }
        hub->is_poked = false;
        is_stopping = hub->is_stopping;
        pthread_mutex_unlock(&hub->lock);
        if (is_stopping)
            finish_all(hub);
        else
            has_more = turn(hub, dirty);
    }
    return NULL;
}

// ---- life
int watch_hub_start(struct world *world, struct watch_hub **ret, struct error *err)
{
    struct watch_hub *hub = mem_alloc(sizeof(*hub));
    hub->world = world;
    hub->armed.ms = NOT_ARMED;
    for (int feed = 0; feed < FEED_COUNT; feed++)
        hub->rings[feed].feed = (enum resource_feed)feed;
    pthread_mutex_init(&hub->lock, NULL);
    thread_cond_init(&hub->changed);
    if (thread_start(&hub->thread, "watches", run, hub, err) < 0) {
        watch_hub_free(hub);
        return -1;
    }
    hub->has_thread = true;
    hub->subscription = store_subscribe(world->store, on_changes, hub);
    store_on_event(world->store, on_event, hub);
    *ret = hub;
    return 0;
}

void watch_hub_end(struct watch_hub *hub)
{
    if (!hub || !hub->has_thread)
        return;
    store_unsubscribe(hub->subscription);
    store_on_event(hub->world->store, NULL, NULL);
    pthread_mutex_lock(&hub->lock);
    hub->is_stopping = true;
    pthread_cond_signal(&hub->changed);
    pthread_mutex_unlock(&hub->lock);
    pthread_join(hub->thread, NULL);
    hub->has_thread = false;
    loop_call(hub->world->loop, disarm, hub); // behind all that was posted: the watchers are freed
}

void watch_hub_free(struct watch_hub *hub)
{
    if (!hub)
        return;
    assert(!hub->has_thread && !hub->watchers);
    pthread_cond_destroy(&hub->changed);
    pthread_mutex_destroy(&hub->lock);
    free(hub);
}

size_t watch_hub_count(struct watch_hub *hub)
{
    pthread_mutex_lock(&hub->lock);
    size_t count = hub->count;
    pthread_mutex_unlock(&hub->lock);
    return count;
}

bool watch_hub_has_room(struct watch_hub *hub)
{
    return watch_hub_count(hub) < WATCHERS_MAX;
}

void watch_hub_add(struct watch_hub *hub, struct watcher *watcher)
{
    pthread_mutex_lock(&hub->lock);
    bool is_open = !hub->is_stopping;
    if (is_open) {
        watcher->next = hub->arrivals;
        hub->arrivals = watcher;
        hub->count++;
        pthread_cond_signal(&hub->changed);
    }
    pthread_mutex_unlock(&hub->lock);
    if (is_open)
        return;
    http_stream_close(watcher->stream);
    loop_post(hub->world->loop, free_watcher, watcher);
}

// ---- the request
static bool has_initial(const struct collection_query *query)
{
    return query->sends_initial == 1 || (query->sends_initial < 0 && !query->revision);
}

static int check_start(struct call *call, const struct collection_query *query, struct error *err)
{
    if (!watch_hub_has_room(call->server->watches))
        return error_set(err, ERROR_LIMIT, "end some, or try again later", "%d watches are served already",
                         WATCHERS_MAX);
    if (has_initial(query) || !query->revision)
        return 0;
    return resource_check_revision(call->world->store, query->resource->feed, query->revision, err);
}

void watch_start(struct call *call, struct collection_query *query)
{
    struct watch_hub *hub = call->server->watches;
    struct error err = ERROR_INIT;
    if (check_start(call, query, &err) < 0) {
        operator_fail(call, &err);
        return;
    }
    struct watcher *watcher = watcher_new(hub, query);
    watcher->is_initial = has_initial(query);
    watcher->owes_end_mark = query->sends_initial == 1 && query->wants_bookmarks;
    if (!watcher->is_initial)
        watcher->position =
            query->revision ? query->revision : resource_newest(call->world->store, query->resource->feed);
    const struct http_stream_options options = {
        .queue_max = WATCH_QUEUE_BYTES, .on_writable = on_writable, .on_gone = on_gone, .arg = watcher};
    watcher->stream = operator_answer_stream(call, &options);
    watch_hub_add(hub, watcher);
}
