// A tool server that says nothing: when it is asked for a sign of life, and when it is given up.
#include "tests/support/lane_rig.h"
#include "reconcilers/session/rpc_health.h"
#include <string.h>

static void open_watched(struct rig *rig, struct server *server, struct heard *died)
{
    rig_open(rig, RIG_SANDBOX, server, died);
    server->shows_pings = true;
}

static void answer_ping(struct server *server)
{
    server_answer(server, server_expect(server, "ping"), json_object());
}

static void an_idle_session_is_never_probed(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard died = {0}, heard = {0};
    open_watched(rig, &server, &died);
    for (int i = 0; i < 20; i++)
        rig_advance(rig, HEALTH_INTERVAL_MS);
    server_expect_nothing(rig, &server);
    rig_call(rig, RIG_SANDBOX, "read", &heard);
    server_answer(&server, server_expect(&server, "tools/call"), rig_result("there"));
    heard_wait(&heard);
    heard_clear(&heard);
    for (int i = 0; i < 20; i++)
        rig_advance(rig, HEALTH_INTERVAL_MS);
    server_expect_nothing(rig, &server);
    assert_false(heard_yet(&died));
    lane_drop(rig->lanes, RIG_SANDBOX); // or its end would be a death
    server_close(&server);
}

static void a_hanging_server_is_broken_after_three_missed_probes(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard died = {0}, heard = {0};
    open_watched(rig, &server, &died);
    rig_call(rig, RIG_SANDBOX, "read", &heard);
    json_decref(server_expect(&server, "tools/call"));
    rig_advance(rig, HEALTH_SILENCE_MS - 1);
    server_expect_nothing(rig, &server);
    rig_advance(rig, 1);
    for (int i = 0; i < HEALTH_MISSED_MAX; i++) {
        json_decref(server_expect(&server, "ping"));
        rig_advance(rig, HEALTH_INTERVAL_MS - 1);
        assert_false(heard_yet(&died));
        rig_advance(rig, 1);
    }
    heard_wait(&died);
    heard_wait(&heard);
    assert_int_equal(heard.error.code, ERROR_UNAVAILABLE);
    assert_non_null(strstr(died.reason, "hangs"));
    heard_clear(&died);
    server_close(&server);
}

static void two_missed_probes_and_an_answer_begin_the_count_anew(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard died = {0}, heard = {0};
    open_watched(rig, &server, &died);
    rig_call(rig, RIG_SANDBOX, "build", &heard);
    json_t *request = server_expect(&server, "tools/call");
    rig_advance(rig, HEALTH_SILENCE_MS);
    for (int round = 0; round < 5; round++) {
        json_t *late[2] = {server_expect(&server, "ping"), NULL};
        rig_advance(rig, HEALTH_INTERVAL_MS);
        late[1] = server_expect(&server, "ping");
        rig_advance(rig, HEALTH_INTERVAL_MS);
        server_answer(&server, late[0], json_object()); // late answers are answers
        server_answer(&server, late[1], json_object());
        answer_ping(&server);
        rig_settle(rig);
        rig_advance(rig, HEALTH_INTERVAL_MS);
        rig_advance(rig, HEALTH_SILENCE_MS);
    }
    assert_false(heard_yet(&died));
    server_answer(&server, request, rig_result("built"));
    heard_wait(&heard);
    assert_int_equal(heard.result, 0);
    heard_clear(&heard);
    lane_drop(rig->lanes, RIG_SANDBOX); // or its end would be a death
    server_close(&server);
}

// The bytes of an answer that is on its way count, also when no line is complete.
static void a_server_that_trickles_is_not_probed(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard died = {0}, heard = {0};
    open_watched(rig, &server, &died);
    rig_call(rig, RIG_SANDBOX, "read", &heard);
    json_decref(server_expect(&server, "tools/call"));
    for (int i = 0; i < 30; i++) {
        server_say(&server, " ", 1);
        rig_settle(rig);
        rig_advance(rig, HEALTH_SILENCE_MS);
    }
    server_expect_nothing(rig, &server);
    assert_false(heard_yet(&died));
    lane_drop(rig->lanes, RIG_SANDBOX); // or its end would be a death
    heard_wait(&heard);
    server_close(&server);
}

static void requests_to_a_server_that_hangs_are_no_sign_of_life(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard died = {0}, heard[16] = {0};
    rig_open(rig, RIG_SANDBOX, &server, &died);
    size_t made = 0;
    while (made < ARRAY_LEN(heard) && !heard_yet(&died)) {
        lane_request(rig->lanes, RIG_SANDBOX, "chat2shell/git_unsaved", json_object(), 600000, heard_answer, &heard[made++]);
        rig_advance(rig, HEALTH_INTERVAL_MS / 2);
    }
    heard_wait(&died);
    for (size_t i = 0; i < made; i++) {
        heard_wait(&heard[i]);
        assert_int_equal(heard[i].error.code, ERROR_UNAVAILABLE);
    }
    heard_clear(&died);
    server_close(&server);
}

static void a_machine_that_slept_an_hour_costs_one_miss(void **state)
{
    struct rig *rig = *state;
    struct server server;
    struct heard died = {0}, heard = {0};
    open_watched(rig, &server, &died);
    lane_request(rig->lanes, RIG_SANDBOX, "chat2shell/git_unsaved", json_object(), 600000 - 1, heard_answer, &heard);
    json_t *request = server_expect(&server, "chat2shell/git_unsaved");
    rig_advance(rig, HEALTH_SILENCE_MS);
    json_decref(server_expect(&server, "ping"));
    rig_advance(rig, 500000);
    json_decref(server_expect(&server, "ping"));
    assert_false(heard_yet(&died));
    server_answer(&server, request, json_object());
    heard_wait(&heard);
    assert_int_equal(heard.result, 0);
    heard_clear(&heard);
    lane_drop(rig->lanes, RIG_SANDBOX); // or its end would be a death
    server_close(&server);
}

int main(void)
{
#define HEALTH_TEST(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        HEALTH_TEST(an_idle_session_is_never_probed),
        HEALTH_TEST(a_hanging_server_is_broken_after_three_missed_probes),
        HEALTH_TEST(two_missed_probes_and_an_answer_begin_the_count_anew),
        HEALTH_TEST(a_server_that_trickles_is_not_probed),
        HEALTH_TEST(requests_to_a_server_that_hangs_are_no_sign_of_life),
        HEALTH_TEST(a_machine_that_slept_an_hour_costs_one_miss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
