#include "api/client/http_batch.h"
#include "api/client/http_internal.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define READ_BYTES (64 * 1024)
#define POLL_MAX_MS 1000
#define FIRST_CONNECT_MS 30000 // each later one may take as long as its exchange

// A connection and the one exchange on it.
struct lane {
    int fd; // -1: none
    bool is_busy, is_kept, is_repeated; // kept: it answered before; repeated: the request was sent a second time
    size_t index;
    struct http_ask ask;
    struct buffer out; // head and body
    size_t sent;
    struct answer_reader reader;
    bool has_answer; // a byte of it
    int64_t deadline_ms;
};
struct batch {
    const struct http_batch *of;
    struct lane lanes[HTTP_BATCH_CONNECTIONS];
    size_t next, done;
    char *bytes; // READ_BYTES
};

static void disconnect(struct lane *lane)
{
    if (lane->fd >= 0)
        close(lane->fd);
    lane->fd = -1;
    lane->is_kept = false;
}

static void end_exchange(struct batch *batch, struct lane *lane)
{
    answer_reader_clear(&lane->reader);
    buffer_free(&lane->out);
    lane->is_busy = false;
    batch->done++;
}

static void fail(struct batch *batch, struct lane *lane, const struct error *err)
{
    disconnect(lane);
    batch->of->answered(batch->of->arg, lane->index, NULL, err);
    end_exchange(batch, lane);
}

static void finish(struct batch *batch, struct lane *lane)
{
    CLEANUP(http_answered_clear) struct http_answered answer = http_take_answer(&lane->reader);
    lane->is_kept = true;
    if (lane->reader.must_close)
        disconnect(lane);
    batch->of->answered(batch->of->arg, lane->index, &answer, NULL);
    end_exchange(batch, lane);
}

// ---- sending ------------------------------------------------------------------------------------------------------------
static int prepare(struct batch *batch, struct lane *lane, struct error *err)
{
    lane->out = (struct buffer)BUFFER_INIT(HTTP_HEAD_MAX_BYTES + lane->ask.body_len);
    lane->sent = 0;
    lane->has_answer = false;
    answer_reader_init(&lane->reader);
    if (http_write_head(&lane->out, batch->of->target, &lane->ask, true, err) < 0)
        return -1;
    if (lane->ask.content_type)
        buffer_append(&lane->out, lane->ask.body, lane->ask.body_len);
    return lane->fd >= 0 ? 0 : (lane->fd = http_connect(batch->of->target, lane->ask.timeout_ms, err)) < 0 ? -1 : 0;
}

// What goes at once. A peer that closed may have answered before: its answer says why.
static int send_some(struct lane *lane, struct error *err)
{
    while (lane->sent < lane->out.len) {
        ssize_t n = send(lane->fd, lane->out.data + lane->sent, lane->out.len - lane->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0)
            lane->sent += (size_t)n;
        else if (errno == EPIPE || errno == ECONNRESET)
            lane->sent = lane->out.len;
        else if (errno == EAGAIN)
            return 0;
        else if (errno != EINTR)
            return error_errno(err, errno, NULL, "cannot send to the daemon");
    }
    return 0;
}

static void begin(struct batch *batch, struct lane *lane)
{
    struct error err = ERROR_INIT;
    lane->is_busy = true;
    lane->is_repeated = false;
    lane->index = batch->next++;
    lane->ask = (struct http_ask){0};
    batch->of->ask(batch->of->arg, lane->index, &lane->ask);
    lane->deadline_ms = boot_time_now().ms + lane->ask.timeout_ms;
    if (prepare(batch, lane, &err) < 0 || send_some(lane, &err) < 0)
        fail(batch, lane, &err);
}

// A connection that was kept may have been closed before the request came. What is done twice by being asked twice is not repeated.
static bool repeat(struct batch *batch, struct lane *lane, struct error *err)
{
    if (!lane->is_kept || lane->has_answer || lane->is_repeated || strcmp(lane->ask.method, "POST") == 0)
        return false;
    lane->is_repeated = true;
    disconnect(lane);
    answer_reader_clear(&lane->reader);
    buffer_free(&lane->out);
    return prepare(batch, lane, err) == 0 && send_some(lane, err) == 0;
}

// ---- receiving ------------------------------------------------------------------------------------------------------------
static void take_end(struct batch *batch, struct lane *lane)
{
    struct error err = ERROR_INIT;
    if (repeat(batch, lane, &err))
        return;
    if (err.code || answer_reader_end(&lane->reader, &err) < 0)
        fail(batch, lane, &err);
    else
        finish(batch, lane);
}

static void receive_some(struct batch *batch, struct lane *lane)
{
    struct error err = ERROR_INIT;
    ssize_t n = recv(lane->fd, batch->bytes, READ_BYTES, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno == ECONNRESET)) {
        take_end(batch, lane);
        return;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    lane->has_answer = true;
    if (n < 0)
        error_errno(&err, errno, NULL, "cannot read the daemon's answer");
    if (n < 0 || answer_reader_feed(&lane->reader, batch->bytes, (size_t)n, &err) < 0)
        fail(batch, lane, &err);
    else if (lane->reader.state == ANSWER_DONE)
        finish(batch, lane);
}

// ---- the loop -------------------------------------------------------------------------------------------------------------
static void check_deadline(struct batch *batch, struct lane *lane, int64_t now_ms)
{
    struct error err = ERROR_INIT;
    if (!lane->is_busy || now_ms < lane->deadline_ms)
        return;
    error_set(&err, ERROR_TIMEOUT, "see what it does: chat2shell status", "the daemon did not answer in time");
    fail(batch, lane, &err);
}

static void serve_lane(struct batch *batch, struct lane *lane, short events)
{
    struct error err = ERROR_INIT;
    if ((events & POLLOUT) && send_some(lane, &err) < 0)
        fail(batch, lane, &err);
    else if (events & ~POLLOUT)
        receive_some(batch, lane);
}

static int until_next_deadline_ms(const struct batch *batch)
{
    int64_t now_ms = boot_time_now().ms, left = POLL_MAX_MS;
    for (size_t i = 0; i < HTTP_BATCH_CONNECTIONS; i++)
        if (batch->lanes[i].is_busy && batch->lanes[i].deadline_ms - now_ms < left)
            left = batch->lanes[i].deadline_ms - now_ms;
    return left > 0 ? (int)left : 0;
}

static void turn(struct batch *batch)
{
    struct pollfd fds[HTTP_BATCH_CONNECTIONS];
    for (size_t i = 0; i < HTTP_BATCH_CONNECTIONS; i++) {
        struct lane *lane = &batch->lanes[i];
        while (!lane->is_busy && batch->next < batch->of->count) // where nobody listens any more each fails at once
            begin(batch, lane);
        fds[i] = (struct pollfd){.fd = lane->is_busy ? lane->fd : -1, .events = lane->sent < lane->out.len ? POLLIN | POLLOUT : POLLIN};
    }
    if (batch->done == batch->of->count || poll(fds, HTTP_BATCH_CONNECTIONS, until_next_deadline_ms(batch)) < 0)
        return;
    int64_t now_ms = boot_time_now().ms;
    for (size_t i = 0; i < HTTP_BATCH_CONNECTIONS; i++) {
        if (fds[i].revents && batch->lanes[i].is_busy)
            serve_lane(batch, &batch->lanes[i], fds[i].revents);
        check_deadline(batch, &batch->lanes[i], now_ms);
    }
}

int http_batch_run(const struct http_batch *of, struct error *err)
{
    CLEANUP_FREE char *bytes = mem_alloc(READ_BYTES);
    struct batch batch = {.of = of, .bytes = bytes};
    for (size_t i = 0; i < HTTP_BATCH_CONNECTIONS; i++)
        batch.lanes[i].fd = -1;
    if (!of->count)
        return 0;
    if ((batch.lanes[0].fd = http_connect(of->target, FIRST_CONNECT_MS, err)) < 0)
        return -1;
    while (batch.done < of->count)
        turn(&batch);
    for (size_t i = 0; i < HTTP_BATCH_CONNECTIONS; i++)
        disconnect(&batch.lanes[i]);
    return 0;
}
