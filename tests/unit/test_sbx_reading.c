// Reading what sbx prints: versions, JSON among notices, lists, rules, and the words of a failure.
#include "controller/base/memory.h"
#include "reconcilers/drivers/sbx/sbx.h"
#include "tests/support/support.h"
#include <string.h>

// ---- versions ----------------------------------------------------------------------------------------------------------

static void the_version_is_found_in_every_known_form(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        struct version expected;
    } cases[] = {
        {"sbx version: v0.35.0 0123abcd\n", {0, 35, 0}},
        {"Client Version:  v0.28.3 abc\nServer Version:  v0.28.1 abc\n", {0, 28, 3}},
        {"sbx version: v0.34.0-rc1-536-gb55b84dc4\n", {0, 34, 0}},
        {"Starting sandboxd daemon...\nsocket: /run/1.2.3/x\nsbx version: v0.46.1 x", {0, 46, 1}},
        {"{\"client\": {\"version\": \"0.47.2\"}}", {0, 47, 2}},
        {"v1.0.0", {1, 0, 0}},
        {"v0.999999999999.0", {0, 999999, 0}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct version found = {-1, -1, -1};
        assert_int_equal(sbx_version_parse(cases[i].text, &found, NULL), 0);
        assert_int_equal(found.major, cases[i].expected.major);
        assert_int_equal(found.patch, cases[i].expected.patch);
        if (cases[i].expected.minor < 1000)
            assert_int_equal(found.minor, cases[i].expected.minor);
    }
}

static void what_is_no_version_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "v", "v1", "v1.2", "v1.2.", "rev1.2.3", "1.2", "version unknown", "v.1.2.3x"};
    struct version found;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (sbx_version_parse(texts[i], &found, NULL) == 0)
            fail_msg("'%s' was read as a version", texts[i]);
}

static void versions_are_ordered_by_number(void **state)
{
    (void)state;
    const struct version low = {0, 38, 9}, high = {0, 100, 0};
    struct error err = ERROR_INIT;
    assert_int_equal(sbx_version_compare(&low, &high), -1);
    assert_int_equal(sbx_version_compare(&high, &low), 1);
    assert_int_equal(sbx_version_compare(&low, &low), 0);
    assert_ok(sbx_version_check(&low, &err));
    assert_error(sbx_version_check(&(struct version){0, 37, 99}, &err), ERROR_UNSUPPORTED);
}

static void switches_are_used_from_their_version_on_unless_refused(void **state)
{
    (void)state;
    struct sbx sbx = {.version = {0, 44, 9}};
    assert_true(sbx_version_has(&sbx, FEATURE_DENY_NETWORK));
    assert_false(sbx_version_has(&sbx, FEATURE_SKILLS));
    sbx.version = (struct version){0, 45, 0};
    assert_true(sbx_version_has(&sbx, FEATURE_SKILLS));
    const char *said = "ERROR: unknown flag: --skills";
    const struct call_result result = {.end = CALL_EXITED, .exit_code = 1, .output = said, .output_len = strlen(said), .printed = "", .errors = said};
    assert_true(sbx_version_drop_refused(&sbx, &result));
    assert_false(sbx_version_has(&sbx, FEATURE_SKILLS));
    assert_true(sbx_version_has(&sbx, FEATURE_PULL));
    assert_false(sbx_version_drop_refused(&sbx, &result)); // once is enough
}

// ---- JSON --------------------------------------------------------------------------------------------------------------

static json_t *find_json(const char *text)
{
    json_t *json = NULL;
    return sbx_json_find(text, strlen(text), &json, NULL) == 0 ? json : NULL;
}

static void json_is_found_behind_and_before_notices(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"sandboxes\":[]}",
        "Starting sandboxd daemon...\n{\"sandboxes\":[]}\n",
        "[notice] {read} this: [1, \n{\"sandboxes\": []} A new version is there {sigh}\n",
        "\"quoted { brace\"\n{\"sandboxes\":[], \"note\": \"a } and a \\\" within\"}",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CLEANUP_JSON json_t *json = find_json(texts[i]);
        if (json == NULL || json_object_get(json, "sandboxes") == NULL)
            fail_msg("no JSON was found in: %s", texts[i]);
    }
}

static void text_without_whole_json_has_none(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "No sandboxes found", "{\"sandboxes\":[", "{{{{{", "[}]", "{\"a\":1,\"a\":2}", "\"{", "{\"a\\"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CLEANUP_JSON json_t *json = find_json(texts[i]);
        if (json)
            fail_msg("JSON was found in: %s", texts[i]);
    }
    static char many[100001];
    memset(many, '[', sizeof(many) - 1);
    assert_null(find_json(many));
}

static void a_list_within_something_cut_off_or_too_large_is_not_taken_for_the_whole(void **state)
{
    (void)state;
    assert_null(find_json("{\"warnings\":[],\"sandboxes\":[{\"name\":\"a\""));
    assert_null(find_json("note: {\"sandboxes\":[{\"ports\":[]},"));
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(4 * 1024 * 1024);
    buffer_append_text(&text, "{\"warnings\":[],\"sandboxes\":[{}");
    for (int i = 0; i < 400000; i++)
        buffer_append_text(&text, ",{}");
    buffer_append_text(&text, "]}");
    assert_null(find_json(buffer_text(&text)));
    memset(text.data, '\n', text.len); // every line begins something that does not end
    for (size_t i = 0; i < text.len; i += 2)
        text.data[i] = '[';
    assert_null(find_json(buffer_text(&text)));
}

static void lists_are_read_in_the_old_shape_too(void **state)
{
    (void)state;
    struct sandbox_row_list rows;
    struct error err = ERROR_INIT;
    CLEANUP_JSON json_t *json = find_json("[{\"name\":\"a\",\"state\":\"running\"},{\"name\":\"b\"},{\"x\":1}]");
    assert_ok(sbx_sandbox_rows_read(json, &rows, &err));
    assert_int_equal(rows.count, 2);
    assert_string_equal(sbx_sandbox_row_find(&rows, "a")->status, "running");
    assert_string_equal(sbx_sandbox_row_find(&rows, "b")->status, "unknown");
    assert_null(sbx_sandbox_row_find(&rows, "c"));
    sbx_sandbox_rows_free(&rows);
}

static void a_list_of_something_else_is_no_empty_list(void **state)
{
    (void)state;
    static const char *const texts[] = {"{}", "{\"sandboxes\":null}", "{\"error\":\"x\"}", "{\"sandboxes\":[{\"id\":\"1\"}]}", "[1]"};
    struct sandbox_row_list rows;
    struct error err = ERROR_INIT;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CLEANUP_JSON json_t *json = find_json(texts[i]);
        assert_error(sbx_sandbox_rows_read(json, &rows, &err), ERROR_INVALID);
    }
}

static void only_tcp_ports_with_sane_numbers_are_read(void **state)
{
    (void)state;
    static struct port_row_list rows;
    struct error err = ERROR_INIT;
    CLEANUP_JSON json_t *json = find_json("[{\"host_ip\":\"127.0.0.1\",\"host_port\":8080,\"sandbox_port\":3000,\"protocol\":\"tcp4\"},"
                                          "{\"host_ip\":\"::1\",\"host_port\":8081,\"sandbox_port\":3000,\"protocol\":\"tcp\",\"new\":1},"
                                          "{\"host_port\":8082,\"sandbox_port\":3001},"
                                          "{\"host_ip\":\"127.0.0.1\",\"host_port\":53,\"sandbox_port\":53,\"protocol\":\"udp4\"},"
                                          "{\"host_ip\":\"127.0.0.1\",\"host_port\":70000,\"sandbox_port\":1},{\"host_ip\":5},7]");
    assert_ok(sbx_port_rows_read(json, &rows, &err));
    assert_int_equal(rows.count, 3);
    assert_true(sbx_port_row_is_loopback(&rows.items[0]));
    assert_true(sbx_port_row_is_loopback(&rows.items[1]));
    assert_false(sbx_port_row_is_loopback(&rows.items[2])); // nobody says where
}

// ---- policy ------------------------------------------------------------------------------------------------------------

static void only_an_active_denial_of_this_sandbox_counts(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        bool is_denied;
    } cases[] = {
        {"{\"decision\":\"deny\",\"resource_type\":\"network\",\"applies_to\":\"sandbox:n\",\"status\":\"active\",\"resources\":[\"x\",\"h\"]}", true},
        {"{\"decision\":\"deny\",\"applies_to\":\"all\",\"resources\":[\"h\"]}", true},
        {"{\"decision\":\"deny\",\"scope\":\"global\",\"resources\":[\"h\"]}", true},
        {"{\"decision\":\"allow\",\"applies_to\":\"sandbox:n\",\"resources\":[\"h\"]}", false},
        {"{\"decision\":\"deny\",\"applies_to\":\"sandbox:other\",\"resources\":[\"h\"]}", false},
        {"{\"decision\":\"deny\",\"applies_to\":\"sandbox:n\",\"status\":\"inactive\",\"resources\":[\"h\"]}", false},
        {"{\"decision\":\"deny\",\"applies_to\":\"sandbox:n\",\"resource_type\":\"filesystem:read\",\"resources\":[\"h\"]}", false},
        {"{\"decision\":\"deny\",\"applies_to\":\"sandbox:n\",\"resources\":[\"h:443\"]}", false},
        {"{\"decision\":\"deny\",\"resources\":[\"h\"]}", false},
        {"{\"applies_to\":\"sandbox:n\",\"resources\":[\"h\"]}", false},
        {"{\"decision\":\"deny\",\"applies_to\":\"sandbox:n\",\"resources\":\"h\"}", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP_FREE char *text = mem_format("{\"rules\":[7,%s]}", cases[i].rule);
        CLEANUP_JSON json_t *json = find_json(text);
        if (sbx_policy_denies(json, "n", "h") != cases[i].is_denied)
            fail_msg("judged wrongly: %s", cases[i].rule);
    }
}

// ---- words -------------------------------------------------------------------------------------------------------------

#define SUBJECT "c2s-01234567-x-1"

static struct call_result failed(const char *printed, const char *errors, char **ret_both)
{
    *ret_both = mem_format("%s%s", printed, errors);
    return (struct call_result){.end = CALL_EXITED, .exit_code = 1, .output = *ret_both, .output_len = strlen(*ret_both), .printed = printed,
                                .printed_len = strlen(printed), .errors = errors, .errors_len = strlen(errors), .verb = "create", .subject = SUBJECT};
}

static void the_error_line_of_either_stream_is_the_reason(void **state)
{
    (void)state;
    static const struct {
        const char *printed, *errors, *reason;
    } cases[] = {
        {"", "notice\nERROR: it is broken\nmore", "it is broken"},
        {"Error: it is broken\n", "warning: unrelated\n", "it is broken"},
        {"", "just words\n\n", "just words"},
        {"", "ERROR: sandbox '" SUBJECT "' is odd", "sandbox 'NAME' is odd"},
        {"", "ERROR: bell \a and \xff", "\\u0007"},
        {"", "", "printed nothing"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct error err = ERROR_INIT;
        CLEANUP_FREE char *both = NULL;
        const struct call_result result = failed(cases[i].printed, cases[i].errors, &both);
        assert_int_equal(sbx_call_judge(&result, &err), -1);
        if (strstr(err.message, cases[i].reason) == NULL || strstr(err.message, SUBJECT))
            fail_msg("case %zu is worded: %s", i, err.message);
    }
}

static void known_causes_have_their_code_and_way_out(void **state)
{
    (void)state;
    static const struct {
        const char *errors;
        enum error_code code;
        const char *hint;
    } cases[] = {
        {"ERROR: request failed: 401 Unauthorized: docker session has expired: x", ERROR_UNAVAILABLE, "run: sbx login"},
        {"ERROR: no valid user session found, please sign in to Docker to proceed", ERROR_UNAVAILABLE, "run: sbx login"},
        {"You are not authenticated to Docker", ERROR_UNAVAILABLE, "run: sbx login"},
        {"Docker Sandboxes has been updated and needs to restart.", ERROR_UNAVAILABLE, "sbx daemon restart"},
        {"ERROR: 409 Conflict", ERROR_EXISTS, ""},
        {"ERROR: sandbox x already exists", ERROR_EXISTS, ""},
        {"ERROR: no sandbox named 'x'", ERROR_NOT_FOUND, ""},
        {"ERROR: stdin is not a terminal; use --force", ERROR_UNAVAILABLE, "terminal"},
        {"ERROR: 500 Internal Server Error: backend unavailable", ERROR_UNAVAILABLE, "sbx daemon restart"},
        {"ERROR: write: no space left on device", ERROR_DISK, "free"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct error err = ERROR_INIT;
        CLEANUP_FREE char *both = NULL;
        const struct call_result result = failed("", cases[i].errors, &both);
        sbx_call_judge(&result, &err);
        if (err.code != cases[i].code || strstr(err.hint, cases[i].hint) == NULL)
            fail_msg("%s is %d: %s (%s)", cases[i].errors, err.code, err.message, err.hint);
    }
}

static void gone_is_only_what_is_said_of_this_sandbox(void **state)
{
    (void)state;
    static const struct {
        const char *errors;
        bool is_absent;
    } cases[] = {
        {"ERROR: no sandbox named '" SUBJECT "'", true},
        {"Error: sandbox '" SUBJECT "' not found", true},
        {"ERROR: no such sandbox", true},
        {"ERROR: socket not found", false},
        {"ERROR: backend unavailable", false},
        {"", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP_FREE char *both = NULL;
        struct call_result result = failed("", cases[i].errors, &both);
        assert_int_equal(sbx_call_says_absent(&result), cases[i].is_absent);
        result.end = CALL_TIMED_OUT;
        assert_false(sbx_call_says_absent(&result));
    }
}

// ---- inside ------------------------------------------------------------------------------------------------------------

static void the_root_is_read_between_the_markers_whatever_it_holds(void **state)
{
    (void)state;
    static const char *const roots[] = {"/work", "/with space", "/new\nline", "/gr\303\266\303\237e", "/"};
    for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
        struct error err = ERROR_INIT;
        struct inside inside = {0};
        CLEANUP_FREE char *text = mem_format("a notice\nMARK\n%s\nMARK\nhas git\nhas docker\nMARK\n", roots[i]);
        struct call_result result = {.end = CALL_EXITED, .printed = text, .output = text, .errors = "", .verb = "exec"};
        assert_ok(sbx_inside_read(&result, "MARK", &inside, &err));
        assert_string_equal(inside.root, roots[i]);
        assert_true(inside.has_git && inside.has_docker && !inside.has_codexpro && !inside.is_checkout);
        sbx_inside_free(&inside);
    }
}

static void words_without_the_markers_are_not_from_inside(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "/work\n", "MARK\n/work\nMARK\n", "MARKMARKMARK", "MARK\nrelative\nMARK\nMARK\n", "MARK\n/\xff\nMARK\nMARK\n", "MARK\n\nMARK\nMARK\n"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct error err = ERROR_INIT;
        struct inside inside = {0};
        struct call_result result = {.end = CALL_EXITED, .printed = texts[i], .output = texts[i], .errors = "", .verb = "exec"};
        assert_true(sbx_inside_read(&result, "MARK", &inside, &err) < 0);
        assert_true(err.message[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_version_is_found_in_every_known_form),
        cmocka_unit_test(what_is_no_version_is_refused),
        cmocka_unit_test(versions_are_ordered_by_number),
        cmocka_unit_test(switches_are_used_from_their_version_on_unless_refused),
        cmocka_unit_test(json_is_found_behind_and_before_notices),
        cmocka_unit_test(text_without_whole_json_has_none),
        cmocka_unit_test(a_list_within_something_cut_off_or_too_large_is_not_taken_for_the_whole),
        cmocka_unit_test(lists_are_read_in_the_old_shape_too),
        cmocka_unit_test(a_list_of_something_else_is_no_empty_list),
        cmocka_unit_test(only_tcp_ports_with_sane_numbers_are_read),
        cmocka_unit_test(only_an_active_denial_of_this_sandbox_counts),
        cmocka_unit_test(the_error_line_of_either_stream_is_the_reason),
        cmocka_unit_test(known_causes_have_their_code_and_way_out),
        cmocka_unit_test(gone_is_only_what_is_said_of_this_sandbox),
        cmocka_unit_test(the_root_is_read_between_the_markers_whatever_it_holds),
        cmocka_unit_test(words_without_the_markers_are_not_from_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
