// Lists over the real socket: in pieces, at a version, in every form.
#include "controller/base/memory.h"
#include "controller/store/internal.h"
#include "tests/support/operator_rig.h"
#include <stdio.h>
#include <string.h>

#define WORKSPACES OPERATOR_KINDS "/workspaces"

static json_t *get(const struct operator_rig *rig, const char *path, int expected)
{
    return operator_rig_call(rig, "GET", path, "", "", expected);
}

static void make_many(const struct operator_rig *rig, int first, int count)
{
    for (int i = first; i < first + count; i++) {
        char name[16], labels[48];
        snprintf(name, sizeof(name), "w%02d", i);
        snprintf(labels, sizeof(labels), "{\"n\": \"%d\", \"odd\": \"%s\"}", i, i % 2 ? "yes" : "no");
        operator_rig_make_workspace(rig, name, labels);
    }
}

static const char *list_text(const json_t *list, const char *key)
{
    return json_get_text(json_object_get(list, "metadata"), key);
}

static const char *name_at(const json_t *list, size_t i)
{
    const char *name =
        json_get_text(json_object_get(json_array_get(json_object_get(list, "items"), i), "metadata"), "name");
    return name ? name : "";
}

static size_t size(const json_t *list)
{
    return json_array_size(json_object_get(list, "items"));
}

static json_t *go_on(const struct operator_rig *rig, const json_t *list, int limit, int expected)
{
    CLEANUP_FREE char *path =
        mem_format(WORKSPACES "?limit=%d&continue=%s", limit, list_text(list, "continue"));
    return get(rig, path, expected);
}

static void trim_feed(const struct operator_rig *rig)
{
    struct error err = ERROR_INIT;
    struct store *store = rig->fixture->world.store;
    store->feed_keep_ms = 1;
    store->feed_keep_rows = 1;
    clock_advance(rig->fixture->world.clock, 1000);
    assert_ok(store_upkeep(store, &err));
}

static void pieces_show_the_state_of_the_first_one(void **state)
{
    const struct operator_rig *rig = *state;
    make_many(rig, 0, 5);
    CLEANUP_JSON json_t *first = get(rig, WORKSPACES "?limit=2", 200);
    assert_int_equal(size(first), 2);
    assert_int_equal(json_get_int(json_object_get(first, "metadata"), "remainingItemCount", 0), 3);
    operator_rig_label(rig, "w03", "{\"n\": \"changed\"}");
    make_many(rig, 5, 2);
    operator_rig_remove(rig, "w04");
    CLEANUP_JSON json_t *second = go_on(rig, first, 2, 200);
    assert_string_equal(list_text(second, "resourceVersion"), list_text(first, "resourceVersion"));
    assert_string_equal(name_at(second, 0), "w02");
    assert_string_equal(name_at(second, 1), "w03");
    const json_t *labels = json_object_get(
        json_object_get(json_array_get(json_object_get(second, "items"), 1), "metadata"), "labels");
    assert_string_equal(json_get_text(labels, "n"), "3");
    CLEANUP_JSON json_t *third = go_on(rig, second, 2, 200);
    assert_int_equal(size(third), 1);
    assert_string_equal(name_at(third, 0), "w04");
    assert_null(list_text(third, "continue"));
}

static void selectors_and_limit_go_together(void **state)
{
    const struct operator_rig *rig = *state;
    make_many(rig, 0, 9);
    CLEANUP_JSON json_t *first = get(rig, WORKSPACES "?limit=2&labelSelector=odd%3Dyes", 200);
    assert_int_equal(size(first), 2);
    assert_string_equal(name_at(first, 1), "w03");
    assert_null(json_object_get(json_object_get(first, "metadata"), "remainingItemCount"));
    CLEANUP_FREE char *path =
        mem_format(WORKSPACES "?limit=5&labelSelector=odd%%3Dyes&continue=%s", list_text(first, "continue"));
    CLEANUP_JSON json_t *rest = get(rig, path, 200);
    assert_int_equal(size(rest), 2);
    assert_string_equal(name_at(rest, 1), "w07");
}

static void a_token_whose_version_is_gone_brings_one_that_works(void **state)
{
    const struct operator_rig *rig = *state;
    make_many(rig, 0, 4);
    CLEANUP_JSON json_t *first = get(rig, WORKSPACES "?limit=1", 200);
    make_many(rig, 4, 3);
    trim_feed(rig);
    CLEANUP_JSON json_t *gone = go_on(rig, first, 2, 410);
    assert_string_equal(json_get_text(gone, "reason"), "Expired");
    CLEANUP_JSON json_t *second = go_on(rig, gone, 2, 200);
    assert_string_equal(name_at(second, 0), "w01");
    assert_int_equal(json_get_int(json_object_get(second, "metadata"), "remainingItemCount", 0), 4);
}

static void bad_positions_are_refused_in_words(void **state)
{
    const struct operator_rig *rig = *state;
    static const char *const rows[] = {"continue=nonsense",
                                       "continue=c1.1.2",
                                       "continue=c1.-1.2.x",
                                       "limit=x",
                                       "limit=-1",
                                       "resourceVersion=abc",
                                       "resourceVersionMatch=Exact",
                                       "resourceVersion=0&resourceVersionMatch=Exact",
                                       "resourceVersion=5&resourceVersionMatch=Sometimes",
                                       "sendInitialEvents=true",
                                       "fieldSelector=spec.nothing%3D1",
                                       "labelSelector=%3D%3D",
                                       "labelSelector=a%3Eb"};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP_FREE char *path = mem_format(WORKSPACES "?%s", rows[i]);
        CLEANUP_JSON json_t *status = get(rig, path, 400);
        assert_string_equal(json_get_text(status, "reason"), "BadRequest");
        assert_true(*json_get_text(status, "message") != '\0');
    }
    json_decref(get(rig, WORKSPACES "?continue=c1.5.0.000000000000", 410));
}

static void a_version_is_exact_or_not_older(void **state)
{
    const struct operator_rig *rig = *state;
    make_many(rig, 0, 2);
    CLEANUP_JSON json_t *then = get(rig, WORKSPACES, 200);
    const char *version = list_text(then, "resourceVersion");
    make_many(rig, 2, 1);
    CLEANUP_FREE char *exact =
        mem_format(WORKSPACES "?resourceVersion=%s&resourceVersionMatch=Exact", version);
    CLEANUP_FREE char *newer =
        mem_format(WORKSPACES "?resourceVersion=%s&resourceVersionMatch=NotOlderThan", version);
    CLEANUP_JSON json_t *before = get(rig, exact, 200), *now = get(rig, newer, 200),
                        *any = get(rig, WORKSPACES "?resourceVersion=0", 200);
    assert_int_equal(size(before), 2);
    assert_string_equal(list_text(before, "resourceVersion"), version);
    assert_int_equal(size(now), 3);
    assert_int_equal(size(any), 3);
    CLEANUP_JSON json_t *future =
        get(rig, WORKSPACES "?resourceVersion=99999&resourceVersionMatch=NotOlderThan", 504);
    assert_string_equal(json_get_text(future, "reason"), "Timeout");
    const json_t *cause = json_array_get(json_object_get(json_object_get(future, "details"), "causes"), 0);
    assert_string_equal(json_get_text(cause, "reason"), "ResourceVersionTooLarge");
    make_many(rig, 3, 1);
    trim_feed(rig);
    json_decref(get(rig, exact, 410));
}

static void every_label_operator_selects(void **state)
{
    const struct operator_rig *rig = *state;
    static const struct {
        const char *selector;
        size_t count;
    } rows[] = {{"odd%3Dyes", 3},
                {"odd%3D%3Dno", 3},
                {"odd!%3Dyes", 3},
                {"n%20in%20(1,2,77)", 2},
                {"n%20notin%20(1,2)", 4},
                {"n", 6},
                {"!n", 0},
                {"n%3E3", 2},
                {"n%3C2,odd%3Dno", 1},
                {"other!%3Dx", 6},
                {"", 6}};
    make_many(rig, 0, 6);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP_FREE char *path = mem_format(WORKSPACES "?labelSelector=%s", rows[i].selector);
        CLEANUP_JSON json_t *list = get(rig, path, 200);
        if (size(list) != rows[i].count)
            fail_msg("%s chose %zu", rows[i].selector, size(list));
    }
}

static void fields_select_also_absent_ones(void **state)
{
    const struct operator_rig *rig = *state;
    make_many(rig, 0, 3);
    CLEANUP_JSON json_t *unbound = get(rig, WORKSPACES "?fieldSelector=status.boundSandbox%3D", 200);
    assert_int_equal(size(unbound), 3);
    CLEANUP_JSON json_t *clones = get(rig, WORKSPACES "?fieldSelector=spec.mode%3Dclone", 200);
    assert_int_equal(size(clones), 0);
    CLEANUP_JSON json_t *named =
        get(rig, WORKSPACES "?fieldSelector=metadata.name%3Dw01,spec.mode%3Dmanaged&limit=500", 200);
    assert_int_equal(size(named), 1);
    CLEANUP_JSON json_t *other = get(rig, WORKSPACES "?fieldSelector=metadata.name!%3Dw01", 200);
    assert_int_equal(size(other), 2);
}

static void the_first_type_that_is_served_decides_the_form(void **state)
{
    const struct operator_rig *rig = *state;
    static const struct {
        const char *accept, *kind;
    } rows[] = {
        {"application/json", "WorkspaceList"},
        {"*/*", "WorkspaceList"},
        {"application/json;as=Table;v=v1;g=meta.k8s.io, application/json", "Table"},
        {"application/json, application/json;as=Table;v=v1;g=meta.k8s.io", "WorkspaceList"},
        {"application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", "WorkspaceList"},
        {"application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1,application/"
         "json;as=Table;g=meta.k8s.io;v=v1",
         "Table"},
        {"application/vnd.kubernetes.protobuf,application/json", "WorkspaceList"},
        {"application/json; as = Nothing, application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
         "WorkspaceList"},
        {"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", "PartialObjectMetadataList"},
    };
    make_many(rig, 0, 1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP_FREE char *header = mem_format("Accept: %s\r\n", rows[i].accept);
        CLEANUP_JSON json_t *list = operator_rig_call(rig, "GET", WORKSPACES, header, "", 200);
        if (strcmp(json_get_text(list, "kind"), rows[i].kind) != 0)
            fail_msg("%s gives %s", rows[i].accept, json_get_text(list, "kind"));
        assert_non_null(list_text(list, "resourceVersion"));
    }
    json_decref(operator_rig_call(rig, "GET", WORKSPACES, "Accept: application/vnd.kubernetes.protobuf\r\n",
                                  "", 406));
    CLEANUP_JSON json_t *one = operator_rig_call(
        rig, "GET", WORKSPACES "/w00",
        "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1\r\n", "", 200);
    assert_string_equal(json_get_text(one, "kind"), "PartialObjectMetadata");
    assert_null(json_object_get(one, "spec"));
}

static void rows_bring_what_was_asked_for(void **state)
{
    const struct operator_rig *rig = *state;
    static const struct {
        const char *include, *kind;
    } rows[] = {{"", "PartialObjectMetadata"},
                {"?includeObject=Metadata", "PartialObjectMetadata"},
                {"?includeObject=Object", "Workspace"},
                {"?includeObject=None", NULL}};
    make_many(rig, 0, 1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP_FREE char *path = mem_format(WORKSPACES "%s", rows[i].include);
        CLEANUP_JSON json_t *table = operator_rig_call(
            rig, "GET", path, "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n", "", 200);
        const json_t *object = json_object_get(json_array_get(json_object_get(table, "rows"), 0), "object");
        assert_int_equal(object != NULL, rows[i].kind != NULL);
        if (object)
            assert_string_equal(json_get_text(object, "kind"), rows[i].kind);
    }
}

static void events_come_in_pieces_and_by_name(void **state)
{
    const struct operator_rig *rig = *state;
    struct error err = ERROR_INIT;
    struct store *store = rig->fixture->world.store;
    make_many(rig, 0, 1);
    CLEANUP_RECORD struct record *record = NULL;
    assert_ok(store_get(store, KIND_WORKSPACE, "w00", &record, &err));
    for (int i = 0; i < 5; i++)
        store_event(store, record, false, "Tried", "attempt %d", i);
    operator_rig_label(rig, "w00", "{\"behind\": \"them\"}"); // the writer has stored all before
#define CHOSEN "/api/v1/namespaces/default/events?fieldSelector=reason%3DTried"
    CLEANUP_JSON json_t *first = get(rig, CHOSEN "&limit=3", 200);
    assert_int_equal(size(first), 3);
    CLEANUP_FREE char *path = mem_format("%s&limit=3&continue=%s", CHOSEN, list_text(first, "continue"));
    CLEANUP_JSON json_t *rest = get(rig, path, 200);
    assert_int_equal(size(rest), 2);
    CLEANUP_FREE char *one = mem_format("/api/v1/namespaces/default/events/%s", name_at(first, 1));
    CLEANUP_JSON json_t *event = get(rig, one, 200);
    assert_string_equal(json_get_text(event, "message"), "attempt 1");
    json_decref(get(rig, "/api/v1/namespaces/default/events/w00.ffff", 404));
    json_decref(get(rig, "/api/v1/namespaces/default/events/nothing", 404));
    CLEANUP_JSON json_t *space = get(rig, "/api/v1/namespaces/default", 200);
    assert_string_equal(json_get_text(space, "kind"), "Namespace");
    json_decref(get(rig, "/api/v1/namespaces/other", 404));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, operator_rig_setup, operator_rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(pieces_show_the_state_of_the_first_one),
        TEST(selectors_and_limit_go_together),
        TEST(a_token_whose_version_is_gone_brings_one_that_works),
        TEST(bad_positions_are_refused_in_words),
        TEST(a_version_is_exact_or_not_older),
        TEST(every_label_operator_selects),
        TEST(fields_select_also_absent_ones),
        TEST(the_first_type_that_is_served_decides_the_form),
        TEST(rows_bring_what_was_asked_for),
        TEST(events_come_in_pieces_and_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
