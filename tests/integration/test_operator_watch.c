// Watches over the real socket: nothing is missed, nothing comes twice, whoever is slow is told.
#include "controller/base/memory.h"
#include "controller/store/internal.h"
#include "tests/support/operator_rig.h"
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define WORKSPACES OPERATOR_KINDS "/workspaces"
#define TABLE "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json\r\n"
#define METADATA "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io\r\n"
#define BOOKMARK_MS 70000

static json_t *meta(const json_t *event)
{
    return json_object_get(json_object_get(event, "object"), "metadata");
}

static const char *version(const json_t *event)
{
    return json_get_text(meta(event), "resourceVersion");
}

static void expect(struct watch_client *client, const char *type, const char *name)
{
    json_decref(watch_client_expect(client, type, name));
}

static char *newest(const struct operator_rig *rig)
{
    CLEANUP_JSON json_t *list = operator_rig_call(rig, "GET", WORKSPACES, "", "", 200);
    return mem_strdup(json_get_text(json_object_get(list, "metadata"), "resourceVersion"));
}

static struct watch_client *watch_from(const struct operator_rig *rig, const char *position, const char *more)
{
    CLEANUP_FREE char *path = mem_format(WORKSPACES "?watch=true&resourceVersion=%s%s", position, more);
    return watch_client_open(rig, path, "");
}

static void a_watch_goes_on_from_the_version_of_a_list(void **state)
{
    const struct operator_rig *rig = *state;
    operator_rig_make_workspace(rig, "before", "{}");
    CLEANUP_FREE char *position = newest(rig);
    struct watch_client *client = watch_from(rig, position, "");
    operator_rig_make_workspace(rig, "w1", "{}");
    operator_rig_label(rig, "w1", "{\"a\": \"b\"}");
    json_t *added = watch_client_expect(client, "ADDED", "w1");
    CLEANUP_JSON json_t *modified = watch_client_expect(client, "MODIFIED", "w1");
    assert_true(atoll(version(added)) > atoll(position) && atoll(version(modified)) > atoll(version(added)));
    CLEANUP_FREE char *seen = mem_strdup(version(added));
    json_decref(added);
    watch_client_close(client);
    client = watch_from(rig, seen, "");
    CLEANUP_JSON json_t *again = watch_client_expect(client, "MODIFIED", "w1");
    assert_string_equal(version(again), version(modified));
    watch_client_close(client);
}

static void a_removed_object_is_deleted_with_its_last_image(void **state)
{
    const struct operator_rig *rig = *state;
    operator_rig_make_workspace(rig, "w1", "{}");
    CLEANUP_FREE char *position = newest(rig);
    struct watch_client *client = watch_from(rig, position, "");
    operator_rig_remove(rig, "w1");
    json_t *event = watch_client_next(client);
    while (strcmp(json_get_text(event, "type"), "MODIFIED") == 0) {
        json_decref(event);
        event = watch_client_next(client);
    }
    assert_string_equal(json_get_text(event, "type"), "DELETED");
    assert_true(json_get_text(meta(event), "deletionTimestamp") != NULL);
    assert_true(atoll(version(event)) > atoll(position));
    json_decref(event);
    watch_client_close(client);
}

static void leaving_a_selector_is_deleted_and_entering_it_added(void **state)
{
    const struct operator_rig *rig = *state;
    operator_rig_make_workspace(rig, "w1", "{\"team\": \"a\"}");
    operator_rig_make_workspace(rig, "w2", "{\"team\": \"b\"}");
    struct watch_client *client =
        watch_client_open(rig, WORKSPACES "?watch=1&labelSelector=team%3Da&resourceVersion=0", "");
    expect(client, "ADDED", "w1");
    operator_rig_label(rig, "w2", "{\"x\": \"y\"}");
    operator_rig_label(rig, "w1", "{\"team\": \"b\"}");
    CLEANUP_JSON json_t *left = watch_client_expect(client, "DELETED", "w1");
    assert_string_equal(json_get_text(json_object_get(meta(left), "labels"), "team"), "a");
    CLEANUP_FREE char *now = newest(rig);
    assert_string_equal(version(left), now);
    operator_rig_label(rig, "w2", "{\"team\": \"a\"}");
    expect(client, "ADDED", "w2");
    operator_rig_label(rig, "w2", "{\"x\": \"z\"}");
    expect(client, "MODIFIED", "w2");
    watch_client_close(client);
}

static void one_name_can_be_watched_before_it_exists(void **state)
{
    const struct operator_rig *rig = *state;
    struct watch_client *client = watch_client_open(
        rig,
        WORKSPACES "?watch=true&fieldSelector=metadata.name%3Dw2&timeoutSeconds=600&allowWatchBookmarks=true",
        "");
    operator_rig_make_workspace(rig, "w1", "{}");
    operator_rig_make_workspace(rig, "w2", "{}");
    expect(client, "ADDED", "w2");
    watch_client_close(client);
}

static void fields_of_spec_and_status_select(void **state)
{
    const struct operator_rig *rig = *state;
    operator_rig_make_workspace(rig, "w1", "{}");
    struct watch_client *client = watch_client_open(
        rig, WORKSPACES "?watch=true&fieldSelector=spec.mode%3Dmanaged,metadata.name!%3Dw2", "");
    expect(client, "ADDED", "w1");
    operator_rig_make_workspace(rig, "w2", "{}");
    operator_rig_make_workspace(rig, "w3", "{}");
    expect(client, "ADDED", "w3");
    watch_client_close(client);
}

static void the_state_at_the_beginning_ends_with_a_marked_bookmark(void **state)
{
    const struct operator_rig *rig = *state;
    for (int i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof(name), "w%02d", i);
        operator_rig_make_workspace(rig, name, "{}");
    }
    struct watch_client *client =
        watch_client_open(rig,
                          WORKSPACES "?watch=true&sendInitialEvents=true&allowWatchBookmarks=true"
                                     "&resourceVersionMatch=NotOlderThan&resourceVersion=",
                          "");
    for (int i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof(name), "w%02d", i);
        expect(client, "ADDED", name);
    }
    CLEANUP_JSON json_t *mark = watch_client_expect(client, "BOOKMARK", "");
    assert_string_equal(json_get_text(json_object_get(mark, "object"), "kind"), "Workspace");
    assert_string_equal(
        json_get_text(json_object_get(meta(mark), "annotations"), "k8s.io/initial-events-end"), "true");
    CLEANUP_FREE char *now = newest(rig);
    assert_string_equal(version(mark), now);
    operator_rig_label(rig, "w07", "{\"a\": \"b\"}");
    expect(client, "MODIFIED", "w07");
    watch_client_close(client);
}

static void without_initial_events_only_changes_come(void **state)
{
    const struct operator_rig *rig = *state;
    operator_rig_make_workspace(rig, "w1", "{}");
    struct watch_client *client = watch_client_open(
        rig,
        WORKSPACES
        "?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        "");
    for (int i = 0; i < SUPPORT_PATIENCE_MS / 50; i++) { // until the watch has begun
        char labels[32];
        snprintf(labels, sizeof(labels), "{\"n\": \"%d\"}", i);
        operator_rig_label(rig, "w1", labels);
        if (!watch_client_is_quiet(client, 50))
            break;
    }
    expect(client, "MODIFIED", "w1");
    watch_client_close(client);
}

static void bookmarks_keep_a_quiet_position_fresh(void **state)
{
    const struct operator_rig *rig = *state;
    operator_rig_make_workspace(rig, "w1", "{}");
    struct watch_client *client = watch_client_open(
        rig,
        OPERATOR_KINDS "/sandboxes?watch=true&allowWatchBookmarks=true&sendInitialEvents=true"
                       "&resourceVersionMatch=NotOlderThan",
        "");
    expect(client, "BOOKMARK", "");
    struct watch_client *other =
        watch_client_open(rig, WORKSPACES "?watch=true&allowWatchBookmarks=false", "");
    expect(other, "ADDED", "w1");
    operator_rig_make_workspace(rig, "w2", "{}");
    expect(other, "ADDED", "w2");
    CLEANUP_FREE char *now = newest(rig);
    clock_advance(rig->fixture->world.clock, BOOKMARK_MS);
    CLEANUP_JSON json_t *mark = watch_client_expect(client, "BOOKMARK", "");
    assert_string_equal(version(mark), now);
    assert_true(watch_client_is_quiet(other, 100));
    watch_client_close(client);
    watch_client_close(other);
}

static void the_stated_time_ends_a_watch_with_a_bookmark(void **state)
{
    const struct operator_rig *rig = *state;
    operator_rig_make_workspace(rig, "w1", "{}");
    struct watch_client *client =
        watch_client_open(rig, WORKSPACES "?watch=true&allowWatchBookmarks=true&timeoutSeconds=5", "");
    expect(client, "ADDED", "w1");
    clock_advance(rig->fixture->world.clock, 6000);
    expect(client, "BOOKMARK", "");
    assert_null(watch_client_next(client));
    assert_true(watch_client_is_clean(client));
    watch_client_close(client);
}

static void a_stopping_server_ends_watches_cleanly(void **state)
{
    struct operator_rig *rig = *state;
    struct error err = ERROR_INIT;
    operator_rig_make_workspace(rig, "w1", "{}");
    struct watch_client *clients[8];
    for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
        clients[i] = watch_client_open(rig, WORKSPACES "?watch=true", "");
        expect(clients[i], "ADDED", "w1");
    }
    operator_server_stop(rig->server);
    for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
        assert_null(watch_client_next(clients[i]));
        assert_true(watch_client_is_clean(clients[i]));
        watch_client_close(clients[i]);
    }
    assert_ok(operator_server_start(&rig->fixture->world, &rig->server, &err));
}

static void tables_bring_their_columns_once(void **state)
{
    const struct operator_rig *rig = *state;
    operator_rig_make_workspace(rig, "w1", "{}");
    struct watch_client *client = watch_client_open(rig, WORKSPACES "?watch=true", TABLE);
    operator_rig_make_workspace(rig, "w2", "{}");
    for (int i = 0; i < 2; i++) {
        CLEANUP_JSON json_t *event = watch_client_expect(client, "ADDED", "");
        const json_t *table = json_object_get(event, "object"),
                     *row = json_array_get(json_object_get(table, "rows"), 0);
        assert_string_equal(json_get_text(table, "kind"), "Table");
        assert_int_equal(json_array_size(json_object_get(table, "columnDefinitions")) > 0, i == 0);
        assert_string_equal(json_string_value(json_array_get(json_object_get(row, "cells"), 0)),
                            i ? "w2" : "w1");
        assert_string_equal(json_get_text(json_object_get(row, "object"), "kind"), "PartialObjectMetadata");
    }
    watch_client_close(client);
    client = watch_client_open(rig, WORKSPACES "?watch=true", METADATA);
    CLEANUP_JSON json_t *event = watch_client_expect(client, "ADDED", "w1");
    assert_string_equal(json_get_text(json_object_get(event, "object"), "kind"), "PartialObjectMetadata");
    assert_null(json_object_get(json_object_get(event, "object"), "spec"));
    watch_client_close(client);
}

// As after five busy minutes.
static void trim_feed(const struct operator_rig *rig, int64_t keep_rows)
{
    struct error err = ERROR_INIT;
    struct store *store = rig->fixture->world.store;
    store->feed_keep_ms = 1;
    store->feed_keep_rows = keep_rows;
    clock_advance(rig->fixture->world.clock, 1000);
    assert_ok(store_upkeep(store, &err));
}

static void a_trimmed_position_is_gone_and_says_so(void **state)
{
    const struct operator_rig *rig = *state;
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof(name), "w%02d", i);
        operator_rig_make_workspace(rig, name, "{}");
    }
    trim_feed(rig, 1);
    CLEANUP_JSON json_t *old =
        operator_rig_call(rig, "GET", WORKSPACES "?watch=true&resourceVersion=2", "", "", 410);
    assert_string_equal(json_get_text(old, "reason"), "Expired");
    CLEANUP_JSON json_t *gone =
        operator_rig_call(rig, "GET", WORKSPACES "?watch=true&resourceVersion=999999", "", "", 410);
    assert_string_equal(json_get_text(gone, "reason"), "Expired");
    CLEANUP_JSON json_t *bad =
        operator_rig_call(rig, "GET", WORKSPACES "?watch=true&resourceVersion=x", "", "", 400);
    assert_string_equal(json_get_text(bad, "reason"), "BadRequest");
    json_decref(operator_rig_call(rig, "GET", WORKSPACES "?watch=maybe", "", "", 400));
    json_decref(operator_rig_call(rig, "GET", WORKSPACES "?watch=true&sendInitialEvents=true", "", "", 400));
    json_decref(operator_rig_call(rig, "GET", WORKSPACES "?watch=true&timeoutSeconds=-1", "", "", 400));
}

static void events_of_objects_can_be_watched(void **state)
{
    const struct operator_rig *rig = *state;
    struct error err = ERROR_INIT;
    struct store *store = rig->fixture->world.store;
    operator_rig_make_workspace(rig, "w1", "{}");
    operator_rig_make_workspace(rig, "w2", "{}");
    CLEANUP_RECORD struct record *w1 = NULL;
    CLEANUP_RECORD struct record *w2 = NULL;
    assert_ok(store_get(store, KIND_WORKSPACE, "w1", &w1, &err));
    assert_ok(store_get(store, KIND_WORKSPACE, "w2", &w2, &err));
    store_event(store, w1, false, "Tried", "first");
    struct watch_client *client = watch_client_open(
        rig, "/api/v1/events?watch=true&timeoutSeconds=86400&fieldSelector=involvedObject.name%3Dw1,reason%3DTried", "");
    expect(client, "ADDED", "");
    store_event(store, w2, false, "Tried", "first");
    store_event(store, w1, false, "Tried", "first");
    CLEANUP_JSON json_t *again = watch_client_expect(client, "MODIFIED", "");
    assert_int_equal(json_get_int(json_object_get(again, "object"), "count", 0), 2);
    store_event(store, w1, true, "Tried", "second");
    CLEANUP_JSON json_t *other = watch_client_expect(client, "ADDED", "");
    assert_string_equal(json_get_text(json_object_get(other, "object"), "type"), "Warning");
    assert_true(watch_client_is_quiet(client, 500)); // what it has read counts as read, before an hour has passed
    clock_advance(rig->fixture->world.clock, 3601 * 1000);
    assert_ok(store_upkeep(store, &err));
    for (int i = 0; i < 2; i++)
        expect(client, "DELETED", "");
    watch_client_close(client);
    struct watch_client *spaces = watch_client_open(rig, "/api/v1/namespaces?watch=true", "");
    expect(spaces, "ADDED", "default");
    watch_client_close(spaces);
}

// ---- many and slow
#define MANY 50
#define CHANGES 40

static void fifty_watchers_see_every_change_in_order_once(void **state)
{
    const struct operator_rig *rig = *state;
    struct watch_client *clients[MANY];
    operator_rig_make_workspace(rig, "w1", "{}");
    CLEANUP_FREE char *position = newest(rig);
    for (int i = 0; i < MANY; i++)
        clients[i] = watch_from(rig, position, "");
    for (int i = 0; i < CHANGES; i++) {
        char labels[32];
        snprintf(labels, sizeof(labels), "{\"n\": \"%d\"}", i);
        operator_rig_label(rig, "w1", labels);
    }
    for (int i = 0; i < MANY; i++) {
        for (int n = 0; n < CHANGES; n++) {
            char wanted[16];
            snprintf(wanted, sizeof(wanted), "%d", n);
            CLEANUP_JSON json_t *event = watch_client_expect(clients[i], "MODIFIED", "w1");
            assert_string_equal(json_get_text(json_object_get(meta(event), "labels"), "n"), wanted);
        }
        watch_client_close(clients[i]);
    }
}

#define SLOW_CHANGES 320 // beyond what the ring and the sockets hold
#define NOTE_BYTES 8000

static void write_note(const struct operator_rig *rig, int number, size_t bytes)
{
    CLEANUP_FREE char *note = mem_alloc(bytes + 1);
    memset(note, 'a' + number % 26, bytes);
    CLEANUP_FREE char *body =
        mem_format("{\"metadata\": {\"annotations\": {\"note\": \"%s\", \"number\": \"%d\"}}}", note, number);
    json_decref(operator_rig_call(rig, "PATCH", WORKSPACES "/w1",
                                  "Content-Type: application/merge-patch+json\r\n", body, 200));
}

static void a_slow_client_still_gets_everything_in_order(void **state)
{
    const struct operator_rig *rig = *state;
    operator_rig_make_workspace(rig, "w1", "{}");
    CLEANUP_FREE char *position = newest(rig);
    struct watch_client *client = watch_from(rig, position, "");
    for (int i = 0; i < SLOW_CHANGES; i++)
        write_note(rig, i, NOTE_BYTES);
    for (int i = 0; i < SLOW_CHANGES; i++) {
        char wanted[16];
        snprintf(wanted, sizeof(wanted), "%d", i);
        CLEANUP_JSON json_t *event = watch_client_expect(client, "MODIFIED", "w1");
        assert_string_equal(json_get_text(json_object_get(meta(event), "annotations"), "number"), wanted);
    }
    watch_client_close(client);
}

static void a_client_that_is_too_slow_for_the_feed_is_told(void **state)
{
    const struct operator_rig *rig = *state;
    operator_rig_make_workspace(rig, "w1", "{}");
    CLEANUP_FREE char *position = newest(rig);
    struct watch_client *client = watch_from(rig, position, "");
    for (int i = 0; i < SLOW_CHANGES; i++)
        write_note(rig, i, NOTE_BYTES);
    trim_feed(rig, 1);
    int seen = 0;
    json_t *event;
    for (; (event = watch_client_next(client)) && strcmp(json_get_text(event, "type"), "MODIFIED") == 0;
         seen++)
        json_decref(event);
    assert_non_null(event);
    assert_string_equal(json_get_text(event, "type"), "ERROR");
    assert_int_equal(json_get_int(json_object_get(event, "object"), "code", 0), 410);
    assert_string_equal(json_get_text(json_object_get(event, "object"), "reason"), "Expired");
    assert_true(seen > 0 && seen < SLOW_CHANGES);
    json_decref(event);
    assert_null(watch_client_next(client));
    assert_true(watch_client_is_clean(client));
    watch_client_close(client);
}

#define LONG_NOTES 6 // together more than a client's queue and its socket hold
#define LONG_NOTE_BYTES 250000

static void a_line_that_was_begun_is_ended_after_the_stated_time(void **state)
{
    const struct operator_rig *rig = *state;
    operator_rig_make_workspace(rig, "w1", "{}");
    CLEANUP_FREE char *position = newest(rig);
    struct watch_client *clients[8]; // they share the line
    for (size_t i = 0; i < ARRAY_LEN(clients); i++)
        clients[i] = watch_from(rig, position, "&timeoutSeconds=5");
    for (int i = 0; i < LONG_NOTES; i++)
        write_note(rig, i, LONG_NOTE_BYTES);
    clock_advance(rig->fixture->world.clock, 6000);
    for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
        int seen = 0;
        for (json_t *event; (event = watch_client_next(clients[i])); seen++)
            json_decref(event);
        assert_true(seen < LONG_NOTES);
        assert_true(watch_client_is_clean(clients[i]));
        watch_client_close(clients[i]);
    }
}

static void clients_that_leave_are_forgotten(void **state)
{
    const struct operator_rig *rig = *state;
    operator_rig_make_workspace(rig, "w1", "{}");
    for (int i = 0; i < 200; i++) {
        struct watch_client *client = watch_client_open(rig, WORKSPACES "?watch=true", "");
        if (i % 3)
            expect(client, "ADDED", "w1");
        watch_client_close(client);
    }
    struct watch_client *last = watch_client_open(rig, WORKSPACES "?watch=true", "");
    expect(last, "ADDED", "w1");
    operator_rig_label(rig, "w1", "{\"a\": \"b\"}");
    expect(last, "MODIFIED", "w1");
    watch_client_close(last);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, operator_rig_setup, operator_rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_watch_goes_on_from_the_version_of_a_list),
        TEST(a_removed_object_is_deleted_with_its_last_image),
        TEST(leaving_a_selector_is_deleted_and_entering_it_added),
        TEST(one_name_can_be_watched_before_it_exists),
        TEST(fields_of_spec_and_status_select),
        TEST(the_state_at_the_beginning_ends_with_a_marked_bookmark),
        TEST(without_initial_events_only_changes_come),
        TEST(bookmarks_keep_a_quiet_position_fresh),
        TEST(the_stated_time_ends_a_watch_with_a_bookmark),
        TEST(a_stopping_server_ends_watches_cleanly),
        TEST(tables_bring_their_columns_once),
        TEST(a_trimmed_position_is_gone_and_says_so),
        TEST(events_of_objects_can_be_watched),
        TEST(fifty_watchers_see_every_change_in_order_once),
        TEST(a_slow_client_still_gets_everything_in_order),
        TEST(a_client_that_is_too_slow_for_the_feed_is_told),
        TEST(a_line_that_was_begun_is_ended_after_the_stated_time),
        TEST(clients_that_leave_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
