// Waiting for a commit, and the one-write transactions of reconcilers.
#include "controller/store/internal.h"
#include <assert.h>

struct rendezvous {
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool is_done;
    int result;
    struct error *err;
};

static void meet(void *arg, int result, const struct error *err)
{
    struct rendezvous *at = *(struct rendezvous **)arg;
    pthread_mutex_lock(&at->lock);
    at->result = result;
    if (result < 0)
        error_copy(at->err, err);
    at->is_done = true;
    pthread_cond_signal(&at->done);
    pthread_mutex_unlock(&at->lock);
}

struct transaction { // rendezvous first: meet finds it there
    struct rendezvous *rendezvous;
    store_tx_fn fn;
    void *arg;
};

static int run(struct store_tx *tx, void *arg, struct error *err)
{
    struct transaction *transaction = arg;
    return transaction->fn(tx, transaction->arg, err);
}

int store_transact(struct store *store, store_tx_fn fn, void *arg, struct error *err)
{
    assert(!writer_is_current(store));
    struct rendezvous at = {.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER, .err = err};
    struct transaction transaction = {&at, fn, arg};
    store_submit(store, run, meet, &transaction);
    pthread_mutex_lock(&at.lock);
    while (!at.is_done)
        pthread_cond_wait(&at.done, &at.lock);
    pthread_mutex_unlock(&at.lock);
    pthread_cond_destroy(&at.done);
    pthread_mutex_destroy(&at.lock);
    return at.result;
}

// The caller's record changes only after the commit.
struct write {
    const struct store_actor *actor; // NULL: status
    struct record *copy;
};

static int write_one(struct store_tx *tx, void *arg, struct error *err)
{
    struct write *write = arg;
    return write->actor ? tx_write_meta(tx, write->actor, write->copy, err) : tx_write_status(tx, write->copy, err);
}

static int write_record(struct store *store, const struct store_actor *actor, struct record *record, struct error *err)
{
    CLEANUP_RECORD struct record *copy = record_copy(record);
    struct write write = {actor, copy};
    int r = store_transact(store, write_one, &write, err);
    if (r < 0)
        return -1;
    struct record kept = *record;
    *record = *copy;
    *copy = kept;
    return r;
}

int store_write_status(struct store *store, struct record *record, struct error *err)
{
    return write_record(store, NULL, record, err);
}

int store_write_meta(struct store *store, const struct store_actor *actor, struct record *record, struct error *err)
{
    return write_record(store, actor, record, err);
}
