#include "api/tools/schema_check.h"
#include "tests/support/support.h"
#include <string.h>

static const char schema_text[] =
    "{\"type\":\"object\",\"required\":[\"id\"],\"additionalProperties\":false,\"properties\":{"
    "\"id\":{\"type\":\"string\",\"minLength\":2,\"maxLength\":4},\"n\":{\"type\":\"integer\",\"minimum\":1,"
    "\"maximum\":9},"
    "\"mode\":{\"type\":\"string\",\"enum\":[\"a\",\"b\"]},\"flag\":{\"type\":\"boolean\",\"default\":true},"
    "\"code\":{\"type\":[\"integer\",\"null\"]},\"list\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
    "\"properties\":{\"x\":{\"type\":\"number\"}}}}}}";

static json_t *parse(const char *text)
{
    json_t *value = NULL;
    struct error err = ERROR_INIT;
    assert_ok(json_parse(text, strlen(text), &value, &err));
    return value;
}

// The message, or "" if it passes.
static const char *check(const char *text)
{
    static struct error err;
    json_t *schema = parse(schema_text), *value = parse(text);
    err = (struct error)ERROR_INIT;
    if (schema_check(schema, value, &err) < 0)
        assert_int_equal(err.code, ERROR_INVALID);
    json_decref(schema);
    json_decref(value);
    return err.message;
}

static void values_that_fit_pass(void **state)
{
    (void)state;
    assert_string_equal(check("{\"id\":\"ab\"}"), "");
    assert_string_equal(check("{\"id\":\"\\u00e9\\u00e9\\u00e9\\u00e9\",\"n\":9,\"mode\":\"b\",\"flag\":"
                              "false,\"code\":null,\"list\":[{\"x\":1},{\"x\":1.5},{\"y\":0}]}"),
                        "");
}

static void the_first_thing_wrong_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *value, *message;
    } cases[] = {
        {"5", "arguments must be an object"},
        {"{}", "id is required"},
        {"{\"id\":5}", "id must be a string"},
        {"{\"id\":null}", "id must be a string"},
        {"{\"id\":\"\"}", "id must not be empty"},
        {"{\"id\":\"a\"}", "id must have at least 2 characters"},
        {"{\"id\":\"abcde\"}", "id must have at most 4 characters"},
        {"{\"id\":\"ab\",\"n\":0}", "n must be at least 1"},
        {"{\"id\":\"ab\",\"n\":10}", "n must be at most 9"},
        {"{\"id\":\"ab\",\"n\":1.0}", "n must be an integer"},
        {"{\"id\":\"ab\",\"n\":\"1\"}", "n must be an integer"},
        {"{\"id\":\"ab\",\"mode\":\"c\"}", "mode must be one of: a, b"},
        {"{\"id\":\"ab\",\"flag\":0}", "flag must be a boolean"},
        {"{\"id\":\"ab\",\"code\":\"x\"}", "code must be integer or null"},
        {"{\"id\":\"ab\",\"list\":[{\"x\":\"y\"}]}", "list[0].x must be a number"},
        {"{\"id\":\"ab\",\"evil\":1}", "unknown argument evil"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(check(cases[i].value), cases[i].message);
}

static void hostile_names_are_cut_in_messages(void **state)
{
    (void)state;
    char text[5000] = "{\"id\":\"ab\",\"";
    memset(text + strlen(text), 'x', 4000);
    strcat(text, "\":1}");
    assert_true(strlen(check(text)) < 120);
}

static void other_keywords_are_refused(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    static const char *const bad[] = {"{\"pattern\":\"x\"}",
                                      "{\"type\":\"text\"}",
                                      "{\"type\":[]}",
                                      "{\"$ref\":\"#\"}",
                                      "{\"properties\":{\"a\":{\"format\":\"x\"}}}",
                                      "{\"items\":{\"anyOf\":[]}}",
                                      "{\"minimum\":\"1\"}",
                                      "{\"additionalProperties\":{}}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        json_t *schema = parse(bad[i]);
        assert_error(schema_check_keywords(schema, &err), ERROR_UNSUPPORTED);
        json_decref(schema);
    }
    json_t *schema = parse(schema_text);
    assert_ok(schema_check_keywords(schema, &err));
    json_decref(schema);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_that_fit_pass),
        cmocka_unit_test(the_first_thing_wrong_is_named),
        cmocka_unit_test(hostile_names_are_cut_in_messages),
        cmocka_unit_test(other_keywords_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
