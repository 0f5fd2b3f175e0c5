#include "cli/forward.h"
#include "cli/outlet.h"
#include "controller/base/frames.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#define IN_BYTES (2 * (FRAME_HEAD_BYTES + FRAME_MAX_BYTES))
#define OUT_BYTES (2 * (FRAME_HEAD_BYTES + FRAME_MAX_BYTES))
enum { DAEMON, LOCAL, LOCAL_OUT, POLLED };

struct pump {
    int daemon_fd, local_fd;
    struct buffer in, out;
    size_t sent; // of out
    struct outlet outlet; // to the local side
    bool local_ended, inside_ended, is_told_end; // told: the local side knows that nothing more comes
};

static void pump_clear(struct pump *pump)
{
    outlet_close(&pump->outlet);
    cleanup_close(&pump->daemon_fd);
    cleanup_close(&pump->local_fd);
    buffer_free(&pump->in);
    buffer_free(&pump->out);
}

// The local client sees a broken connection, not an end.
static void reset_local(const struct pump *pump)
{
    const struct linger at_once = {.l_onoff = 1};
    setsockopt(pump->local_fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

static int fail_broken(const struct pump *pump, struct error *err)
{
    reset_local(pump);
    return error_set(err, ERROR_UNAVAILABLE, "is it still there? chat2shell status", "the daemon ended a forwarded connection");
}

static int take_failure(const struct pump *pump, const struct frame *frame, struct error *err)
{
    CLEANUP_JSON json_t *status = NULL;
    reset_local(pump);
    if (json_parse(frame->bytes, frame->len, &status, err) < 0)
        return -1;
    return rest_status_to_error((int)json_get_int(status, "code", 500), status, err);
}

static int take_frames(struct pump *pump, struct error *err)
{
    size_t at = 0, size;
    struct frame frame;
    int r = 0, found = 0;
    while (r == 0 && !outlet_is_waiting(&pump->outlet) &&
           (found = frame_read(pump->in.data + at, pump->in.len - at, &frame, &size, err)) > 0) {
        if (frame.type == FRAME_DATA)
            r = outlet_put(&pump->outlet, frame.bytes, frame.len, err);
        else if (frame.type == FRAME_END)
            pump->inside_ended = true;
        else
            r = frame.type == FRAME_FAILED ? take_failure(pump, &frame, err) : fail_broken(pump, err);
        at += size;
    }
    buffer_consume(&pump->in, at);
    return found < 0 ? -1 : r;
}

static int receive(struct pump *pump, struct error *err)
{
    size_t room = pump->in.max - pump->in.len;
    if (!room) // held back until now: there is a whole frame in it
        return take_frames(pump, err);
    ssize_t n = recv(pump->daemon_fd, buffer_reserve(&pump->in, room), room, MSG_DONTWAIT);
    if (n > 0)
        pump->in.len += (size_t)n;
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        return pump->inside_ended && pump->local_ended ? 0 : fail_broken(pump, err);
    return take_frames(pump, err);
}

// False: the local client is gone.
static bool take_local(struct pump *pump)
{
    char bytes[FRAME_MAX_BYTES];
    ssize_t n = recv(pump->local_fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    pump->local_ended = n == 0;
    frame_append(&pump->out, n ? FRAME_DATA : FRAME_END, bytes, (size_t)n);
    return true;
}

static void push(struct pump *pump)
{
    ssize_t n = send(pump->daemon_fd, pump->out.data + pump->sent, pump->out.len - pump->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0)
        pump->sent += (size_t)n;
    if (pump->sent == pump->out.len || (n < 0 && errno != EAGAIN && errno != EINTR))
        pump->out.len = pump->sent = 0; // its end is told by the other direction
}

static void want(const struct pump *pump, struct pollfd polls[POLLED])
{
    bool may_send = pump->out.len == 0 && !pump->local_ended, may_receive = !outlet_is_waiting(&pump->outlet);
    short events = (short)((may_receive ? POLLIN : 0) | (pump->out.len ? POLLOUT : 0));
    polls[DAEMON] = (struct pollfd){events ? pump->daemon_fd : -1, events, 0};
    polls[LOCAL] = (struct pollfd){may_send ? pump->local_fd : -1, POLLIN, 0};
    polls[LOCAL_OUT] = (struct pollfd){outlet_is_waiting(&pump->outlet) ? pump->local_fd : -1, POLLOUT, 0};
}

static void pass_end(struct pump *pump)
{
    if (!pump->inside_ended || pump->is_told_end || outlet_is_waiting(&pump->outlet))
        return;
    pump->is_told_end = true;
    shutdown(pump->local_fd, SHUT_WR);
}

static int run(struct pump *pump, struct error *err)
{
    struct pollfd polls[POLLED];
    if (take_frames(pump, err) < 0)
        return -1;
    pass_end(pump); // all of it may have come with the head of the answer
    while (!(pump->is_told_end && pump->local_ended && !pump->out.len)) {
        want(pump, polls);
        if (poll(polls, POLLED, -1) < 0 && errno != EINTR)
            return error_errno(err, errno, NULL, "cannot wait for a forwarded connection");
        if (polls[LOCAL_OUT].revents && outlet_push(&pump->outlet, err) < 0)
            return -1;
        if (polls[LOCAL].revents && !take_local(pump))
            return 0;
        if (pump->out.len)
            push(pump);
        bool is_told = (polls[DAEMON].revents & ~POLLOUT) && !outlet_is_waiting(&pump->outlet);
        if ((is_told ? receive(pump, err) : take_frames(pump, err)) < 0)
            return -1;
        if (pump->outlet.is_closed)
            return 0; // the local client is gone: the connection inside ends with this one
        pass_end(pump);
    }
    return 0;
}

int forward_run(const struct rest *rest, const char *sandbox, int port, int local_fd, struct error *err)
{
    CLEANUP(pump_clear) struct pump pump = {.daemon_fd = -1, .local_fd = local_fd, .in = BUFFER_INIT(IN_BYTES), .out = BUFFER_INIT(OUT_BYTES), .outlet = {.fd = -1, .own_fd = -1}};
    CLEANUP_FREE char *name = http_escape(sandbox);
    CLEANUP_FREE char *path = mem_format(REST_OWN "/sandboxes/%s/ports/%d/connect", name, port);
    CLEANUP_JSON json_t *body = json_object();
    if (rest_open_stream(rest, path, body, &pump.daemon_fd, &pump.in, err) < 0) {
        reset_local(&pump);
        return -1;
    }
    fs_set_nonblocking(pump.daemon_fd, true);
    outlet_open(&pump.outlet, local_fd);
    return run(&pump, err);
}
