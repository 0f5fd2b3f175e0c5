// Random sequences of everything that callers, reconcilers, the clock and a tool server can do, in many seeds. Whatever
// the order: each call is answered exactly once or its caller left, the turn is never given twice, the lane ends clean
// (the sanitizers look at the memory).
#include "tests/support/lane_rig.h"
#include "controller/base/memory.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEEDS 150
#define STEPS 120
#define CALLS_MAX 128

struct chaos {
    struct rig *rig;
    struct server server;
    struct heard died;
    uint32_t random;
    struct heard heard[CALLS_MAX];
    struct lane_call *handles[CALLS_MAX];
    bool has_left[CALLS_MAX];
    size_t call_count;
    json_t *asked[CALLS_MAX * 2]; // requests that the server has not answered
    size_t asked_count;
    char *session_id; // of some session that was started
};

static uint32_t roll(struct chaos *chaos, uint32_t sides)
{
    chaos->random = chaos->random * 1664525u + 1013904223u;
    return (chaos->random >> 8) % sides;
}

// ---- what callers do -----------------------------------------------------------------------------------------------

static void make_call(struct chaos *chaos)
{
    if (chaos->call_count == CALLS_MAX)
        return;
    struct lanes *lanes = chaos->rig->lanes;
    struct heard *heard = &chaos->heard[chaos->call_count];
    struct lane_call **handle = &chaos->handles[chaos->call_count++];
    const char *id = chaos->session_id ? chaos->session_id : "bash_none";
    int64_t yield_ms = roll(chaos, 3) * 5000;
    switch (roll(chaos, 6)) {
    case 0:
        *handle = lane_bash(lanes, RIG_SANDBOX, "sleep", NULL, yield_ms, 0, heard_answer, heard);
        break;
    case 1:
    case 2:
        *handle = lane_bash_poll(lanes, RIG_SANDBOX, id, yield_ms, heard_answer, heard);
        break;
    case 3:
        *handle = lane_bash_stop(lanes, RIG_SANDBOX, id, heard_answer, heard);
        break;
    case 4:
        *handle = lane_request(lanes, RIG_SANDBOX, "chat2shell/exec_read", NULL, yield_ms, heard_answer, heard);
        break;
    default:
        *handle = rig_call(chaos->rig, RIG_SANDBOX, "read", heard);
    }
}

static void leave_a_call(struct chaos *chaos)
{
    if (!chaos->call_count)
        return;
    size_t i = roll(chaos, (uint32_t)chaos->call_count);
    if (!chaos->has_left[i])
        chaos->has_left[i] = heard_leave(&chaos->heard[i], chaos->handles[i]);
}

// ---- what the server does ------------------------------------------------------------------------------------------

static bool takes_turn(const json_t *request)
{
    const char *method = json_get_text(request, "method");
    return strcmp(method, "tools/call") == 0 || strcmp(method, "chat2shell/bash_start") == 0;
}

static void listen(struct chaos *chaos)
{
    json_t *message;
    rig_settle(chaos->rig);
    while (chaos->asked_count < ARRAY_LEN(chaos->asked) && (message = server_try_next(&chaos->server))) {
        if (!json_object_get(message, "id")) {
            json_decref(message);
            continue;
        }
        for (size_t i = 0; i < chaos->asked_count; i++) // serial order, abandoned calls included
            assert_false(takes_turn(message) && takes_turn(chaos->asked[i]));
        chaos->asked[chaos->asked_count++] = message;
    }
}

static json_t *snapshot_for(struct chaos *chaos, const json_t *request)
{
    bool has_exited = roll(chaos, 4) == 0;
    return json_pack("{s:O, s:s, s:o, s:s, s:b}", "session_id", json_object_get(json_object_get(request, "params"), "session_id"), "status",
                     has_exited ? "exited" : "running", "exit_code", has_exited ? json_integer(1) : json_null(), "output",
                     roll(chaos, 2) ? "some output" : "", "has_more_output", roll(chaos, 2));
}

static json_t *right_answer(struct chaos *chaos, const json_t *request)
{
    const char *method = json_get_text(request, "method");
    if (strcmp(method, "tools/call") == 0)
        return rig_result("text");
    if (strcmp(method, "chat2shell/bash_start") == 0) {
        mem_replace(&chaos->session_id, json_get_text(json_object_get(request, "params"), "session_id"));
        return json_object();
    }
    if (strncmp(method, "chat2shell/bash_", 16) == 0)
        return snapshot_for(chaos, request);
    return json_object();
}

static void answer_one(struct chaos *chaos)
{
    listen(chaos);
    if (!chaos->asked_count)
        return;
    size_t i = roll(chaos, (uint32_t)chaos->asked_count);
    json_t *request = chaos->asked[i];
    chaos->asked[i] = chaos->asked[--chaos->asked_count];
    uint32_t how = roll(chaos, 12);
    if (how == 0)
        server_refuse(&chaos->server, request, -32800, "cancelled");
    else if (how == 1)
        server_refuse(&chaos->server, request, -32603, "failed");
    else if (how == 2)
        server_answer(&chaos->server, request, json_integer(7));
    else
        server_answer(&chaos->server, request, right_answer(chaos, request));
}

// ---- what happens to the lane --------------------------------------------------------------------------------------

static void forget_server(struct chaos *chaos)
{
    for (size_t i = 0; i < chaos->asked_count; i++)
        json_decref(chaos->asked[i]);
    chaos->asked_count = 0;
    mem_replace(&chaos->session_id, NULL);
    server_close(&chaos->server);
    heard_clear(&chaos->died);
}

static void replace_lane(struct chaos *chaos)
{
    lane_drop(chaos->rig->lanes, RIG_SANDBOX);
    rig_settle(chaos->rig);
    assert_true(chaos->died.count <= 1);
    forget_server(chaos);
    rig_open(chaos->rig, RIG_SANDBOX, &chaos->server, &chaos->died);
}

static void live(struct chaos *chaos)
{
    struct lanes *lanes = chaos->rig->lanes;
    switch (roll(chaos, 12)) {
    case 0:
        lane_close(lanes, RIG_SANDBOX, "destroyed");
        break;
    case 1:
        if (lane_close_if_idle(lanes, RIG_SANDBOX, clock_wall(chaos->rig->clock), "expired"))
            assert_false(lane_is_open(lanes, RIG_SANDBOX));
        break;
    case 2:
        server_say_text(&chaos->server, "garbage");
        break;
    case 3:
        replace_lane(chaos);
        break;
    case 4:
        close(chaos->server.output_fd);
        chaos->server.output_fd = -1;
        replace_lane(chaos);
        break;
    default:
        lane_reopen(lanes, RIG_SANDBOX);
    }
}

static void step(struct chaos *chaos)
{
    uint32_t what = roll(chaos, 20);
    if (what < 8)
        make_call(chaos);
    else if (what < 15)
        answer_one(chaos);
    else if (what < 17)
        leave_a_call(chaos);
    else if (what < 19)
        clock_advance(chaos->rig->clock, roll(chaos, 8000));
    else
        live(chaos);
}

static void check_end(struct chaos *chaos)
{
    for (size_t i = 0; i < chaos->call_count; i++) {
        if (!chaos->has_left[i])
            heard_wait(&chaos->heard[i]); // exactly once
        else
            assert_int_equal(chaos->heard[i].count, 0);
        heard_clear(&chaos->heard[i]);
    }
}

static void any_order_of_events_answers_each_call_exactly_once(void **state)
{
    struct rig *rig = *state;
    for (uint32_t seed = 1; seed <= SEEDS; seed++) {
        struct chaos *chaos = mem_alloc(sizeof(*chaos));
        chaos->rig = rig;
        chaos->random = seed * 2654435761u;
        rig_open(rig, RIG_SANDBOX, &chaos->server, &chaos->died);
        for (int i = 0; i < STEPS; i++)
            step(chaos);
        if (seed % 2)
            lane_close(rig->lanes, RIG_SANDBOX, "destroyed");
        lane_drop(rig->lanes, RIG_SANDBOX);
        rig_settle(rig);
        check_end(chaos);
        forget_server(chaos);
        free(chaos);
    }
}

// Deadlines alone end every call: nobody answers, nobody closes.
static void silence_answers_each_call_within_its_bound(void **state)
{
    struct rig *rig = *state;
    for (uint32_t seed = 1; seed <= 30; seed++) {
        struct chaos *chaos = mem_alloc(sizeof(*chaos));
        chaos->rig = rig;
        chaos->random = seed * 2654435761u;
        rig_open(rig, RIG_SANDBOX, &chaos->server, &chaos->died);
        for (int i = 0; i < 20; i++)
            make_call(chaos);
        rig_advance(rig, LANE_CALL_DEADLINE_MS);
        check_end(chaos);
        rig_advance(rig, 10000); // a tool in the lane is given up, anything else breaks the server
        lane_drop(rig->lanes, RIG_SANDBOX);
        forget_server(chaos);
        free(chaos);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(any_order_of_events_answers_each_call_exactly_once, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(silence_answers_each_call_within_its_bound, rig_setup, rig_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
