// Paths, failures as Status, and tables of the operator API.
#include "api/operator/internal.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include "controller/fields/fields.h"
#include "tests/support/support.h"
#include <string.h>

// The pattern with something in each place.
static char *fill(const char *pattern)
{
    CLEANUP(buffer_free) struct buffer path = BUFFER_INIT(1024);
    for (const char *at = pattern; *at; at++) {
        if (*at != '{') {
            buffer_append_char(&path, *at);
            continue;
        }
        buffer_append_text(&path, strncmp(at, "{kind}", 6) == 0 ? "sandboxes" : "one");
        at = strchr(at, '}');
    }
    return buffer_take_string(&path);
}

static void every_route_is_found_by_its_own_pattern(void **state)
{
    (void)state;
    size_t count;
    const struct route *routes = route_table(&count);
    for (size_t i = 0; i < count; i++) {
        CLEANUP_FREE char *path = fill(routes[i].pattern);
        struct route_match found;
        route_find(routes[i].method, path, &found);
        if (found.route != &routes[i])
            fail_msg("%s %s finds another route", routes[i].method, path);
        route_match_clear(&found);
    }
    struct route_match match;
    route_find("PATCH", "/apis/chat2shell.dev/v1/sandboxes/dev", &match);
    assert_non_null(match.route);
    assert_int_equal(match.kind, KIND_SANDBOX);
    assert_string_equal(match.name, "dev");
    route_match_clear(&match);
    route_find("POST", "/chat2shell/v1/sandboxes/dev/exec/exec_1/read", &match);
    assert_string_equal(match.name, "dev");
    assert_string_equal(match.id, "exec_1");
    route_match_clear(&match);
}

static void other_paths_have_no_route(void **state)
{
    (void)state;
    static const char *const paths[] = {"",
                                        "/",
                                        "//",
                                        "/apis/",
                                        "/apis/chat2shell.dev/v1/",
                                        "/apis/chat2shell.dev/v1/sandboxes/",
                                        "/apis/chat2shell.dev/v1/sandboxe",
                                        "/apis/chat2shell.dev/v1/Sandboxes",
                                        "/apis/chat2shell.dev/v1/sandboxes/a/b",
                                        "/apis/chat2shell.dev/v2/sandboxes",
                                        "apis/chat2shell.dev/v1/sandboxes",
                                        "/chat2shell/v1/status/",
                                        "/chat2shell/v1/sandboxes//exec"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct route_match match;
        route_find("GET", paths[i], &match);
        if (match.route || match.allow)
            fail_msg("'%s' has a route", paths[i]);
    }
}

static void a_known_path_tells_its_methods(void **state)
{
    (void)state;
    static const struct {
        const char *path, *allow;
    } rows[] = {
        {"/apis/chat2shell.dev/v1/sandboxes", "GET, POST, DELETE"},
        {"/apis/chat2shell.dev/v1/sandboxes/dev", "GET, PUT, PATCH, DELETE"},
        {"/chat2shell/v1/status", "GET"},
        {"/chat2shell/v1/stop", "POST"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct route_match match;
        route_find("OPTIONS", rows[i].path, &match);
        assert_null(match.route);
        assert_string_equal(match.allow, rows[i].allow);
    }
}

static void every_error_code_has_its_status(void **state)
{
    (void)state;
    for (int code = ERROR_NONE + 1; code < ERROR_CODE_COUNT; code++) {
        struct error err = {.code = (enum error_code)code, .message = "it failed", .hint = "do this"};
        int status = 0;
        CLEANUP_JSON json_t *json = status_to_json(0, &err, NULL, &status);
        assert_int_equal(status, error_meaning(err.code)->http_status);
        assert_int_equal(json_get_int(json, "code", 0), status);
        assert_true(*json_get_text(json, "reason"));
        assert_string_equal(json_get_text(json_object_get(json, "details"), "hint"), "do this");
        assert_string_equal(json_get_text(json_object_get(json, "details"), "code"),
                            error_meaning(err.code)->name);
    }
}

static void an_object_that_does_not_hold_tells_its_causes(void **state)
{
    (void)state;
    struct error err = {.code = ERROR_INVALID, .message = "spec.x: unknown"};
    CLEANUP_JSON json_t *causes =
        json_pack("[{s:s, s:s, s:s}]", "field", "spec.x", "message", "unknown", "reason", CAUSE_UNKNOWN);
    const struct status_about about = {.name = "dev", .kind = "sandboxes", .causes = causes};
    int status = 0;
    CLEANUP_JSON json_t *json = status_to_json(0, &err, &about, &status);
    assert_int_equal(status, 422);
    assert_string_equal(json_get_text(json, "reason"), "Invalid");
    assert_true(json_equal(json_object_get(json_object_get(json, "details"), "causes"), causes));
    assert_string_equal(json_get_text(json_object_get(json, "details"), "kind"), "sandboxes");
}

static void ages_read_as_kubectl_writes_them(void **state)
{
    (void)state;
    static const struct {
        int64_t s;
        const char *text;
    } rows[] = {{-5, "0s"},
                {0, "0s"},
                {119, "119s"},
                {120, "2m"},
                {130, "2m10s"},
                {599, "9m59s"},
                {600, "10m"},
                {10799, "179m"},
                {3 * 3600, "3h"},
                {3 * 3600 + 60, "3h1m"},
                {8 * 3600 + 60, "8h"},
                {47 * 3600, "47h"},
                {48 * 3600, "2d"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[AGE_TEXT_SIZE];
        age_format(rows[i].s * 1000, text);
        assert_string_equal(text, rows[i].text);
    }
}

static void a_table_of_every_kind_has_a_cell_for_each_column(void **state)
{
    (void)state;
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        CLEANUP_RECORD struct record *record = record_new((enum kind)kind);
        record->meta.name = mem_strdup("one");
        CLEANUP_JSON json_t *object = record_to_json(record);
        CLEANUP_FREE char *image = json_to_text(object);
        const struct rendering rendering = {RENDER_TABLE, INCLUDE_OBJECT};
        CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(1 << 20);
        struct rendering_list list = {&rendering, resource_of_kind((enum kind)kind), &text, {0}, 0};
        rendering_list_begin(&list);
        rendering_list_item(&list, (struct json_span){image, strlen(image)});
        rendering_list_end(&list, 7, NULL, -1);
        CLEANUP_JSON json_t *table = json_loads(buffer_text(&text), 0, NULL);
        size_t columns = json_array_size(json_object_get(table, "columnDefinitions"));
        const json_t *row = json_array_get(json_object_get(table, "rows"), 0);
        assert_true(columns >= 3);
        assert_int_equal(json_array_size(json_object_get(row, "cells")), columns);
        assert_string_equal(json_get_text(json_object_get(row, "object"), "kind"),
                            kind_info((enum kind)kind)->name);
        assert_string_equal(json_get_text(json_object_get(table, "metadata"), "resourceVersion"), "7");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_route_is_found_by_its_own_pattern),
        cmocka_unit_test(other_paths_have_no_route),
        cmocka_unit_test(a_known_path_tells_its_methods),
        cmocka_unit_test(every_error_code_has_its_status),
        cmocka_unit_test(an_object_that_does_not_hold_tells_its_causes),
        cmocka_unit_test(ages_read_as_kubectl_writes_them),
        cmocka_unit_test(a_table_of_every_kind_has_a_cell_for_each_column),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
