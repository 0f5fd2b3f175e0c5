// Places and turns for many askers, none of whom can take them all. Places: an asker may hold four times as many as are
// still free, so that the room runs out for the greediest first and a newcomer finds some. Turns: first come, first served
// among the items of one asker, one item of each asker in a round. Everything is O(1). No lock of its own.
//
//     if (!fair_enter(&line, asker, &call->place))  → refuse: a full house
//     fair_push(&line, &call->place);
//     item = fair_pop(&line);                        … it still holds its place
//     fair_leave(&line, item);
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

// What one asker can hold of `max` places while nobody else holds any.
#define FAIR_MOST(max) ((max) - (max) / 5)

struct fair_asker;
struct fair_item { // embedded in what asks; all zero before it enters
    TAILQ_ENTRY(fair_item) link;
    struct fair_asker *asker; // NULL: holds no place
    bool is_in_line;
};
struct fair_line {
    size_t max, held, waiting; // places; of them held; of these in line
    size_t bucket_count;
    LIST_HEAD(fair_bucket, fair_asker) * buckets;
    TAILQ_HEAD(, fair_asker) round; // those with items in line, whose turn comes next first
};

void fair_init(struct fair_line *line, size_t max);
void fair_clear(struct fair_line *line); // nobody holds a place any more
bool fair_enter(struct fair_line *line, uint64_t asker, struct fair_item *item); // false: no place for this asker now
void fair_push(struct fair_line *line, struct fair_item *item);                  // holds a place, is not in line
struct fair_item *fair_pop(struct fair_line *line);                              // NULL: nobody is in line
void fair_leave(struct fair_line *line, struct fair_item *item); // gives its place back, also while in line; without one: nothing
uint64_t fair_asker_of(const char *name); // a number for a name; never one below 2^63, which are for counted things
