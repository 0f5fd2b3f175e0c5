// Which calls are under way, by who made them and under which id: what notifications/cancelled names. Ids are only unique
// to their client, and without sessions several clients may be one caller; so an id counts only where it is the caller's
// own and exactly one call of his has it. Any thread.
#pragma once
#include <pthread.h>
#include <stdint.h>
#include <sys/queue.h>

#define IN_FLIGHT_BUCKETS 1024

enum in_flight_state { IN_FLIGHT_NEW, IN_FLIGHT_LISTED, IN_FLIGHT_ENDED };
struct in_flight_entry { // embedded in the call; zeroed at birth
    LIST_ENTRY(in_flight_entry) link;
    enum in_flight_state state; // the table's lock
    const char *principal;      // borrowed, while listed
    char *id;                   // in one form; owned, while listed
};
struct in_flight {
    pthread_mutex_t lock; // guards the rest
    uint64_t seed;        // nobody outside can aim at one bucket
    LIST_HEAD(, in_flight_entry) buckets[IN_FLIGHT_BUCKETS];
};
void in_flight_init(struct in_flight *table);
void in_flight_free(struct in_flight *table); // nothing is listed any more
// id_text: raw JSON. Nothing if the call has ended meanwhile.
void in_flight_add(struct in_flight *table, struct in_flight_entry *entry, const char *principal, const char *id_text);
void in_flight_end(struct in_flight *table, struct in_flight_entry *entry);
// The one call of this caller with this id: keep runs on it before anybody can end it. NULL: none, or several.
struct in_flight_entry *in_flight_find(struct in_flight *table, const char *principal, const char *id_text,
                                       void (*keep)(struct in_flight_entry *entry));
