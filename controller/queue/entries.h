// A queue's keys: one entry a key, found by hash, kept while anything is known about the key. Not locked.
#pragma once
#include "controller/heap.h"
#include "controller/queue/queue.h"
#include <sys/queue.h>

struct entry {
    struct heap_node delay;   // first: a node is its entry. In the heap while a delayed add waits
    TAILQ_ENTRY(entry) place; // in a ready list while is_ready
    struct entry *next_in_bucket;
    bool is_ready, is_processing;
    bool is_dirty;                // added while it is processed: ready again when that is done
    int64_t ready_us;             // when it became ready
    enum queue_priority priority; // of the ready list, or of the add that made it dirty
    int failures, conflicts;
    char key[];
};
struct entry_table {
    struct entry **buckets;
    size_t bucket_count, count;
};
struct entry *entries_find(const struct entry_table *table, const char *key); // NULL if there is none
struct entry *entries_get(struct entry_table *table, const char *key);        // made if there is none
// Forgets an entry about which nothing is known any more; keeps the others.
void entries_drop_if_idle(struct entry_table *table, struct entry *entry);
void entries_free(struct entry_table *table);
