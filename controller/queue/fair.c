#include "controller/queue/fair.h"
#include "controller/base/memory.h"
#include <assert.h>
#include <stdlib.h>

#define GREED 4 // times what is free

struct fair_asker { // exists while it holds a place
    LIST_ENTRY(fair_asker) link;
    TAILQ_ENTRY(fair_asker) turn;
    TAILQ_HEAD(, fair_item) items; // in line, in order of arrival
    uint64_t number;
    size_t held;
};

void fair_init(struct fair_line *line, size_t max)
{
    *line = (struct fair_line){.max = max, .bucket_count = 16};
    while (line->bucket_count < max / 4)
        line->bucket_count *= 2;
    line->buckets = mem_alloc(line->bucket_count * sizeof(line->buckets[0]));
    TAILQ_INIT(&line->round);
}

void fair_clear(struct fair_line *line)
{
    assert(!line->held);
    free(line->buckets);
    line->buckets = NULL;
}

static struct fair_bucket *bucket_of(struct fair_line *line, uint64_t number)
{
    return &line->buckets[(number * 0x9E3779B97F4A7C15u >> 32) & (line->bucket_count - 1)];
}

static struct fair_asker *find(struct fair_line *line, uint64_t number)
{
    struct fair_asker *at;
    LIST_FOREACH(at, bucket_of(line, number), link)
        if (at->number == number)
            return at;
    return NULL;
}

static struct fair_asker *add(struct fair_line *line, uint64_t number)
{
    struct fair_asker *asker = mem_alloc(sizeof(*asker));
    asker->number = number;
    TAILQ_INIT(&asker->items);
    LIST_INSERT_HEAD(bucket_of(line, number), asker, link);
    return asker;
}

bool fair_enter(struct fair_line *line, uint64_t number, struct fair_item *item)
{
    assert(!item->asker);
    struct fair_asker *asker = find(line, number);
    if ((asker ? asker->held : 0) >= GREED * (line->max - line->held))
        return false;
    item->asker = asker ? asker : add(line, number);
    item->asker->held++;
    line->held++;
    return true;
}

void fair_push(struct fair_line *line, struct fair_item *item)
{
    struct fair_asker *asker = item->asker;
    assert(asker && !item->is_in_line);
    if (TAILQ_EMPTY(&asker->items))
        TAILQ_INSERT_TAIL(&line->round, asker, turn);
    TAILQ_INSERT_TAIL(&asker->items, item, link);
    item->is_in_line = true;
    line->waiting++;
}

static void take_out(struct fair_line *line, struct fair_item *item)
{
    struct fair_asker *asker = item->asker;
    TAILQ_REMOVE(&asker->items, item, link);
    item->is_in_line = false;
    line->waiting--;
    if (TAILQ_EMPTY(&asker->items))
        TAILQ_REMOVE(&line->round, asker, turn);
}

struct fair_item *fair_pop(struct fair_line *line)
{
    struct fair_asker *asker = TAILQ_FIRST(&line->round);
    if (!asker)
        return NULL;
    struct fair_item *item = TAILQ_FIRST(&asker->items);
    take_out(line, item);
    if (!TAILQ_EMPTY(&asker->items)) { // its next one comes after one of each other asker
        TAILQ_REMOVE(&line->round, asker, turn);
        TAILQ_INSERT_TAIL(&line->round, asker, turn);
    }
    return item;
}

void fair_leave(struct fair_line *line, struct fair_item *item)
{
    struct fair_asker *asker = item->asker;
    if (!asker)
        return;
    if (item->is_in_line)
        take_out(line, item);
    item->asker = NULL;
    line->held--;
    if (--asker->held)
        return;
    LIST_REMOVE(asker, link);
    free(asker);
}

uint64_t fair_asker_of(const char *name)
{
    uint64_t number = 0xCBF29CE484222325u; // FNV-1a
    for (; *name; name++)
        number = (number ^ (unsigned char)*name) * 0x100000001B3u;
    return number | 1ull << 63;
}
