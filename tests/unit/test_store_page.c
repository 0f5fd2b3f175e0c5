// Pages of the store: a list in pieces is the list as it was at its first piece.
#include "controller/base/memory.h"
#include "tests/support/store_fixture.h"
#include <stdio.h>
#include <string.h>

static void make_workspaces(struct store_fixture *fixture, int first, int count)
{
    for (int i = first; i < first + count; i++) {
        CLEANUP_FREE char *name = mem_format("w%03d", i);
        record_free(store_fixture_create(fixture, store_fixture_workspace(name)));
    }
}

static void write_label(struct store_fixture *fixture, const char *name, const char *value)
{
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *record = NULL;
    assert_ok(store_get(fixture->store, KIND_WORKSPACE, name, &record, &err));
    text_map_set(&record->meta.labels, "v", value);
    assert_ok(store_fixture_write_meta(fixture->store, record, &err));
}

static void remove_workspace(struct store_fixture *fixture, const char *name)
{
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *record = NULL;
    assert_ok(store_get(fixture->store, KIND_WORKSPACE, name, &record, &err));
    assert_ok(store_fixture_delete(fixture->store, KIND_WORKSPACE, record->meta.uid, &err));
}

static void assert_member(const struct store_page *page, size_t i, const char *part, const char *name, const char *wanted)
{
    struct json_span in = json_member(store_page_image(page, i), "metadata");
    CLEANUP_FREE char *text = json_span_to_text(json_member(part ? json_member(in, part) : in, name));
    assert_non_null(text);
    assert_string_equal(text, wanted);
}

static void assert_name(const struct store_page *page, size_t i, const char *wanted)
{
    assert_member(page, i, NULL, "name", wanted);
}

static void assert_label(const struct store_page *page, size_t i, const char *wanted)
{
    assert_member(page, i, "labels", "v", wanted);
}

#define PAGE(...) (&(struct store_page_request){.kind = KIND_WORKSPACE, __VA_ARGS__})

static void pieces_make_the_whole(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    int64_t after = 0, revision = 0;
    int seen = 0;
    make_workspaces(fixture, 0, 25);
    for (bool has_more = true; has_more;) {
        struct store_page page;
        assert_ok(store_read_page(fixture->store,
                                  PAGE(.revision = revision, .after = after, .limit = 10, .must_count = true),
                                  &page, &err));
        for (size_t i = 0; i < page.count; i++) {
            char name[16];
            snprintf(name, sizeof(name), "w%03d", seen++);
            assert_name(&page, i, name);
        }
        assert_int_equal(page.rest, 25 - seen);
        has_more = page.has_more;
        after = page.items[page.count - 1].id;
        revision = page.revision;
        store_page_clear(&page);
    }
    assert_int_equal(seen, 25);
}

static void a_later_piece_shows_what_was_there_at_the_first(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    struct store_page page;
    make_workspaces(fixture, 0, 6);
    write_label(fixture, "w004", "old");
    assert_ok(store_read_page(fixture->store, PAGE(.limit = 2), &page, &err));
    int64_t after = page.items[1].id, revision = page.revision;
    store_page_clear(&page);
    remove_workspace(fixture, "w003");
    write_label(fixture, "w004", "new");
    write_label(fixture, "w004", "newest");
    make_workspaces(fixture, 6, 2);
    remove_workspace(fixture, "w006");
    assert_ok(store_read_page(fixture->store,
                              PAGE(.revision = revision, .after = after, .limit = 2, .must_count = true),
                              &page, &err));
    assert_int_equal(page.revision, revision);
    assert_name(&page, 0, "w002");
    assert_name(&page, 1, "w003");
    assert_int_equal(page.rest, 2);
    after = page.items[1].id;
    store_page_clear(&page);
    assert_ok(store_read_page(fixture->store, PAGE(.revision = revision, .after = after, .limit = 10), &page,
                              &err));
    assert_int_equal(page.count, 2);
    assert_false(page.has_more);
    assert_label(&page, 0, "old");
    assert_name(&page, 1, "w005");
    store_page_clear(&page);
    assert_ok(store_read_page(fixture->store, PAGE(.limit = 10), &page, &err));
    assert_int_equal(page.count, 6);
    assert_label(&page, 3, "newest");
    store_page_clear(&page);
}

static void one_name_is_found_then_and_now(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    struct store_page page;
    make_workspaces(fixture, 0, 3);
    int64_t revision = store_revision(fixture->store);
    remove_workspace(fixture, "w001");
    make_workspaces(fixture, 1, 1);
    assert_ok(store_read_page(fixture->store, PAGE(.revision = revision, .limit = 10, .name = "w001"), &page,
                              &err));
    assert_int_equal(page.count, 1);
    CLEANUP_FREE char *then = json_span_to_text(json_member(json_member(store_page_image(&page, 0), "metadata"), "uid"));
    store_page_clear(&page);
    assert_ok(store_read_page(fixture->store, PAGE(.limit = 10, .name = "w001"), &page, &err));
    assert_int_equal(page.count, 1);
    CLEANUP_FREE char *now = json_span_to_text(json_member(json_member(store_page_image(&page, 0), "metadata"), "uid"));
    assert_string_not_equal(then, now);
    store_page_clear(&page);
    assert_ok(store_read_page(fixture->store, PAGE(.limit = 10, .name = "nothing"), &page, &err));
    assert_int_equal(page.count, 0);
    store_page_clear(&page);
}

static void a_revision_that_the_feed_lost_is_expired(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    struct store_page page;
    fixture->options.feed_keep_ms = 1;
    fixture->options.feed_keep_rows = 2;
    store_fixture_reopen(fixture);
    make_workspaces(fixture, 0, 6);
    clock_advance(fixture->clock, 1000);
    assert_ok(store_upkeep(fixture->store, &err));
    int64_t newest = store_revision(fixture->store);
    assert_error(store_read_page(fixture->store, PAGE(.revision = newest - 4, .limit = 1), &page, &err),
                 ERROR_EXPIRED);
    assert_error(store_read_page(fixture->store, PAGE(.revision = newest + 1, .limit = 1), &page, &err),
                 ERROR_EXPIRED);
    assert_ok(store_read_page(fixture->store, PAGE(.revision = newest - 1, .limit = 10), &page, &err));
    assert_int_equal(page.count, 5);
    store_page_clear(&page);
}

static void count_call(void *arg)
{
    ++*(_Atomic int *)arg;
}

static void events_are_read_on_from_a_version_and_announced(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    struct store_event_row *rows = NULL;
    _Atomic int told = 0;
    size_t count = 0;
    int64_t version = -1;
    CLEANUP_RECORD struct record *record = store_fixture_create(fixture, store_fixture_workspace("dev"));
    store_on_event(fixture->store, count_call, &told);
    store_event(fixture->store, record, false, "Made", "one");
    store_event(fixture->store, record, true, "Broke", "two");
    write_label(fixture, "dev", "x"); // waits for the writer
    assert_ok(store_page_events(fixture->store, NULL, 0, 10, &rows, &count, &version, &err));
    assert_int_equal(count, 2);
    assert_int_equal(version, rows[1].version);
    int64_t first = rows[0].id;
    store_events_free(rows, count);
    store_event(fixture->store, record, false, "Made", "one");
    write_label(fixture, "dev", "y");
    assert_int_equal(told, 3);
    assert_ok(store_read_events(fixture->store, version, 10, &rows, &count, &err));
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].count, 2);
    assert_int_equal(rows[0].id, first);
    store_events_free(rows, count);
    assert_ok(store_page_events(fixture->store, record->meta.uid, first, 10, &rows, &count, &version, &err));
    assert_int_equal(count, 1);
    assert_string_equal(rows[0].reason, "Broke");
    store_events_free(rows, count);
    assert_error(store_get_event(fixture->store, 4711, &rows, &err), ERROR_NOT_FOUND);
    store_on_event(fixture->store, NULL, NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_setup, store_fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(pieces_make_the_whole),
        TEST(a_later_piece_shows_what_was_there_at_the_first),
        TEST(one_name_is_found_then_and_now),
        TEST(a_revision_that_the_feed_lost_is_expired),
        TEST(events_are_read_on_from_a_version_and_announced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
