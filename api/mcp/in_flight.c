#include "api/mcp/in_flight.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/base/random.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

void in_flight_init(struct in_flight *table)
{
    pthread_mutex_init(&table->lock, NULL);
    random_bytes(&table->seed, sizeof(table->seed));
    for (size_t i = 0; i < IN_FLIGHT_BUCKETS; i++)
        LIST_INIT(&table->buckets[i]);
}

void in_flight_free(struct in_flight *table)
{
    for (size_t i = 0; i < IN_FLIGHT_BUCKETS; i++)
        assert(LIST_EMPTY(&table->buckets[i]));
    pthread_mutex_destroy(&table->lock);
}

// Texts that mean the same id become the same text: escapes in strings, or none, and the one integer that has two texts.
static char *make_one_form(const char *id_text)
{
    if (strcmp(id_text, "-0") == 0)
        return mem_strdup("0");
    json_t *value = NULL;
    if (id_text[0] != '"' || json_parse_with_nul(id_text, strlen(id_text), &value, NULL) < 0)
        return mem_strdup(id_text);
    char *text = json_to_text(value);
    json_decref(value);
    return text;
}

static uint64_t mix(uint64_t hash, const char *text) // FNV-1a
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

static size_t bucket_of(const struct in_flight *table, const char *principal, const char *id)
{
    uint64_t hash = mix(mix(table->seed ^ 0xcbf29ce484222325u, principal), id);
    return (hash ^ hash >> 32) % IN_FLIGHT_BUCKETS;
}

void in_flight_add(struct in_flight *table, struct in_flight_entry *entry, const char *principal, const char *id_text)
{
    CLEANUP_FREE char *id = make_one_form(id_text);
    size_t bucket = bucket_of(table, principal, id);
    pthread_mutex_lock(&table->lock);
    if (entry->state == IN_FLIGHT_NEW) {
        entry->state = IN_FLIGHT_LISTED;
        entry->principal = principal;
        entry->id = TAKE_PTR(id);
        LIST_INSERT_HEAD(&table->buckets[bucket], entry, link);
    }
    pthread_mutex_unlock(&table->lock);
}

void in_flight_end(struct in_flight *table, struct in_flight_entry *entry)
{
    pthread_mutex_lock(&table->lock);
    if (entry->state == IN_FLIGHT_LISTED)
        LIST_REMOVE(entry, link);
    entry->state = IN_FLIGHT_ENDED;
    free(entry->id);
    entry->id = NULL;
    pthread_mutex_unlock(&table->lock);
}

// Holding the lock.
static struct in_flight_entry *find_only(struct in_flight *table, const char *principal, const char *id)
{
    struct in_flight_entry *entry, *found = NULL;
    LIST_FOREACH(entry, &table->buckets[bucket_of(table, principal, id)], link)
    {
        if (strcmp(entry->id, id) != 0 || strcmp(entry->principal, principal) != 0)
            continue;
        if (found)
            return NULL;
        found = entry;
    }
    return found;
}

struct in_flight_entry *in_flight_find(struct in_flight *table, const char *principal, const char *id_text,
                                       void (*keep)(struct in_flight_entry *entry))
{
    CLEANUP_FREE char *id = make_one_form(id_text);
    pthread_mutex_lock(&table->lock);
    struct in_flight_entry *found = find_only(table, principal, id);
    if (found)
        keep(found);
    pthread_mutex_unlock(&table->lock);
    return found;
}
