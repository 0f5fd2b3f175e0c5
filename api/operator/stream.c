#include "api/operator/stream.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define IN_BYTES (2 * (FRAME_HEAD_BYTES + FRAME_MAX_BYTES))
#define FULL_BYTES (STREAM_OUT_BYTES / 2)

struct operator_stream {
    struct operator_server *server;
    struct http_upgrade *upgrade;
    int fd;
    struct operator_stream_events events; // frame NULL: the owner has let go
    struct loop_source *source;
    struct loop_timer *stall;
    struct buffer in, out;
    size_t sent; // of out
    int64_t progress_ms; // when the client last took something
    bool is_paused, was_full;
    bool has_rest; // frames may be waiting in `in`: they are taken from the loop
    bool is_busy, is_dead; // in a callback; freed when it returns
};

// ---- the end --------------------------------------------------------------------------------------------------------
static void release(struct operator_stream *stream)
{
    struct operator_server *server = stream->server;
    buffer_free(&stream->in);
    buffer_free(&stream->out);
    free(stream);
    operator_server_unref(server);
}

// The connection is given back at once, the memory when nobody stands on it.
static void kill(struct operator_stream *stream)
{
    if (stream->is_dead)
        return;
    stream->is_dead = true;
    loop_cancel(TAKE_PTR(stream->stall));
    loop_unwatch(TAKE_PTR(stream->source));
    http_upgrade_close(TAKE_PTR(stream->upgrade));
    if (!stream->is_busy)
        release(stream);
}

static void lose(struct operator_stream *stream)
{
    void (*gone)(void *) = stream->events.frame ? stream->events.gone : NULL;
    void *arg = stream->events.arg;
    stream->events = (struct operator_stream_events){0};
    kill(stream);
    if (gone)
        gone(arg);
}

static void stop(void *arg)
{
    lose(arg);
}

// ---- sending --------------------------------------------------------------------------------------------------------
static void watch(struct operator_stream *stream)
{
    bool is_wanted = stream->out.len > stream->sent || stream->has_rest;
    loop_rewatch(stream->source, EPOLLRDHUP | (stream->is_paused ? 0 : EPOLLIN) | (is_wanted ? EPOLLOUT : 0));
}

static void check_stall(void *arg);

static void arm_stall(struct operator_stream *stream)
{
    int64_t wait_ms = stream->events.frame ? STREAM_STALL_MS : STREAM_LINGER_MS;
    loop_cancel(stream->stall);
    stream->stall = loop_after(stream->server->world->loop, wait_ms, check_stall, stream);
}

static int64_t now_ms(const struct operator_stream *stream)
{
    return clock_boot(stream->server->world->clock).ms;
}

static void check_stall(void *arg)
{
    struct operator_stream *stream = arg;
    int64_t wait_ms = stream->events.frame ? STREAM_STALL_MS : STREAM_LINGER_MS;
    stream->stall = NULL;
    if (stream->out.len == stream->sent)
        return; // armed again when something waits
    if (now_ms(stream) - stream->progress_ms >= wait_ms)
        lose(stream);
    else
        arm_stall(stream);
}

// False: the client has gone.
static bool push(struct operator_stream *stream)
{
    while (stream->sent < stream->out.len) {
        ssize_t n = send(stream->fd, stream->out.data + stream->sent, stream->out.len - stream->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        stream->sent += (size_t)n;
        stream->progress_ms = now_ms(stream);
    }
    if (stream->out.cap > FRAME_MAX_BYTES)
        buffer_free(&stream->out); // an idle one costs nothing
    stream->out.len = stream->sent = 0;
    return true;
}

static size_t waiting(const struct operator_stream *stream)
{
    return stream->out.len - stream->sent;
}

static void make_room(struct operator_stream *stream)
{
    buffer_consume(&stream->out, stream->sent);
    stream->sent = 0;
}

// What could not go out at once is watched for.
static void flush(struct operator_stream *stream)
{
    if (!push(stream)) {
        shutdown(stream->fd, SHUT_RDWR); // told from the loop, where nothing of ours is on the stack
        stream->out.len = stream->sent = 0;
    }
    if (waiting(stream) && !stream->stall) {
        stream->progress_ms = now_ms(stream);
        arm_stall(stream);
    }
    watch(stream);
}

void operator_stream_send(struct operator_stream *stream, enum frame_type type, const void *bytes, size_t len)
{
    if (stream->is_dead)
        return;
    make_room(stream);
    if (frame_append(&stream->out, type, bytes, len) < 0)
        shutdown(stream->fd, SHUT_RDWR);
    flush(stream);
}

void operator_stream_send_number(struct operator_stream *stream, enum frame_type type, uint32_t value, size_t size)
{
    char bytes[4];
    for (size_t i = size; i-- > 0; value >>= 8)
        bytes[i] = (char)(value & 0xff);
    operator_stream_send(stream, type, bytes, size);
}

bool operator_stream_is_full(struct operator_stream *stream)
{
    stream->was_full = waiting(stream) >= FULL_BYTES;
    return stream->was_full;
}

void operator_stream_end(struct operator_stream *stream)
{
    stream->events = (struct operator_stream_events){0};
    if (stream->is_dead)
        return;
    if (!waiting(stream)) {
        kill(stream);
        return;
    }
    stream->is_paused = true;
    arm_stall(stream);
    watch(stream);
}

void operator_stream_fail(struct operator_stream *stream, const struct error *err)
{
    CLEANUP_JSON json_t *status = status_to_json(0, err, NULL, NULL);
    CLEANUP_FREE char *text = json_to_text(status);
    if (strlen(text) <= FRAME_FAILED_MAX_BYTES)
        operator_stream_send(stream, FRAME_FAILED, text, strlen(text));
    operator_stream_end(stream);
}

// ---- receiving ------------------------------------------------------------------------------------------------------
// What came is not our protocol: the client hears so, and its owner that it is gone.
static void break_off(struct operator_stream *stream, struct error *err)
{
    void (*gone)(void *) = stream->events.gone;
    void *arg = stream->events.arg;
    error_context(err, "the client sent what cannot be understood");
    operator_stream_fail(stream, err);
    gone(arg);
}

static void take_frames(struct operator_stream *stream)
{
    size_t at = 0, size;
    struct frame frame;
    struct error err = ERROR_INIT;
    int r = 1;
    while (!stream->is_dead && !stream->is_paused && stream->events.frame &&
           (r = frame_read(stream->in.data + at, stream->in.len - at, &frame, &size, &err)) > 0) {
        stream->events.frame(stream->events.arg, &frame);
        at += size;
    }
    buffer_consume(&stream->in, at);
    if (!stream->in.len && stream->in.cap > 4096)
        buffer_free(&stream->in);
    if (r < 0)
        break_off(stream, &err);
}

// False: the client has gone.
static bool receive(struct operator_stream *stream)
{
    size_t room = stream->in.max - stream->in.len;
    if (!room)
        return true; // paused in the middle: there is a whole frame in it
    ssize_t n = recv(stream->fd, buffer_reserve(&stream->in, room), room, MSG_DONTWAIT);
    if (n > 0)
        stream->in.len += (size_t)n;
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        return false;
    take_frames(stream);
    return true;
}

static void tell_drained(struct operator_stream *stream)
{
    if (!stream->was_full || waiting(stream) > FULL_BYTES / 2 || !stream->events.frame)
        return;
    stream->was_full = false;
    if (stream->events.drained)
        stream->events.drained(stream->events.arg);
}

// What may be told: each step may have been the end. False: the client has gone.
static bool serve_owner(struct operator_stream *stream, uint32_t events)
{
    if (events & EPOLLOUT)
        tell_drained(stream);
    if (stream->has_rest) {
        stream->has_rest = false;
        take_frames(stream);
    }
    bool listens = !stream->is_dead && !stream->is_paused && stream->events.frame;
    return listens && (events & ~(uint32_t)EPOLLOUT) ? receive(stream) : true;
}

static bool serve(struct operator_stream *stream, uint32_t events)
{
    if ((events & EPOLLOUT) && !push(stream))
        return false;
    if (stream->events.frame && !serve_owner(stream, events))
        return false;
    if (stream->is_dead)
        return true;
    // Who is paused still hears of the client's end; so does the rest that nobody will read.
    if ((stream->is_paused || !stream->events.frame) && (events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)))
        return false;
    return stream->events.frame || waiting(stream) > 0; // the owner has let go, and all is sent
}

static void on_ready(void *arg, uint32_t events)
{
    struct operator_stream *stream = arg;
    stream->is_busy = true;
    bool is_good = serve(stream, events);
    stream->is_busy = false;
    if (stream->is_dead)
        release(stream);
    else if (!is_good)
        lose(stream);
    else
        watch(stream);
}

void operator_stream_pause(struct operator_stream *stream, bool is_paused)
{
    stream->is_paused = is_paused;
    stream->has_rest = !is_paused && stream->in.len > 0;
    if (!stream->is_dead)
        watch(stream);
}

// ---- start ----------------------------------------------------------------------------------------------------------
struct operator_stream *operator_stream_new(struct operator_server *server, struct http_upgrade *upgrade, int fd, const char *early,
                                            size_t early_len, const struct operator_stream_events *events)
{
    struct operator_stream *stream = mem_alloc(sizeof(*stream));
    operator_server_ref(server);
    *stream = (struct operator_stream){
        .server = server, .upgrade = upgrade, .fd = fd, .events = *events, .in = BUFFER_INIT(IN_BYTES), .out = BUFFER_INIT(STREAM_OUT_BYTES)};
    if (buffer_append(&stream->in, early, early_len) < 0)
        shutdown(fd, SHUT_RDWR); // more than a client may have sent before it was answered
    stream->has_rest = early_len > 0;
    stream->source = loop_watch(server->world->loop, fd, EPOLLIN | EPOLLRDHUP | EPOLLOUT, on_ready, stream);
    http_upgrade_on_stop(upgrade, stop, stream);
    return stream;
}
