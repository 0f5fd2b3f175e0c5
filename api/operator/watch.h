// Watches: streams of {"type", "object"} lines, from a position in the change feed on.
//
// One thread, the hub's, serves all of them. It reads each change once, keeps the newest ones in a short
// ring, and shows a change once for all watchers that want it in the same form. A watcher owns no queue of
// changes, only its position: whoever reads slowly falls behind the ring, is then served from the store's
// feed, and is told 410 Expired when the feed has gone on without it. While nobody watches, the hub sleeps.
//
// Threads: the hub's own members and all watchers' belong to the hub thread, except what struct watch_hub's
// lock guards.
#pragma once
#include "api/http/http.h"
#include "api/operator/collection.h"
#include <pthread.h>

#define WATCHERS_MAX 512
#define WATCH_QUEUE_BYTES (256 * 1024) // a client's unread bytes; then its watcher pauses
#define WATCH_PIECE_BYTES (64 * 1024)  // written at once
#define WATCH_RING_CHANGES 256         // shared by all watchers
#define WATCH_RING_BYTES (16 << 20)    // of images in it
#define WATCH_READ_CHANGES 64          // read at once
#define WATCH_PAGE_OBJECTS 32          // of the state at the beginning, read at once
#define WATCH_BOOKMARK_MS 60000
#define WATCH_DEFAULT_MIN_S 1800         // a watch of no stated length takes this, and up to twice as long
#define WATCH_BLOCKED_MS (5 * 60 * 1000) // a client that reads nothing for so long is let go

// ---- lines and changes (watch_change.c); hub thread only
struct watch_line { // one event, its newline included; shared
    int refs;
    size_t len;
    char text[];
};
void watch_line_unref(struct watch_line *line);

enum watch_event { WATCH_ADDED, WATCH_MODIFIED, WATCH_DELETED, WATCH_EVENT_COUNT };
#define WATCH_FORMS 5
struct watch_change {
    int refs;
    struct resource_change change;
    struct watch_line
        *lines[WATCH_EVENT_COUNT][WATCH_FORMS]; // made when first wanted; Tables without columns
};
struct watch_change *watch_change_new(struct resource_change *change); // its images are taken
void watch_change_unref(struct watch_change *change);
// What the change is to somebody who sees only what fits: false if nothing.
bool watch_change_event(const struct watch_change *change, const struct collection_query *query,
                        enum watch_event *ret);
// A reference. has_columns: a Table that brings its columns; made for this caller only.
struct watch_line *watch_change_line(struct watch_change *change, const struct collection_query *query,
                                     enum watch_event event, struct wall_time now, bool has_columns);
struct watch_line *watch_object_line(const struct collection_query *query, struct json_span image,
                                     struct wall_time now,
                                     bool has_columns); // ADDED
struct watch_line *watch_bookmark_line(const struct collection_query *query, int64_t revision,
                                       bool is_initial_end);
struct watch_line *watch_error_line(const struct error *err);

// ---- the feed's newest changes (watch_ring.c)
struct watch_ring {
    enum resource_feed feed;
    struct watch_change *changes[WATCH_RING_CHANGES];
    size_t first, count, bytes;
    int64_t base, newest; // all changes after base and up to newest are in it
};
void watch_ring_reset(struct watch_ring *ring, int64_t newest);
// Reads on. 1: there is more. -1: the feed went on without us (ring reset, watchers go on by themselves).
int watch_ring_read(struct watch_ring *ring, struct store *store);
// The first change after `position`: NULL at the end. False: the ring does not reach back so far.
bool watch_ring_next(const struct watch_ring *ring, int64_t position, struct watch_change **ret);

// ---- one watcher (watcher.c)
struct watcher {
    struct watcher *next; // the hub's list
    struct watch_hub *hub;
    // Guarded by hub->lock; apart from the other flags, so that no access to those touches these.
    int is_gone, is_writable;
    struct http_stream *stream;
    struct collection_query query; // owned
    int64_t position;
    bool is_initial; // still shows the state at the beginning, of revision `position` once that is known
    struct resource_page_request page;
    struct store_page held; // read of that state and not sent yet
    struct watch_change
        *behind[WATCH_READ_CHANGES]; // read for this watcher alone, because the ring is beyond it
    size_t held_at, behind_at, behind_count;
    bool owes_end_mark;      // the bookmark behind the state at the beginning
    bool has_shown;          // a Table's columns were sent
    struct watch_line *line; // being sent
    size_t sent;
    struct boot_time deadline, next_bookmark, blocked_since;
    bool is_blocked;
    bool is_ending; // closed once `line` is sent
    bool is_ended;
};
struct watcher *watcher_new(struct watch_hub *hub,
                            struct collection_query *query); // query: its selectors are taken
void watcher_free(struct watcher *watcher);
void watcher_pump(struct watcher *watcher,
                  bool *has_more); // sends what can be sent now, a bounded part of it
void watcher_tick(struct watcher *watcher, struct boot_time now); // bookmarks, deadline
void watcher_finish(struct watcher *watcher); // the server ends: last bookmark where it fits, then the end
struct boot_time watcher_due(const struct watcher *watcher);

// ---- the hub (watch_hub.c)
struct watch_hub {
    struct world *world;
    struct watch_ring rings[FEED_COUNT];
    struct watcher *watchers;
    size_t watching[FEED_COUNT];
    pthread_t thread;
    bool has_thread; // whoever starts and ends it
    struct store_subscription *subscription;
    struct loop_timer *timer; // loop thread only
    pthread_mutex_t lock;     // guards all below, and the two flags of each watcher
    pthread_cond_t changed;
    struct watcher *arrivals;
    size_t count; // arrivals included
    bool is_dirty[FEED_COUNT], is_poked, is_stopping;
    struct boot_time armed; // when the timer fires; INT64_MAX = not armed
};
int watch_hub_start(struct world *world, struct watch_hub **ret, struct error *err);
void watch_hub_end(
    struct watch_hub *hub); // ends all streams and takes no more; not on the loop thread; NULL allowed
void watch_hub_free(struct watch_hub *hub); // after watch_hub_end
bool watch_hub_has_room(struct watch_hub *hub);
size_t watch_hub_count(struct watch_hub *hub);
// The watcher is the hub's from here on.
void watch_hub_add(struct watch_hub *hub, struct watcher *watcher);
