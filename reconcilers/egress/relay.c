#include "reconcilers/egress/relay.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

void socket_set_reset(int fd)
{
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

void socket_set_nodelay(int fd)
{
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
}

void relay_stop(struct relay *relay, bool is_reset)
{
    deadline_stop(&relay->idle);
    for (int i = 0; i < 2; i++) {
        if (is_reset)
            socket_set_reset(relay->side[i].watch.fd);
        watch_close(&relay->egress->loop, &relay->side[i].watch);
        outbox_clear(relay->egress, &relay->side[i].out);
    }
    relay->ended(relay);
}

static void shut_if_drained(struct relay *relay, int to)
{
    struct relay_side *side = &relay->side[to];
    if (relay->side[1 - to].has_ended && outbox_is_empty(&side->out) && !side->is_shut) {
        side->is_shut = true;
        shutdown(side->watch.fd, SHUT_WR);
    }
}

// Brings interest and half-closes in line with what happened; ends the relay when nothing is left to do.
static void settle(struct relay *relay)
{
    for (int i = 0; i < 2; i++)
        shut_if_drained(relay, i);
    if (relay->side[0].is_shut && relay->side[1].is_shut) {
        relay_stop(relay, false);
        return;
    }
    for (int i = 0; i < 2; i++) {
        struct relay_side *side = &relay->side[i];
        bool wants_in = !side->has_ended && outbox_is_empty(&relay->side[1 - i].out);
        bool wants_out = !outbox_is_empty(&side->out);
        watch_want(&relay->egress->loop, &side->watch, (wants_in ? EPOLLIN : 0) | (wants_out ? EPOLLOUT : 0));
    }
}

// Hands bytes from one side to the judge, if there still is one, and on. 0, -1 broken, 1 refused.
static int pass_on(struct relay *relay, int from, const char *bytes, size_t len)
{
    struct relay_side *to = &relay->side[1 - from];
    if (from == 0 && relay->judge) {
        enum relay_verdict verdict = relay->judge(relay, &bytes, &len, relay->side[0].has_ended);
        if (verdict == RELAY_REFUSE)
            return 1;
        if (verdict == RELAY_WAIT)
            return 0;
        relay->judge = NULL;
        int result = outbox_send(relay->egress, &to->out, to->watch.fd, bytes, len);
        relay->judged(relay);
        return result;
    }
    return outbox_send(relay->egress, &to->out, to->watch.fd, bytes, len);
}

static int read_side(struct relay *relay, int from)
{
    struct relay_side *side = &relay->side[from];
    size_t most = relay->judge && from == 0 ? SCRATCH_SMALL_BYTES : egress_read_size(relay->egress);
    ssize_t len = recv(side->watch.fd, egress_scratch, most, MSG_DONTWAIT);
    if (len < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (len == 0)
        side->has_ended = true;
    return pass_on(relay, from, egress_scratch, (size_t)len);
}

static void conclude(struct relay *relay, int result)
{
    if (result != 0) {
        relay_stop(relay, result < 0);
        return;
    }
    deadline_start(&relay->egress->loop, &relay->idle, DEADLINE_IDLE);
    settle(relay);
}

static void side_ready(struct relay *relay, int i, uint32_t events)
{
    struct relay_side *side = &relay->side[i];
    int result = 0;
    if (events & (EPOLLOUT | EPOLLERR))
        result = outbox_flush(relay->egress, &side->out, side->watch.fd);
    bool may_read = !side->has_ended && outbox_is_empty(&relay->side[1 - i].out);
    if (result == 0 && may_read && events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        result = read_side(relay, i);
    conclude(relay, result);
}

void relay_feed(struct relay *relay, const char *bytes, size_t len)
{
    conclude(relay, pass_on(relay, 0, bytes, len));
}

static void first_ready(struct watch *watch, uint32_t events)
{
    side_ready(CONTAINER_OF(watch, struct relay, side[0].watch), 0, events);
}

static void second_ready(struct watch *watch, uint32_t events)
{
    side_ready(CONTAINER_OF(watch, struct relay, side[1].watch), 1, events);
}

static void went_idle(struct deadline *deadline)
{
    relay_stop(CONTAINER_OF(deadline, struct relay, idle), true);
}

void relay_start(struct relay *relay)
{
    relay->side[0].watch.ready = first_ready;
    relay->side[1].watch.ready = second_ready;
    relay->idle.expired = went_idle;
    deadline_start(&relay->egress->loop, &relay->idle, DEADLINE_IDLE);
    for (int i = 0; i < 2; i++) {
        struct relay_side *side = &relay->side[i];
        watch_want(&relay->egress->loop, &side->watch, EPOLLIN | (outbox_is_empty(&side->out) ? 0 : EPOLLOUT));
    }
}
