// What a body's text says before any JSON library reads it: the ids' raw text, and what breaks which limit.
#include "api/mcp/jsonrpc_text.h"
#include "controller/base/memory.h"
#include "tests/support/support.h"
#include <stdlib.h>
#include <string.h>

static char *read_id(const char *body, int *ret_code)
{
    struct jsonrpc_text text;
    struct jsonrpc_refusal refusal;
    if (jsonrpc_text_read(body, strlen(body), &text, &refusal) < 0) {
        assert_true(refusal.message[0] != '\0');
        *ret_code = refusal.code;
        return refusal.id_text;
    }
    *ret_code = 0;
    char *id = text.raw_count ? mem_strdup_or_null(text.raws[0].id) : NULL;
    jsonrpc_text_clear(&text);
    return id;
}

// The id that is read from the body; wanted_code 0: the body is taken.
static void assert_id(const char *body, int wanted_code, const char *wanted_id)
{
    int code;
    char *id = read_id(body, &code);
    if (code != wanted_code || !id != !wanted_id || (id && strcmp(id, wanted_id) != 0))
        fail_msg("%.200s: code %d, id %.200s", body, code, id ? id : "none");
    free(id);
}

static char *repeat(const char *unit, size_t count)
{
    size_t len = strlen(unit);
    char *text = mem_alloc(len * count + 1);
    for (size_t i = 0; i < count; i++)
        memcpy(text + i * len, unit, len);
    return text;
}

static void legal_ids_are_kept_byte_for_byte(void **state)
{
    (void)state;
    static const char *const ids[] = {"0",
                                      "-0",
                                      "-1",
                                      "9007199254740993",
                                      "9223372036854775807",
                                      "-9223372036854775808",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "18446744073709551616",
                                      "\"\"",
                                      "\"\\u0000\"",
                                      "\"a\\/b\\\\\\\"\"",
                                      "\"\\ud83d\\ude00\"",
                                      "\"\xf0\x9f\x98\x80\xe2\x80\xa8\x7f\"",
                                      "\"\\u00E9\"",
                                      "\"},]\""};
    static const char *const bodies[] = {"{\"id\":%s}", " \t\r\n{ \"id\" \n:\t%s , \"params\" : [ ] } ",
                                         "{\"\\u0069\\u0064\":%s}", "{\"params\":{\"id\":1},\"id\":%s}",
                                         "[{\"id\":%s},{\"id\":5}]"};
    for (size_t i = 0; i < ARRAY_LEN(ids) * ARRAY_LEN(bodies); i++) {
        const char *id = ids[i % ARRAY_LEN(ids)];
        char *body = mem_format(bodies[i / ARRAY_LEN(ids)], id);
        assert_id(body, 0, id);
        free(body);
    }
}

static void ids_of_other_kinds_are_not_legal(void **state)
{
    (void)state;
    static const char *const ids[] = {"null", "true", "false", "1.5", "1.0", "1e0", "-1E2", "[]", "{}", "[1]"};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        char *body = mem_format("{\"id\":%s}", ids[i]);
        assert_id(body, 0, NULL);
        free(body);
    }
    assert_id("{\"ID\":1,\"i\":2,\"idd\":3,\"\":4}", 0, NULL);
    assert_id("[[{\"id\":1}]]", 0, NULL);
}

static void an_id_may_be_as_long_as_its_limit_and_no_longer(void **state)
{
    (void)state;
    static const struct {
        const char *open, *unit;
        size_t fits;
    } cases[] = {{"", "7", JSONRPC_NUMBER_MAX_CHARACTERS}, {"\"", "x", JSONRPC_ID_STRING_MAX_BYTES - 2}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *longest = repeat(cases[i].unit, cases[i].fits);
        char *id = mem_format("%s%s%s", cases[i].open, longest, cases[i].open);
        char *fits = mem_format("{\"id\":%s}", id),
             *over = mem_format("{\"id\":%s%s%s%s}", cases[i].open, longest, cases[i].unit, cases[i].open);
        assert_id(fits, 0, id);
        assert_id(over, i ? 0 : JSONRPC_INVALID_REQUEST, NULL); // any number of that length is refused
        free(longest);
        free(id);
        free(fits);
        free(over);
    }
}

static void json_beyond_a_limit_is_refused_under_the_requests_own_id(void **state)
{
    (void)state;
    char *values = repeat(",1", JSONRPC_VALUES_MAX), *open = repeat("[", 100), *close = repeat("]", 100);
    char *many = mem_format("{\"id\":\"a\",\"x\":[1%s]}", values);
    char *deep = mem_format("{\"x\":%s\"]\\\"]\"%s,\"id\":\"a\"}", open, close);
    char *digits = repeat("9", 400), *big = mem_format("{\"id\":\"a\",\"x\":%s}", digits);
    const char *const bodies[] = {many,
                                  deep,
                                  big,
                                  "{\"id\":\"a\",\"x\":1e400}",
                                  "{\"x\":{\"k\\u0000\":1},\"id\":\"a\"}",
                                  "{\"id\":\"a\",\"x\":\"\\ud800\"}",
                                  "{\"id\":\"a\",\"x\":\"\\udc00\\ud800\"}",
                                  "{\"id\":\"a\",\"x\":\"\\ud800\\u0041\"}",
                                  "{\"id\":\"a\",\"x\":{\"y\":1,\"\\u0079\":2}}"};
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
        assert_id(bodies[i], JSONRPC_INVALID_REQUEST, "\"a\"");
    char *batch = mem_format("[%s]", big);
    assert_id(batch, JSONRPC_INVALID_REQUEST, NULL); // several messages, so none of their ids
    free(batch), free(values), free(open), free(close), free(many), free(deep), free(digits), free(big);
}

static void limits_begin_behind_their_border(void **state)
{
    (void)state;
    char *open = repeat("[", JSON_MAX_DEPTH - 1), *close = repeat("]", JSON_MAX_DEPTH - 1);
    char *fits = mem_format("{\"id\":1,\"x\":%s%s}", open, close);
    char *over = mem_format("{\"id\":1,\"x\":%s[]%s}", open, close);
    assert_id(fits, 0, "1");
    assert_id(over, JSONRPC_INVALID_REQUEST, "1");
    free(fits), free(over), free(open), free(close);
    char *values = repeat(",1", JSONRPC_VALUES_MAX - 4); // beside the object, the id, the array, its first
    fits = mem_format("{\"id\":1,\"x\":[1%s]}", values);
    over = mem_format("{\"id\":1,\"x\":[1,1%s]}", values);
    assert_id(fits, 0, "1");
    assert_id(over, JSONRPC_INVALID_REQUEST, "1");
    free(fits), free(over), free(values);
}

static void an_id_that_cannot_be_told_is_left_out(void **state)
{
    (void)state;
    assert_id("{\"id\":1,\"id\":1}", JSONRPC_INVALID_REQUEST, NULL);
    assert_id("{\"id\":1,\"\\u0069d\":2}", JSONRPC_INVALID_REQUEST, NULL);
    assert_id("{\"id\":\"\\ud800\"}", JSONRPC_INVALID_REQUEST, NULL);
}

static void texts_that_are_no_json_are_told_so_with_their_place(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        " ",
                                        "{",
                                        "}",
                                        "{}x",
                                        "{}{}",
                                        "[1,]",
                                        "{\"id\":1,}",
                                        "{\"id\" 1}",
                                        "{id:1}",
                                        "{'id':1}",
                                        "{\"id\":01}",
                                        "{\"id\":+1}",
                                        "{\"id\":1.}",
                                        "{\"id\":.5}",
                                        "{\"id\":1e}",
                                        "{\"id\":-}",
                                        "{\"id\":NaN}",
                                        "{\"id\":nul}",
                                        "{\"id\":\"\t\"}",
                                        "{\"id\":\"\\x\"}",
                                        "{\"id\":\"\\u12g4\"}",
                                        "{\"id\":\"\xff\"}",
                                        "{\"id\":\"\xed\xa0\x80\"}",
                                        "{\"id\":\"",
                                        "{\"id\":\"\\",
                                        "\xEF\xBB\xBF{}",
                                        "{\"id\":1}\x0b",
                                        "// {}"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_id(texts[i], JSONRPC_PARSE_ERROR, NULL);
    struct jsonrpc_text text;
    struct jsonrpc_refusal refusal;
    assert_int_equal(jsonrpc_text_read("{}\0", 3, &text, &refusal), -1); // a NUL byte ends no text
    assert_int_equal(refusal.code, JSONRPC_PARSE_ERROR);
    assert_int_equal(jsonrpc_text_read("{\n \"a\":x}", 9, &text, &refusal), -1);
    assert_non_null(strstr(refusal.message, "line 2, byte 6"));
}

// However many there are: the digits behind the zero are no part of a number, and must not be measured as one.
static void digits_behind_a_leading_zero_are_no_json_wherever_they_stand(void **state)
{
    (void)state;
    static const char *const forms[] = {"0%s", "-0%s", " 0%s ", "[0%s]", "{\"id\":0%s}", "{\"id\":-0%s,\"a\":1}", "{\"a\":[0%s]}", "0%s.5", "0%se1"};
    static const size_t lengths[] = {1, 2, 18, 19, 20, 130, 1100};
    for (size_t i = 0; i < ARRAY_LEN(forms) * ARRAY_LEN(lengths); i++) {
        char *digits = repeat("5", lengths[i % ARRAY_LEN(lengths)]);
        char *text = mem_format(forms[i / ARRAY_LEN(lengths)], digits);
        assert_id(text, JSONRPC_PARSE_ERROR, NULL);
        free(text);
        free(digits);
    }
}

static void integers_beyond_64_bits_are_read_as_reals_and_nothing_else_changes(void **state)
{
    (void)state;
    const char *body = "{\"a\":9223372036854775808,\"b\":9223372036854775807,\"c\":\"9223372036854775808\","
                       "\"d\":-9223372036854775809,\"e\":-9223372036854775808}";
    struct jsonrpc_text text;
    struct jsonrpc_refusal refusal;
    assert_int_equal(jsonrpc_text_read(body, strlen(body), &text, &refusal), 0);
    assert_true(json_is_real(json_object_get(text.value, "a")));
    assert_true(json_real_value(json_object_get(text.value, "a")) > 9.22e18);
    assert_true(json_integer_value(json_object_get(text.value, "b")) == INT64_MAX);
    assert_string_equal(json_get_text(text.value, "c"), "9223372036854775808");
    assert_true(json_is_real(json_object_get(text.value, "d")));
    assert_true(json_real_value(json_object_get(text.value, "d")) < -9.22e18);
    assert_true(json_integer_value(json_object_get(text.value, "e")) == INT64_MIN);
    jsonrpc_text_clear(&text);
}

static void tokens_and_request_ids_are_found_at_their_places_only(void **state)
{
    (void)state;
    char *digits = repeat("7", 400);
    char *body = mem_format("[{\"params\":{\"requestId\":%s,\"_meta\":{\"progressToken\":\"p\",\"x\":{"
                            "\"progressToken\":1}},\"progressToken\":2}},"
                            "{\"params\":{\"_meta\":{\"progressToken\":%s,\"requestId\":3}},\"requestId\":4},"
                            "{\"params\":{\"requestId\":1.5,\"_meta\":{\"progressToken\":null}}}]",
                            digits, digits);
    struct jsonrpc_text text;
    struct jsonrpc_refusal refusal;
    assert_int_equal(jsonrpc_text_read(body, strlen(body), &text, &refusal), 0);
    assert_int_equal(text.raw_count, 3);
    assert_string_equal(text.raws[0].request_id, digits);
    assert_string_equal(text.raws[0].progress_token, "\"p\"");
    assert_null(text.raws[1].request_id);
    assert_string_equal(text.raws[1].progress_token, digits);
    assert_null(text.raws[2].request_id);
    assert_null(text.raws[2].progress_token);
    jsonrpc_text_clear(&text);
    free(body);
    free(digits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(legal_ids_are_kept_byte_for_byte),
        cmocka_unit_test(ids_of_other_kinds_are_not_legal),
        cmocka_unit_test(an_id_may_be_as_long_as_its_limit_and_no_longer),
        cmocka_unit_test(json_beyond_a_limit_is_refused_under_the_requests_own_id),
        cmocka_unit_test(limits_begin_behind_their_border),
        cmocka_unit_test(an_id_that_cannot_be_told_is_left_out),
        cmocka_unit_test(texts_that_are_no_json_are_told_so_with_their_place),
        cmocka_unit_test(digits_behind_a_leading_zero_are_no_json_wherever_they_stand),
        cmocka_unit_test(integers_beyond_64_bits_are_read_as_reals_and_nothing_else_changes),
        cmocka_unit_test(tokens_and_request_ids_are_found_at_their_places_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
