// CodexPro sessions with a server that does anything at any time, callers that leave, sandboxes that go: each call is
// answered exactly once, and nothing outlives what it belongs to.
#include "tests/support/http_site.h"
#include "tests/support/lane_rig.h"
#include "controller/base/memory.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALLS 24

struct chaos {
    struct rig *rig;
    struct site *site;
    struct server held;
    struct heard ready, died, heard[CALLS];
    bool has_left[CALLS];
    uint32_t random;
};

static atomic_uint site_random;

static uint32_t next(uint32_t *random)
{
    *random = *random * 1664525u + 1013904223u;
    return *random >> 8;
}

static uint32_t next_of_site(void)
{
    uint32_t now = atomic_fetch_add(&site_random, 2654435761u);
    return next(&now);
}

// ---- what the server may do ------------------------------------------------------------------------------------------

static void be_plain(struct visit *visit)
{
    visit_answer_json(visit, "plain");
}

static void be_streaming(struct visit *visit)
{
    visit_answer_events(visit, "streaming");
}

static void be_late(struct visit *visit)
{
    site_waits(visit, (int)(next_of_site() % 80));
    visit_answer_events(visit, "late");
}

static void be_forgetful(struct visit *visit)
{
    visit_answer(visit, "404 Not Found", NULL, NULL, "");
}

static void be_busy(struct visit *visit)
{
    visit_answer(visit, "429 Too Many Requests", NULL, "Retry-After: 0\r\n", "");
}

static void be_broken(struct visit *visit)
{
    visit_answer(visit, "500 Internal Server Error", "text/html", NULL, "<p>no</p>");
}

static void be_gone(struct visit *visit)
{
    (void)visit; // the connection ends
}

static void be_half(struct visit *visit)
{
    CLEANUP_FREE char *result = visit_result(visit, "half");
    CLEANUP_FREE char *text = mem_format("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%.*s",
                                         strlen(result), (int)strlen(result) / 2, result);
    visit_say_text(visit, text);
}

// Random bytes, as they are or behind a head that promises more.
static void be_random(struct visit *visit)
{
    static const char *const heads[] = {"", "HTTP/1.1 ", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n",
                                        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ",
                                        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
                                        "HTTP/1.1 404 Nothing\r\nMcp-Session-Id: "};
    uint32_t random = next_of_site();
    char bytes[700];
    visit_say_text(visit, heads[next(&random) % ARRAY_LEN(heads)]);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(next(&random) % 7 == 0 ? '\n' : next(&random));
    visit_say(visit, bytes, sizeof(bytes));
}

static void be_anything(struct visit *visit)
{
    static const visit_fn ways[] = {be_plain, be_streaming, be_streaming, be_late,   be_late,   be_forgetful,
                                    be_busy,  be_broken,    be_gone,      be_half,   be_random, be_random};
    ways[next_of_site() % ARRAY_LEN(ways)](visit);
}

// ---- what the others may do --------------------------------------------------------------------------------------------

static void make_call(struct chaos *chaos, size_t i)
{
    struct rig *rig = chaos->rig;
    struct heard *heard = &chaos->heard[i];
    struct lane_call *call;
    if (next(&chaos->random) % 2)
        call = lane_call_tool(rig->lanes, RIG_SANDBOX, "read", json_object(), heard_answer, heard);
    else
        call = lane_call_waiting_tool(rig->lanes, RIG_SANDBOX, "wait", json_object(), 2000, heard_answer, heard);
    if (next(&chaos->random) % 4)
        return;
    usleep(next(&chaos->random) % 3000);
    chaos->has_left[i] = heard_leave(heard, call);
}

static void end_somehow(struct chaos *chaos)
{
    struct rig *rig = chaos->rig;
    switch (next(&chaos->random) % 4) {
    case 0:
        close(TAKE_FD(chaos->held.output_fd)); // its process ends
        break;
    case 1:
        lane_close(rig->lanes, RIG_SANDBOX, "the sandbox was destroyed");
        break;
    case 2:
        lane_drop(rig->lanes, RIG_SANDBOX);
        break;
    default:
        break; // all calls are let end
    }
}

static void check_calls(struct chaos *chaos)
{
    for (size_t i = 0; i < CALLS; i++) {
        if (!chaos->has_left[i])
            heard_wait(&chaos->heard[i]); // exactly once
        else
            assert_false(heard_yet(&chaos->heard[i]));
        if (!chaos->has_left[i] && chaos->heard[i].result < 0)
            assert_true(chaos->heard[i].error.message[0]);
        heard_clear(&chaos->heard[i]);
    }
}

static void begin(struct chaos *chaos)
{
    struct driver_session session;
    server_pipes(&chaos->held, &session);
    session.port = chaos->site->port;
    session.token = mem_strdup(SITE_TOKEN);
    rig_open_session(chaos->rig, RIG_SANDBOX, &session, &chaos->ready, &chaos->died);
    heard_wait(&chaos->ready);
    assert_int_equal(chaos->ready.result, 0);
}

static void finish(struct chaos *chaos)
{
    lane_drop(chaos->rig->lanes, RIG_SANDBOX);
    site_free(chaos->site);
    server_close(&chaos->held);
    rig_settle(chaos->rig);
    heard_clear(&chaos->ready);
    heard_clear(&chaos->died);
    free(chaos);
}

static void any_order_of_events_answers_each_call_exactly_once(void **state)
{
    for (uint32_t seed = 1; seed <= 40; seed++) {
        struct chaos *chaos = mem_alloc(sizeof(*chaos));
        chaos->rig = *state;
        chaos->random = seed * 2654435761u;
        chaos->site = site_new();
        atomic_store(&site_random, seed);
        begin(chaos);
        atomic_store(&chaos->site->call, be_anything);
        size_t last = next(&chaos->random) % CALLS;
        for (size_t i = 0; i < CALLS; i++) {
            make_call(chaos, i);
            if (i == last)
                end_somehow(chaos);
        }
        check_calls(chaos);
        finish(chaos);
    }
}

// The last requests of sessions that are gone are under way when the controller ends.
static void lanes_that_end_with_the_controller_leave_nothing(void **state)
{
    for (int i = 0; i < 5; i++) {
        struct chaos *chaos = mem_alloc(sizeof(*chaos));
        chaos->rig = *state;
        chaos->site = site_new();
        begin(chaos);
        atomic_store(&chaos->site->call, be_late);
        for (size_t n = 0; n < CALLS; n++)
            lane_call_waiting_tool(chaos->rig->lanes, RIG_SANDBOX, "wait", json_object(), 60000, heard_answer, &chaos->heard[n]);
        lanes_free(chaos->rig->lanes);
        check_calls(chaos);
        chaos->rig->lanes = lanes_new(chaos->rig->loop, chaos->rig->store);
        finish(chaos);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(any_order_of_events_answers_each_call_exactly_once, rig_setup_real, rig_teardown),
        cmocka_unit_test_setup_teardown(lanes_that_end_with_the_controller_leave_nothing, rig_setup_real, rig_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
