// What an untrusted tool server may send and what it gets for it. The test is the tool server.
#include "tests/support/lane_rig.h"
#include "controller/base/guest_protocol.h"
#include "controller/base/memory.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *text_of(const struct heard *heard)
{
    return json_get_text(json_array_get(json_object_get(heard->answer, "content"), 0), "text");
}

static void expect_alive(struct rig *rig, struct server *server)
{
    struct heard heard = {0};
    rig_call(rig, RIG_SANDBOX, "ping_pong", &heard);
    server_answer(server, server_expect(server, "tools/call"), rig_result("alive"));
    heard_wait(&heard);
    assert_int_equal(heard.result, 0);
    assert_string_equal(text_of(&heard), "alive");
    heard_clear(&heard);
}

// Each of these is one strike: the 16th breaks the server.
static const char *const malformed[] = {
    "", "{", "nothing", "[]", "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}]", "7", "\"text\"", "null", "{}", "\xff\xfe",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xc3\"}",
    "{\"jsonrpc\":\"1.0\",\"id\":1,\"result\":{}}",
    "{\"id\":1,\"result\":{}}",
    "{\"jsonrpc\":\"2.0\",\"id\":999,\"result\":{}}",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
    "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{},\"error\":{\"code\":1,\"message\":\"\"}}",
    "{\"jsonrpc\":\"2.0\",\"id\":2}",
    "{\"jsonrpc\":\"2.0\",\"id\":\"2\",\"result\":{}}",
    "{\"jsonrpc\":\"2.0\",\"id\":2.0,\"result\":{}}",
    "{\"jsonrpc\":\"2.0\",\"id\":-2,\"result\":{}}",
    "{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{}}",
    "{\"jsonrpc\":\"2.0\",\"id\":99999999999999999999,\"result\":{}}",
    "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{}}",
    "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":\"no\"}",
    "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":\"1\",\"message\":\"no\"}}",
    "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":1}}",
    "{\"jsonrpc\":\"2.0\",\"id\":2,\"id\":2,\"result\":{}}",
    "{\"jsonrpc\":\"2.0\",\"method\":7}",
    "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
    "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}} trailing",
};

// With a call pending whose id is 2: none of the lines may be taken for its answer.
static void sixteen_malformed_lines_break_the_server_whatever_they_are(void **state)
{
    struct rig *rig = *state;
    for (size_t i = 0; i < ARRAY_LEN(malformed); i++) {
        struct server server;
        struct heard died = {0}, heard = {0};
        rig_open(rig, RIG_SANDBOX, &server, &died);
        rig_call(rig, RIG_SANDBOX, "read", &heard);
        json_decref(server_expect(&server, "tools/call"));
        for (int n = 0; n < 15; n++)
            server_say_text(&server, malformed[i]);
        server_expect_nothing(rig, &server);
        rig_settle(rig);
        assert_false(heard_yet(&died) || heard_yet(&heard));
        server_say_text(&server, malformed[i]);
        heard_wait(&died);
        heard_wait(&heard);
        assert_int_equal(heard.error.code, ERROR_UNAVAILABLE);
        assert_non_null(strstr(died.reason, "16 times"));
        heard_clear(&died);
        server_close(&server);
        lane_drop(rig->lanes, RIG_SANDBOX);
    }
}

static void fifteen_malformed_lines_are_forgiven(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard died = {0};
    rig_open(rig, RIG_SANDBOX, &server, &died);
    for (size_t i = 0; i < 15; i++)
        server_say_text(&server, malformed[i]);
    expect_alive(rig, &server);
    assert_false(heard_yet(&died));
    server_close(&server);
    heard_wait(&died);
    heard_clear(&died);
}

static void a_second_answer_to_one_call_changes_nothing(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard heard = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    rig_call(rig, RIG_SANDBOX, "read", &heard);
    json_t *request = server_expect(&server, "tools/call");
    json_incref(request);
    server_answer(&server, request, rig_result("first"));
    server_answer(&server, request, rig_result("second"));
    heard_wait(&heard);
    expect_alive(rig, &server);
    assert_string_equal(text_of(&heard), "first");
    heard_clear(&heard);
    server_close(&server);
}

static void answers_may_come_in_pieces_of_one_byte(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard heard = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    rig_call(rig, RIG_SANDBOX, "read", &heard);
    json_decref(server_expect(&server, "tools/call"));
    const char *line = "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"\xf0\x9f\x98\x80 \xc3\xa9\"}]}}\n";
    for (const char *at = line; *at; at++) {
        server_say(&server, at, 1);
        if (at - line > 80)
            rig_settle(rig); // the loop reads between the bytes of a character
    }
    heard_wait(&heard);
    assert_string_equal(text_of(&heard), "\xf0\x9f\x98\x80 \xc3\xa9");
    heard_clear(&heard);
    server_close(&server);
}

static void several_answers_may_come_in_one_piece(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard heard[3] = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    for (size_t i = 0; i < 3; i++) {
        lane_request(rig->lanes, RIG_SANDBOX, "chat2shell/exec_read", json_object(), 1000, heard_answer, &heard[i]);
        json_decref(server_expect(&server, "chat2shell/exec_read"));
    }
    const char *lines = "{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{\"n\":4}}\r\n{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"n\":2}}\n"
                        "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"n\":3}}\n";
    server_say(&server, lines, strlen(lines));
    for (size_t i = 0; i < 3; i++) {
        heard_wait(&heard[i]);
        assert_int_equal(json_get_int(heard[i].answer, "n", -1), 2 + i);
        heard_clear(&heard[i]);
    }
    server_close(&server);
}

// ---- sizes ---------------------------------------------------------------------------------------------------------

static void an_answer_of_20_mib_arrives_whole(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard heard = {0};
    size_t len = 20 * 1024 * 1024;
    CLEANUP_FREE char *big = mem_alloc(len + 1);
    memset(big, 'x', len);
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    rig_call(rig, RIG_SANDBOX, "read", &heard);
    server_answer(&server, server_expect(&server, "tools/call"), rig_result(big));
    heard_wait(&heard);
    assert_int_equal(heard.result, 0);
    assert_int_equal(strlen(text_of(&heard)), len);
    heard_clear(&heard);
    expect_alive(rig, &server);
    server_close(&server);
}

static void a_request_of_20_mib_waits_until_the_server_reads(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard heard = {0};
    size_t len = 20 * 1024 * 1024;
    CLEANUP_FREE char *big = mem_alloc(len + 1);
    memset(big, 'y', len);
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    lane_call_tool(rig->lanes, RIG_SANDBOX, "write", json_pack("{s:s}", "content", big), heard_answer, &heard);
    rig_settle(rig); // the pipe is full; the loop is not
    json_t *request = server_expect(&server, "tools/call");
    const json_t *arguments = json_object_get(json_object_get(request, "params"), "arguments");
    assert_string_equal(json_get_text(arguments, "content"), big);
    server_answer(&server, request, rig_result("ok"));
    heard_wait(&heard);
    assert_int_equal(heard.result, 0);
    heard_clear(&heard);
    expect_alive(rig, &server);
    server_close(&server);
}

static void a_request_over_24_mib_is_refused_and_the_lane_goes_on(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard heard = {0};
    size_t len = GUEST_MESSAGE_MAX_BYTES;
    CLEANUP_FREE char *big = mem_alloc(len + 1);
    memset(big, 'y', len);
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    lane_call_tool(rig->lanes, RIG_SANDBOX, "write", json_pack("{s:s}", "content", big), heard_answer, &heard);
    heard_wait(&heard);
    assert_int_equal(heard.error.code, ERROR_TOO_LARGE);
    expect_alive(rig, &server);
    server_close(&server);
}

static void requests_beyond_what_may_wait_for_the_pipe_are_refused(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard heard[12] = {0};
    size_t len = 4 * 1024 * 1024, refused = 0;
    CLEANUP_FREE char *big = mem_alloc(len + 1);
    memset(big, 'y', len);
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    for (size_t i = 0; i < ARRAY_LEN(heard); i++)
        lane_request(rig->lanes, RIG_SANDBOX, "chat2shell/exec_write", json_pack("{s:s}", "data", big), 60000, heard_answer, &heard[i]);
    rig_settle(rig);
    for (size_t i = 0; i < ARRAY_LEN(heard); i++)
        refused += heard_yet(&heard[i]);
    assert_in_range(refused, 4, 5); // 32 MiB wait, and the pipe holds a little
    for (size_t i = 0; i < ARRAY_LEN(heard) - refused; i++)
        server_answer(&server, server_expect(&server, "chat2shell/exec_write"), json_object());
    for (size_t i = 0; i < ARRAY_LEN(heard); i++) {
        heard_wait(&heard[i]);
        if (heard[i].result < 0)
            assert_int_equal(heard[i].error.code, ERROR_LIMIT);
        heard_clear(&heard[i]);
    }
    expect_alive(rig, &server);
    server_close(&server);
}

static void *say_endlessly(void *arg)
{
    struct server *server = arg;
    CLEANUP_FREE char *bytes = mem_alloc(1024 * 1024);
    memset(bytes, 'z', 1024 * 1024);
    for (int i = 0; i < 40; i++)
        server_say(server, bytes, 1024 * 1024);
    return NULL;
}

static void a_line_over_24_mib_breaks_the_server(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard died = {0};
    pthread_t thread;
    rig_open(rig, RIG_SANDBOX, &server, &died);
    pthread_create(&thread, NULL, say_endlessly, &server);
    heard_wait(&died);
    assert_non_null(strstr(died.reason, "24 MiB"));
    pthread_join(thread, NULL);
    heard_clear(&died);
    server_close(&server);
}

static void a_large_line_that_is_never_finished_breaks_the_server_after_a_minute(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard died = {0};
    CLEANUP_FREE char *bytes = mem_alloc(1024 * 1024);
    memset(bytes, 'z', 1024 * 1024);
    rig_open(rig, RIG_SANDBOX, &server, &died);
    server_say(&server, bytes, 1024 * 1024);
    rig_advance(rig, 59000);
    server_say(&server, bytes, 10);
    rig_settle(rig);
    assert_false(heard_yet(&died));
    rig_advance(rig, 2000);
    heard_wait(&died);
    assert_non_null(strstr(died.reason, "minute"));
    heard_clear(&died);
    server_close(&server);
}

static void a_message_of_millions_of_values_breaks_the_server_before_it_is_parsed(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard died = {0};
    size_t pairs = 300000;
    struct buffer line = BUFFER_INIT(8 * 1024 * 1024);
    buffer_append_text(&line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[{}");
    for (size_t i = 0; i < pairs; i++)
        buffer_append_text(&line, ",{}");
    buffer_append_text(&line, "]}\n");
    rig_open(rig, RIG_SANDBOX, &server, &died);
    server_say(&server, line.data, line.len);
    heard_wait(&died);
    assert_non_null(strstr(died.reason, "values"));
    heard_clear(&died);
    buffer_free(&line);
    server_close(&server);
}

static void a_message_nested_a_thousand_deep_is_one_strike(void **state)
{
    struct rig *rig = *state;
    struct server server;
    char line[2001];
    memset(line, '[', 1000);
    memset(line + 1000, ']', 1000);
    line[2000] = '\0';
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    server_say_text(&server, line);
    expect_alive(rig, &server);
    server_close(&server);
}

// ---- unasked -------------------------------------------------------------------------------------------------------

static void notifications_are_ignored_and_pings_answered(void **state)
{
    struct rig *rig = *state;
    struct server server;
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    server_say_text(&server, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"data\":\"hello\"}}");
    server_say_text(&server, "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}");
    json_t *pong = server_next(&server);
    assert_string_equal(json_get_text(pong, "id"), "p");
    assert_true(json_is_object(json_object_get(pong, "result")));
    json_decref(pong);
    server_say_text(&server, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"sampling/createMessage\"}");
    json_t *refusal = server_next(&server);
    assert_int_equal(json_get_int(json_object_get(refusal, "error"), "code", 0), -32601);
    json_decref(refusal);
    expect_alive(rig, &server);
    server_close(&server);
}

static void a_flood_of_notifications_breaks_the_server(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard died = {0};
    rig_open(rig, RIG_SANDBOX, &server, &died);
    for (int i = 0; i < 1001; i++)
        server_say_text(&server, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}");
    heard_wait(&died);
    assert_non_null(strstr(died.reason, "flooded"));
    heard_clear(&died);
    server_close(&server);
}

// ---- ends ----------------------------------------------------------------------------------------------------------

static void a_server_that_closes_its_input_is_dead_and_its_last_answer_counts(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard died = {0}, heard = {0};
    rig_open(rig, RIG_SANDBOX, &server, &died);
    rig_call(rig, RIG_SANDBOX, "read", &heard);
    server_answer(&server, server_expect(&server, "tools/call"), rig_result("last words"));
    close(TAKE_FD(server.input_fd));
    heard_wait(&heard);
    heard_wait(&died);
    assert_int_equal(heard.result, 0);
    heard_clear(&heard);
    heard_clear(&died);
    server_close(&server);
}

static void a_server_that_dies_while_a_large_request_is_sent_is_just_dead(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard died = {0}, heard = {0};
    CLEANUP_FREE char *big = mem_alloc(4 * 1024 * 1024 + 1);
    memset(big, 'y', 4 * 1024 * 1024);
    rig_open(rig, RIG_SANDBOX, &server, &died);
    lane_call_tool(rig->lanes, RIG_SANDBOX, "write", json_pack("{s:s}", "content", big), heard_answer, &heard);
    rig_settle(rig);
    server_close(&server);
    heard_wait(&heard);
    heard_wait(&died);
    assert_int_equal(heard.error.code, ERROR_UNAVAILABLE);
    heard_clear(&died);
}

static void a_stderr_without_newlines_costs_400_characters(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard died = {0};
    char bytes[4096];
    memset(bytes, 'e', sizeof(bytes));
    rig_open(rig, RIG_SANDBOX, &server, &died);
    for (int i = 0; i < 256; i++)
        assert_int_equal(write(server.error_fd, bytes, sizeof(bytes)), sizeof(bytes));
    server_close(&server);
    heard_wait(&died);
    assert_int_equal(strlen(died.last_lines), 401);
    heard_clear(&died);
}

static void random_bytes_never_do_more_than_break_the_server(void **state)
{
    struct rig *rig = *state;
    for (unsigned seed = 1; seed <= 40; seed++) {
        struct server server;
        struct heard died = {0}, heard = {0};
        rig_open(rig, RIG_SANDBOX, &server, &died);
        rig_call(rig, RIG_SANDBOX, "read", &heard);
        unsigned at = seed * 2654435761u;
        for (int i = 0; i < 20; i++) {
            char bytes[512];
            for (size_t n = 0; n < sizeof(bytes); n++) {
                at = at * 1664525u + 1013904223u;
                bytes[n] = (char)(at >> 24);
            }
            bytes[511] = '\n';
            server_say(&server, bytes, sizeof(bytes));
        }
        heard_wait(&died);
        heard_wait(&heard);
        heard_clear(&died);
        server_close(&server);
        lane_drop(rig->lanes, RIG_SANDBOX);
    }
}

int main(void)
{
#define LANE_TEST(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        LANE_TEST(sixteen_malformed_lines_break_the_server_whatever_they_are),
        LANE_TEST(fifteen_malformed_lines_are_forgiven),
        LANE_TEST(a_second_answer_to_one_call_changes_nothing),
        LANE_TEST(answers_may_come_in_pieces_of_one_byte),
        LANE_TEST(several_answers_may_come_in_one_piece),
        LANE_TEST(an_answer_of_20_mib_arrives_whole),
        LANE_TEST(a_request_of_20_mib_waits_until_the_server_reads),
        LANE_TEST(a_request_over_24_mib_is_refused_and_the_lane_goes_on),
        LANE_TEST(requests_beyond_what_may_wait_for_the_pipe_are_refused),
        LANE_TEST(a_line_over_24_mib_breaks_the_server),
        LANE_TEST(a_large_line_that_is_never_finished_breaks_the_server_after_a_minute),
        LANE_TEST(a_message_of_millions_of_values_breaks_the_server_before_it_is_parsed),
        LANE_TEST(a_message_nested_a_thousand_deep_is_one_strike),
        LANE_TEST(notifications_are_ignored_and_pings_answered),
        LANE_TEST(a_flood_of_notifications_breaks_the_server),
        LANE_TEST(a_server_that_closes_its_input_is_dead_and_its_last_answer_counts),
        LANE_TEST(a_server_that_dies_while_a_large_request_is_sent_is_just_dead),
        // A flood is read in bursts with rests between: the clock has to go.
        cmocka_unit_test_setup_teardown(a_stderr_without_newlines_costs_400_characters, rig_setup_real, rig_teardown),
        LANE_TEST(random_bytes_never_do_more_than_break_the_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
