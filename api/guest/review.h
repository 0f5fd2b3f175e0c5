// What show_changes has shown already on this connection (one guest serves one), for each path and staged
// flag: a fingerprint, not the text. The oldest of REVIEW_MAX entries makes room. Any thread.
#pragma once
#include "api/guest/text.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define REVIEW_MAX 64

struct review_entry {
    char *path; // owned; NULL: free
    bool is_staged;
    char fingerprint[TEXT_SHA256_SIZE];
    uint64_t used;
};

struct review {
    pthread_mutex_t lock; // guards all below
    struct review_entry entries[REVIEW_MAX];
    uint64_t clock;
};

void review_init(struct review *review);
bool review_is_known(struct review *review, const char *path, bool is_staged,
                     const char fingerprint[TEXT_SHA256_SIZE]);
void review_remember(struct review *review, const char *path, bool is_staged,
                     const char fingerprint[TEXT_SHA256_SIZE]);
void review_forget(struct review *review); // all
