// Heads and framings that two readers could read differently: refused, the connection closed, nothing handed on.
// Beside them the unusual ones that are right.
#include "controller/base/memory.h"
#include "tests/support/http_bench.h"
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SMUGGLED "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
#define BYTES(text) text, sizeof(text) - 1

struct shape {
    const char *what, *bytes;
    size_t len;
};

static const struct shape refused[] = {
    {"length and coding", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SMUGGLED)},
    {"coding and length", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" SMUGGLED)},
    {"another coding", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n" SMUGGLED)},
    {"a list of codings", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" SMUGGLED)},
    {"chunked, then identity", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" SMUGGLED)},
    {"identity", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n" SMUGGLED)},
    {"a coding like chunked", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" SMUGGLED)},
    {"a quoted coding", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n" SMUGGLED)},
    {"a vertical tab before the coding", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \vchunked\r\n\r\n0\r\n\r\n" SMUGGLED)},
    {"two codings", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" SMUGGLED)},
    {"a coding in HTTP/1.0", BYTES("POST /x HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SMUGGLED)},
    {"two lengths", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 35\r\n\r\n" SMUGGLED)},
    {"two equal lengths", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n" SMUGGLED)},
    {"a list of lengths", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0, 0\r\n\r\n" SMUGGLED)},
    {"a signed length", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: +0\r\n\r\n" SMUGGLED)},
    {"a negative length", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n" SMUGGLED)},
    {"a hexadecimal length", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0x0\r\n\r\n" SMUGGLED)},
    {"a length in words", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: zero\r\n\r\n" SMUGGLED)},
    {"an empty length", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: \r\n\r\n" SMUGGLED)},
    {"a length beyond 64 bits", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n" SMUGGLED)},
    {"blank before the colon", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length : 0\r\n\r\n" SMUGGLED)},
    {"tab before the colon", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nX\t: 0\r\n\r\n" SMUGGLED)},
    {"a name with a blank", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nX Y: 0\r\n\r\n" SMUGGLED)},
    {"no name", BYTES("POST /x HTTP/1.1\r\nHost: a\r\n: 0\r\n\r\n" SMUGGLED)},
    {"no colon", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nwhatever\r\n\r\n" SMUGGLED)},
    {"blank before the first name", BYTES("POST /x HTTP/1.1\r\n Host: a\r\n\r\n" SMUGGLED)},
    {"a folded line", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n" SMUGGLED)},
    {"a folded line with a colon", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nX: a\r\n\tContent-Length: 9\r\n\r\n" SMUGGLED)},
    {"a folded last line", BYTES("POST /x HTTP/1.1\r\nHost: a\r\n \r\n\r\n" SMUGGLED)},
    {"bare LF after the request line", BYTES("POST /x HTTP/1.1\nHost: a\r\n\r\n" SMUGGLED)},
    {"bare LF after a field", BYTES("POST /x HTTP/1.1\r\nHost: a\nX: b\r\n\r\n" SMUGGLED)},
    {"bare LF after the last field", BYTES("POST /x HTTP/1.1\r\nX: b\r\nHost: a\n\r\n" SMUGGLED)},
    {"bare LF as the empty line", BYTES("POST /x HTTP/1.1\r\nHost: a\r\n\n" SMUGGLED)},
    {"bare LFs only", BYTES("POST /x HTTP/1.1\nHost: a\n\n" SMUGGLED)},
    {"bare CR in a field", BYTES("POST /x HTTP/1.1\r\nHost: a\rX: b\r\n\r\n" SMUGGLED)},
    {"bare CR after the request line", BYTES("POST /x HTTP/1.1\rHost: a\r\n\r\n" SMUGGLED)},
    {"CR CR LF", BYTES("POST /x HTTP/1.1\r\nHost: a\r\r\nX: b\r\n\r\n" SMUGGLED)},
    {"NUL in a value", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nX: b\0c\r\n\r\n" SMUGGLED)},
    {"NUL at the end of a value", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nX: b\0\r\n\r\n" SMUGGLED)},
    {"NUL in the last value", BYTES("POST /x HTTP/1.1\r\nHost: a\0\0Content-Length: 9\r\n\r\n" SMUGGLED)},
    {"NUL in a name", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nX\0Y: b\r\n\r\n" SMUGGLED)},
    {"NUL in the target", BYTES("POST /x\0y HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED)},
    {"NUL in the version", BYTES("POST /x HTTP/1.1\0\r\nHost: a\r\n\r\n" SMUGGLED)},
    {"an escape character in a value", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nX: \033[2J\r\n\r\n" SMUGGLED)},
    {"NUL by percent", BYTES("POST /x%00y HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED)},
    {"line end by percent", BYTES("POST /x%0d%0ay HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED)},
    {"half a percent", BYTES("POST /x%4 HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED)},
    {"absolute form", BYTES("POST http://a/x HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED)},
    {"absolute form of another host", BYTES("POST http://b/x HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED)},
    {"authority form", BYTES("POST a:80 HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED)},
    {"connect", BYTES("CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED)},
    {"asterisk form", BYTES("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED)},
    {"a fragment", BYTES("POST /x#y HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED)},
    {"a raw letter beyond ASCII", BYTES("POST /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED)},
    {"two blanks before the target", BYTES("POST  /x HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED)},
    {"two blanks before the version", BYTES("POST /x  HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED)},
    {"a blank after the version", BYTES("POST /x HTTP/1.1 \r\nHost: a\r\n\r\n" SMUGGLED)},
    {"a tab before the target", BYTES("POST\t/x HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED)},
    {"a tab before the version", BYTES("POST /x\tHTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED)},
    {"a blank before the method", BYTES(" POST /x HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED)},
    {"a method in small letters", BYTES("post /x HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED)},
    {"an unknown method", BYTES("FOO /x HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED)},
    {"HTTP/0.9", BYTES("GET /x\r\n\r\n" SMUGGLED)},
    {"HTTP/0.9 by name", BYTES("GET /x HTTP/0.9\r\n\r\n" SMUGGLED)},
    {"HTTP/1.2", BYTES("GET /x HTTP/1.2\r\nHost: a\r\n\r\n" SMUGGLED)},
    {"HTTP/2.0", BYTES("GET /x HTTP/2.0\r\nHost: a\r\n\r\n" SMUGGLED)},
    {"HTTP/11", BYTES("GET /x HTTP/11\r\nHost: a\r\n\r\n" SMUGGLED)},
    {"the preface of HTTP/2", BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")},
    {"no Host", BYTES("GET /x HTTP/1.1\r\nX: a\r\n\r\n" SMUGGLED)},
    {"no fields", BYTES("GET /x HTTP/1.1\r\n\r\n" SMUGGLED)},
    {"an empty Host", BYTES("GET /x HTTP/1.1\r\nHost: \r\n\r\n" SMUGGLED)},
    {"two Hosts", BYTES("GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" SMUGGLED)},
    {"two equal Hosts", BYTES("GET /x HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n" SMUGGLED)},
    {"two expectations", BYTES("POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n" SMUGGLED)},
};

static void check_refused(const struct shape *shape)
{
    int fd = http_client_connect(bench_port());
    struct http_answer answer, second;
    http_client_send(fd, shape->bytes, shape->len);
    shutdown(fd, SHUT_WR); // what is waited for does not come
    http_client_read(fd, &answer, BENCH_SOON_MS);
    if (answer.status && answer.status < 400)
        fail_msg("%s: answered %d", shape->what, answer.status);
    http_client_read(fd, &second, BENCH_SOON_MS);
    if (second.status)
        fail_msg("%s: a second answer, %d", shape->what, second.status);
    if (bench_handed())
        fail_msg("%s: something reached the handler", shape->what);
    if (getenv("SHOW"))
        fprintf(stderr, "%-40s %d %.100s\n", shape->what, answer.status, answer.body ? answer.body : "-");
    http_answer_clear(&answer);
    http_answer_clear(&second);
    close(fd);
}

static void heads_that_can_be_read_in_two_ways_are_refused_and_nothing_behind_them_is_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        check_refused(&refused[i]);
    bench_check_served();
}

static const struct shape bad_bodies[] = {
    {"a chunk size beyond 64 bits", BYTES("FFFFFFFFFFFFFFFFF\r\nx")},
    {"a signed chunk size", BYTES("-1\r\nx")},
    {"no chunk size", BYTES("\r\nx")},
    {"a chunk size in words", BYTES("five\r\nhello\r\n0\r\n\r\n")},
    {"a chunk size with 0x", BYTES("0x5\r\nhello\r\n0\r\n\r\n")},
    {"a chunk that is longer than it says", BYTES("2\r\nhello\r\n0\r\n\r\n")},
};

static void chunks_that_are_wrong_end_the_connection(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad_bodies) / sizeof(bad_bodies[0]); i++) {
        int fd = http_client_connect(bench_port());
        struct http_answer answer;
        http_client_send_text(fd, "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        http_client_send(fd, bad_bodies[i].bytes, bad_bodies[i].len);
        http_client_read(fd, &answer, BENCH_SOON_MS);
        if ((answer.status && answer.status < 400) || !http_client_is_closed(fd, BENCH_SOON_MS))
            fail_msg("%s: answered %d", bad_bodies[i].what, answer.status);
        http_answer_clear(&answer);
        close(fd);
    }
    assert_int_equal(bench_handed(), 0);
    bench_check_served();
}

static void unusual_heads_that_are_right_are_served(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "GET /x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /x HTTP/1.0\r\nHost: a\r\n\r\n",
        "\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /x HTTP/1.1\r\nhOST:a\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost:\t a \t\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost: a\r\nX-Empty:\r\n\r\n",
        "GET /x HTTP/1.1\r\nX-Empty: \t \r\nHost: a\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost: a\r\nX: b: c, d;e=\"f\"\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost: a\r\nX: \xc3\xa9\r\n\r\n",
        "GET /x?a=%41&b=c%20d&c HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /%41%42 HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 00\r\n\r\n",
        "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",
        "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX: y\r\n\r\n",
        "POST /x HTTP/1.1\r\nHost: a\r\nCookie: a\r\nCookie: b\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        struct http_answer answer;
        http_client_raw(bench_port(), heads[i], strlen(heads[i]), &answer);
        if (answer.status != 200)
            fail_msg("head %zu was answered %d: %s", i, answer.status, answer.body);
        http_answer_clear(&answer);
    }
}

// Wherever the library's buffer has to grow, the strict reading of the head still fits.
static void heads_of_every_size_are_served_up_to_the_limit(void **state)
{
    (void)state;
    for (size_t len = 0; len < HTTP_HEAD_MAX_BYTES + 20000; len += 97) {
        char *value = mem_alloc(len + 1);
        memset(value, 'v', len);
        char *head = mem_format("GET /x HTTP/1.1\r\nHost: a\r\nX: %s\r\nY: b\r\n\r\n", value);
        struct http_answer answer;
        http_client_raw(bench_port(), head, strlen(head), &answer);
        size_t size = strlen(head);
        bool is_ours = size <= HTTP_HEAD_MAX_BYTES + 4096; // beyond, the library answers, or only closes
        int wanted = size <= HTTP_HEAD_MAX_BYTES ? 200 : 431;
        if (answer.status != wanted && (is_ours || (answer.status && answer.status != 413)))
            fail_msg("%zu bytes were answered %d", size, answer.status);
        if (wanted == 431 && is_ours)
            assert_non_null(strstr(answer.body, "more than 12288 bytes"));
        http_answer_clear(&answer);
        free(head);
        free(value);
    }
}

static char *many_fields(size_t count)
{
    char *text = mem_strdup("GET /x HTTP/1.1\r\nHost: a\r\n");
    for (size_t i = 0; i < count; i++) {
        char *longer = mem_format("%sX-%zu: v\r\n", text, i);
        free(text);
        text = longer;
    }
    char *whole = mem_format("%s\r\n", text);
    free(text);
    return whole;
}

static void a_hundred_fields_are_served_and_more_are_refused(void **state)
{
    (void)state;
    static const struct {
        size_t count;
        bool is_served;
    } rows[] = {{98, true}, {99, true}, {100, false}, {150, false}, {1000, false}, {3000, false}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *head = many_fields(rows[i].count);
        struct http_answer answer;
        http_client_raw(bench_port(), head, strlen(head), &answer);
        if ((answer.status == 200) != rows[i].is_served || (!rows[i].is_served && answer.status != 431 && answer.status != 413))
            fail_msg("%zu fields were answered %d", rows[i].count, answer.status);
        http_answer_clear(&answer);
        free(head);
    }
    bench_check_served();
}

static void a_head_that_comes_byte_by_byte_is_served(void **state)
{
    (void)state;
    char *text = http_client_post_text("/x?a=b", "X-Empty:\r\nMcp-Name:  a b \r\n", "hello");
    int fd = http_client_connect(bench_port());
    for (size_t i = 0; i < strlen(text); i++) {
        http_client_send(fd, text + i, 1);
        usleep(200);
    }
    struct http_answer answer;
    http_client_read(fd, &answer, BENCH_SOON_MS);
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.body, "5 hello");
    http_answer_clear(&answer);
    free(text);
    close(fd);
}

// ---- pipelines --------------------------------------------------------------------------------------------
static void requests_in_one_piece_are_answered_in_order(void **state)
{
    (void)state;
    char *all = mem_strdup("");
    for (int i = 0; i < 100; i++) {
        char *body = mem_format("number %d", i), *one = http_client_post_text("/x", "", body), *longer = mem_format("%s%s", all, one);
        free(body);
        free(one);
        free(all);
        all = longer;
    }
    int fd = http_client_connect(bench_port());
    http_client_send_text(fd, all);
    shutdown(fd, SHUT_WR);
    struct http_reader *reader = http_reader_new(fd, BENCH_SOON_MS);
    for (int i = 0; i < 100; i++) {
        struct http_answer answer;
        http_reader_next(reader, &answer);
        char *body = mem_format("number %d", i), *wanted = mem_format("%zu %s", strlen(body), body);
        assert_int_equal(answer.status, 200);
        assert_string_equal(answer.body, wanted);
        free(body);
        free(wanted);
        http_answer_clear(&answer);
    }
    http_reader_free(reader);
    free(all);
    close(fd);
}

static void a_refused_request_in_a_pipeline_is_the_last_that_is_read(void **state)
{
    (void)state;
    static const char text[] = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"
                               "GET /x HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"
                               "GET /x HTTP/1.1\r\nHost: a\r\n\r\n";
    int fd = http_client_connect(bench_port());
    http_client_send_text(fd, text);
    struct http_reader *reader = http_reader_new(fd, BENCH_SOON_MS);
    static const int wanted[] = {200, 400, 0};
    for (int i = 0; i < 3; i++) {
        struct http_answer answer;
        http_reader_next(reader, &answer);
        assert_int_equal(answer.status, wanted[i]);
        http_answer_clear(&answer);
    }
    assert_int_equal(bench_handed(), 1);
    http_reader_free(reader);
    close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, http_bench_set_up, http_bench_tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(heads_that_can_be_read_in_two_ways_are_refused_and_nothing_behind_them_is_read),
        TEST(chunks_that_are_wrong_end_the_connection),
        TEST(unusual_heads_that_are_right_are_served),
        TEST(heads_of_every_size_are_served_up_to_the_limit),
        TEST(a_hundred_fields_are_served_and_more_are_refused),
        TEST(a_head_that_comes_byte_by_byte_is_served),
        TEST(requests_in_one_piece_are_answered_in_order),
        TEST(a_refused_request_in_a_pipeline_is_the_last_that_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
