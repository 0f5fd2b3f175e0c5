#include "tests/support/support.h"
#include "controller/base/cleanup.h"
#include "reconcilers/egress/proxy.h"
#include "tests/support/egress_world.h"
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// The proxy in this process, with deadlines of milliseconds.
struct rig {
    struct egress egress;
    uint16_t port;
};

static int start(void **state)
{
    static struct rig rig;
    struct error err = ERROR_INIT;
    rig = (struct rig){.egress.connection_max = 4};
    deadline_duration_ms[DEADLINE_HEAD] = 60;
    deadline_duration_ms[DEADLINE_LINGER] = 60;
    rig.egress.options.proxy_fd = world_listen(&rig.port);
    *state = &rig;
    return loop_open(&rig.egress.loop, &err) < 0 ? -1 : proxy_open(&rig.egress, &err);
}

static int stop(void **state)
{
    struct rig *rig = *state;
    proxy_close(&rig->egress);
    loop_close(&rig->egress.loop);
    return rig->egress.connection_count == 0 && rig->egress.pending_bytes == 0 ? 0 : -1;
}

static void run_for(struct rig *rig, int ms)
{
    struct error err = ERROR_INIT;
    int64_t end = boot_time_now().ms + ms;
    while (boot_time_now().ms < end)
        assert_ok(loop_step(&rig->egress.loop, 10, &err));
}

static ssize_t receive(int fd, char *text, size_t size)
{
    ssize_t len = recv(fd, text, size - 1, MSG_DONTWAIT);
    text[len > 0 ? len : 0] = '\0';
    return len;
}

static void a_head_that_does_not_end_gets_a_408_at_its_deadline(void **state)
{
    struct rig *rig = *state;
    char text[1024];
    CLEANUP_CLOSE int fd = world_connect(rig->port);
    world_send(fd, "GET http://a/ HTTP/1.1\r\n", 24);
    run_for(rig, 30);
    assert_int_equal(receive(fd, text, sizeof(text)), -1);
    world_send(fd, "X: trickle\r\n", 12); // does not buy more time
    run_for(rig, 60);
    assert_true(receive(fd, text, sizeof(text)) > 0);
    assert_non_null(strstr(text, "HTTP/1.1 408 "));
    run_for(rig, 100); // a client that does not hang up is not waited for
    assert_int_equal(rig->egress.connection_count, 0);
}

static void a_connection_that_asks_nothing_is_closed_silently(void **state)
{
    struct rig *rig = *state;
    char text[64];
    CLEANUP_CLOSE int fd = world_connect(rig->port);
    run_for(rig, 120);
    assert_int_equal(receive(fd, text, sizeof(text)), 0);
}

static void above_the_limit_503_and_far_above_it_a_reset(void **state)
{
    struct rig *rig = *state;
    char text[1024];
    int fds[25];
    deadline_duration_ms[DEADLINE_HEAD] = 60000;
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        fds[i] = world_connect(rig->port);
    run_for(rig, 30);
    world_send(fds[4], "GET http://127.0.0.1/ HTTP/1.1\r\nHost: x\r\n\r\n", 43);
    run_for(rig, 20);
    assert_true(receive(fds[4], text, sizeof(text)) > 0);
    assert_non_null(strstr(text, "HTTP/1.1 503 "));
    assert_int_equal(receive(fds[24], text, sizeof(text)), -1);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
    run_for(rig, 120);
}

int main(void)
{
#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, start, stop)
    const struct CMUnitTest tests[] = {
        WITH_RIG(a_head_that_does_not_end_gets_a_408_at_its_deadline),
        WITH_RIG(a_connection_that_asks_nothing_is_closed_silently),
        WITH_RIG(above_the_limit_503_and_far_above_it_a_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
