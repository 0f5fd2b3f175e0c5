#include "tests/support/support.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "reconcilers/egress/relay.h"
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// Two socket pairs with a relay between them: outer[0] ⇄ relay ⇄ outer[1].
struct rig {
    struct egress egress;
    struct relay relay;
    int outer[2];
    int ended;
};

static void count_end(struct relay *relay)
{
    CONTAINER_OF(relay, struct rig, relay)->ended++;
}

static int start(void **state)
{
    struct rig *rig = mem_alloc(sizeof(*rig));
    struct error err = ERROR_INIT;
    if (loop_open(&rig->egress.loop, &err) < 0)
        return -1;
    rig->relay = (struct relay){.egress = &rig->egress, .ended = count_end};
    for (int i = 0; i < 2; i++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) < 0)
            return -1;
        rig->outer[i] = pair[0];
        rig->relay.side[i].watch.fd = pair[1];
    }
    relay_start(&rig->relay);
    *state = rig;
    return 0;
}

static int stop(void **state)
{
    struct rig *rig = *state;
    if (!rig->ended)
        relay_stop(&rig->relay, false);
    close(rig->outer[0]);
    close(rig->outer[1]);
    loop_close(&rig->egress.loop);
    free(rig);
    return 0;
}

static void turn(struct rig *rig, int times)
{
    struct error err = ERROR_INIT;
    while (times-- > 0)
        assert_ok(loop_step(&rig->egress.loop, 0, &err));
}

static void a_slow_receiver_stops_its_sender_and_loses_nothing(void **state)
{
    struct rig *rig = *state;
    static char chunk[65536];
    size_t sent = 0, received = 0, pending;
    ssize_t len;
    for (int quiet = 0; quiet < 3;) { // until nothing more is taken
        len = send(rig->outer[0], chunk, sizeof(chunk), MSG_NOSIGNAL);
        sent += len > 0 ? (size_t)len : 0;
        quiet = len > 0 ? 0 : quiet + 1;
        turn(rig, 2);
    }
    pending = rig->egress.pending_bytes;
    assert_true(pending > 0 && pending <= SCRATCH_BYTES);
    shutdown(rig->outer[0], SHUT_WR);
    for (int i = 0; i < 10000; i++) {
        len = recv(rig->outer[1], chunk, sizeof(chunk), 0);
        if (len == 0)
            break;
        received += len > 0 ? (size_t)len : 0;
        turn(rig, 1);
    }
    assert_int_equal(received, sent);
    assert_int_equal(rig->egress.pending_bytes, 0);
    assert_null(rig->relay.side[1].out.data); // idle costs no buffer
}

static void reads_become_small_when_much_is_pending(void **state)
{
    struct rig *rig = *state;
    assert_int_equal(egress_read_size(&rig->egress), SCRATCH_BYTES);
    rig->egress.pending_bytes = PENDING_HIGH_BYTES + 1;
    assert_int_equal(egress_read_size(&rig->egress), SCRATCH_SMALL_BYTES);
    rig->egress.pending_bytes = 0;
}

static void it_ends_once_when_both_directions_have_ended(void **state)
{
    struct rig *rig = *state;
    char byte;
    shutdown(rig->outer[0], SHUT_WR);
    turn(rig, 3);
    assert_int_equal(rig->ended, 0);
    assert_int_equal(recv(rig->outer[1], &byte, 1, 0), 0);
    assert_int_equal(send(rig->outer[1], "x", 1, 0), 1);
    turn(rig, 3);
    assert_int_equal(recv(rig->outer[0], &byte, 1, 0), 1);
    shutdown(rig->outer[1], SHUT_WR);
    turn(rig, 3);
    assert_int_equal(rig->ended, 1);
}

static void a_broken_side_ends_it(void **state)
{
    struct rig *rig = *state;
    close(rig->outer[1]);
    rig->outer[1] = -1;
    send(rig->outer[0], "x", 1, MSG_NOSIGNAL);
    turn(rig, 4);
    assert_int_equal(rig->ended, 1);
}

static void without_any_byte_it_ends_at_the_deadline_and_not_before(void **state)
{
    struct rig *rig = *state;
    int64_t before = deadline_duration_ms[DEADLINE_IDLE];
    deadline_duration_ms[DEADLINE_IDLE] = 60;
    send(rig->outer[0], "x", 1, 0); // restarts the deadline with its new length
    turn(rig, 1);
    usleep(35000);
    int64_t sent_ms = support_now_ms();
    send(rig->outer[0], "x", 1, 0);
    turn(rig, 1);
    usleep(35000);
    turn(rig, 1);
    assert_true(!rig->ended || support_now_ms() - sent_ms >= 60);
    usleep(35000);
    turn(rig, 1);
    assert_int_equal(rig->ended, 1);
    deadline_duration_ms[DEADLINE_IDLE] = before;
}

static enum relay_verdict refuse_q(struct relay *relay, const char **bytes, size_t *len, bool is_end)
{
    (void)relay;
    if (!*len && !is_end)
        return RELAY_WAIT;
    return *len && (*bytes)[0] == 'q' ? RELAY_REFUSE : RELAY_PASS;
}

static void ignore(struct relay *relay)
{
    (void)relay;
}

static void the_judge_sees_first_bytes_and_its_refusal_passes_none(void **state)
{
    struct rig *rig = *state;
    char byte;
    rig->relay.judge = refuse_q;
    rig->relay.judged = ignore;
    send(rig->outer[1], "s", 1, 0); // the other direction is not held up
    turn(rig, 2);
    assert_int_equal(recv(rig->outer[0], &byte, 1, 0), 1);
    send(rig->outer[0], "q", 1, 0);
    turn(rig, 2);
    assert_int_equal(rig->ended, 1);
    assert_int_equal(recv(rig->outer[1], &byte, 1, 0), 0);
}

int main(void)
{
#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, start, stop)
    const struct CMUnitTest tests[] = {
        WITH_RIG(a_slow_receiver_stops_its_sender_and_loses_nothing),
        WITH_RIG(reads_become_small_when_much_is_pending),
        WITH_RIG(it_ends_once_when_both_directions_have_ended),
        WITH_RIG(a_broken_side_ends_it),
        WITH_RIG(without_any_byte_it_ends_at_the_deadline_and_not_before),
        WITH_RIG(the_judge_sees_first_bytes_and_its_refusal_passes_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
