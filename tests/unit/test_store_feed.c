// The change feed, subscribers and transactions that fail.
#include "tests/support/store_fixture.h"
#include "controller/base/memory.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_setup, store_fixture_teardown)

static void assert_image(const char *image, const char *part, const char *key, const char *wanted)
{
    struct json_span whole = {image, strlen(image)};
    CLEANUP_FREE char *text = json_span_to_text(json_member(json_member(whole, part), key));
    if (wanted)
        assert_string_equal(text, wanted);
    else
        assert_null(text);
}

static void each_write_is_one_row_with_both_images(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    int64_t start = store_revision(fixture->store);
    CLEANUP_RECORD struct record *approval = store_fixture_create(fixture, store_fixture_approval("/srv/a"));
    approval->spec.approval.decision = APPROVAL_APPROVED;
    assert_ok(store_fixture_write_spec(fixture->store, approval, &err));
    assert_ok(store_fixture_delete(fixture->store, KIND_APPROVAL, approval->meta.uid, &err));
    struct store_feed_row *rows;
    size_t count;
    assert_ok(store_read_feed(fixture->store, start, 100, &rows, &count, &err));
    assert_int_equal(count, 3);
    assert_int_equal(rows[0].type, STORE_ADDED);
    assert_null(rows[0].before);
    assert_int_equal(rows[1].type, STORE_MODIFIED);
    assert_image(rows[1].before, "spec", "decision", NULL);
    assert_image(rows[1].after, "spec", "decision", "approved");
    assert_int_equal(rows[2].type, STORE_DELETED);
    assert_string_equal(rows[1].after, rows[2].before);
    assert_image(rows[2].after, "spec", "decision", "approved");
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(rows[i].revision, start + 1 + (int64_t)i);
        CLEANUP_FREE char *version = mem_format("%lld", (long long)rows[i].revision);
        assert_image(rows[i].after, "metadata", "resourceVersion", version);
    }
    store_feed_free(rows, count);
}

static void a_position_outside_the_feed_is_expired(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    struct store_feed_row *rows;
    size_t count;
    int64_t start = store_revision(fixture->store);
    assert_ok(store_read_feed(fixture->store, start, 10, &rows, &count, &err)); // an empty store's own revision
    assert_int_equal(count, 0);
    assert_error(store_read_feed(fixture->store, start - 1, 10, &rows, &count, &err), ERROR_EXPIRED);
    assert_error(store_read_feed(fixture->store, start + 1, 10, &rows, &count, &err), ERROR_EXPIRED);
}

// A watch at any position sees either all that followed or "expired", never a gap.
static void trimming_at_every_position_loses_nothing_silently(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    fixture->options.feed_keep_rows = 8;
    fixture->options.feed_keep_ms = 1000;
    store_fixture_reopen(fixture);
    int64_t first = store_revision(fixture->store);
    for (int i = 0; i < 20; i++)
        record_free(store_fixture_create(fixture, store_fixture_workspace(NULL)));
    assert_ok(store_upkeep(fixture->store, &err)); // all are young
    struct store_feed_row *rows;
    size_t count;
    assert_ok(store_read_feed(fixture->store, first, 100, &rows, &count, &err));
    assert_int_equal(count, 20);
    store_feed_free(rows, count);
    clock_advance(fixture->clock, 2000);
    assert_ok(store_upkeep(fixture->store, &err));
    int64_t newest = store_revision(fixture->store);
    for (int64_t after = first; after <= newest; after++) {
        if (after < newest - 8) {
            assert_error(store_read_feed(fixture->store, after, 100, &rows, &count, &err), ERROR_EXPIRED);
            continue;
        }
        assert_ok(store_read_feed(fixture->store, after, 100, &rows, &count, &err));
        assert_int_equal(count, newest - after);
        store_feed_free(rows, count);
    }
}

static void the_revision_survives_trimming_and_a_restart(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    fixture->options.feed_keep_rows = 1;
    fixture->options.feed_keep_ms = 1;
    store_fixture_reopen(fixture);
    CLEANUP_RECORD struct record *workspace = store_fixture_create(fixture, store_fixture_workspace("dev"));
    assert_ok(store_fixture_delete(fixture->store, KIND_WORKSPACE, workspace->meta.uid, &err));
    int64_t revision = store_revision(fixture->store);
    clock_advance(fixture->clock, 40LL * 24 * 3600 * 1000);
    assert_ok(store_upkeep(fixture->store, &err));
    store_fixture_reopen(fixture);
    assert_int_equal(store_revision(fixture->store), revision);
}

static int create_then_fail(struct store_tx *tx, void *arg, struct error *err)
{
    CLEANUP_RECORD struct record *record = store_fixture_workspace("undone");
    if (tx_create(tx, &store_fixture_operator, record, err) < 0)
        return -1;
    struct record *inside = NULL;
    if (tx_get(tx, KIND_WORKSPACE, "undone", &inside, err) < 0) // its own write is visible inside
        return -1;
    record_free(inside);
    *(bool *)arg = true;
    return error_set(err, ERROR_REFUSED, NULL, "changed its mind");
}

static void a_transaction_that_fails_leaves_no_trace(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    int64_t revision = store_revision(fixture->store);
    bool has_run = false;
    assert_error(store_transact(fixture->store, create_then_fail, &has_run, &err), ERROR_REFUSED);
    assert_true(has_run);
    struct record *none = NULL;
    assert_error(store_get(fixture->store, KIND_WORKSPACE, "undone", &none, &err), ERROR_NOT_FOUND);
    assert_int_equal(store_revision(fixture->store), revision);
    CLEANUP_RECORD struct record *next = store_fixture_create(fixture, store_fixture_workspace("dev"));
    assert_int_equal(next->meta.resource_version, revision + 1);
}

static int create_twice_and_go_on(struct store_tx *tx, void *arg, struct error *err)
{
    struct record **records = arg;
    if (tx_create(tx, &store_fixture_operator, records[0], err) < 0)
        return -1;
    if (tx_create(tx, &store_fixture_operator, records[1], err) == 0) // the same name
        return error_set(err, ERROR_INTERNAL, NULL, "the name was given twice");
    return 0;
}

static void a_refused_write_leaves_the_rest_of_its_transaction(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    struct record *records[] = {store_fixture_workspace("dev"), store_fixture_workspace("dev")};
    assert_ok(store_transact(fixture->store, create_twice_and_go_on, records, &err));
    CLEANUP_RECORD struct record *found = store_fixture_get(fixture, records[0]);
    assert_null(records[1]->meta.uid);
    assert_int_equal(store_revision(fixture->store), found->meta.resource_version);
    record_free(records[0]);
    record_free(records[1]);
}

// ---- subscribers --------------------------------------------------------------------------------------------------

struct log {
    struct store *store;
    pthread_mutex_t lock;
    int64_t last;
    size_t count;
    bool is_disordered, was_early;
};

static void note(void *arg, const struct store_change *changes, size_t count)
{
    struct log *log = arg;
    pthread_mutex_lock(&log->lock);
    for (size_t i = 0; i < count; i++) {
        log->is_disordered |= changes[i].revision != log->last + 1;
        log->was_early |= store_revision(log->store) < changes[i].revision;
        log->last = changes[i].revision;
        log->count++;
    }
    pthread_mutex_unlock(&log->lock);
}

struct counter {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int completed, failed;
    enum error_code code;
};

static void count_done(void *arg, int result, const struct error *err)
{
    struct counter *counter = arg;
    pthread_mutex_lock(&counter->lock);
    counter->completed++;
    counter->failed += result < 0;
    if (result < 0)
        counter->code = err->code;
    pthread_cond_signal(&counter->changed);
    pthread_mutex_unlock(&counter->lock);
}

static void wait_for(struct counter *counter, int completed)
{
    pthread_mutex_lock(&counter->lock);
    while (counter->completed < completed)
        pthread_cond_wait(&counter->changed, &counter->lock);
    pthread_mutex_unlock(&counter->lock);
}

static int create_one(struct store_tx *tx, void *arg, struct error *err)
{
    (void)arg;
    CLEANUP_RECORD struct record *record = store_fixture_workspace(NULL);
    return tx_create(tx, &store_fixture_operator, record, err);
}

static void subscribers_get_every_change_once_in_order_after_the_commit(void **state)
{
    struct store_fixture *fixture = *state;
    struct log log = {.store = fixture->store, .lock = PTHREAD_MUTEX_INITIALIZER, .last = store_revision(fixture->store)};
    struct store_subscription *subscription = store_subscribe(fixture->store, note, &log);
    struct counter counter = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    for (int i = 0; i < 1000; i++)
        store_submit(fixture->store, create_one, count_done, &counter);
    wait_for(&counter, 1000);
    record_free(store_fixture_create(fixture, store_fixture_workspace("next"))); // runs when all before it are published
    store_unsubscribe(subscription);                                             // waits for a round that runs
    assert_int_equal(counter.failed, 0);
    size_t count = log.count;
    assert_true(count == 1000 || count == 1001);
    record_free(store_fixture_create(fixture, store_fixture_workspace("unseen")));
    store_fixture_reopen(fixture);
    assert_int_equal(log.count, count);
    assert_false(log.is_disordered);
    assert_false(log.was_early);
}

struct self_ender {
    struct store_subscription *subscription;
    int runs;
};

static void end_itself(void *arg, const struct store_change *changes, size_t count)
{
    (void)changes, (void)count;
    struct self_ender *ender = arg;
    ender->runs++;
    store_unsubscribe(ender->subscription);
}

static void a_subscriber_may_end_itself(void **state)
{
    struct store_fixture *fixture = *state;
    struct self_ender ender = {0};
    ender.subscription = store_subscribe(fixture->store, end_itself, &ender);
    for (int i = 0; i < 3; i++)
        record_free(store_fixture_create(fixture, store_fixture_workspace(NULL)));
    store_fixture_reopen(fixture);
    assert_int_equal(ender.runs, 1);
}

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_open, is_reached;
};

static int stand_at_gate(struct store_tx *tx, void *arg, struct error *err)
{
    (void)tx, (void)err;
    struct gate *gate = arg;
    pthread_mutex_lock(&gate->lock);
    gate->is_reached = true;
    pthread_cond_broadcast(&gate->changed);
    while (!gate->is_open)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
    return 0;
}

static void the_queue_is_bounded_and_says_so(void **state)
{
    struct store_fixture *fixture = *state;
    struct gate gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct counter counter = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    store_submit(fixture->store, stand_at_gate, NULL, &gate);
    pthread_mutex_lock(&gate.lock);
    while (!gate.is_reached)
        pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
    for (int i = 0; i < 4096 + 10; i++)
        store_submit(fixture->store, create_one, count_done, &counter);
    pthread_mutex_lock(&gate.lock);
    gate.is_open = true;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
    wait_for(&counter, 4096 + 10);
    assert_int_equal(counter.failed, 10);
    assert_int_equal(counter.code, ERROR_LIMIT);
}

static void closing_completes_what_is_queued(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    struct counter counter = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    for (int i = 0; i < 600; i++)
        store_submit(fixture->store, create_one, count_done, &counter);
    store_fixture_reopen(fixture);
    assert_int_equal(counter.completed, 600);
    struct store_stats stats;
    assert_ok(store_stats(fixture->store, &stats, &err));
    assert_int_equal(stats.live[KIND_WORKSPACE], 600 - counter.failed);
    assert_int_equal(counter.failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_write_is_one_row_with_both_images),
        TEST(a_position_outside_the_feed_is_expired),
        TEST(trimming_at_every_position_loses_nothing_silently),
        TEST(the_revision_survives_trimming_and_a_restart),
        TEST(a_transaction_that_fails_leaves_no_trace),
        TEST(a_refused_write_leaves_the_rest_of_its_transaction),
        TEST(subscribers_get_every_change_once_in_order_after_the_commit),
        TEST(a_subscriber_may_end_itself),
        TEST(the_queue_is_bounded_and_says_so),
        TEST(closing_completes_what_is_queued),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
