// Side tables: activity and events.
#include "tests/support/store_fixture.h"
#include "controller/base/memory.h"
#include "controller/policy.h"
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_setup, store_fixture_teardown)

static struct record *make_sandbox(struct store_fixture *fixture)
{
    CLEANUP_RECORD struct record *workspace = store_fixture_create(fixture, store_fixture_workspace(NULL));
    return store_fixture_create(fixture, store_fixture_sandbox(NULL, workspace));
}

// What another process would read from the file.
static int64_t stored_activity(struct store_fixture *fixture, const char *uid)
{
    CLEANUP_FREE char *path = mem_format("%s/" STORE_DATABASE_NAME, fixture->state_dir);
    CLEANUP_FREE char *text = mem_format("SELECT at FROM activity WHERE uid = '%s'", uid);
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, text, -1, &stmt, NULL), SQLITE_OK);
    int64_t at = sqlite3_step(stmt) == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return at;
}

static int64_t await_stored_activity(struct store_fixture *fixture, const char *uid, int64_t expected)
{
    int64_t at = 0;
    support_await(5, (at = stored_activity(fixture, uid)) == expected);
    return at;
}

static void activity_is_merged_on_read_without_a_write(void **state)
{
    struct store_fixture *fixture = *state;
    CLEANUP_RECORD struct record *sandbox = make_sandbox(fixture);
    assert_int_equal(sandbox->status.sandbox.expires_at.ms, STORE_FIXTURE_START_MS + SANDBOX_IDLE_MS);
    assert_int_equal(store_activity(fixture->store, sandbox->meta.uid).ms, STORE_FIXTURE_START_MS);
    int64_t revision = store_revision(fixture->store);
    clock_advance(fixture->clock, 7000);
    store_touch_activity(fixture->store, sandbox->meta.uid, clock_wall(fixture->clock));
    CLEANUP_RECORD struct record *fresh = store_fixture_get(fixture, sandbox);
    assert_int_equal(fresh->status.sandbox.last_activity_at.ms, STORE_FIXTURE_START_MS + 7000);
    assert_int_equal(fresh->status.sandbox.expires_at.ms, STORE_FIXTURE_START_MS + 7000 + SANDBOX_IDLE_MS);
    assert_int_equal(store_revision(fixture->store), revision);
    assert_int_equal(fresh->meta.resource_version, sandbox->meta.resource_version);
}

static void activity_never_goes_back(void **state)
{
    struct store_fixture *fixture = *state;
    CLEANUP_RECORD struct record *sandbox = make_sandbox(fixture);
    clock_step_wall(fixture->clock, -3600 * 1000);
    store_touch_activity(fixture->store, sandbox->meta.uid, clock_wall(fixture->clock));
    assert_int_equal(store_activity(fixture->store, sandbox->meta.uid).ms, STORE_FIXTURE_START_MS);
}

static void activity_is_written_at_most_every_30_seconds_and_at_the_end(void **state)
{
    struct store_fixture *fixture = *state;
    CLEANUP_RECORD struct record *sandbox = make_sandbox(fixture);
    for (int i = 0; i < 100; i++) {
        clock_advance(fixture->clock, 100);
        store_touch_activity(fixture->store, sandbox->meta.uid, clock_wall(fixture->clock));
    }
    usleep(20000);
    assert_int_equal(stored_activity(fixture, sandbox->meta.uid), 0);
    clock_advance(fixture->clock, 21000);
    assert_int_equal(await_stored_activity(fixture, sandbox->meta.uid, STORE_FIXTURE_START_MS + 10000), STORE_FIXTURE_START_MS + 10000);
    clock_advance(fixture->clock, 1000);
    store_touch_activity(fixture->store, sandbox->meta.uid, clock_wall(fixture->clock));
    store_fixture_reopen(fixture);
    assert_int_equal(store_activity(fixture->store, sandbox->meta.uid).ms, STORE_FIXTURE_START_MS + 32000);
}

static void a_status_write_with_an_old_activity_does_not_bring_it_back(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *sandbox = make_sandbox(fixture);
    CLEANUP_RECORD struct record *old = store_fixture_get(fixture, sandbox);
    clock_advance(fixture->clock, 5000);
    store_touch_activity(fixture->store, sandbox->meta.uid, clock_wall(fixture->clock));
    int64_t revision = store_revision(fixture->store);
    assert_ok(store_write_status(fixture->store, old, &err)); // nothing else changed (observedGeneration was 0)
    revision = store_revision(fixture->store);
    assert_ok(store_write_status(fixture->store, old, &err));
    assert_int_equal(store_revision(fixture->store), revision);
    assert_int_equal(old->status.sandbox.last_activity_at.ms, STORE_FIXTURE_START_MS + 5000);
}

static void a_tombstone_keeps_its_last_activity_and_takes_no_more(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *sandbox = make_sandbox(fixture);
    clock_advance(fixture->clock, 5000);
    store_touch_activity(fixture->store, sandbox->meta.uid, clock_wall(fixture->clock));
    CLEANUP_RECORD struct record *dying = store_fixture_get(fixture, sandbox);
    text_list_clear(&dying->meta.finalizers);
    assert_ok(store_fixture_write_meta(fixture->store, dying, &err));
    assert_ok(store_fixture_delete(fixture->store, KIND_SANDBOX, sandbox->meta.uid, &err));
    assert_ok(store_upkeep(fixture->store, &err)); // after it the store thread has published the removal
    clock_advance(fixture->clock, 5000);
    store_touch_activity(fixture->store, sandbox->meta.uid, clock_wall(fixture->clock));
    assert_int_equal(store_activity(fixture->store, sandbox->meta.uid).ms, 0);
    store_fixture_reopen(fixture);
    CLEANUP_RECORD struct record *tombstone = store_fixture_get(fixture, sandbox);
    assert_int_equal(tombstone->status.sandbox.last_activity_at.ms, STORE_FIXTURE_START_MS + 5000);
}

// ---- events -------------------------------------------------------------------------------------------------------

static size_t count_events(struct store_fixture *fixture, const char *uid, struct store_event_row **ret)
{
    struct error err = ERROR_INIT;
    size_t count = 0;
    CLEANUP_RECORD struct record *fence = store_fixture_create(fixture, store_fixture_workspace(NULL)); // events before it are in
    assert_ok(store_list_events(fixture->store, uid, 100000, ret, &count, &err));
    return count;
}

static void repeated_events_are_counted_in_one_row(void **state)
{
    struct store_fixture *fixture = *state;
    CLEANUP_RECORD struct record *record = store_fixture_create(fixture, store_fixture_workspace("dev"));
    int64_t revision = store_revision(fixture->store);
    for (int i = 0; i < 5; i++) {
        store_event(fixture->store, record, true, "Slow", "took %d s", 3);
        clock_advance(fixture->clock, 1000);
    }
    store_event(fixture->store, record, false, "Ready", "it works");
    struct store_event_row *rows;
    size_t count = count_events(fixture, record->meta.uid, &rows);
    assert_int_equal(store_revision(fixture->store), revision + 1); // the fence only
    assert_int_equal(count, 2);
    assert_int_equal(rows[0].count, 5);
    assert_string_equal(rows[0].type, "Warning");
    assert_string_equal(rows[0].message, "took 3 s");
    assert_true(rows[0].last_at.ms >= rows[0].first_at.ms);
    assert_string_equal(rows[1].reason, "Ready");
    store_events_free(rows, count);
}

static void an_object_keeps_its_newest_64_events(void **state)
{
    struct store_fixture *fixture = *state;
    CLEANUP_RECORD struct record *record = store_fixture_create(fixture, store_fixture_workspace("dev"));
    for (int i = 0; i < 100; i++)
        store_event(fixture->store, record, false, "Step", "number %d", i);
    struct store_event_row *rows;
    size_t count = count_events(fixture, record->meta.uid, &rows);
    assert_int_equal(count, 64);
    assert_string_equal(rows[0].message, "number 36");
    assert_string_equal(rows[63].message, "number 99");
    store_events_free(rows, count);
    struct error err = ERROR_INIT;
    assert_ok(store_list_events(fixture->store, NULL, 3, &rows, &count, &err));
    assert_int_equal(count, 3);
    assert_string_equal(rows[2].message, "number 99");
    store_events_free(rows, count);
}

// What only counts an event again comes in between, as reconcilers do it.
static void all_events_together_are_10000_and_few_more(void **state)
{
    struct store_fixture *fixture = *state;
    CLEANUP_RECORD struct record *busy = store_fixture_create(fixture, store_fixture_workspace(NULL));
    store_event(fixture->store, busy, false, "Again", "the same");
    store_event(fixture->store, busy, false, "Again", "the same");
    for (int i = 0; i < 170; i++) {
        CLEANUP_RECORD struct record *record = store_fixture_create(fixture, store_fixture_workspace(NULL));
        for (int step = 0; step < 62; step++) {
            store_event(fixture->store, record, false, "Step", "number %d", step);
            store_event(fixture->store, busy, false, "Again", "the same");
        }
    }
    struct store_event_row *rows;
    size_t count = count_events(fixture, NULL, &rows);
    store_events_free(rows, count);
    assert_in_range(count, 10000, 10000 + 64);
}

static void events_end_an_hour_after_their_last_occurrence(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *record = store_fixture_create(fixture, store_fixture_workspace("dev"));
    store_event(fixture->store, record, false, "Step", "old");
    store_event(fixture->store, record, false, "Again", "kept alive");
    struct store_event_row *rows;
    size_t count = count_events(fixture, NULL, &rows);
    store_events_free(rows, count);
    clock_advance(fixture->clock, 1800 * 1000);
    store_event(fixture->store, record, false, "Again", "kept alive");
    count = count_events(fixture, NULL, &rows);
    store_events_free(rows, count);
    clock_advance(fixture->clock, 1801 * 1000);
    assert_ok(store_upkeep(fixture->store, &err));
    count = count_events(fixture, NULL, &rows);
    assert_int_equal(count, 1);
    assert_string_equal(rows[0].reason, "Again");
    store_events_free(rows, count);
}

// The end of an event is read once by who goes on from before it, and an event that comes again is a new one.
static void the_end_of_an_event_is_a_change_of_its_own(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    struct store_event_row *rows;
    size_t count;
    CLEANUP_RECORD struct record *record = store_fixture_create(fixture, store_fixture_workspace("dev"));
    store_event(fixture->store, record, false, "Step", "old");
    store_event(fixture->store, record, false, "Step", "old");
    count = count_events(fixture, NULL, &rows);
    int64_t seen = rows[0].version, id = rows[0].id;
    store_events_free(rows, count);
    clock_advance(fixture->clock, 3601 * 1000);
    assert_ok(store_upkeep(fixture->store, &err));
    store_fixture_reopen(fixture);
    assert_int_equal(count_events(fixture, NULL, &rows), 0);
    store_events_free(rows, 0);
    assert_error(store_get_event(fixture->store, id, &rows, &err), ERROR_NOT_FOUND);
    assert_ok(store_read_events(fixture->store, seen, 10, &rows, &count, &err));
    assert_int_equal(count, 1);
    assert_true(rows[0].has_ended);
    assert_int_equal(rows[0].count, 2);
    assert_int_equal(rows[0].id, id);
    store_events_free(rows, count);
    store_event(fixture->store, record, false, "Step", "old");
    assert_int_equal(count_events(fixture, NULL, &rows), 1);
    assert_int_not_equal(rows[0].id, id);
    int64_t now = rows[0].version;
    store_events_free(rows, 1);
    assert_error(store_read_events(fixture->store, seen, 10, &rows, &count, &err), ERROR_EXPIRED); // the mark made room
    assert_ok(store_read_events(fixture->store, now, 10, &rows, &count, &err));
    store_events_free(rows, count);
}

static void ends_that_are_too_many_to_tell_are_listed_anew(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    struct store_event_row *rows;
    size_t count;
    for (int i = 0; i < 40; i++) {
        CLEANUP_RECORD struct record *record = store_fixture_create(fixture, store_fixture_workspace(NULL));
        for (int step = 0; step < 60; step++)
            store_event(fixture->store, record, false, "Step", "number %d", step);
    }
    count = count_events(fixture, NULL, &rows);
    assert_int_equal(count, 40 * 60);
    int64_t first = rows[0].version, last = rows[count - 1].version;
    store_events_free(rows, count);
    clock_advance(fixture->clock, 3601 * 1000);
    assert_ok(store_upkeep(fixture->store, &err));
    assert_ok(store_upkeep(fixture->store, &err));
    assert_error(store_read_events(fixture->store, first, 10, &rows, &count, &err), ERROR_EXPIRED);
    assert_ok(store_read_events(fixture->store, last + 400, 3000, &rows, &count, &err));
    assert_int_equal(count, 2000);
    store_events_free(rows, count);
}

static void a_long_message_is_cut_between_characters(void **state)
{
    struct store_fixture *fixture = *state;
    CLEANUP_RECORD struct record *record = store_fixture_create(fixture, store_fixture_workspace("dev"));
    char text[3001];
    for (int i = 0; i < 3000; i += 2)
        memcpy(text + i, "\xc3\xbc", 2);
    text[3000] = '\0';
    store_event(fixture->store, record, false, "Long", "x%s", text);
    struct store_event_row *rows;
    size_t count = count_events(fixture, record->meta.uid, &rows);
    assert_int_equal(count, 1);
    size_t len = strlen(rows[0].message);
    assert_true(len % 2 == 1 && len >= 1000 && len < 1024);
    store_events_free(rows, count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(activity_is_merged_on_read_without_a_write),
        TEST(activity_never_goes_back),
        TEST(activity_is_written_at_most_every_30_seconds_and_at_the_end),
        TEST(a_status_write_with_an_old_activity_does_not_bring_it_back),
        TEST(a_tombstone_keeps_its_last_activity_and_takes_no_more),
        TEST(repeated_events_are_counted_in_one_row),
        TEST(an_object_keeps_its_newest_64_events),
        TEST(all_events_together_are_10000_and_few_more),
        TEST(events_end_an_hour_after_their_last_occurrence),
        TEST(the_end_of_an_event_is_a_change_of_its_own),
        TEST(ends_that_are_too_many_to_tell_are_listed_anew),
        TEST(a_long_message_is_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
