#include "tests/support/support.h"
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/random.h"
#include "controller/base/time.h"
#include "reconcilers/egress/http.h"
#include "reconcilers/egress/rewrite.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Parses as the proxy does. NULL if the head is good, "incomplete", or the refusal's sentence.
static const char *judge(const char *bytes, size_t len, bool is_request, struct http_head *head)
{
    size_t scanned = 0;
    const char *problem = NULL;
    ssize_t size = http_head_end(bytes, len, &scanned, &problem);
    if (size < 0)
        return problem;
    if (size == 0)
        return "incomplete";
    int result = is_request ? http_parse_request(bytes, (size_t)size, head) : http_parse_response(bytes, (size_t)size, head);
    return result < 0 ? head->problem : NULL;
}

#define LINE "GET http://a/ HTTP/1.1\r\n"
#define HOST "Host: a\r\n"

static const struct {
    const char *head;
    size_t len; // 0: strlen
    const char *problem; // a piece of the sentence; NULL: accepted
} requests[] = {
    {LINE HOST "\r\n", 0, NULL},
    {"GET http://a/ HTTP/1.0\r\n\r\n", 0, NULL},
    {LINE "hOsT:a\r\nX-Y:\r\nZ: \t v \t\r\n\r\n", 0, NULL},
    {LINE HOST "X: gr\xC3\xBC\xC3\x9F\r\n\r\n", 0, NULL},
    {"M-SEARCH http://a/?q={}|\"<> HTTP/1.1\r\n" HOST "\r\n", 0, NULL},
    {LINE HOST "Content-Length: 5\r\n\r\n", 0, NULL},
    {LINE HOST "Transfer-Encoding: CHUNKED\r\n\r\n", 0, NULL},
    {LINE HOST, 0, "incomplete"},
    {"", 0, "incomplete"},
    {"GET http://a/ HTTP/1.1\n" HOST "\r\n", 0, "without a carriage return"},
    {LINE "Host: a\n\r\n", 0, "without a carriage return"},
    {LINE HOST "\n", 0, "without a carriage return"},
    {"\r\n" LINE HOST "\r\n", 0, "first line is empty"},
    {LINE HOST "X: a\r\n b\r\n\r\n", 0, "folding"},
    {LINE HOST "X: a\r\n\tb\r\n\r\n", 0, "folding"},
    {LINE " " HOST "\r\n", 0, "folding"},
    {LINE HOST "X : a\r\n\r\n", 0, "header name"},
    {LINE HOST "X\r\n\r\n", 0, "no colon"},
    {LINE HOST ": a\r\n\r\n", 0, "header name"},
    {LINE HOST "X(: a\r\n\r\n", 0, "header name"},
    {LINE HOST "X\xC3\xBC: a\r\n\r\n", 0, "header name"},
    {LINE HOST "X: a\0b\r\n\r\n", sizeof(LINE HOST "X: a\0b\r\n\r\n") - 1, "control characters"},
    {LINE HOST "X: a\rb\r\n\r\n", 0, "control characters"},
    {LINE HOST "X: a\x7f\r\n\r\n", 0, "control characters"},
    {LINE HOST "X: a\x1b\r\n\r\n", 0, "control characters"},
    {LINE HOST "X: \xFF\r\n\r\n", 0, "UTF-8"},
    {LINE HOST "X: \xC0\x80\r\n\r\n", 0, "UTF-8"},
    {LINE "\r\n", 0, "Host is missing"},
    {LINE HOST HOST "\r\n", 0, "Host stands there twice"},
    {"GET http://a/ HTTP/1.0\r\n" HOST HOST "\r\n", 0, "Host stands there twice"},
    {LINE HOST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", 0, "Content-Length stands there twice"},
    {LINE HOST "Content-Length: 5, 5\r\n\r\n", 0, "not a number"},
    {LINE HOST "Content-Length: +5\r\n\r\n", 0, "not a number"},
    {LINE HOST "Content-Length: -5\r\n\r\n", 0, "not a number"},
    {LINE HOST "Content-Length: 0x5\r\n\r\n", 0, "not a number"},
    {LINE HOST "Content-Length: 5 5\r\n\r\n", 0, "not a number"},
    {LINE HOST "Content-Length:\r\n\r\n", 0, "not a number"},
    {LINE HOST "Content-Length: 1234567890123456789\r\n\r\n", 0, "not a number"},
    {LINE HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 0, "both there"},
    {LINE HOST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", 0, "both there"},
    {LINE HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 0, "twice"},
    {LINE HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", 0, "only transfer encoding"},
    {LINE HOST "Transfer-Encoding: identity\r\n\r\n", 0, "only transfer encoding"},
    {LINE HOST "Transfer-Encoding: \x0b" "chunked\r\n\r\n", 0, "control characters"},
    {LINE HOST "Transfer-Encoding : chunked\r\n\r\n", 0, "header name"},
    {"GET http://a/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 0, "HTTP/1.0 has no"},
    {LINE HOST "Connection: content-length\r\n\r\n", 0, "must be forwarded"},
    {LINE HOST "Connection: close, Transfer-Encoding\r\n\r\n", 0, "must be forwarded"},
    {LINE HOST "Proxy-Connection: host\r\n\r\n", 0, "must be forwarded"},
    {LINE HOST "Connection: a b\r\n\r\n", 0, "list of words"},
    {"GET http://a/ HTTP/0.9\r\n" HOST "\r\n", 0, "version"},
    {"GET http://a/ HTTP/1.2\r\n" HOST "\r\n", 0, "version"},
    {"GET http://a/ HTTP/2.0\r\n" HOST "\r\n", 0, "version"},
    {"GET http://a/ http/1.1\r\n" HOST "\r\n", 0, "version"},
    {"GET http://a/ HTTP/1.1 \r\n" HOST "\r\n", 0, "target holds a blank"},
    {"GET http://a/\r\n" HOST "\r\n", 0, "request line"},
    {"GET\r\n" HOST "\r\n", 0, "request line"},
    {"GET  http://a/ HTTP/1.1\r\n" HOST "\r\n", 0, "blank"},
    {"GET\thttp://a/ HTTP/1.1\r\n" HOST "\r\n", 0, "request line"},
    {"GET http://a/ b HTTP/1.1\r\n" HOST "\r\n", 0, "blank"},
    {"GET http://a/#f HTTP/1.1\r\n" HOST "\r\n", 0, "fragment"},
    {"GET http://a/\xC3\xBC HTTP/1.1\r\n" HOST "\r\n", 0, "not ASCII"},
    {"G@T http://a/ HTTP/1.1\r\n" HOST "\r\n", 0, "method"},
    {" GET http://a/ HTTP/1.1\r\n" HOST "\r\n", 0, "method"},
    {"ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG http://a/ HTTP/1.1\r\n" HOST "\r\n", 0, "method"},
};

static void malformed_request_heads_are_refused_with_a_sentence(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        struct http_head head;
        size_t len = requests[i].len ? requests[i].len : strlen(requests[i].head);
        const char *wanted = requests[i].problem;
        const char *problem = judge(requests[i].head, len, true, &head);
        if (!wanted != !problem || (problem && !strstr(problem, wanted)))
            fail_msg("head %zu (%s): %s", i, requests[i].head, problem ? problem : "accepted");
    }
}

static const struct {
    const char *head, *problem;
} responses[] = {
    {"HTTP/1.1 200 OK\r\n\r\n", NULL},
    {"HTTP/1.0 200\r\n\r\n", NULL},
    {"HTTP/1.1 404 Nicht gefunden\r\nX: y\r\n\r\n", NULL},
    {"HTTP/1.1 2000 OK\r\n\r\n", "status line"},
    {"HTTP/1.1 099 OK\r\n\r\n", "100 to 599"},
    {"HTTP/1.1 2x0 OK\r\n\r\n", "not a number"},
    {"HTTP/1.1  200 OK\r\n\r\n", "status line"},
    {"HTTP/2 200 OK\r\n\r\n", "status line"},
    {"ICY 200 OK\r\n\r\n", "status line"},
    {"HTTP/1.1 200 O\x01K\r\n\r\n", "reason"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "both there"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "twice"},
    {"HTTP/1.1 200 OK\nX: y\r\n\r\n", "carriage return"},
};

static void malformed_response_heads_are_refused_with_a_sentence(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(responses); i++) {
        struct http_head head;
        const char *problem = judge(responses[i].head, strlen(responses[i].head), false, &head);
        if (!responses[i].problem != !problem || (problem && !strstr(problem, responses[i].problem)))
            fail_msg("head %zu (%s): %s", i, responses[i].head, problem ? problem : "accepted");
    }
}

static void heads_beyond_the_limits_are_refused(void **state)
{
    (void)state;
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(64 * 1024);
    struct http_head head;
    buffer_append_text(&text, LINE HOST);
    for (int i = 1; i < HTTP_MAX_FIELDS; i++)
        buffer_append_text(&text, "A: b\r\n");
    size_t len = text.len;
    buffer_append_text(&text, "\r\n");
    assert_null(judge(text.data, text.len, true, &head));
    assert_int_equal(head.field_count, HTTP_MAX_FIELDS);
    text.len = len;
    buffer_append_text(&text, "A: b\r\n\r\n");
    assert_non_null(strstr(judge(text.data, text.len, true, &head), "more than 100"));
    text.len = 0;
    buffer_append_text(&text, LINE HOST "A: ");
    while (text.len < HTTP_MAX_HEAD_BYTES - 4)
        buffer_append_char(&text, 'x');
    buffer_append_text(&text, "\r\n\r\n"); // exactly the limit
    assert_null(judge(text.data, text.len, true, &head));
    text.data[text.len - 4] = 'x';
    assert_non_null(judge(text.data, text.len, true, &head));
}

static void the_end_is_found_whatever_the_pieces(void **state)
{
    (void)state;
    static const char text[] = LINE HOST "\r\nrest";
    size_t scanned = 0, end = sizeof(LINE HOST "\r\n") - 1;
    const char *problem;
    for (size_t len = 0; len < end; len++)
        assert_int_equal(http_head_end(text, len, &scanned, &problem), 0);
    assert_int_equal(http_head_end(text, sizeof(text) - 1, &scanned, &problem), end);
}

static struct http_body chunked(void)
{
    struct http_head head = {.is_chunked = true, .status = 200};
    return http_response_body(&head, false);
}

static const struct {
    const char *bytes;
    long taken;          // of them belong to the body; -1: broken
    bool is_done;
} bodies[] = {
    {"0\r\n\r\n", 5, true},
    {"5\r\nhello\r\n0\r\n\r\nGET ", 15, true},
    {"00005\r\nhello\r\n0\r\nA: b\r\nC:\r\n\r\n", 29, true},
    {"a\r\n0123456789\r\nB\r\n0123456789a\r\n0\r\n\r\n", 36, true},
    {"5\r\nhel", 6, false},
    {"5;x=y\r\nhello\r\n0\r\n\r\n", -1, false},
    {"5 \r\nhello\r\n", -1, false},
    {" 5\r\nhello\r\n", -1, false},
    {"0x5\r\nhello\r\n", -1, false},
    {"+5\r\nhello\r\n", -1, false},
    {"-1\r\n", -1, false},
    {"\r\n", -1, false},
    {"5\nhello\r\n", -1, false},
    {"5\r\nhello\n0\r\n\r\n", -1, false},
    {"5\r\nhelloo\r\n", -1, false},
    {"5\r\nhello0\r\n\r\n", -1, false},
    {"ffffffffffffffff\r\n", -1, false},
    {"0\r\nA : b\r\n\r\n", -1, false},
    {"0\r\n folded\r\n\r\n", -1, false},
    {"0\r\nA: b\n\r\n", -1, false},
    {"0\r\n\rX", -1, false},
};

static void chunked_bodies_are_followed_exactly(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
        for (size_t step = 1; step < 40; step += 6) {
            struct http_body body = chunked();
            size_t len = strlen(bodies[i].bytes), taken = 0;
            while (taken < len && !body.is_done && !body.problem)
                taken += http_body_take(&body, bodies[i].bytes + taken, len - taken < step ? len - taken : step);
            if ((bodies[i].taken < 0) != (body.problem != NULL) || body.is_done != bodies[i].is_done ||
                (bodies[i].taken >= 0 && taken != (size_t)bodies[i].taken))
                fail_msg("body %zu by %zu: %zu taken, %s", i, step, taken, body.problem ? body.problem : "fine");
        }
}

static void a_body_ends_where_its_head_says(void **state)
{
    (void)state;
    struct http_head head = {.status = 200, .has_length = true, .length = 5};
    struct http_body body = http_response_body(&head, false);
    assert_int_equal(http_body_take(&body, "abc", 3), 3);
    assert_false(body.is_done);
    assert_int_equal(http_body_take(&body, "defg", 4), 2);
    assert_true(body.is_done);
    assert_true(http_response_body(&head, true).is_done);
    head.status = 304;
    assert_true(http_response_body(&head, false).is_done);
    head = (struct http_head){.status = 200};
    assert_int_equal(http_response_body(&head, false).kind, HTTP_BODY_UNTIL_CLOSE);
    assert_true(http_body_of_request(&head).is_done);
}

static void forwarded_requests_lose_what_belongs_to_the_connection(void **state)
{
    (void)state;
    static const char text[] = "POST http://Origin.Example:8080?x=1 HTTP/1.1\r\nHost: openrouter.ai\r\n"
                               "Connection: X-Hop, close\r\nx-hop: 1\r\nKeep-Alive: 5\r\nProxy-Authorization: secret\r\n"
                               "TE: trailers\r\nUpgrade: h2c\r\nContent-Length: 3\r\nX-Stay: yes\r\n\r\n";
    struct http_head head;
    struct endpoint to;
    struct http_text path;
    const char *problem = NULL;
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(REWRITE_MAX_BYTES);
    assert_int_equal(http_parse_request(text, sizeof(text) - 1, &head), 0);
    assert_int_equal(rewrite_split_target(head.target, &to, &path, &problem), 0);
    rewrite_request(&head, &to, path, &out);
    assert_string_equal(buffer_text(&out), "POST /?x=1 HTTP/1.1\r\nHost: origin.example:8080\r\nContent-Length: 3\r\n"
                                           "X-Stay: yes\r\nVia: 1.1 chat2shell\r\nConnection: close\r\n\r\n");
}

static void targets_that_are_not_absolute_are_refused(void **state)
{
    (void)state;
    static const char *const targets[] = {"/", "*", "https://a/", "ftp://a/", "http:///x", "http://u:p@a/", "http:a",
                                          "http://a:99999/", "http://a%2eb/", "http://[::1/", "a:80"};
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        struct endpoint to;
        struct http_text path;
        const char *problem = NULL;
        struct http_text target = {targets[i], strlen(targets[i])};
        if (rewrite_split_target(target, &to, &path, &problem) == 0 || !problem)
            fail_msg("%s is accepted", targets[i]);
    }
}

// Whatever the bytes: no crash, and a head that passes is the one thing a second parser can read too.
static void assert_unambiguous(const char *bytes, size_t size, const struct http_head *head)
{
    assert_true(size <= HTTP_MAX_HEAD_BYTES && head->field_count <= HTTP_MAX_FIELDS);
    assert_false(head->has_length && head->is_chunked);
    for (size_t i = 0; i < size; i++) {
        assert_int_not_equal(bytes[i], '\0');
        assert_true(bytes[i] != '\n' || (i > 0 && bytes[i - 1] == '\r'));
        assert_true(bytes[i] != '\r' || bytes[i + 1] == '\n');
    }
}

static void no_mutation_of_a_head_crashes_or_passes_ambiguously(void **state)
{
    (void)state;
    static const char alphabet[] = "\r\n\t :,;\0aZ09\x7f\xff\xc3()/#";
    int64_t end = boot_time_now().ms + 700;
    for (unsigned seed = 0; boot_time_now().ms < end; seed++) {
        size_t row = random_below(ARRAY_LEN(requests));
        size_t len = requests[row].len ? requests[row].len : strlen(requests[row].head);
        char *bytes = malloc(len + 1); // exact size, so that the sanitizer sees one byte too many
        memcpy(bytes, requests[row].head, len);
        for (unsigned i = random_below(4); len && i > 0; i--)
            bytes[random_below((uint32_t)len)] = alphabet[random_below(sizeof(alphabet) - 1)];
        struct http_head head;
        size_t scanned = 0;
        const char *problem;
        ssize_t size = http_head_end(bytes, len, &scanned, &problem);
        if (size > 0 && http_parse_request(bytes, (size_t)size, &head) == 0)
            assert_unambiguous(bytes, (size_t)size, &head);
        if (size > 0)
            http_parse_response(bytes, (size_t)size, &head);
        struct http_body body = chunked();
        assert_true(http_body_take(&body, bytes, len) <= len);
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_request_heads_are_refused_with_a_sentence),
        cmocka_unit_test(malformed_response_heads_are_refused_with_a_sentence),
        cmocka_unit_test(heads_beyond_the_limits_are_refused),
        cmocka_unit_test(the_end_is_found_whatever_the_pieces),
        cmocka_unit_test(chunked_bodies_are_followed_exactly),
        cmocka_unit_test(a_body_ends_where_its_head_says),
        cmocka_unit_test(forwarded_requests_lose_what_belongs_to_the_connection),
        cmocka_unit_test(targets_that_are_not_absolute_are_refused),
        cmocka_unit_test(no_mutation_of_a_head_crashes_or_passes_ambiguously),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
