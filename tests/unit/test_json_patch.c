// RFC 6902 and 6901, with the examples of their appendices and what hostile patches try.
#include "tests/support/support.h"
#include "api/operator/json_patch.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include <string.h>

static json_t *parse(const char *text)
{
    json_t *json = NULL;
    struct error err = ERROR_INIT;
    if (json_parse(text, strlen(text), &json, &err) < 0)
        fail_msg("%s: %s", text, err.message);
    return json;
}

static void patches_give_what_the_standard_says(void **state)
{
    (void)state;
    static const struct {
        const char *document, *patch, *wanted; // NULL: refused, and the document stays
    } rows[] = {
        {"{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/baz\",\"value\":\"qux\"}]", "{\"baz\":\"qux\",\"foo\":\"bar\"}"},
        {"{\"foo\":[\"bar\",\"baz\"]}", "[{\"op\":\"add\",\"path\":\"/foo/1\",\"value\":\"qux\"}]", "{\"foo\":[\"bar\",\"qux\",\"baz\"]}"},
        {"{\"foo\":[\"bar\"]}", "[{\"op\":\"add\",\"path\":\"/foo/-\",\"value\":[\"abc\",\"def\"]}]", "{\"foo\":[\"bar\",[\"abc\",\"def\"]]}"},
        {"{\"baz\":\"qux\",\"foo\":\"bar\"}", "[{\"op\":\"remove\",\"path\":\"/baz\"}]", "{\"foo\":\"bar\"}"},
        {"{\"foo\":[\"bar\",\"qux\",\"baz\"]}", "[{\"op\":\"remove\",\"path\":\"/foo/1\"}]", "{\"foo\":[\"bar\",\"baz\"]}"},
        {"{\"baz\":\"qux\"}", "[{\"op\":\"replace\",\"path\":\"/baz\",\"value\":\"boo\"}]", "{\"baz\":\"boo\"}"},
        {"{\"foo\":{\"a\":1},\"qux\":{}}", "[{\"op\":\"move\",\"from\":\"/foo/a\",\"path\":\"/qux/b\"}]", "{\"foo\":{},\"qux\":{\"b\":1}}"},
        {"{\"foo\":[\"all\",\"grass\",\"cows\",\"eat\"]}", "[{\"op\":\"move\",\"from\":\"/foo/1\",\"path\":\"/foo/3\"}]",
         "{\"foo\":[\"all\",\"cows\",\"eat\",\"grass\"]}"},
        {"{\"/\":9,\"~1\":10}", "[{\"op\":\"test\",\"path\":\"/~01\",\"value\":10}]", "{\"/\":9,\"~1\":10}"},
        {"{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":1.0}]", "{\"a\":1}"},
        {"{\"a\":{\"b\":[1,{\"c\":null}]}}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":{\"b\":[1.0,{\"c\":null}]}}]", "{\"a\":{\"b\":[1,{\"c\":null}]}}"},
        {"{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":\"1\"}]", NULL},
        {"{\"foo\":null}", "[{\"op\":\"test\",\"path\":\"/foo\",\"value\":null}]", "{\"foo\":null}"},
        {"{\"foo\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":{\"x\":2}}]", "{\"x\":2}"},
        {"{\"\":1}", "[{\"op\":\"replace\",\"path\":\"/\",\"value\":2}]", "{\"\":2}"},
        {"{\"foo\":1}", "[{\"op\":\"add\",\"path\":\"/foo\",\"value\":null}]", "{\"foo\":null}"},
        {"{\"a\":[1]}", "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"},{\"op\":\"add\",\"path\":\"/b/-\",\"value\":2}]", "{\"a\":[1],\"b\":[1,2]}"},
        {"{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/baz/bat\",\"value\":\"qux\"}]", NULL},
        {"{\"foo\":[1]}", "[{\"op\":\"add\",\"path\":\"/foo/2\",\"value\":2}]", NULL},
        {"{\"foo\":[1]}", "[{\"op\":\"remove\",\"path\":\"/foo/-\"}]", NULL},
        {"{\"foo\":[1]}", "[{\"op\":\"remove\",\"path\":\"/foo/-1\"}]", NULL},
        {"{\"foo\":[1]}", "[{\"op\":\"remove\",\"path\":\"/foo/00\"}]", NULL},
        {"{\"foo\":{\"a\":1}}", "[{\"op\":\"move\",\"from\":\"/foo\",\"path\":\"/foo/a\"}]", NULL},
        {"{\"foo\":1}", "[{\"op\":\"remove\",\"path\":\"/foo\"},{\"op\":\"test\",\"path\":\"/foo\",\"value\":1}]", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error err = ERROR_INIT;
        CLEANUP_JSON json_t *document = parse(rows[i].document);
        CLEANUP_JSON json_t *patch = parse(rows[i].patch);
        CLEANUP_JSON json_t *wanted = parse(rows[i].wanted ? rows[i].wanted : rows[i].document);
        int result = json_patch_apply(&document, patch, &err);
        if ((result == 0) != (rows[i].wanted != NULL) || !json_equal(document, wanted))
            fail_msg("%s on %s: %s", rows[i].patch, rows[i].document, err.message);
    }
}

static void a_patch_shares_nothing_with_the_document_it_makes(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    CLEANUP_JSON json_t *document = parse("{}");
    CLEANUP_JSON json_t *patch = parse("[{\"op\":\"add\",\"path\":\"/a\",\"value\":{}},{\"op\":\"add\",\"path\":\"/a/b\",\"value\":1}]");
    CLEANUP_JSON json_t *before = json_deep_copy(patch);
    assert_ok(json_patch_apply(&document, patch, &err));
    assert_true(json_equal(patch, before));
}

// Each doubles the document: a few dozen of them would fill any memory.
static void copies_that_grow_without_end_are_refused(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    CLEANUP_JSON json_t *document = parse("{\"a\":{\"x\":\"0123456789\"}}");
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(1 << 16);
    for (int i = 0; i < 60; i++)
        buffer_format(&text, "%s{\"op\":\"copy\",\"from\":\"\",\"path\":\"/n%d\"}", i ? "," : "[", i);
    buffer_append_text(&text, "]");
    CLEANUP_JSON json_t *patch = parse(buffer_text(&text));
    assert_error(json_patch_apply(&document, patch, &err), ERROR_TOO_LARGE);
}

static size_t count_values(json_t *value)
{
    size_t count = 1, i;
    const char *key;
    json_t *item;
    json_object_foreach(value, key, item) count += count_values(item);
    json_array_foreach(value, i, item) count += count_values(item);
    return count;
}

// A list of two bytes takes fifty times that in memory.
static void copies_are_bounded_in_values_too_whatever_is_copied(void **state)
{
    (void)state;
    static const char *const documents[] = {"[]", "[[]]", "[{}]", "[1]", "[\"\"]", "[null,true,[[[]]]]"};
    CLEANUP_JSON json_t *doubling = parse("[{\"op\":\"copy\",\"from\":\"\",\"path\":\"/-\"}]");
    for (size_t i = 0; i < ARRAY_LEN(documents); i++) {
        struct error err = ERROR_INIT;
        CLEANUP_JSON json_t *patch = json_array();
        int r = 0;
        for (size_t n = 1; r == 0 && n < 40; n++) {
            CLEANUP_JSON json_t *document = parse(documents[i]);
            json_array_extend(patch, doubling);
            r = json_patch_apply(&document, patch, &err);
            assert_true(count_values(document) <= JSON_PATCH_MAX_COPIED_BYTES / JSON_PATCH_VALUE_BYTES + 8);
        }
        assert_error(r, ERROR_TOO_LARGE);
    }
}

static void nesting_without_end_is_refused(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    CLEANUP_JSON json_t *document = parse("{\"a\":{}}");
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(1 << 20), path = BUFFER_INIT(1 << 16);
    buffer_append_text(&text, "[{\"op\":\"add\",\"path\":\"/a\",\"value\":{}}");
    for (int i = 0; i < 100; i++) {
        buffer_append_text(&path, "/a");
        buffer_format(&text, ",{\"op\":\"add\",\"path\":\"%s\",\"value\":{}}", buffer_text(&path));
    }
    buffer_append_text(&text, "]");
    CLEANUP_JSON json_t *patch = parse(buffer_text(&text));
    assert_error(json_patch_apply(&document, patch, &err), ERROR_TOO_LARGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patches_give_what_the_standard_says),
        cmocka_unit_test(a_patch_shares_nothing_with_the_document_it_makes),
        cmocka_unit_test(copies_that_grow_without_end_are_refused),
        cmocka_unit_test(copies_are_bounded_in_values_too_whatever_is_copied),
        cmocka_unit_test(nesting_without_end_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
