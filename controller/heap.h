// A binary heap of deadlines, shared by the loop's timers and the queues' delayed keys. Intrusive: embed a
// struct heap_node. Equal deadlines come out in the order in which they were put in. Not locked.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_node {
    int64_t deadline_ms;
    uint64_t order;
    size_t place; // index + 1 in the heap; 0 = not in it
};
struct heap {
    struct heap_node **nodes;
    size_t count, room;
    uint64_t next_order;
};
void heap_put(struct heap *heap, struct heap_node *node, int64_t deadline_ms);
struct heap_node *heap_first(const struct heap *heap);       // NULL if empty
void heap_remove(struct heap *heap, struct heap_node *node); // nothing if it is not in
void heap_free(struct heap *heap);                           // the array; nodes are the caller's
static inline bool heap_has(const struct heap_node *node)
{
    return node->place != 0;
}
