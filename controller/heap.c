#include "controller/heap.h"
#include "controller/base/memory.h"
#include <stdlib.h>

static bool is_before(const struct heap_node *a, const struct heap_node *b)
{
    if (a->deadline_ms != b->deadline_ms)
        return a->deadline_ms < b->deadline_ms;
    return a->order < b->order;
}

static void set(struct heap *heap, size_t index, struct heap_node *node)
{
    heap->nodes[index] = node;
    node->place = index + 1;
}

static void sift_up(struct heap *heap, size_t index)
{
    struct heap_node *node = heap->nodes[index];
    while (index > 0 && is_before(node, heap->nodes[(index - 1) / 2])) {
        set(heap, index, heap->nodes[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    set(heap, index, node);
}

static void sift_down(struct heap *heap, size_t index)
{
    struct heap_node *node = heap->nodes[index];
    for (;;) {
        size_t child = 2 * index + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count && is_before(heap->nodes[child + 1], heap->nodes[child]))
            child++;
        if (!is_before(heap->nodes[child], node))
            break;
        set(heap, index, heap->nodes[child]);
        index = child;
    }
    set(heap, index, node);
}

void heap_put(struct heap *heap, struct heap_node *node, int64_t deadline_ms)
{
    if (heap->count == heap->room) {
        heap->room = heap->room ? heap->room * 2 : 16;
        heap->nodes = mem_realloc_array(heap->nodes, heap->room, sizeof(struct heap_node *));
    }
    node->deadline_ms = deadline_ms;
    node->order = heap->next_order++;
    set(heap, heap->count++, node);
    sift_up(heap, heap->count - 1);
}

struct heap_node *heap_first(const struct heap *heap)
{
    return heap->count ? heap->nodes[0] : NULL;
}

void heap_remove(struct heap *heap, struct heap_node *node)
{
    if (!heap_has(node))
        return;
    size_t index = node->place - 1;
    node->place = 0;
    struct heap_node *last = heap->nodes[--heap->count];
    if (last == node)
        return;
    set(heap, index, last);
    sift_up(heap, index);
    sift_down(heap, last->place - 1);
}

void heap_free(struct heap *heap)
{
    free(heap->nodes);
    *heap = (struct heap){0};
}
