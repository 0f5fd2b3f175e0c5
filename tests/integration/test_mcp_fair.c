// One caller cannot starve another: calls of many connections to one sandbox, from the socket to its tool server, which the
// test is.
#include "api/mcp/mcp.h"
#include "controller/base/memory.h"
#include "controller/config.h"
#include "reconcilers/session/lane.h"
#include "tests/support/http_client.h"
#include "tests/support/lane_rig.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OTHERS 10
#define SOON_MS SUPPORT_PATIENCE_MS

static struct {
    struct rig *rig;
    struct config config;
    struct world world;
    struct mcp_server *mcp;
    struct server server; // the tool server's side
} f;

static int set_up(void **state)
{
    rig_setup(state);
    struct error err = ERROR_INIT;
    f.rig = *state;
    f.config = (struct config){.host = "127.0.0.1"};
    f.world = (struct world){.config = &f.config, .clock = f.rig->clock, .loop = f.rig->loop, .store = f.rig->store, .lanes = f.rig->lanes};
    assert_ok(mcp_server_start(&f.world, &f.mcp, &err));
    rig_open(f.rig, RIG_SANDBOX, &f.server, NULL);
    return 0;
}

static int tear_down(void **state)
{
    server_close(&f.server);
    mcp_server_stop(f.mcp);
    return rig_teardown(state);
}

static char *call_text(const char *path)
{
    return mem_format("{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"method\":\"tools/call\",\"params\":{\"name\":\"read\",\"arguments\":"
                      "{\"sandbox_id\":\"" RIG_SANDBOX "\",\"path\":\"%s\"}}}",
                      path, path);
}

static int send_body(const char *body)
{
    CLEANUP_FREE char *text = http_client_post_text("/mcp", "", body);
    int fd = http_client_connect(mcp_server_port(f.mcp));
    http_client_send_text(fd, text);
    return fd;
}

static int send_one(const char *path)
{
    CLEANUP_FREE char *body = call_text(path);
    return send_body(body);
}

static int send_batch(const char *path, size_t count)
{
    CLEANUP_FREE char *one = call_text(path);
    struct buffer body = BUFFER_INIT(1024 * 1024);
    for (size_t i = 0; i < count; i++)
        buffer_format(&body, "%s%s", i ? "," : "[", one);
    buffer_append_char(&body, ']');
    int fd = send_body(buffer_text(&body));
    buffer_free(&body);
    return fd;
}

static void look_at_line(void *arg)
{
    *(size_t *)arg = lanes_find(f.rig->lanes, RIG_SANDBOX)->turns.waiting;
}

static void wait_for_line(size_t count)
{
    size_t waiting = 0;
    for (int i = 0; i < SUPPORT_PATIENCE_MS / 5; i++) {
        loop_call(f.rig->loop, look_at_line, &waiting);
        if (waiting == count)
            return;
        usleep(5000);
    }
    fail_msg("%zu calls wait for their turn, not %zu", waiting, count);
}

// Answers the next call that the lane lets through; true if it was one for the path.
static bool serve(const char *path)
{
    json_t *request = server_expect(&f.server, "tools/call");
    bool is_it = strcmp(json_get_text(json_object_get(json_object_get(request, "params"), "arguments"), "path"), path) == 0;
    server_answer(&f.server, request, rig_result("fine"));
    return is_it;
}

static void read_and_close(int fd)
{
    struct http_answer answer;
    http_client_read(fd, &answer, SOON_MS);
    assert_int_equal(answer.status, 200);
    assert_non_null(strstr(answer.body, "\"result\""));
    http_answer_clear(&answer);
    close(fd);
}

static void ten_callers_are_served_while_one_has_fifty_calls_in_line(void **state)
{
    (void)state;
    int hog = send_batch("hog", 50), others[OTHERS];
    wait_for_line(49); // one has its turn
    for (size_t i = 0; i < OTHERS; i++)
        others[i] = send_one("other");
    wait_for_line(49 + OTHERS);
    size_t of_hog = 0, of_others = 0;
    while (of_others < OTHERS) {
        bool is_other = serve("other");
        of_others += is_other, of_hog += !is_other;
        assert_true(of_hog < 12);
    }
    for (size_t i = 0; i < OTHERS; i++)
        read_and_close(others[i]);
    while (of_hog < 50)
        of_hog += !serve("other");
    read_and_close(hog);
}

static void a_caller_that_fills_the_line_does_not_lock_others_out(void **state)
{
    (void)state;
    int hogs[2] = {send_batch("hog", 50), send_batch("hog", 50)}; // two connections: each gets what the other leaves
    size_t waiting = 0, settled = 1;
    while (waiting != settled || waiting < 50) {
        settled = waiting;
        usleep(100000);
        loop_call(f.rig->loop, look_at_line, &waiting);
    }
    assert_true(waiting < LANE_QUEUE_MAX);
    int others[OTHERS];
    for (size_t i = 0; i < OTHERS && i + waiting < LANE_QUEUE_MAX; i++) {
        others[i] = send_one("other");
        wait_for_line(waiting + i + 1);
    }
    size_t count = LANE_QUEUE_MAX - waiting < OTHERS ? LANE_QUEUE_MAX - waiting : OTHERS, of_others = 0;
    for (size_t served = 0; served < 1 + waiting + count; served++) {
        of_others += serve("other");
        if (served == 3 * OTHERS)
            assert_int_equal(of_others, count);
    }
    for (size_t i = 0; i < count; i++)
        read_and_close(others[i]);
    read_and_close(hogs[0]);
    read_and_close(hogs[1]);
}

static void calls_of_a_caller_who_left_the_line_are_not_run(void **state)
{
    (void)state;
    int hog = send_batch("hog", 50);
    wait_for_line(49);
    int other = send_one("other");
    wait_for_line(50);
    close(hog);
    wait_for_line(1);
    json_t *running = server_expect(&f.server, "tools/call"); // had its turn, and is told to stop
    json_decref(server_expect(&f.server, "notifications/cancelled"));
    server_answer(&f.server, running, rig_result("stopped"));
    assert_true(serve("other"));
    read_and_close(other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ten_callers_are_served_while_one_has_fifty_calls_in_line),
        TEST(a_caller_that_fills_the_line_does_not_lock_others_out),
        TEST(calls_of_a_caller_who_left_the_line_are_not_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
