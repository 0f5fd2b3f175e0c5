#include "api/mcp/jsonrpc_text.h"
#include "tests/support/support.h"
#include <stdlib.h>
#include <string.h>

// Keeps what was read alive until the next call: messages borrow from it. NULL: only lets it go.
static struct jsonrpc_message classify(const char *text)
{
    static struct jsonrpc_text read;
    struct jsonrpc_message message = {0};
    struct jsonrpc_refusal refusal;
    jsonrpc_text_clear(&read);
    if (!text)
        return message;
    assert_int_equal(jsonrpc_text_read(text, strlen(text), &read, &refusal), 0);
    const struct jsonrpc_raw none = {0};
    jsonrpc_classify(read.value, read.raw_count ? &read.raws[0] : &none, &message);
    return message;
}

static void requests_notifications_and_responses_are_told_apart(void **state)
{
    (void)state;
    assert_int_equal(classify("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"a\"}").kind, JSONRPC_REQUEST);
    assert_int_equal(classify("{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"a\",\"params\":{}}").kind,
                     JSONRPC_REQUEST);
    assert_int_equal(classify("{\"jsonrpc\":\"2.0\",\"method\":\"a\"}").kind, JSONRPC_NOTIFICATION);
    assert_int_equal(classify("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}").kind, JSONRPC_RESPONSE);
    assert_int_equal(classify("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{}}").kind, JSONRPC_RESPONSE);
}

static void a_null_id_makes_an_invalid_request_and_no_notification(void **state)
{
    (void)state;
    struct jsonrpc_message message = classify("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"a\"}");
    assert_int_equal(message.kind, JSONRPC_INVALID);
    assert_null(message.id_text);
}

static void what_is_not_a_message_says_why_and_keeps_a_legal_id(void **state)
{
    (void)state;
    static const char *const texts[] = {"5",
                                        "[]",
                                        "null",
                                        "{}",
                                        "{\"id\":1,\"method\":\"a\"}",
                                        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":[]}",
                                        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":[]}",
                                        "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"a\"}",
                                        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\\u0000\"}"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct jsonrpc_message message = classify(texts[i]);
        assert_int_equal(message.kind, JSONRPC_INVALID);
        assert_non_null(message.problem);
        assert_int_equal(message.id_text != NULL, strstr(texts[i], "\"id\":1,") != NULL);
    }
    classify(NULL);
}

static void params_that_are_null_count_as_absent(void **state)
{
    (void)state;
    struct jsonrpc_message message =
        classify("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":null}");
    assert_int_equal(message.kind, JSONRPC_REQUEST);
    assert_null(message.params);
    classify(NULL);
}

static void answers_carry_the_id_or_leave_it_out(void **state)
{
    (void)state;
    const char *id = "9223372036854775807";
    size_t len;
    char *text = jsonrpc_result_text(id, "{\"a\":1}", 7, &len);
    assert_string_equal(text, "{\"jsonrpc\":\"2.0\",\"id\":9223372036854775807,\"result\":{\"a\":1}}");
    assert_int_equal(len, strlen(text));
    free(text);
    text = jsonrpc_error_text(NULL, -32700, "no \"JSON\"", NULL, &len);
    assert_string_equal(text,
                        "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"no \\\"JSON\\\"\"}}");
    free(text);
    text = jsonrpc_error_text(id, -32022, "x", json_array(), NULL);
    assert_non_null(strstr(text, "\"data\":[]"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_notifications_and_responses_are_told_apart),
        cmocka_unit_test(a_null_id_makes_an_invalid_request_and_no_notification),
        cmocka_unit_test(what_is_not_a_message_says_why_and_keeps_a_legal_id),
        cmocka_unit_test(params_that_are_null_count_as_absent),
        cmocka_unit_test(answers_carry_the_id_or_leave_it_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
