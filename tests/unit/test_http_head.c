#include "api/http/head.h"
#include "tests/support/support.h"
#include <string.h>

static struct http_head head_of(const char *const *fields)
{
    struct http_head head = {.method = "POST", .target = "/mcp", .version = "HTTP/1.1"};
    for (; fields && fields[0]; fields += 2)
        head.fields[head.field_count++] = (struct http_field){.name = fields[0],
                                                              .value = fields[1],
                                                              .name_len = strlen(fields[0]),
                                                              .value_len = strlen(fields[1])};
    return head;
}

static int status_of(const struct http_head *head)
{
    struct error err = ERROR_INIT;
    int status = 200;
    if (http_head_check(head, &status, &err) < 0)
        assert_true(err.message[0] != '\0');
    return status;
}

static int status_of_fields(const char *const *fields)
{
    struct http_head head = head_of(fields);
    return status_of(&head);
}

static int status_of_target(const char *target)
{
    struct http_head head = head_of((const char *[]){"Host", "a", NULL});
    head.target = target;
    return status_of(&head);
}

static void a_plain_head_passes(void **state)
{
    (void)state;
    assert_int_equal(status_of_fields((const char *[]){"Host", "a", "Content-Length", "12", "Accept", "a",
                                                       "Accept", "b", NULL}),
                     200);
    assert_int_equal(status_of_fields((const char *[]){"host", "a", "Transfer-Encoding", "Chunked", NULL}),
                     200);
}

static void a_length_beside_a_coding_is_refused(void **state)
{
    (void)state;
    assert_int_equal(status_of_fields((const char *[]){"Host", "a", "Content-Length", "5",
                                                       "Transfer-Encoding", "chunked", NULL}),
                     400);
}

static void doubled_headers_that_may_come_once_are_refused_in_any_case(void **state)
{
    (void)state;
    static const char *const names[] = {"Host", "Content-Length", "Content-Type", "Origin", "Authorization"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char upper[64];
        for (size_t k = 0; k <= strlen(names[i]); k++)
            upper[k] = (char)(names[i][k] >= 'a' && names[i][k] <= 'z' ? names[i][k] - 32 : names[i][k]);
        assert_int_equal(status_of_fields((const char *[]){"Host", "a", names[i], "1", upper, "1", NULL}),
                         400);
    }
}

static void a_missing_or_empty_host_is_refused(void **state)
{
    (void)state;
    assert_int_equal(status_of_fields(NULL), 400);
    assert_int_equal(status_of_fields((const char *[]){"Host", "", NULL}), 400);
}

static void lengths_that_are_not_plain_numbers_are_refused(void **state)
{
    (void)state;
    static const char *const values[] = {"+4", "-1", "4,4", "0x4", "", "4 4", "99999999999999999999"};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        assert_int_equal(status_of_fields((const char *[]){"Host", "a", "Content-Length", values[i], NULL}),
                         400);
}

static void codings_other_than_chunked_are_refused(void **state)
{
    (void)state;
    assert_int_equal(
        status_of_fields((const char *[]){"Host", "a", "Transfer-Encoding", "gzip, chunked", NULL}), 501);
    assert_int_equal(status_of_fields((const char *[]){"Host", "a", "Transfer-Encoding", "chunked ", NULL}),
                     501);
}

static void names_that_are_no_tokens_and_values_with_controls_are_refused(void **state)
{
    (void)state;
    assert_int_equal(status_of_fields((const char *[]){"Host", "a", "Mcp-Name ", "x", NULL}), 400);
    assert_int_equal(status_of_fields((const char *[]){"Host", "a", "X Y", "x", NULL}), 400);
    assert_int_equal(status_of_fields((const char *[]){"Host", "a", "X", "a\x01", NULL}), 400);
    assert_int_equal(status_of_fields((const char *[]){"Host", "a", "X", "a\r", NULL}), 400);
    assert_int_equal(status_of_fields((const char *[]){"Host", "a", "X", "tab\tand caf\xC3\xA9", NULL}), 200);
}

static void targets_with_encoded_controls_or_odd_bytes_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"*",    "http://a/mcp", "/mcp%00", "/m%0Acp", "/%7f",
                                      "/%zz", "/%4",          "/a b",    "/a#b",    "/\xC3\xA9"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(status_of_target(bad[i]), 400);
    assert_int_equal(status_of_target("/apis/chat2shell.dev/v1?watch=1&fieldSelector=metadata.name%3Dx"),
                     200);
}

static void unknown_methods_and_versions_are_refused(void **state)
{
    (void)state;
    struct http_head head = head_of((const char *[]){"Host", "a", NULL});
    head.method = "CONNECT";
    assert_int_equal(status_of(&head), 501);
    head.method = "post";
    assert_int_equal(status_of(&head), 501);
    head.method = "POST";
    head.version = "HTTP/2.0";
    assert_int_equal(status_of(&head), 505);
    head.version = "HTTP/1.1";
    head.has_too_many = true;
    assert_int_equal(status_of(&head), 431);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_head_passes),
        cmocka_unit_test(a_length_beside_a_coding_is_refused),
        cmocka_unit_test(doubled_headers_that_may_come_once_are_refused_in_any_case),
        cmocka_unit_test(a_missing_or_empty_host_is_refused),
        cmocka_unit_test(lengths_that_are_not_plain_numbers_are_refused),
        cmocka_unit_test(codings_other_than_chunked_are_refused),
        cmocka_unit_test(names_that_are_no_tokens_and_values_with_controls_are_refused),
        cmocka_unit_test(targets_with_encoded_controls_or_odd_bytes_are_refused),
        cmocka_unit_test(unknown_methods_and_versions_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
