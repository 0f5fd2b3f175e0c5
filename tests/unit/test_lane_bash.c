// Bash sessions through a lane: what takes the turn, what waits beside it, and that no byte of output is lost or given
// twice. The test is the tool server.
#include "tests/support/lane_rig.h"
#include "controller/base/guest_protocol.h"
#include "controller/base/memory.h"
#include "reconcilers/session/lane.h"
#include <stdlib.h>
#include <string.h>

static json_t *snapshot(const char *id, const char *status, int exit_code, const char *output, bool has_more)
{
    json_t *code = strcmp(status, "exited") == 0 ? json_integer(exit_code) : json_null();
    return json_pack("{s:s, s:s, s:o, s:s, s:b}", "session_id", id, "status", status, "exit_code", code, "output", output,
                     "has_more_output", has_more);
}

static const char *param(const json_t *request, const char *key)
{
    return json_get_text(json_object_get(request, "params"), key);
}

static json_int_t int_param(const json_t *request, const char *key)
{
    return json_get_int(json_object_get(request, "params"), key, -1);
}

static void expect_answer(struct heard *heard, const char *status, const char *output, bool has_more)
{
    heard_wait(heard);
    if (heard->result < 0)
        fail_msg("%s", heard->error.message);
    assert_int_equal(json_object_size(heard->answer), 5);
    assert_string_equal(json_get_text(heard->answer, "status"), status);
    assert_string_equal(json_get_text(heard->answer, "output"), output);
    assert_int_equal(json_get_bool(heard->answer, "has_more_output", !has_more), has_more);
    heard_clear(heard);
}

// Starts a command whose first snapshot says that it runs. Returns its id, which the caller frees.
static char *start_session(struct rig *rig, struct server *server)
{
    struct heard heard = {0};
    lane_bash(rig->lanes, RIG_SANDBOX, "sleep 1000", NULL, 0, 0, heard_answer, &heard);
    json_t *start = server_expect(server, "chat2shell/bash_start");
    char *id = mem_strdup(param(start, "session_id"));
    server_answer(server, start, json_object());
    server_answer(server, server_expect(server, "chat2shell/bash_read"), snapshot(id, "running", 0, "", false));
    expect_answer(&heard, "running", "", false);
    return id;
}

static struct lane_call *poll(struct rig *rig, const char *id, int64_t yield_ms, struct heard *heard)
{
    return lane_bash_poll(rig->lanes, RIG_SANDBOX, id, yield_ms, heard_answer, heard);
}

// ---- bash ----------------------------------------------------------------------------------------------------------

static void bash_starts_in_the_lane_and_waits_for_exit_outside(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard bash = {0}, read = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    lane_bash(rig->lanes, RIG_SANDBOX, "make", "src", 10000, 5000, heard_answer, &bash);
    rig_call(rig, RIG_SANDBOX, "read", &read);
    json_t *start = server_expect(&server, "chat2shell/bash_start");
    assert_string_equal(param(start, "command"), "make");
    assert_string_equal(param(start, "cwd"), "src");
    assert_int_equal(int_param(start, "timeout_ms"), 5000);
    assert_int_equal(strlen(param(start, "session_id")), 37);
    server_expect_nothing(rig, &server); // the start has the turn
    CLEANUP_FREE char *id = mem_strdup(param(start, "session_id"));
    server_answer(&server, start, json_object());
    json_t *wait = server_expect(&server, "chat2shell/bash_read");
    assert_string_equal(param(wait, "wait"), "exit");
    assert_int_equal(int_param(wait, "wait_ms"), 10000);
    assert_int_equal(int_param(wait, "max_bytes"), 60000);
    server_answer(&server, server_expect(&server, "tools/call"), rig_result("read while make runs"));
    heard_wait(&read);
    heard_clear(&read);
    server_answer(&server, wait, snapshot(id, "exited", 3, "done\n", false));
    heard_wait(&bash);
    assert_int_equal(json_get_int(bash.answer, "exit_code", -1), 3);
    expect_answer(&bash, "exited", "done\n", false);
    server_close(&server);
}

struct watched {
    struct heard heard;
    int news;
};

static void note_news(void *arg)
{
    ((struct watched *)arg)->news++;
}

struct watching {
    struct rig *rig;
    struct watched *watched;
    struct lane_call *call;
    struct lane_look look;
};

static void start_watched(void *arg)
{
    struct watching *watching = arg;
    watching->call = lane_bash(watching->rig->lanes, RIG_SANDBOX, "make", NULL, 10000, 0, heard_answer, watching->watched);
    lane_call_watch(watching->call, note_news);
}

static void look(void *arg)
{
    struct watching *watching = arg;
    lane_call_look(watching->call, &watching->look);
}

static void say_printed(struct server *server, const char *id, int bytes)
{
    CLEANUP_FREE char *text = mem_format(
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"%s\",\"progress\":%d}}", id, bytes);
    server_say_text(server, text);
}

static void a_watched_command_shows_its_stages_and_what_it_printed(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard first = {0};
    struct watched watched = {0};
    struct watching watching = {.rig = rig, .watched = &watched};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    rig_call(rig, RIG_SANDBOX, "read", &first);
    loop_call(rig->loop, start_watched, &watching);
    rig_settle(rig);
    loop_call(rig->loop, look, &watching);
    assert_int_equal(watching.look.stage, LANE_STAGE_QUEUED);
    assert_int_equal(watching.look.ahead, 1);
    server_answer(&server, server_expect(&server, "tools/call"), rig_result("read"));
    heard_wait(&first);
    json_t *start = server_expect(&server, "chat2shell/bash_start");
    CLEANUP_FREE char *id = mem_strdup(param(start, "session_id"));
    loop_call(rig->loop, look, &watching);
    assert_int_equal(watching.look.stage, LANE_STAGE_RUNNING);
    assert_null(watching.look.session_id);
    server_answer(&server, start, json_object());
    json_t *read = server_expect(&server, "chat2shell/bash_read");
    assert_string_equal(json_get_text(json_object_get(json_object_get(read, "params"), "_meta"), "progressToken"), id);
    rig_settle(rig);
    int news = watched.news;
    say_printed(&server, id, 70);
    say_printed(&server, "somebody_else", 80);
    say_printed(&server, id, 90); // too soon: it is not worth the news
    server_say_text(&server, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
    json_decref(server_next(&server)); // it was read to here
    loop_call(rig->loop, look, &watching);
    assert_int_equal(watching.look.stage, LANE_STAGE_WAITING);
    assert_string_equal(watching.look.session_id, id);
    assert_int_equal(watching.look.printed_bytes, 70);
    assert_int_equal(watched.news, news + 1);
    server_answer(&server, read, snapshot(id, "exited", 0, "done\n", false));
    heard_wait(&watched.heard);
    expect_answer(&watched.heard, "exited", "done\n", false);
    heard_clear(&first);
    server_close(&server);
}

static void absent_arguments_are_not_sent(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard heard = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    lane_bash(rig->lanes, RIG_SANDBOX, "true", NULL, 0, 0, heard_answer, &heard);
    json_t *start = server_expect(&server, "chat2shell/bash_start");
    assert_int_equal(json_object_size(json_object_get(start, "params")), 2);
    server_refuse(&server, start, -32602, "cwd is not a directory");
    heard_wait(&heard);
    assert_int_equal(heard.error.code, ERROR_INVALID);
    assert_string_equal(heard.error.message, "cwd is not a directory");
    server_close(&server);
}

static void a_failed_first_snapshot_answers_running_with_empty_output(void **state)
{
    struct rig *rig = *state;
    struct server server;
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    for (int i = 0; i < 4; i++) {
        struct heard bash = {0}, later = {0};
        lane_bash(rig->lanes, RIG_SANDBOX, "make", NULL, 1000, 0, heard_answer, &bash);
        json_t *start = server_expect(&server, "chat2shell/bash_start");
        CLEANUP_FREE char *id = mem_strdup(param(start, "session_id"));
        server_answer(&server, start, json_object());
        json_t *read = server_expect(&server, "chat2shell/bash_read");
        if (i == 0)
            server_refuse(&server, read, -32603, "no memory");
        else if (i == 1)
            server_answer(&server, read, json_object());
        else if (i == 2)
            server_answer(&server, read, snapshot("bash_of_somebody_else", "running", 0, "x", false));
        else
            rig_advance(rig, 31000);
        expect_answer(&bash, "running", "", false);
        poll(rig, id, 0, &later); // the session is known
        if (i == 3) {
            json_decref(server_expect(&server, "notifications/cancelled"));
            server_answer(&server, read, snapshot(id, "running", 0, "late", false)); // late output is not lost
        } else {
            server_answer(&server, server_expect(&server, "chat2shell/bash_read"), snapshot(id, "running", 0, "late", false));
        }
        expect_answer(&later, "running", "late", false);
    }
    server_close(&server);
}

static void a_server_without_sessions_says_so(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard ready = {0}, heard = {0};
    rig_open_unfinished(rig, RIG_SANDBOX, &server, &ready, NULL);
    server_answer(&server, server_expect(&server, "initialize"), server_hello(false));
    json_decref(server_expect(&server, "notifications/initialized"));
    heard_wait(&ready);
    lane_bash(rig->lanes, RIG_SANDBOX, "true", NULL, 0, 0, heard_answer, &heard);
    heard_wait(&heard);
    assert_int_equal(heard.error.code, ERROR_UNSUPPORTED);
    server_expect_nothing(rig, &server);
    heard_clear(&ready);
    server_close(&server);
}

static void a_death_in_the_wait_is_not_called_running(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard bash = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    lane_bash(rig->lanes, RIG_SANDBOX, "make", NULL, 10000, 0, heard_answer, &bash);
    server_answer(&server, server_expect(&server, "chat2shell/bash_start"), json_object());
    json_decref(server_expect(&server, "chat2shell/bash_read"));
    server_close(&server);
    heard_wait(&bash);
    assert_int_equal(bash.error.code, ERROR_UNAVAILABLE);
}

// ---- polls ---------------------------------------------------------------------------------------------------------

static void an_unknown_session_is_named(void **state)
{
    struct rig *rig = *state;
    struct server server, other;
    struct heard heard[3] = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    rig_open(rig, RIG_OTHER, &other, NULL);
    CLEANUP_FREE char *id = start_session(rig, &server);
    poll(rig, "bash_0", 0, &heard[0]);
    lane_bash_stop(rig->lanes, RIG_SANDBOX, "bash_0", heard_answer, &heard[1]);
    lane_bash_poll(rig->lanes, RIG_OTHER, id, 0, heard_answer, &heard[2]); // another sandbox's
    for (size_t i = 0; i < 3; i++) {
        heard_wait(&heard[i]);
        assert_int_equal(heard[i].error.code, ERROR_NOT_FOUND);
        assert_non_null(strstr(heard[i].error.message, "Unknown Bash session: bash_"));
    }
    server_expect_nothing(rig, &other);
    server_close(&server);
    server_close(&other);
}

static void polls_go_through_while_a_tool_has_the_turn(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard tool = {0}, polled = {0}, stopped = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    CLEANUP_FREE char *id = start_session(rig, &server);
    rig_call(rig, RIG_SANDBOX, "slow", &tool);
    json_t *slow = server_expect(&server, "tools/call");
    poll(rig, id, 5000, &polled);
    json_t *read = server_expect(&server, "chat2shell/bash_read");
    assert_string_equal(param(read, "wait"), "output");
    assert_int_equal(int_param(read, "wait_ms"), 5000);
    lane_bash_stop(rig->lanes, RIG_SANDBOX, id, heard_answer, &stopped); // not held up by the poll either
    json_t *stop = server_expect(&server, "chat2shell/bash_stop");
    server_answer(&server, read, snapshot(id, "exited", 143, "bye", false));
    server_answer(&server, stop, snapshot(id, "exited", 143, "", false));
    expect_answer(&polled, "exited", "bye", false);
    expect_answer(&stopped, "exited", "", false);
    server_answer(&server, slow, rig_result("x"));
    heard_wait(&tool);
    heard_clear(&tool);
    server_close(&server);
}

static void polls_of_one_session_queue_and_each_byte_is_given_once(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard first = {0}, second = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    CLEANUP_FREE char *id = start_session(rig, &server);
    poll(rig, id, 5000, &first);
    poll(rig, id, 5000, &second);
    json_t *read = server_expect(&server, "chat2shell/bash_read");
    server_expect_nothing(rig, &server);
    rig_advance(rig, 2000);
    server_answer(&server, read, snapshot(id, "running", 0, "one", false));
    expect_answer(&first, "running", "one", false);
    read = server_expect(&server, "chat2shell/bash_read");
    assert_int_equal(int_param(read, "wait_ms"), 3000); // its time runs since it came
    server_answer(&server, read, snapshot(id, "running", 0, "two", false));
    expect_answer(&second, "running", "two", false);
    server_close(&server);
}

static void a_queued_poll_ends_at_its_own_time(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard first = {0}, second = {0}, third = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    CLEANUP_FREE char *id = start_session(rig, &server);
    poll(rig, id, 60000, &first);
    poll(rig, id, 1000, &second);
    poll(rig, id, 0, &third);
    json_t *read = server_expect(&server, "chat2shell/bash_read");
    rig_settle(rig);
    clock_advance(rig->clock, 1);
    expect_answer(&third, "running", "", false);
    assert_false(heard_yet(&second));
    rig_advance(rig, 1000);
    expect_answer(&second, "running", "", false);
    server_answer(&server, read, snapshot(id, "running", 0, "x", false));
    expect_answer(&first, "running", "x", false);
    server_close(&server);
}

static void output_whose_caller_left_goes_to_the_next_poll(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard left = {0}, next = {0}, last = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    CLEANUP_FREE char *id = start_session(rig, &server);
    struct lane_call *call = poll(rig, id, 5000, &left);
    json_t *read = server_expect(&server, "chat2shell/bash_read");
    assert_true(lane_call_cancel(call));
    json_decref(server_expect(&server, "notifications/cancelled"));
    poll(rig, id, 5000, &next);
    server_expect_nothing(rig, &server); // the abandoned read is settled first
    server_answer(&server, read, snapshot(id, "running", 0, "kept \xc3\xa9", false));
    expect_answer(&next, "running", "kept \xc3\xa9", false);
    poll(rig, id, 0, &last);
    server_answer(&server, server_expect(&server, "chat2shell/bash_read"), snapshot(id, "exited", 0, "", false));
    expect_answer(&last, "exited", "", false);
    assert_false(heard_yet(&left));
    server_close(&server);
}

static void an_abandoned_poll_that_the_server_cancels_loses_nothing(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard left = {0}, next = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    CLEANUP_FREE char *id = start_session(rig, &server);
    struct lane_call *call = poll(rig, id, 5000, &left);
    json_t *read = server_expect(&server, "chat2shell/bash_read");
    assert_true(lane_call_cancel(call));
    json_decref(server_expect(&server, "notifications/cancelled"));
    server_refuse(&server, read, GUEST_ERROR_CANCELLED, "cancelled");
    poll(rig, id, 5000, &next);
    server_answer(&server, server_expect(&server, "chat2shell/bash_read"), snapshot(id, "running", 0, "all", false));
    expect_answer(&next, "running", "all", false);
    server_close(&server);
}

static void kept_output_is_given_in_pieces_of_60000_bytes_before_newer_output(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard left = {0}, stopped = {0}, polled = {0};
    CLEANUP_FREE char *old = mem_alloc(60001), *all = mem_alloc(60100);
    memset(old, 'o', 59999); // a two-byte character stands across the cut
    strcpy(all, old);
    strcat(all, "\xc3\xa9new");
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    CLEANUP_FREE char *id = start_session(rig, &server);
    struct lane_call *call = poll(rig, id, 5000, &left);
    json_t *read = server_expect(&server, "chat2shell/bash_read");
    assert_true(lane_call_cancel(call));
    json_decref(server_expect(&server, "notifications/cancelled"));
    server_answer(&server, read, snapshot(id, "running", 0, old, false));
    rig_settle(rig);
    lane_bash_stop(rig->lanes, RIG_SANDBOX, id, heard_answer, &stopped);
    server_answer(&server, server_expect(&server, "chat2shell/bash_stop"), snapshot(id, "exited", 143, "\xc3\xa9new", false));
    expect_answer(&stopped, "exited", old, true);
    poll(rig, id, 5000, &polled);
    expect_answer(&polled, "exited", "\xc3\xa9new", false);
    server_expect_nothing(rig, &server);
    server_close(&server);
}

static void a_poll_that_is_not_answered_ends_30_s_after_its_time(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard heard = {0}, died = {0};
    rig_open(rig, RIG_SANDBOX, &server, &died);
    CLEANUP_FREE char *id = start_session(rig, &server);
    poll(rig, id, 5000, &heard);
    json_decref(server_expect(&server, "chat2shell/bash_read"));
    rig_advance(rig, 34999);
    assert_false(heard_yet(&heard));
    rig_advance(rig, 1);
    heard_wait(&heard);
    assert_int_equal(heard.error.code, ERROR_TIMEOUT);
    rig_advance(rig, 10000);
    heard_wait(&died);
    heard_clear(&died);
    server_close(&server);
}

static void garbled_snapshots_are_errors(void **state)
{
    static const char *const garbled[] = {
        "{\"status\":\"sleeping\"}", "{\"exit_code\":1}", "{\"output\":7}", "{\"has_more_output\":null}", "{\"session_id\":\"bash_x\"}",
        "{\"status\":\"exited\"}", "{\"exit_code\":\"0\",\"status\":\"exited\"}"};
    struct rig *rig = *state;
    struct server server;
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    CLEANUP_FREE char *id = start_session(rig, &server);
    for (size_t i = 0; i < ARRAY_LEN(garbled); i++) {
        struct heard heard = {0};
        json_t *bad = snapshot(id, "running", 0, "", false), *change = json_loads(garbled[i], 0, NULL);
        json_object_update(bad, change);
        json_decref(change);
        poll(rig, id, 0, &heard);
        server_answer(&server, server_expect(&server, "chat2shell/bash_read"), bad);
        heard_wait(&heard);
        assert_int_equal(heard.error.code, ERROR_UNAVAILABLE);
    }
    server_close(&server);
}

static void unknown_members_of_a_snapshot_do_not_get_out(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard heard = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    CLEANUP_FREE char *id = start_session(rig, &server);
    json_t *more = snapshot(id, "running", 0, "x", true);
    json_object_set_new(more, "token", json_string("secret"));
    poll(rig, id, 0, &heard);
    server_answer(&server, server_expect(&server, "chat2shell/bash_read"), more);
    expect_answer(&heard, "running", "x", true);
    server_close(&server);
}

static void output_with_nul_bytes_arrives_whole(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard heard = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    CLEANUP_FREE char *id = start_session(rig, &server);
    json_t *nul = snapshot(id, "running", 0, "", false);
    json_object_set_new(nul, "output", json_stringn("a\0b\0", 4));
    poll(rig, id, 0, &heard);
    server_answer(&server, server_expect(&server, "chat2shell/bash_read"), nul);
    heard_wait(&heard);
    assert_int_equal(json_string_length(json_object_get(heard.answer, "output")), 4);
    assert_memory_equal(json_string_value(json_object_get(heard.answer, "output")), "a\0b\0", 4);
    heard_clear(&heard);
    server_close(&server);
}

static void waits_count_as_activity_and_hold_back_expiry(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard heard = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    CLEANUP_FREE char *id = start_session(rig, &server);
    rig_advance(rig, 1000);
    poll(rig, id, 60000, &heard);
    json_t *read = server_expect(&server, "chat2shell/bash_read");
    rig_advance(rig, 5000);
    assert_false(lane_close_if_idle(rig->lanes, RIG_SANDBOX, clock_wall(rig->clock), "expired"));
    server_answer(&server, read, snapshot(id, "running", 0, "x", false));
    expect_answer(&heard, "running", "x", false);
    assert_int_equal(lane_last_activity(rig->lanes, RIG_SANDBOX).ms, RIG_START_MS + 6000);
    assert_true(lane_close_if_idle(rig->lanes, RIG_SANDBOX, clock_wall(rig->clock), "expired")); // the command does not
    server_close(&server);
}

static void more_waits_than_the_most_are_refused(void **state)
{
    struct rig *rig = *state;
    struct server server;
    CLEANUP_FREE struct heard *heard = mem_alloc((FAIR_MOST(LANE_WAITS_MAX) + 1) * sizeof(heard[0]));
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    CLEANUP_FREE char *id = start_session(rig, &server);
    for (size_t i = 0; i <= FAIR_MOST(LANE_WAITS_MAX); i++)
        poll(rig, id, 5000, &heard[i]);
    heard_wait(&heard[FAIR_MOST(LANE_WAITS_MAX)]);
    assert_int_equal(heard[FAIR_MOST(LANE_WAITS_MAX)].error.code, ERROR_LIMIT);
    lane_close(rig->lanes, RIG_SANDBOX, "destroyed");
    for (size_t i = 0; i < FAIR_MOST(LANE_WAITS_MAX); i++) {
        heard_wait(&heard[i]);
        assert_int_equal(heard[i].error.code, ERROR_STATE);
    }
    server_close(&server);
}

static void past_2048_sessions_the_one_that_has_told_its_end_is_forgotten(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard told = {0}, still = {0}, gone = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    CLEANUP_FREE char *first = start_session(rig, &server);
    CLEANUP_FREE char *ended = start_session(rig, &server);
    for (int i = 2; i < 2 * GUEST_MAX_BASH_SESSIONS; i++)
        free(start_session(rig, &server));
    poll(rig, ended, 0, &told);
    server_answer(&server, server_expect(&server, "chat2shell/bash_read"), snapshot(ended, "exited", 0, "end", false));
    expect_answer(&told, "exited", "end", false);
    free(start_session(rig, &server));
    poll(rig, ended, 0, &gone);
    heard_wait(&gone);
    assert_int_equal(gone.error.code, ERROR_NOT_FOUND);
    poll(rig, first, 0, &still);
    server_answer(&server, server_expect(&server, "chat2shell/bash_read"), snapshot(first, "running", 0, "x", false));
    expect_answer(&still, "running", "x", false);
    free(start_session(rig, &server)); // nothing has told its end: the one goes that was not asked about for longest
    struct heard again = {0};
    poll(rig, first, 0, &again);
    server_answer(&server, server_expect(&server, "chat2shell/bash_read"), snapshot(first, "running", 0, "y", false));
    expect_answer(&again, "running", "y", false);
    server_close(&server);
}

static void a_session_that_the_tool_server_forgot_is_unknown(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard heard = {0};
    rig_open(rig, RIG_SANDBOX, &server, NULL);
    CLEANUP_FREE char *id = start_session(rig, &server);
    poll(rig, id, 0, &heard);
    server_refuse(&server, server_expect(&server, "chat2shell/bash_read"), GUEST_ERROR_UNKNOWN_SESSION, "what?");
    heard_wait(&heard);
    assert_int_equal(heard.error.code, ERROR_NOT_FOUND);
    assert_non_null(strstr(heard.error.message, "Unknown Bash session: bash_"));
    server_close(&server);
}

int main(void)
{
#define LANE_TEST(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        LANE_TEST(bash_starts_in_the_lane_and_waits_for_exit_outside),
        LANE_TEST(a_watched_command_shows_its_stages_and_what_it_printed),
        LANE_TEST(absent_arguments_are_not_sent),
        LANE_TEST(a_failed_first_snapshot_answers_running_with_empty_output),
        LANE_TEST(a_server_without_sessions_says_so),
        LANE_TEST(a_death_in_the_wait_is_not_called_running),
        LANE_TEST(an_unknown_session_is_named),
        LANE_TEST(polls_go_through_while_a_tool_has_the_turn),
        LANE_TEST(polls_of_one_session_queue_and_each_byte_is_given_once),
        LANE_TEST(a_queued_poll_ends_at_its_own_time),
        LANE_TEST(output_whose_caller_left_goes_to_the_next_poll),
        LANE_TEST(an_abandoned_poll_that_the_server_cancels_loses_nothing),
        LANE_TEST(kept_output_is_given_in_pieces_of_60000_bytes_before_newer_output),
        LANE_TEST(a_poll_that_is_not_answered_ends_30_s_after_its_time),
        LANE_TEST(garbled_snapshots_are_errors),
        LANE_TEST(unknown_members_of_a_snapshot_do_not_get_out),
        LANE_TEST(output_with_nul_bytes_arrives_whole),
        LANE_TEST(waits_count_as_activity_and_hold_back_expiry),
        LANE_TEST(more_waits_than_the_most_are_refused),
        LANE_TEST(past_2048_sessions_the_one_that_has_told_its_end_is_forgotten),
        LANE_TEST(a_session_that_the_tool_server_forgot_is_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
