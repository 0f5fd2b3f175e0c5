#include "controller/queue/entries.h"
#include "controller/base/memory.h"
#include "controller/hash.h"
#include <stdlib.h>
#include <string.h>

static struct entry **bucket_of(const struct entry_table *table, const char *key)
{
    return &table->buckets[hash_text(key) & (table->bucket_count - 1)];
}

static void resize(struct entry_table *table, size_t bucket_count)
{
    struct entry_table larger = {mem_alloc(bucket_count * sizeof(struct entry *)), bucket_count,
                                 table->count};
    for (size_t i = 0; i < table->bucket_count; i++)
        for (struct entry *entry = table->buckets[i], *next; entry; entry = next) {
            next = entry->next_in_bucket;
            struct entry **bucket = bucket_of(&larger, entry->key);
            entry->next_in_bucket = *bucket;
            *bucket = entry;
        }
    free(table->buckets);
    *table = larger;
}

struct entry *entries_find(const struct entry_table *table, const char *key)
{
    if (!table->bucket_count)
        return NULL;
    struct entry *entry = *bucket_of(table, key);
    while (entry && strcmp(entry->key, key) != 0)
        entry = entry->next_in_bucket;
    return entry;
}

struct entry *entries_get(struct entry_table *table, const char *key)
{
    struct entry *entry = entries_find(table, key);
    if (entry)
        return entry;
    if (table->count >= table->bucket_count)
        resize(table, table->bucket_count ? table->bucket_count * 2 : 16);
    size_t key_size = strlen(key) + 1;
    entry = mem_alloc(sizeof(*entry) + key_size);
    memcpy(entry->key, key, key_size);
    struct entry **bucket = bucket_of(table, key);
    entry->next_in_bucket = *bucket;
    *bucket = entry;
    table->count++;
    return entry;
}

static bool is_idle(const struct entry *entry)
{
    return !entry->is_ready && !entry->is_processing && !heap_has(&entry->delay) && !entry->failures &&
           !entry->conflicts;
}

void entries_drop_if_idle(struct entry_table *table, struct entry *entry)
{
    if (!is_idle(entry))
        return;
    struct entry **at = bucket_of(table, entry->key);
    while (*at != entry)
        at = &(*at)->next_in_bucket;
    *at = entry->next_in_bucket;
    table->count--;
    free(entry);
}

void entries_free(struct entry_table *table)
{
    for (size_t i = 0; i < table->bucket_count; i++)
        for (struct entry *entry = table->buckets[i], *next; entry; entry = next) {
            next = entry->next_in_bucket;
            free(entry);
        }
    free(table->buckets);
    *table = (struct entry_table){0};
}
