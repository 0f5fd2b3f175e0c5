#include "api/tools/schema_check.h"
#include "tests/support/support.h"
#include <string.h>

static const char schema_text[] =
    "{\"type\":\"object\",\"required\":[\"id\"],\"additionalProperties\":false,\"properties\":{"
    "\"id\":{\"type\":\"string\",\"minLength\":2,\"maxLength\":4},\"n\":{\"type\":\"integer\",\"minimum\":1,"
    "\"maximum\":9},"
    "\"mode\":{\"type\":\"string\",\"enum\":[\"a\",\"b\"]},\"flag\":{\"type\":\"boolean\",\"default\":true},"
    "\"code\":{\"type\":[\"integer\",\"null\"]},\"list\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
    "\"properties\":{\"x\":{\"type\":\"number\"}}}},\"flags\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"boolean\"}}}}";

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
    if (schema_check(schema, value, SCHEMA_ARGUMENTS, &err) < 0)
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
        {"5", "arguments must be an object, not 5"},
        {"{}", "id is required"},
        {"{\"id\":5}", "id must be a string of 2 to 4 characters, not 5"},
        {"{\"id\":null}", "id must be a string of 2 to 4 characters, not null"},
        {"{\"id\":\"\"}", "id must not be empty"},
        {"{\"id\":\"a\"}", "id must be a string of 2 to 4 characters, not of 1"},
        {"{\"id\":\"abcde\"}", "id must be a string of 2 to 4 characters, not of 5"},
        {"{\"id\":\"ab\",\"n\":0}", "n must be an integer from 1 to 9, not 0"},
        {"{\"id\":\"ab\",\"n\":10}", "n must be an integer from 1 to 9, not 10"},
        {"{\"id\":\"ab\",\"n\":10.0}", "n must be an integer from 1 to 9, not 10"},
        {"{\"id\":\"ab\",\"n\":1.5}", "n must be an integer from 1 to 9, not 1.5"},
        {"{\"id\":\"ab\",\"n\":1e300}", "n must be an integer from 1 to 9, not 1.0000000000000001e+300"},
        {"{\"id\":\"ab\",\"n\":\"1\"}", "n must be an integer from 1 to 9, not a string"},
        {"{\"id\":\"ab\",\"mode\":\"c\"}", "mode must be one of: a, b"},
        {"{\"id\":\"ab\",\"mode\":1}", "mode must be one of: a, b, not 1"},
        {"{\"id\":\"ab\",\"flag\":0}", "flag must be a boolean (true or false), not 0"},
        {"{\"id\":\"ab\",\"code\":\"x\"}", "code must be an integer or a null, not a string"},
        {"{\"id\":\"ab\",\"list\":[{\"x\":\"y\"}]}", "list[0].x must be a number, not a string"},
        {"{\"id\":\"ab\",\"flags\":{\"z\":0}}", "flags.z must be a boolean (true or false), not 0"},
        {"{\"id\":\"ab\",\"evil\":1}", "unknown argument evil"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(check(cases[i].value), cases[i].message);
}

static void the_hint_is_what_the_schema_says_of_the_argument(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    json_t *schema = parse("{\"type\":\"object\",\"required\":[\"a\"],\"additionalProperties\":false,\"properties\":{\"a\":{"
                           "\"type\":\"string\",\"description\":\"What A is.\"},\"b\":{}}}");
    json_t *missing = json_object(), *wrong = parse("{\"a\":5}"), *unknown = parse("{\"a\":\"\",\"c\":1}");
    assert_error(schema_check(schema, missing, SCHEMA_ARGUMENTS, &err), ERROR_INVALID);
    assert_string_equal(err.hint, "What A is.");
    err = (struct error)ERROR_INIT;
    assert_error(schema_check(schema, wrong, SCHEMA_ARGUMENTS, &err), ERROR_INVALID);
    assert_string_equal(err.hint, "What A is.");
    assert_error(schema_check(schema, unknown, SCHEMA_ARGUMENTS, &err), ERROR_INVALID);
    assert_string_equal(err.hint, "leave it out; accepted are: a, b");
    json_decref(schema);
    json_decref(missing);
    json_decref(wrong);
    json_decref(unknown);
}

static void whole_numbers_become_integers_where_one_is_wanted(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    json_t *schema = parse("{\"properties\":{\"n\":{\"type\":\"integer\"},\"x\":{\"type\":\"number\"},\"l\":{\"items\":{\"type\":[\"integer\",\"null\"]}}}}");
    json_t *value = parse("{\"n\":5.0,\"x\":5.0,\"l\":[-2e0,null]}");
    assert_ok(schema_check(schema, value, SCHEMA_ARGUMENTS, &err));
    assert_int_equal(json_get_int(value, "n", 0), 5);
    assert_true(json_is_real(json_object_get(value, "x")));
    assert_int_equal(json_integer_value(json_array_get(json_object_get(value, "l"), 0)), -2);
    json_decref(schema);
    json_decref(value);
}

static void a_result_loses_what_nobody_was_promised_and_nothing_else(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    json_t *schema = parse("{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"a\":{\"type\":\"object\",\"additionalProperties\":"
                           "false,\"properties\":{\"b\":{}}},\"l\":{\"items\":{\"additionalProperties\":false,\"properties\":{\"c\":{}}}},\"open\":{}}}");
    json_t *value = parse("{\"a\":{\"b\":1,\"x\":{}},\"l\":[{\"c\":1,\"y\":2},{\"y\":[3]},{}],\"open\":{\"z\":1},\"secret\":\"s\"}");
    json_t *left = parse("{\"a\":{\"b\":1},\"l\":[{\"c\":1},{},{}],\"open\":{\"z\":1}}");
    assert_ok(schema_check(schema, value, SCHEMA_RESULT, &err));
    assert_true(json_equal(value, left));
    json_decref(schema);
    json_decref(value);
    json_decref(left);
}

static void too_many_values_are_refused(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    json_t *schema = parse("{\"items\":{\"type\":\"null\"}}"), *value = json_array();
    for (size_t i = 0; i < SCHEMA_VALUES_MAX; i++)
        json_array_append_new(value, json_null());
    assert_error(schema_check(schema, value, SCHEMA_RESULT, &err), ERROR_TOO_LARGE);
    json_array_remove(value, 0);
    assert_ok(schema_check(schema, value, SCHEMA_RESULT, &err));
    json_decref(schema);
    json_decref(value);
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
                                      "{\"additionalProperties\":5}",
                                      "{\"additionalProperties\":{\"$ref\":\"x\"}}",
                                      "{\"minLength\":-1}",
                                      "{\"enum\":[]}",
                                      "{\"enum\":[5]}"};
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
        cmocka_unit_test(the_hint_is_what_the_schema_says_of_the_argument),
        cmocka_unit_test(whole_numbers_become_integers_where_one_is_wanted),
        cmocka_unit_test(a_result_loses_what_nobody_was_promised_and_nothing_else),
        cmocka_unit_test(too_many_values_are_refused),
        cmocka_unit_test(hostile_names_are_cut_in_messages),
        cmocka_unit_test(other_keywords_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
