// One watcher: what it is sent next. Hub thread only.
#include "api/operator/watch.h"
#include "controller/base/memory.h"
#include "controller/base/random.h"
#include <errno.h>

#define LINES_A_TURN 128

struct watcher *watcher_new(struct watch_hub *hub, struct collection_query *query)
{
    struct watcher *watcher = mem_alloc(sizeof(*watcher));
    watcher->hub = hub;
    watcher->query = *query;
    query->labels = query->fields = (struct selector){0};
    watcher->page = collection_page(&watcher->query, WATCH_PAGE_OBJECTS); // its texts are the selectors'
    unsigned char chance = 0;
    random_bytes(&chance, sizeof(chance));
    int64_t ours_s = WATCH_DEFAULT_MIN_S + WATCH_DEFAULT_MIN_S * chance / UINT8_MAX;
    int64_t now = clock_boot(hub->world->clock).ms;
    watcher->deadline.ms = now + 1000 * (query->timeout_s ? query->timeout_s : ours_s);
    watcher->next_bookmark.ms = now + WATCH_BOOKMARK_MS + WATCH_BOOKMARK_MS * chance / UINT8_MAX / 10;
    return watcher;
}

// What was read for it and not sent can be read again.
static void drop_read_ahead(struct watcher *watcher)
{
    store_page_clear(&watcher->held);
    while (watcher->behind_at < watcher->behind_count)
        watch_change_unref(watcher->behind[watcher->behind_at++]);
    watcher->held_at = watcher->behind_at = watcher->behind_count = 0;
}

static void drop_line(struct watcher *watcher)
{
    watch_line_unref(watcher->line);
    watcher->line = NULL;
    watcher->sent = 0;
}

void watcher_free(struct watcher *watcher)
{
    collection_query_clear(&watcher->query);
    free(watcher);
}

static void end(struct watcher *watcher)
{
    if (watcher->is_ended)
        return;
    size_t left = watcher->sent ? watcher->line->len - watcher->sent : 0; // a line that was begun still goes out
    char *rest = left ? mem_strndup(watcher->line->text + watcher->sent, left) : NULL;
    http_stream_end(watcher->stream, rest, left);
    watcher->is_ended = true;
    drop_line(watcher); // here, and not where it is freed: lines and changes are shared, and this thread's
    drop_read_ahead(watcher);
}

// ---- sending
static void block(struct watcher *watcher)
{
    watcher->is_blocked = true;
    watcher->blocked_since = clock_boot(watcher->hub->world->clock);
    drop_read_ahead(watcher);
}

// True: the line is out, or there was none.
static bool flush(struct watcher *watcher)
{
    struct watch_line *line = watcher->line;
    while (line && watcher->sent < line->len) {
        size_t left = line->len - watcher->sent, piece = left < WATCH_PIECE_BYTES ? left : WATCH_PIECE_BYTES;
        if (http_stream_write(watcher->stream, line->text + watcher->sent, piece) < 0) {
            if (errno == EAGAIN)
                block(watcher);
            else
                end(watcher);
            return false;
        }
        watcher->sent += piece;
    }
    drop_line(watcher);
    return true;
}

static void put(struct watcher *watcher, struct watch_line *line)
{
    watcher->line = line;
    watcher->has_shown = true;
}

static bool fail(struct watcher *watcher, const struct error *err)
{
    watcher->line = watch_error_line(err);
    watcher->is_ending = true;
    return true;
}

// ---- the state at the beginning
static void begin_changes(struct watcher *watcher)
{
    watcher->is_initial = false;
    if (watcher->owes_end_mark)
        watcher->line = watch_bookmark_line(&watcher->query, watcher->position, true);
    watcher->owes_end_mark = false;
}

static bool read_page(struct watcher *watcher)
{
    struct error err = ERROR_INIT;
    store_page_clear(&watcher->held);
    watcher->held_at = 0;
    watcher->page.revision = watcher->position;
    if (resource_read_page(watcher->hub->world->store, watcher->query.resource, &watcher->page,
                           &watcher->held, &err) < 0)
        return fail(watcher, &err);
    if (!watcher->position)
        watcher->position = watcher->held.revision;
    return true;
}

static bool next_object(struct watcher *watcher)
{
    const struct store_page *page = &watcher->held;
    if (watcher->held_at == page->count) {
        if (page->count && !page->has_more)
            begin_changes(watcher);
        else if (read_page(watcher) && !watcher->is_ending && !page->count)
            begin_changes(watcher);
        return true;
    }
    struct json_span image = store_page_image(page, watcher->held_at);
    watcher->page.after = page->items[watcher->held_at++].id;
    if (image_fits(image, &watcher->query.labels, &watcher->query.fields))
        put(watcher, watch_object_line(&watcher->query, image, clock_wall(watcher->hub->world->clock),
                                       !watcher->has_shown));
    return true;
}

// ---- changes
static void take_change(struct watcher *watcher, struct watch_change *change)
{
    enum watch_event event;
    watcher->position = change->change.revision;
    if (watch_change_event(change, &watcher->query, &event))
        put(watcher, watch_change_line(change, &watcher->query, event, clock_wall(watcher->hub->world->clock),
                                       !watcher->has_shown));
}

// True: `behind` has something, or the watcher has caught up with the ring, or is ending.
static bool read_behind(struct watcher *watcher, const struct watch_ring *ring)
{
    struct error err = ERROR_INIT;
    struct resource_change *changes = NULL;
    size_t count = 0;
    if (resource_read_changes(watcher->hub->world->store, ring->feed, watcher->position, WATCH_READ_CHANGES,
                              &changes, &count, &err) < 0)
        return fail(watcher, &err);
    for (size_t i = 0; i < count; i++)
        watcher->behind[i] = watch_change_new(&changes[i]);
    free(changes);
    watcher->behind_at = 0;
    watcher->behind_count = count;
    if (!count)
        watcher->position = ring->base;
    return true;
}

static bool next_change(struct watcher *watcher)
{
    const struct watch_ring *ring = &watcher->hub->rings[watcher->query.resource->feed];
    struct watch_change *change;
    if (watcher->behind_at < watcher->behind_count) {
        change = watcher->behind[watcher->behind_at++];
        take_change(watcher, change);
        watch_change_unref(change);
        return true;
    }
    if (!watch_ring_next(ring, watcher->position, &change))
        return read_behind(watcher, ring);
    if (!change) {
        if (watcher->position < ring->newest)
            watcher->position = ring->newest;
        return false;
    }
    take_change(watcher, change);
    return true;
}

// ---- turns
void watcher_pump(struct watcher *watcher, bool *has_more)
{
    if (watcher->is_blocked || watcher->is_ended)
        return;
    for (int i = 0; i < LINES_A_TURN; i++) {
        if (!flush(watcher))
            return;
        if (watcher->is_ending) {
            end(watcher);
            return;
        }
        if (!(watcher->is_initial ? next_object(watcher) : next_change(watcher)))
            return;
    }
    *has_more = true;
}

void watcher_finish(struct watcher *watcher)
{
    if (watcher->is_blocked || watcher->is_ended || watcher->line) {
        end(watcher);
        return;
    }
    if (watcher->query.wants_bookmarks && !watcher->is_initial)
        watcher->line = watch_bookmark_line(&watcher->query, watcher->position, false);
    flush(watcher);
    end(watcher);
}

void watcher_tick(struct watcher *watcher, struct boot_time now)
{
    bool is_stuck = watcher->is_blocked && now.ms - watcher->blocked_since.ms >= WATCH_BLOCKED_MS;
    if (is_stuck || now.ms >= watcher->deadline.ms) {
        watcher_finish(watcher);
        return;
    }
    if (now.ms < watcher->next_bookmark.ms)
        return;
    watcher->next_bookmark.ms = now.ms + WATCH_BOOKMARK_MS;
    if (!watcher->query.wants_bookmarks || watcher->is_initial || watcher->is_blocked || watcher->line)
        return;
    watcher->line = watch_bookmark_line(&watcher->query, watcher->position, false);
    flush(watcher);
}

struct boot_time watcher_due(const struct watcher *watcher)
{
    int64_t due = watcher->deadline.ms;
    if (watcher->query.wants_bookmarks && watcher->next_bookmark.ms < due)
        due = watcher->next_bookmark.ms;
    if (watcher->is_blocked && watcher->blocked_since.ms + WATCH_BLOCKED_MS < due)
        due = watcher->blocked_since.ms + WATCH_BLOCKED_MS;
    return (struct boot_time){due};
}
