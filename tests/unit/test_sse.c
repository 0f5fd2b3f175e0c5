// Event streams of an untrusted server: what counts as an event, whatever the pieces it comes in, and the bounds.
#include "tests/support/support.h"
#include "reconcilers/session/codexpro/sse.h"
#include <string.h>

#define ALL_MAX 4096

static bool collect(void *arg, const char *data, size_t len)
{
    struct buffer *all = arg;
    buffer_append(all, data, len);
    buffer_append_char(all, '|');
    return true;
}

// The events of `stream`, fed in pieces of `step` bytes, each followed by "|".
static void expect_events(const char *stream, const char *expected)
{
    for (size_t step = 1; step <= strlen(stream); step++) {
        struct sse sse = SSE_INIT;
        struct buffer all = BUFFER_INIT(ALL_MAX);
        bool is_enough;
        for (size_t at = 0; at < strlen(stream); at += step) {
            size_t len = strlen(stream) - at < step ? strlen(stream) - at : step;
            assert_null(sse_feed(&sse, stream + at, len, collect, &all, &is_enough));
            assert_false(is_enough);
        }
        assert_string_equal(buffer_text(&all), expected);
        buffer_free(&all);
        sse_free(&sse);
    }
}

static void an_event_is_its_data_lines(void **state)
{
    (void)state;
    expect_events("event: message\ndata: {\"a\":1}\n\n", "{\"a\":1}|");
    expect_events("data: one\ndata: two\ndata\ndata:\n\ndata:x\n\n", "one\ntwo\n\n|x|");
    expect_events("data:  two blanks\n\n", " two blanks|");
    expect_events("\xef\xbb\xbf" "data: after a byte order mark\n\n", "after a byte order mark|");
}

static void every_line_end_is_one(void **state)
{
    (void)state;
    expect_events("data: a\r\n\r\ndata: b\r\rdata: c\n\n", "a|b|c|");
    expect_events("data: a\r\n\ndata: b\n\r\n", "a|b|");
}

static void what_is_not_a_message_is_skipped(void **state)
{
    (void)state;
    expect_events(": comment\n\n\nid: 7\nretry: 9\nfoo: bar\n\nevent: ping\ndata: no\n\ndata: yes\n\n", "yes|");
    expect_events("event:\ndata: yes\n\nevent: messages\ndata: no\n\ndatax: no\n\n", "yes|");
}

static void an_event_without_its_blank_line_does_not_count(void **state)
{
    (void)state;
    expect_events("data: one\n\ndata: two\n", "one|");
    expect_events("data: two", "");
}

static bool refuse(void *arg, const char *data, size_t len)
{
    (void)arg, (void)data, (void)len;
    return false;
}

static void it_can_be_ended_early(void **state)
{
    (void)state;
    struct sse sse = SSE_INIT;
    bool is_enough;
    assert_null(sse_feed(&sse, "data: a\n\ndata: b\n\n", 18, refuse, NULL, &is_enough));
    assert_true(is_enough);
    sse_free(&sse);
}

static bool pass_over(void *arg, const char *data, size_t len)
{
    (void)data, (void)len;
    ++*(size_t *)arg;
    return true;
}

// Feeds the piece until it is refused; how often.
static size_t feed_until_refused(const char *piece, size_t len)
{
    struct sse sse = SSE_INIT;
    size_t events = 0, times = 0;
    bool is_enough;
    while (times < 100000 && !sse_feed(&sse, piece, len, pass_over, &events, &is_enough))
        times++;
    sse_free(&sse);
    return times;
}

static void events_lines_and_bytes_are_bounded(void **state)
{
    static char piece[1024 * 1024];
    (void)state;
    assert_int_equal(feed_until_refused("data: x\n\n", 9), SSE_EVENTS_MAX);
    memset(piece, 'x', sizeof(piece));
    assert_in_range(feed_until_refused(piece, sizeof(piece)), 24, 25); // one line
    memcpy(piece, "data: ", 6);
    piece[sizeof(piece) - 1] = '\n';
    assert_in_range(feed_until_refused(piece, sizeof(piece)), 24, 25); // one event
    memcpy(piece, ": com", 6);
    assert_int_equal(feed_until_refused(piece, sizeof(piece)), 48); // comments
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_is_its_data_lines),
        cmocka_unit_test(every_line_end_is_one),
        cmocka_unit_test(what_is_not_a_message_is_skipped),
        cmocka_unit_test(an_event_without_its_blank_line_does_not_count),
        cmocka_unit_test(it_can_be_ended_early),
        cmocka_unit_test(events_lines_and_bytes_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
