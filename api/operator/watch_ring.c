// The newest changes of a feed, read once for all watchers.
#include "api/operator/watch.h"
#include "controller/base/memory.h"
#include <string.h>

static size_t change_bytes(const struct resource_change *change)
{
    return change->before_len + change->after_len;
}

static void drop_oldest(struct watch_ring *ring)
{
    struct watch_change *oldest = ring->changes[ring->first];
    ring->base = oldest->change.revision;
    ring->bytes -= change_bytes(&oldest->change);
    ring->first = (ring->first + 1) % WATCH_RING_CHANGES;
    ring->count--;
    watch_change_unref(oldest);
}

void watch_ring_reset(struct watch_ring *ring, int64_t newest)
{
    while (ring->count)
        drop_oldest(ring);
    ring->base = ring->newest = newest;
}

static void add(struct watch_ring *ring, struct resource_change *change)
{
    while (ring->count &&
           (ring->count == WATCH_RING_CHANGES || ring->bytes + change_bytes(change) > WATCH_RING_BYTES))
        drop_oldest(ring);
    ring->newest = change->revision;
    ring->bytes += change_bytes(change);
    ring->changes[(ring->first + ring->count++) % WATCH_RING_CHANGES] = watch_change_new(change);
}

int watch_ring_read(struct watch_ring *ring, struct store *store)
{
    struct resource_change *changes = NULL;
    size_t count = 0;
    if (resource_read_changes(store, ring->feed, ring->newest, WATCH_READ_CHANGES, &changes, &count, NULL) <
        0) {
        watch_ring_reset(ring, resource_newest(store, ring->feed));
        return -1;
    }
    for (size_t i = 0; i < count; i++)
        add(ring, &changes[i]);
    free(changes);
    return count == WATCH_READ_CHANGES;
}

bool watch_ring_next(const struct watch_ring *ring, int64_t position, struct watch_change **ret)
{
    *ret = NULL;
    if (position < ring->base)
        return false;
    size_t low = 0, high = ring->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ring->changes[(ring->first + middle) % WATCH_RING_CHANGES]->change.revision <= position)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < ring->count)
        *ret = ring->changes[(ring->first + low) % WATCH_RING_CHANGES];
    return true;
}
