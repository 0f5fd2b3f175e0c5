// One group commit: requests run in order, each in a savepoint; then one durable commit; then their completions,
// then subscribers, then waiters.
#include "controller/store/internal.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/fault.h"
#include "controller/metrics.h"
#include <assert.h>

static void fail_request(struct store_request *request, const struct error *why)
{
    request->result = -1;
    if (!request->failure)
        request->failure = mem_alloc(sizeof(*request->failure));
    *request->failure = *why;
    if (request->failure->code == ERROR_NONE)
        error_set(request->failure, ERROR_INTERNAL, NULL, "the transaction failed without saying why");
}

static int run_inside(struct store_tx *tx, struct store_request *request, struct error *err)
{
    int64_t revision = tx->revision;
    size_t changes = tx->changes.count;
    tx->is_broken = false;
    int result = request->fn(tx, request->arg, err);
    if (tx->is_broken)
        result = error_copy(err, &tx->broken);
    if (result >= 0)
        return sql_run(tx->sql, SQL_RELEASE, err, "") < 0 ? -1 : result;
    tx->revision = revision;
    changes_truncate(&tx->changes, changes);
    sql_run(tx->sql, SQL_ROLLBACK_TO, NULL, "");
    sql_run(tx->sql, SQL_RELEASE, NULL, "");
    return -1;
}

static void run_request(struct store_tx *tx, struct store_request *request)
{
    struct error err = ERROR_INIT;
    if (sql_run(tx->sql, SQL_SAVEPOINT, &err, "") < 0)
        return fail_request(request, &err);
    request->result = run_inside(tx, request, &err);
    if (request->result < 0)
        fail_request(request, &err);
}

// SQLite itself rolls a transaction back after some failures: then none of its requests is in it any more.
static bool is_transaction_gone(struct store_tx *tx)
{
    return sqlite3_get_autocommit(tx->sql->db) != 0;
}

static int run_requests(struct store_tx *tx, struct request_list *taken, struct error *err)
{
    struct store_request *request;
    while (taken->count < STORE_BATCH_MAX && tx->bytes < STORE_BATCH_BYTES && writer_take(tx->store, &request)) {
        *taken->last = request;
        taken->last = &request->next;
        taken->count++;
        run_request(tx, request);
        if (is_transaction_gone(tx))
            return request->failure ? error_copy(err, request->failure) : error_set(err, ERROR_IO, NULL, "the database gave up");
    }
    return 0;
}

static int commit(struct store_tx *tx, struct error *err)
{
    if (FAULT("store.commit.before"))
        return error_set(err, ERROR_IO, NULL, "fault point");
    if (sql_run(tx->sql, SQL_COMMIT, err, "") < 0)
        return error_context(err, "the change was not stored");
    if (FAULT("store.commit.after"))
        return 0; // the commit stands, whatever happens to this process now
    return 0;
}

static void take_without_running(struct store *store, struct request_list *taken)
{
    struct store_request *request;
    while (taken->count < STORE_BATCH_MAX && writer_take(store, &request)) {
        *taken->last = request;
        taken->last = &request->next;
        taken->count++;
    }
}

// All in one transaction. On failure nothing of it is stored.
static int transact(struct store_tx *tx, struct request_list *taken, bool is_flush, struct error *err)
{
    if (sql_run(tx->sql, SQL_BEGIN, err, "") < 0) {
        take_without_running(tx->store, taken);
        return -1;
    }
    int r = is_flush ? activity_flush(tx->store, tx->sql, err) : 0;
    if (r == 0)
        r = run_requests(tx, taken, err);
    if (r == 0)
        r = commit(tx, err);
    if (r < 0 && !is_transaction_gone(tx))
        sql_run(tx->sql, SQL_ROLLBACK, NULL, "");
    if (r < 0 && is_flush)
        activity_unflush(tx->store);
    return r;
}

static void fail_all(struct request_list *taken, const struct error *why)
{
    for (struct store_request *request = taken->first; request; request = request->next)
        if (request->result >= 0)
            fail_request(request, why);
}

static void complete_all(struct request_list *taken)
{
    while (taken->first) {
        struct store_request *request = taken->first;
        taken->first = request->next;
        request_complete(request);
    }
}

// Live sandboxes have an entry of activity from here on, tombstones none.
static void note_lives(struct store *store, const struct store_change *changes, size_t count, struct wall_time now)
{
    for (size_t i = 0; i < count; i++)
        if (changes[i].kind == KIND_SANDBOX && changes[i].type == STORE_ADDED)
            activity_begin(store, changes[i].uid, now);
        else if (changes[i].kind == KIND_SANDBOX && changes[i].type == STORE_DELETED)
            activity_end(store, changes[i].uid);
}

static void publish(struct store_tx *tx)
{
    subscriptions_publish(tx->store, tx->changes.items, tx->changes.count);
    waiters_publish(tx->store, tx->changes.items, tx->changes.count);
}

void batch_run(struct store *store, bool is_flush)
{
    struct error err = ERROR_INIT;
    struct request_list taken = {.last = &taken.first};
    struct store_tx tx = {.store = store,
                          .sql = &store->writer.sql,
                          .now = clock_wall(store->clock),
                          .revision = atomic_load(&store->revision),
                          .is_low_on_disk = disk_is_low(&store->disk)};
    int64_t began_us = boot_time_us();
    int result = transact(&tx, &taken, is_flush, &err);
    metrics_time(METRIC_STORE_WRITE, result < 0 ? "failed" : "ok", NULL, boot_time_us() - began_us);
    if (result < 0) {
        changes_truncate(&tx.changes, 0);
        fail_all(&taken, &err);
    }
    if (tx.changes.count) {
        note_lives(store, tx.changes.items, tx.changes.count, tx.now);
        atomic_store(&store->revision, tx.revision);
        atomic_fetch_add(&store->writes, 1);
    }
    complete_all(&taken);
    if (tx.changes.count)
        publish(&tx);
    if (tx.is_low_on_disk || disk_is_low(&store->disk)) // the log starts over instead of growing
        sqlite3_wal_checkpoint_v2(tx.sql->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    changes_truncate(&tx.changes, 0);
    free(tx.changes.items);
}
