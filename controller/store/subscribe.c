#include "controller/store/internal.h"
#include "controller/base/memory.h"

struct store_subscription {
    struct store_subscription *next;
    struct store *store;
    void (*fn)(void *arg, const struct store_change *changes, size_t count);
    void *arg;
    bool is_ended; // unsubscribed from inside a callback: freed after the round
};

void subscriptions_init(struct subscriptions *subscriptions)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&subscriptions->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

static void drop_ended(struct subscriptions *subscriptions, bool is_all)
{
    struct store_subscription **at = &subscriptions->first;
    while (*at) {
        struct store_subscription *subscription = *at;
        if (subscription->is_ended || is_all) {
            *at = subscription->next;
            free(subscription);
        } else {
            at = &subscription->next;
        }
    }
}

void subscriptions_free(struct subscriptions *subscriptions)
{
    drop_ended(subscriptions, true);
    pthread_mutex_destroy(&subscriptions->lock);
}

struct store_subscription *store_subscribe(struct store *store, void (*fn)(void *arg, const struct store_change *changes, size_t count),
                                           void *arg)
{
    struct store_subscription *subscription = mem_alloc(sizeof(*subscription));
    *subscription = (struct store_subscription){.store = store, .fn = fn, .arg = arg};
    pthread_mutex_lock(&store->subscriptions.lock);
    struct store_subscription **at = &store->subscriptions.first;
    while (*at)
        at = &(*at)->next;
    *at = subscription;
    pthread_mutex_unlock(&store->subscriptions.lock);
    return subscription;
}

void store_unsubscribe(struct store_subscription *subscription)
{
    if (!subscription)
        return;
    struct store *store = subscription->store;
    pthread_mutex_lock(&store->subscriptions.lock); // not while a round runs, unless this is one of its callbacks
    subscription->is_ended = true;
    if (!writer_is_current(store))
        drop_ended(&store->subscriptions, false);
    pthread_mutex_unlock(&store->subscriptions.lock);
}

void subscriptions_publish(struct store *store, const struct store_change *changes, size_t count)
{
    pthread_mutex_lock(&store->subscriptions.lock);
    for (struct store_subscription *at = store->subscriptions.first; at; at = at->next)
        if (!at->is_ended)
            at->fn(at->arg, changes, count);
    drop_ended(&store->subscriptions, false);
    pthread_mutex_unlock(&store->subscriptions.lock);
}
