// A lane's turn, queue, deadlines and life. The test is the tool server (tests/support/lane_rig.h).
#include "controller/queue/fair.h"
#include "reconcilers/session/lane.h"
#include "tests/support/lane_rig.h"
#include "controller/base/memory.h"
#include "reconcilers/session/rpc.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DAY_MS (24LL * 3600 * 1000)

static const char *text_of(const struct heard *heard)
{
    return json_get_text(json_array_get(json_object_get(heard->answer, "content"), 0), "text");
}

static struct wall_time now(const struct rig *rig)
{
    return clock_wall(rig->clock);
}

static struct wall_time day_ago(const struct rig *rig)
{
    return (struct wall_time){now(rig).ms - DAY_MS};
}

static void answer_text(struct server *server, const char *text)
{
    server_answer(server, server_expect(server, "tools/call"), rig_result(text));
}

static void expect_cancelled(struct server *server, json_t *request)
{
    json_t *notice = server_expect(server, "notifications/cancelled");
    assert_int_equal(json_get_int(json_object_get(notice, "params"), "requestId", -1), json_get_int(request, "id", -2));
    json_decref(notice);
}

// ---- handshake -----------------------------------------------------------------------------------------------------

static void the_hello_is_printable_and_short(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard ready = {0};
    rig_open_unfinished(rig, RIG_SANDBOX, &server, &ready, NULL);
    json_t *hello = server_hello(false), *info = json_object_get(hello, "serverInfo");
    char name[4001];
    memset(name, 'n', 4000);
    name[4000] = '\0';
    json_object_set_new(info, "name", json_string(name));
    json_object_set_new(info, "version", json_string("1\x1b[2J"));
    server_answer(&server, server_expect(&server, "initialize"), hello);
    heard_wait(&ready);
    assert_int_equal(ready.result, 0);
    assert_false(ready.has_sessions);
    assert_true(strlen(ready.server_name) < 150);
    assert_null(strchr(ready.server_name, '\x1b'));
    heard_clear(&ready);
    server_close(&server);
}

static void a_handshake_is_over_after_a_minute(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard ready = {0}, died = {0};
    rig_open_unfinished(rig, RIG_SANDBOX, &server, &ready, &died);
    json_decref(server_expect(&server, "initialize"));
    rig_advance(rig, LANE_HANDSHAKE_MS - 1);
    assert_false(heard_yet(&ready));
    rig_advance(rig, 1);
    heard_wait(&ready);
    assert_int_equal(ready.result, -1);
    assert_int_equal(ready.error.code, ERROR_UNAVAILABLE);
    rig_settle(rig);
    assert_false(heard_yet(&died)); // one of the two, not both
    server_close(&server);
}

static void a_server_that_ends_before_the_handshake_says_why(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard ready = {0};
    rig_open_unfinished(rig, RIG_SANDBOX, &server, &ready, NULL);
    json_decref(server_expect(&server, "initialize"));
    assert_int_equal(write(server.error_fd, "no such root\n", 13), 13);
    server_close(&server);
    heard_wait(&ready);
    assert_int_equal(ready.result, -1);
    assert_non_null(strstr(ready.error.message, "no such root"));
}

static void a_call_to_a_lane_that_is_opening_is_refused(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard ready = {0}, heard = {0};
    rig_open_unfinished(rig, RIG_SANDBOX, &server, &ready, NULL);
    rig_call(rig, RIG_SANDBOX, "read", &heard);
    heard_wait(&heard);
    assert_int_equal(heard.error.code, ERROR_STATE);
    lane_drop(rig->lanes, RIG_SANDBOX);
    heard_wait(&ready); // told although it was dropped
    assert_int_equal(ready.result, -1);
    server_close(&server);
}

static void a_second_lane_for_a_sandbox_is_refused_and_the_first_stays(void **state)
{
    struct rig *rig = *state;
    struct server server, second;
    struct heard ready = {0}, heard = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    rig_open_unfinished(rig, RIG_SANDBOX, &second, &ready, NULL);
    heard_wait(&ready);
    assert_int_equal(ready.error.code, ERROR_EXISTS);
    rig_call(rig, RIG_SANDBOX, "read", &heard);
    answer_text(&server, "first");
    heard_wait(&heard);
    assert_string_equal(text_of(&heard), "first");
    heard_clear(&heard);
    server_close(&second);
    server_close(&server);
}

// ---- turns ---------------------------------------------------------------------------------------------------------

static void calls_of_one_sandbox_run_one_after_another_in_order_of_arrival(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard heard[20] = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    for (size_t i = 0; i < 20; i++) {
        CLEANUP_FREE char *tool = mem_format("tool%zu", i);
        rig_call(rig, RIG_SANDBOX, tool, &heard[i]);
    }
    for (size_t i = 0; i < 20; i++) {
        CLEANUP_FREE char *tool = mem_format("tool%zu", i);
        json_t *request = server_expect(&server, "tools/call");
        assert_string_equal(json_get_text(json_object_get(request, "params"), "name"), tool);
        server_expect_nothing(rig, &server);
        assert_false(heard_yet(&heard[i]));
        server_answer(&server, request, rig_result(tool));
        heard_wait(&heard[i]);
        assert_string_equal(text_of(&heard[i]), tool);
        heard_clear(&heard[i]);
    }
    server_close(&server);
}

static void a_stalled_sandbox_does_not_hold_up_another(void **state)
{
    struct rig *rig = *state;
    struct server stalled, server;
    struct heard waiting = {0}, heard = {0};
    rig_open(rig, RIG_SANDBOX, &stalled, NULL);
    rig_open(rig, RIG_OTHER, &server, NULL);
    rig_call(rig, RIG_SANDBOX, "slow", &waiting);
    rig_call(rig, RIG_OTHER, "fast", &heard);
    answer_text(&server, "fast");
    heard_wait(&heard);
    assert_int_equal(heard.result, 0);
    assert_false(heard_yet(&waiting));
    heard_clear(&heard);
    server_close(&stalled);
    heard_wait(&waiting);
    server_close(&server);
}

static void the_65th_waiting_call_of_one_caller_is_refused_with_a_way_out(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard heard[FAIR_MOST(LANE_QUEUE_MAX) + 2] = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    for (size_t i = 0; i < ARRAY_LEN(heard); i++) // one has the turn
        rig_call(rig, RIG_SANDBOX, "read", &heard[i]);
    heard_wait(&heard[FAIR_MOST(LANE_QUEUE_MAX) + 1]);
    assert_int_equal(heard[FAIR_MOST(LANE_QUEUE_MAX) + 1].error.code, ERROR_LIMIT);
    assert_true(heard[FAIR_MOST(LANE_QUEUE_MAX) + 1].error.hint[0]);
    for (size_t i = 0; i <= FAIR_MOST(LANE_QUEUE_MAX); i++) {
        answer_text(&server, "ok");
        heard_wait(&heard[i]);
        assert_int_equal(heard[i].result, 0);
        heard_clear(&heard[i]);
    }
    server_close(&server);
}

static void a_call_without_a_lane_is_not_found(void **state)
{
    struct rig *rig = *state;
    struct heard heard = {0};
    rig_call(rig, RIG_SANDBOX, "read", &heard);
    heard_wait(&heard);
    assert_int_equal(heard.error.code, ERROR_NOT_FOUND);
    assert_int_equal(lane_last_activity(rig->lanes, RIG_SANDBOX).ms, 0);
}

static void an_error_of_the_server_is_its_sentence(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard heard = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    rig_call(rig, RIG_SANDBOX, "read", &heard);
    server_refuse(&server, server_expect(&server, "tools/call"), -32602, "path is \x1b[31mmissing");
    heard_wait(&heard);
    assert_int_equal(heard.error.code, ERROR_INVALID);
    assert_non_null(strstr(heard.error.message, "missing"));
    assert_null(strchr(heard.error.message, '\x1b'));
    server_close(&server);
}

static void an_answer_that_is_no_tool_result_is_an_error(void **state)
{
    static const char *const results[] = {"7", "{}", "{\"content\": 1}", "{\"content\": [1]}", "{\"content\": [{\"type\": 3}]}", "null"};
    struct rig *rig = *state;
    struct server server;
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    for (size_t i = 0; i < ARRAY_LEN(results); i++) {
        struct heard heard = {0};
        rig_call(rig, RIG_SANDBOX, "read", &heard);
        server_answer(&server, server_expect(&server, "tools/call"), json_loads(results[i], JSON_DECODE_ANY, NULL));
        heard_wait(&heard);
        assert_int_equal(heard.error.code, ERROR_UNAVAILABLE);
    }
    server_close(&server);
}

static void a_waiting_tool_holds_up_nobody_and_holds_off_expiry(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard waiting = {0}, heard = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    lane_call_waiting_tool(rig->lanes, RIG_SANDBOX, "wait_for_handoff", NULL, 60000, heard_answer, &waiting);
    json_t *request = server_expect(&server, "tools/call");
    rig_call(rig, RIG_SANDBOX, "read", &heard);
    answer_text(&server, "read");
    heard_wait(&heard);
    assert_string_equal(text_of(&heard), "read");
    assert_false(heard_yet(&waiting));
    assert_false(lane_close_if_idle(rig->lanes, RIG_SANDBOX, (struct wall_time){now(rig).ms + DAY_MS}, "expired"));
    server_answer(&server, request, rig_result("done"));
    heard_wait(&waiting);
    assert_string_equal(text_of(&waiting), "done");
    heard_clear(&heard);
    heard_clear(&waiting);
    server_close(&server);
}

static void a_waiting_tool_ends_30_s_after_its_own_bound_or_with_its_caller(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard late = {0}, left = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    lane_call_waiting_tool(rig->lanes, RIG_SANDBOX, "wait_for_handoff", NULL, 20000, heard_answer, &late);
    json_t *request = server_expect(&server, "tools/call");
    rig_advance(rig, 49999);
    assert_false(heard_yet(&late));
    rig_advance(rig, 1);
    heard_wait(&late);
    assert_int_equal(late.error.code, ERROR_TIMEOUT);
    expect_cancelled(&server, request);
    server_refuse(&server, request, -32800, "cancelled");
    struct lane_call *call =
        lane_call_waiting_tool(rig->lanes, RIG_SANDBOX, "wait_for_handoff", NULL, 20000, heard_answer, &left);
    request = server_expect(&server, "tools/call");
    assert_true(lane_call_cancel(call));
    expect_cancelled(&server, request);
    server_refuse(&server, request, -32800, "cancelled");
    rig_settle(rig);
    assert_false(heard_yet(&left));
    server_close(&server);
}

// ---- deadlines -----------------------------------------------------------------------------------------------------

static void a_call_past_its_deadline_is_cancelled_and_the_lane_goes_on(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard slow = {0}, next = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    rig_call(rig, RIG_SANDBOX, "slow", &slow);
    json_t *request = server_expect(&server, "tools/call");
    rig_advance(rig, LANE_CALL_DEADLINE_MS - 1);
    assert_false(heard_yet(&slow));
    rig_advance(rig, 1);
    heard_wait(&slow);
    assert_int_equal(slow.error.code, ERROR_TIMEOUT);
    expect_cancelled(&server, request);
    rig_call(rig, RIG_SANDBOX, "next", &next);
    server_expect_nothing(rig, &server); // serial order: the cancelled call still runs
    server_refuse(&server, request, -32800, "cancelled");
    answer_text(&server, "next");
    heard_wait(&next);
    assert_int_equal(next.result, 0);
    heard_clear(&next);
    server_close(&server);
}

static void a_call_whose_work_is_not_wanted_is_cancelled_at_the_tool_server(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard stopped = {0}, queued = {0}, next = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    struct lane_call *call = rig_call(rig, RIG_SANDBOX, "search", &stopped);
    json_t *request = server_expect(&server, "tools/call");
    struct lane_call *waiting = rig_call(rig, RIG_SANDBOX, "queued", &queued);
    rig_call(rig, RIG_SANDBOX, "next", &next);
    rig_settle(rig);
    assert_true(lane_call_stop(waiting)); // taken out of the queue: nothing to tell the server
    assert_true(lane_call_stop(call));
    expect_cancelled(&server, request);
    server_expect_nothing(rig, &server); // serial order until the server has confirmed
    server_refuse(&server, request, -32800, "cancelled");
    answer_text(&server, "next");
    heard_wait(&next);
    assert_int_equal(next.result, 0);
    assert_false(heard_yet(&stopped));
    assert_false(heard_yet(&queued));
    heard_clear(&next);
    server_close(&server);
}

static void a_stop_that_meets_the_answer_is_harmless(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard stopped = {0}, next = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    struct lane_call *call = rig_call(rig, RIG_SANDBOX, "read", &stopped);
    json_t *request = server_expect(&server, "tools/call");
    assert_true(lane_call_stop(call));
    server_answer(&server, request, rig_result("done all the same"));
    rig_call(rig, RIG_SANDBOX, "next", &next);
    json_t *message = server_next(&server);
    if (strcmp(json_get_text(message, "method"), "notifications/cancelled") == 0) { // the answer may have been faster
        json_decref(message);
        message = server_expect(&server, "tools/call");
    }
    server_answer(&server, message, rig_result("next"));
    heard_wait(&next);
    assert_int_equal(next.result, 0);
    assert_false(heard_yet(&stopped));
    heard_clear(&next);
    server_close(&server);
}

static void a_cancelled_tool_that_is_never_answered_gives_its_turn_back_and_a_late_answer_is_dropped(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard slow = {0}, next = {0}, died = {0};
    rig_open(rig, RIG_SANDBOX, &server, &died);
    for (int i = 0; i < 3 * RPC_GIVEN_UP_MAX; i++) { // answers that do come owe nothing
        struct lane_call *call = rig_call(rig, RIG_SANDBOX, "slow", &slow);
        json_t *request = server_expect(&server, "tools/call");
        assert_true(lane_call_stop(call));
        expect_cancelled(&server, request);
        rig_call(rig, RIG_SANDBOX, "next", &next);
        rig_advance(rig, RPC_CANCEL_MS - 1);
        server_expect_nothing(rig, &server);
        rig_advance(rig, 1);
        answer_text(&server, "next");
        heard_wait(&next);
        assert_int_equal(next.result, 0);
        heard_clear(&next);
        server_answer(&server, request, rig_result("late"));
        rig_settle(rig);
    }
    assert_false(heard_yet(&died));
    server_close(&server);
}

static void a_server_that_goes_on_with_many_cancelled_tools_is_broken(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard slow = {0}, died = {0};
    rig_open(rig, RIG_SANDBOX, &server, &died);
    for (int i = 0; i <= RPC_GIVEN_UP_MAX; i++) {
        assert_false(heard_yet(&died));
        struct lane_call *call = rig_call(rig, RIG_SANDBOX, "slow", &slow);
        json_decref(server_expect(&server, "tools/call"));
        assert_true(lane_call_stop(call));
        json_decref(server_expect(&server, "notifications/cancelled"));
        rig_advance(rig, RPC_CANCEL_MS);
    }
    heard_wait(&died);
    assert_non_null(strstr(died.reason, "cancelled"));
    heard_clear(&died);
    server_close(&server);
}

static void a_cancelled_call_of_ours_that_is_never_answered_breaks_the_server_after_10_s(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard slow = {0}, next = {0}, died = {0};
    rig_open(rig, RIG_SANDBOX, &server, &died);
    lane_request(rig->lanes, RIG_SANDBOX, "chat2shell/git_unsaved", NULL, 5000, heard_answer, &slow);
    json_decref(server_expect(&server, "chat2shell/git_unsaved"));
    rig_advance(rig, 5000);
    heard_wait(&slow);
    rig_call(rig, RIG_SANDBOX, "next", &next);
    rig_advance(rig, 9999);
    assert_false(heard_yet(&died));
    rig_advance(rig, 1);
    heard_wait(&died);
    heard_wait(&next);
    assert_int_equal(next.error.code, ERROR_UNAVAILABLE);
    assert_non_null(strstr(died.reason, "cancelled"));
    heard_clear(&died);
    server_close(&server);
}

static void a_call_that_never_gets_its_turn_ends_at_its_deadline(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard slow = {0}, waiting = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    rig_call(rig, RIG_SANDBOX, "slow", &slow);
    json_t *request = server_expect(&server, "tools/call");
    rig_advance(rig, LANE_CALL_DEADLINE_MS / 2);
    rig_call(rig, RIG_SANDBOX, "waiting", &waiting);
    rig_advance(rig, LANE_CALL_DEADLINE_MS / 2);
    heard_wait(&slow);
    expect_cancelled(&server, request);
    server_refuse(&server, request, -32800, "cancelled");
    request = server_expect(&server, "tools/call"); // its turn came: the deadline runs from arrival
    rig_advance(rig, LANE_CALL_DEADLINE_MS / 2);
    heard_wait(&waiting);
    assert_int_equal(waiting.error.code, ERROR_TIMEOUT);
    json_decref(request);
    server_close(&server);
}

// ---- leaving -------------------------------------------------------------------------------------------------------

static void a_caller_that_leaves_the_queue_is_not_called_and_not_run(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard first = {0}, left = {0}, last = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    rig_call(rig, RIG_SANDBOX, "first", &first);
    struct lane_call *call = rig_call(rig, RIG_SANDBOX, "left", &left);
    rig_call(rig, RIG_SANDBOX, "last", &last);
    assert_true(lane_call_cancel(call));
    answer_text(&server, "1");
    json_t *request = server_expect(&server, "tools/call");
    assert_string_equal(json_get_text(json_object_get(request, "params"), "name"), "last");
    server_answer(&server, request, rig_result("3"));
    heard_wait(&first);
    heard_wait(&last);
    rig_settle(rig);
    assert_false(heard_yet(&left));
    heard_clear(&first);
    heard_clear(&last);
    server_close(&server);
}

static void a_running_tool_goes_on_when_its_caller_leaves_and_keeps_its_turn(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard left = {0}, next = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    struct lane_call *call = rig_call(rig, RIG_SANDBOX, "write", &left);
    json_t *request = server_expect(&server, "tools/call");
    assert_true(lane_call_cancel(call));
    rig_call(rig, RIG_SANDBOX, "next", &next);
    server_expect_nothing(rig, &server);
    server_answer(&server, request, rig_result("written"));
    answer_text(&server, "next");
    heard_wait(&next);
    assert_false(heard_yet(&left));
    heard_clear(&next);
    server_close(&server);
}

// ---- life ----------------------------------------------------------------------------------------------------------

static void destroying_answers_queued_and_running_calls(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard running = {0}, queued = {0}, late = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    rig_call(rig, RIG_SANDBOX, "running", &running);
    rig_call(rig, RIG_SANDBOX, "queued", &queued);
    json_decref(server_expect(&server, "tools/call"));
    lane_close(rig->lanes, RIG_SANDBOX, "the sandbox is being destroyed");
    rig_call(rig, RIG_SANDBOX, "late", &late);
    heard_wait(&running);
    heard_wait(&queued);
    heard_wait(&late);
    assert_int_equal(running.error.code, ERROR_STATE);
    assert_non_null(strstr(running.error.message, "destroyed"));
    assert_int_equal(queued.error.code, ERROR_STATE);
    assert_string_equal(late.error.message, "the sandbox is being destroyed");
    assert_false(lane_is_open(rig->lanes, RIG_SANDBOX));
    server_close(&server);
}

static void a_reopened_lane_works_again_after_the_abandoned_call_was_answered(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard running = {0}, next = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    rig_call(rig, RIG_SANDBOX, "running", &running);
    json_t *request = server_expect(&server, "tools/call");
    lane_close(rig->lanes, RIG_SANDBOX, "closed");
    heard_wait(&running);
    expect_cancelled(&server, request);
    lane_reopen(rig->lanes, RIG_SANDBOX);
    rig_call(rig, RIG_SANDBOX, "next", &next);
    server_expect_nothing(rig, &server);
    server_refuse(&server, request, -32800, "cancelled");
    answer_text(&server, "next");
    heard_wait(&next);
    assert_int_equal(next.result, 0);
    heard_clear(&next);
    server_close(&server);
}

static void death_is_told_once_with_the_last_lines_and_answers_all_calls(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard died = {0}, running = {0}, queued = {0}, late = {0};
    rig_open(rig, RIG_SANDBOX, &server, &died);
    rig_call(rig, RIG_SANDBOX, "running", &running);
    rig_call(rig, RIG_SANDBOX, "queued", &queued);
    json_decref(server_expect(&server, "tools/call"));
    for (int i = 0; i < 30; i++)
        dprintf(server.error_fd, "line %d \x1b[1m%0500d\n", i, 7);
    server_close(&server);
    heard_wait(&died);
    heard_wait(&running);
    heard_wait(&queued);
    assert_int_equal(running.error.code, ERROR_UNAVAILABLE);
    assert_int_equal(queued.error.code, ERROR_UNAVAILABLE);
    assert_true(died.reason[0]);
    assert_null(strstr(died.last_lines, "line 9 "));
    assert_non_null(strstr(died.last_lines, "line 10 "));
    assert_non_null(strstr(died.last_lines, "line 29 "));
    assert_null(strchr(died.last_lines, '\x1b'));
    assert_true(strlen(died.last_lines) <= 20 * 401);
    rig_call(rig, RIG_SANDBOX, "late", &late);
    heard_wait(&late);
    assert_int_equal(late.error.code, ERROR_UNAVAILABLE);
    assert_true(late.error.hint[0]);
    heard_clear(&died);
}

static void a_dropped_lane_tells_no_death(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard died = {0}, running = {0};
    rig_open(rig, RIG_SANDBOX, &server, &died);
    rig_call(rig, RIG_SANDBOX, "running", &running);
    lane_drop(rig->lanes, RIG_SANDBOX);
    lane_drop(rig->lanes, RIG_SANDBOX); // absent is fine
    heard_wait(&running);
    assert_int_equal(running.error.code, ERROR_STATE);
    server_close(&server);
    rig_settle(rig);
    assert_false(heard_yet(&died));
}

static void freeing_the_lanes_answers_what_is_left(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard running = {0}, queued = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    rig_call(rig, RIG_SANDBOX, "running", &running);
    rig_call(rig, RIG_SANDBOX, "queued", &queued);
    lanes_free(TAKE_PTR(rig->lanes));
    assert_true(heard_yet(&running) && heard_yet(&queued));
    assert_int_equal(running.error.code, ERROR_UNAVAILABLE);
    assert_int_equal(queued.error.code, ERROR_UNAVAILABLE);
    server_close(&server);
}

// ---- activity and expiry -------------------------------------------------------------------------------------------

static int create_sandbox(struct store_tx *tx, void *arg, struct error *err)
{
    static const struct store_actor actor = {"controller", "test"};
    CLEANUP_RECORD struct record *sandbox = record_new(KIND_SANDBOX);
    (void)arg;
    mem_replace(&sandbox->meta.uid, RIG_SANDBOX);
    mem_replace(&sandbox->spec.sandbox.workspace_ref, "w");
    return tx_create(tx, &actor, sandbox, err);
}

static void a_call_is_activity_when_it_starts_and_when_it_ends(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard heard = {0};
    struct error err = ERROR_INIT;
    assert_ok(store_transact(rig->store, create_sandbox, NULL, &err));
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    rig_advance(rig, 1000);
    rig_call(rig, RIG_SANDBOX, "read", &heard);
    assert_int_equal(lane_last_activity(rig->lanes, RIG_SANDBOX).ms, RIG_START_MS + 1000);
    rig_advance(rig, 5000);
    server_refuse(&server, server_expect(&server, "tools/call"), -32603, "failed");
    heard_wait(&heard);
    assert_int_equal(lane_last_activity(rig->lanes, RIG_SANDBOX).ms, RIG_START_MS + 6000);
    assert_int_equal(store_activity(rig->store, RIG_SANDBOX).ms, RIG_START_MS + 6000);
    server_close(&server);
}

static void a_refused_call_does_not_count_but_a_failed_one_does(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard refused = {0}, failed = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    rig_advance(rig, 1000);
    lane_bash_poll(rig->lanes, RIG_SANDBOX, "bash_no", 0, heard_answer, &failed);
    heard_wait(&failed);
    assert_int_equal(lane_last_activity(rig->lanes, RIG_SANDBOX).ms, RIG_START_MS + 1000);
    rig_advance(rig, 1000);
    lane_close(rig->lanes, RIG_SANDBOX, "closed");
    rig_call(rig, RIG_SANDBOX, "read", &refused);
    heard_wait(&refused);
    assert_int_equal(lane_last_activity(rig->lanes, RIG_SANDBOX).ms, RIG_START_MS + 1000);
    server_close(&server);
}

static void a_stepped_back_clock_does_not_shorten_the_promise(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard heard[2] = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    for (size_t i = 0; i < 2; i++) {
        rig_call(rig, RIG_SANDBOX, "read", &heard[i]);
        answer_text(&server, "x");
        heard_wait(&heard[i]);
        heard_clear(&heard[i]);
        clock_step_wall(rig->clock, -3600 * 1000);
    }
    assert_int_equal(lane_last_activity(rig->lanes, RIG_SANDBOX).ms, RIG_START_MS);
    server_close(&server);
}

static void expiry_closes_an_idle_lane_and_no_other(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard heard = {0}, late = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    rig_call(rig, RIG_SANDBOX, "slow", &heard);
    rig_advance(rig, 1000);
    assert_false(lane_close_if_idle(rig->lanes, RIG_SANDBOX, now(rig), "expired")); // running
    answer_text(&server, "done");
    heard_wait(&heard);
    heard_clear(&heard);
    rig_advance(rig, DAY_MS - 1);
    assert_false(lane_close_if_idle(rig->lanes, RIG_SANDBOX, day_ago(rig), "expired")); // newer
    rig_advance(rig, 1);
    assert_true(lane_close_if_idle(rig->lanes, RIG_SANDBOX, day_ago(rig), "expired"));
    rig_call(rig, RIG_SANDBOX, "late", &late);
    heard_wait(&late);
    assert_int_equal(late.error.code, ERROR_STATE);
    assert_string_equal(late.error.message, "expired");
    server_expect_nothing(rig, &server);
    server_close(&server);
}

static void the_control_planes_own_requests_reach_a_closed_lane_and_are_no_activity(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard own = {0}, second = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    rig_advance(rig, 1000);
    assert_true(lane_close_if_idle(rig->lanes, RIG_SANDBOX, now(rig), "expired"));
    lane_request_closed(rig->lanes, RIG_SANDBOX, "chat2shell/git_unsaved", json_object(), 2000, heard_answer, &own);
    json_t *request = server_expect(&server, "chat2shell/git_unsaved");
    assert_true(lane_close_if_idle(rig->lanes, RIG_SANDBOX, now(rig), "expired")); // it stays closed meanwhile
    server_answer(&server, request, json_pack("{s:b}", "is_repository", 1));
    heard_wait(&own);
    assert_int_equal(own.result, 0);
    heard_clear(&own);
    assert_int_equal(lane_last_activity(rig->lanes, RIG_SANDBOX).ms, 0);
    lane_close(rig->lanes, RIG_SANDBOX, "destroyed"); // they may still be asked
    lane_request_closed(rig->lanes, RIG_SANDBOX, "chat2shell/git_unsaved", json_object(), 2000, heard_answer, &second);
    json_decref(server_expect(&server, "chat2shell/git_unsaved"));
    rig_advance(rig, 2000);
    heard_wait(&second);
    assert_int_equal(second.error.code, ERROR_TIMEOUT);
    server_close(&server);
}

struct race {
    struct rig *rig;
    pthread_barrier_t start;
    unsigned delay[2];
    struct heard heard;
    bool is_closed;
};

static void spin(unsigned turns)
{
    for (volatile unsigned i = 0; i < turns; i++)
        ;
}

static void *renew(void *arg)
{
    struct race *race = arg;
    pthread_barrier_wait(&race->start);
    spin(race->delay[0]);
    rig_call(race->rig, RIG_SANDBOX, "renew", &race->heard);
    return NULL;
}

static void *expire(void *arg)
{
    struct race *race = arg;
    pthread_barrier_wait(&race->start);
    spin(race->delay[1]);
    race->is_closed = lane_close_if_idle(race->rig->lanes, RIG_SANDBOX, day_ago(race->rig), "expired");
    return NULL;
}

// Either the call won (it runs, the lane stays) or the expiry won (the call is refused and never reached the sandbox).
static void check_race(struct race *race, struct server *server)
{
    if (race->is_closed) {
        heard_wait(&race->heard);
        assert_int_equal(race->heard.result, -1);
        assert_string_equal(race->heard.error.message, "expired");
        server_expect_nothing(race->rig, server);
        lane_reopen(race->rig->lanes, RIG_SANDBOX);
    } else {
        answer_text(server, "renewed");
        heard_wait(&race->heard);
        assert_int_equal(race->heard.result, 0);
    }
    heard_clear(&race->heard);
}

static void a_renewal_and_an_expiry_at_the_same_tick_never_both_win(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct race race = {.rig = rig};
    unsigned closed = 0;
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    pthread_barrier_init(&race.start, NULL, 2);
    for (unsigned seed = 1; seed <= 1000; seed++) {
        pthread_t threads[2];
        clock_advance(rig->clock, DAY_MS);
        race.delay[0] = seed * 7919 % 4096;
        race.delay[1] = seed * 104729 % 4096;
        pthread_create(&threads[0], NULL, renew, &race);
        pthread_create(&threads[1], NULL, expire, &race);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        closed += race.is_closed;
        check_race(&race, &server);
    }
    assert_in_range(closed, 1, 999); // both orders were seen
    pthread_barrier_destroy(&race.start);
    server_close(&server);
}

struct expiry {
    struct rig *rig;
    struct heard *heard;
    bool is_closed;
};

static void call_then_expire(void *arg)
{
    struct expiry *expiry = arg;
    rig_call(expiry->rig, RIG_SANDBOX, "read", expiry->heard);
    expiry->is_closed = lane_close_if_idle(expiry->rig->lanes, RIG_SANDBOX, now(expiry->rig), "expired");
}

static void an_expiry_on_the_loop_thread_sees_calls_that_were_made_before(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard heard = {0};
    struct expiry expiry = {rig, &heard, false};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    loop_call(rig->loop, call_then_expire, &expiry);
    assert_false(expiry.is_closed);
    answer_text(&server, "ok");
    heard_wait(&heard);
    heard_clear(&heard);
    server_close(&server);
}

// How a caller uses the handle: it is looked at under the caller's own lock, which `done` takes too.
struct patient {
    pthread_mutex_t mutex;
    struct lane_call *call; // NULL: done ran or has been given up
    struct heard heard;
    unsigned delay;
    bool has_left;
};

static void patient_done(void *arg, int result, json_t *answer, const struct error *err)
{
    struct patient *patient = arg;
    pthread_mutex_lock(&patient->mutex);
    patient->call = NULL;
    pthread_mutex_unlock(&patient->mutex);
    heard_answer(&patient->heard, result, answer, err);
}

static void *patient_leaves(void *arg)
{
    struct patient *patient = arg;
    spin(patient->delay);
    pthread_mutex_lock(&patient->mutex);
    patient->has_left = patient->call && lane_call_cancel(patient->call);
    pthread_mutex_unlock(&patient->mutex);
    return NULL;
}

// done runs, or cancel said that it will not: exactly one, whoever is first. Freed memory is what ASan looks for.
static void leaving_and_answering_at_the_same_time_is_one_of_the_two(void **state)
{
    struct rig *rig = *state;
    struct server server;
    unsigned left = 0;
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    for (unsigned seed = 1; seed <= 500; seed++) {
        struct patient patient = {.mutex = PTHREAD_MUTEX_INITIALIZER, .delay = seed * 104729 % 65536};
        struct heard next = {0};
        pthread_mutex_lock(&patient.mutex);
        patient.call = lane_call_tool(rig->lanes, RIG_SANDBOX, "read", json_object(), patient_done, &patient);
        pthread_mutex_unlock(&patient.mutex);
        json_t *request = server_expect(&server, "tools/call");
        pthread_t thread;
        pthread_create(&thread, NULL, patient_leaves, &patient);
        spin(seed * 7919 % 65536);
        server_answer(&server, request, rig_result("x"));
        pthread_join(thread, NULL);
        rig_call(rig, RIG_SANDBOX, "next", &next);
        answer_text(&server, "next");
        heard_wait(&next);
        assert_true(patient.has_left != heard_yet(&patient.heard));
        left += patient.has_left;
        heard_clear(&next);
        heard_clear(&patient.heard);
    }
    assert_in_range(left, 1, 500);
    server_close(&server);
}

int main(void)
{
#define LANE_TEST(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        LANE_TEST(the_hello_is_printable_and_short),
        LANE_TEST(a_handshake_is_over_after_a_minute),
        LANE_TEST(a_server_that_ends_before_the_handshake_says_why),
        LANE_TEST(a_call_to_a_lane_that_is_opening_is_refused),
        LANE_TEST(a_second_lane_for_a_sandbox_is_refused_and_the_first_stays),
        LANE_TEST(calls_of_one_sandbox_run_one_after_another_in_order_of_arrival),
        LANE_TEST(a_stalled_sandbox_does_not_hold_up_another),
        LANE_TEST(the_65th_waiting_call_of_one_caller_is_refused_with_a_way_out),
        LANE_TEST(a_call_without_a_lane_is_not_found),
        LANE_TEST(an_error_of_the_server_is_its_sentence),
        LANE_TEST(an_answer_that_is_no_tool_result_is_an_error),
        LANE_TEST(a_waiting_tool_holds_up_nobody_and_holds_off_expiry),
        LANE_TEST(a_waiting_tool_ends_30_s_after_its_own_bound_or_with_its_caller),
        LANE_TEST(a_call_past_its_deadline_is_cancelled_and_the_lane_goes_on),
        LANE_TEST(a_call_whose_work_is_not_wanted_is_cancelled_at_the_tool_server),
        LANE_TEST(a_stop_that_meets_the_answer_is_harmless),
        LANE_TEST(a_cancelled_tool_that_is_never_answered_gives_its_turn_back_and_a_late_answer_is_dropped),
        LANE_TEST(a_server_that_goes_on_with_many_cancelled_tools_is_broken),
        LANE_TEST(a_cancelled_call_of_ours_that_is_never_answered_breaks_the_server_after_10_s),
        LANE_TEST(a_call_that_never_gets_its_turn_ends_at_its_deadline),
        LANE_TEST(a_caller_that_leaves_the_queue_is_not_called_and_not_run),
        LANE_TEST(a_running_tool_goes_on_when_its_caller_leaves_and_keeps_its_turn),
        LANE_TEST(destroying_answers_queued_and_running_calls),
        LANE_TEST(a_reopened_lane_works_again_after_the_abandoned_call_was_answered),
        LANE_TEST(death_is_told_once_with_the_last_lines_and_answers_all_calls),
        LANE_TEST(a_dropped_lane_tells_no_death),
        LANE_TEST(freeing_the_lanes_answers_what_is_left),
        LANE_TEST(a_call_is_activity_when_it_starts_and_when_it_ends),
        LANE_TEST(a_refused_call_does_not_count_but_a_failed_one_does),
        LANE_TEST(a_stepped_back_clock_does_not_shorten_the_promise),
        LANE_TEST(expiry_closes_an_idle_lane_and_no_other),
        LANE_TEST(the_control_planes_own_requests_reach_a_closed_lane_and_are_no_activity),
        LANE_TEST(a_renewal_and_an_expiry_at_the_same_tick_never_both_win),
        LANE_TEST(an_expiry_on_the_loop_thread_sees_calls_that_were_made_before),
        LANE_TEST(leaving_and_answering_at_the_same_time_is_one_of_the_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
