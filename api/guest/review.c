#include "api/guest/review.h"
#include "controller/base/memory.h"
#include <stdlib.h>
#include <string.h>

void review_init(struct review *review)
{
    *review = (struct review){.lock = PTHREAD_MUTEX_INITIALIZER};
}

static struct review_entry *find(struct review *review, const char *path, bool is_staged)
{
    for (size_t i = 0; i < REVIEW_MAX; i++) {
        struct review_entry *entry = &review->entries[i];
        if (entry->path && entry->is_staged == is_staged && strcmp(entry->path, path) == 0)
            return entry;
    }
    return NULL;
}

static struct review_entry *make(struct review *review, const char *path, bool is_staged)
{
    struct review_entry *oldest = &review->entries[0];
    for (size_t i = 1; oldest->path && i < REVIEW_MAX; i++)
        if (!review->entries[i].path || review->entries[i].used < oldest->used)
            oldest = &review->entries[i];
    mem_replace(&oldest->path, path);
    oldest->is_staged = is_staged;
    return oldest;
}

bool review_is_known(struct review *review, const char *path, bool is_staged,
                     const char fingerprint[TEXT_SHA256_SIZE])
{
    pthread_mutex_lock(&review->lock);
    const struct review_entry *entry = find(review, path, is_staged);
    bool is_known = entry && strcmp(entry->fingerprint, fingerprint) == 0;
    pthread_mutex_unlock(&review->lock);
    return is_known;
}

void review_remember(struct review *review, const char *path, bool is_staged,
                     const char fingerprint[TEXT_SHA256_SIZE])
{
    pthread_mutex_lock(&review->lock);
    struct review_entry *entry = find(review, path, is_staged);
    if (!entry)
        entry = make(review, path, is_staged);
    memcpy(entry->fingerprint, fingerprint, TEXT_SHA256_SIZE);
    entry->used = ++review->clock;
    pthread_mutex_unlock(&review->lock);
}

void review_forget(struct review *review)
{
    pthread_mutex_lock(&review->lock);
    for (size_t i = 0; i < REVIEW_MAX; i++) {
        free(review->entries[i].path);
        review->entries[i] = (struct review_entry){0};
    }
    pthread_mutex_unlock(&review->lock);
}
