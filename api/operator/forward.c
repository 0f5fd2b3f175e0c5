// port-forward: one connection of the client, one into the sandbox, bytes in between. Either end may close its direction first
// (half-close). Both directions are held back by whoever does not read. Loop thread only, but for the handler.
#include "api/operator/stream.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define FORWARDS_MAX 256
#define PENDING_BYTES (2 * FRAME_MAX_BYTES) // for the sandbox; half of it pauses the client
#define NOTE_MS 10000                       // between two notes of activity

struct forward {
    struct operator_server *server;
    struct operator_stream *stream; // NULL: before, and in the end
    char *uid;
    int fd, port;
    struct loop_source *source;
    struct buffer pending; // for the sandbox
    bool client_ended, is_told_end; // nothing more comes from the client; and the sandbox knows
    bool inside_ended;
    int broken;                     // why nothing goes in any more, although what came out may not be read to its end; or 0
    int64_t noted_ms;
};

static void forward_free(struct forward *forward)
{
    struct operator_server *server = forward->server;
    const struct linger at_once = {.l_onoff = 1};
    loop_unwatch(TAKE_PTR(forward->source));
    if (!forward->is_told_end) // broken: it must not look like an end
        setsockopt(forward->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    cleanup_close(&forward->fd);
    buffer_free(&forward->pending);
    free(forward->uid);
    free(forward);
    server->forward_count--;
    operator_server_unref(server);
}

static void on_gone(void *arg)
{
    forward_free(arg);
}

static void end(struct forward *forward, int errno_value)
{
    struct error err = ERROR_INIT;
    if (errno_value) {
        error_set(&err, ERROR_UNAVAILABLE, NULL, "the connection to port %d of the sandbox broke: %s", forward->port, strerrordesc_np(errno_value));
        operator_stream_fail(forward->stream, &err);
    } else {
        operator_stream_end(forward->stream);
    }
    forward_free(forward);
}

// An operator at work is activity, as with exec; a connection that only stands is none.
static void note_activity(struct forward *forward)
{
    int64_t now_ms = clock_boot(forward->server->world->clock).ms;
    if (forward->noted_ms && now_ms - forward->noted_ms < NOTE_MS)
        return;
    forward->noted_ms = now_ms;
    lane_note_activity(forward->server->world->lanes, forward->uid);
}

static void watch(struct forward *forward)
{
    bool may_read = !forward->inside_ended && !operator_stream_is_full(forward->stream);
    loop_rewatch(forward->source, (may_read ? EPOLLIN : 0) | (forward->pending.len ? EPOLLOUT : 0));
}

// ---- into the sandbox -----------------------------------------------------------------------------------------------
// An errno value, or 0.
static int push(struct forward *forward)
{
    while (forward->pending.len) {
        ssize_t n = send(forward->fd, forward->pending.data, forward->pending.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : errno;
        buffer_consume(&forward->pending, (size_t)n);
    }
    if (forward->pending.cap)
        buffer_free(&forward->pending);
    if (forward->client_ended && !forward->is_told_end) {
        forward->is_told_end = true;
        shutdown(forward->fd, SHUT_WR);
    }
    return 0;
}

// A server that takes nothing more may still have something to say: then its end is told by its own direction. One that has
// ended is told to who still sends, as a reset would be. An errno value, or 0.
static int push_or_drop(struct forward *forward)
{
    int wrong = forward->broken ? forward->broken : push(forward);
    if ((wrong != EPIPE && wrong != ECONNRESET) || (forward->inside_ended && !forward->client_ended))
        return wrong;
    forward->broken = wrong;
    buffer_free(&forward->pending);
    forward->is_told_end = forward->client_ended;
    return 0;
}

static bool has_ended(const struct forward *forward)
{
    return forward->inside_ended && forward->is_told_end;
}

static void on_frame(void *arg, const struct frame *frame)
{
    struct forward *forward = arg;
    bool is_good = !forward->client_ended && (frame->type == FRAME_DATA || frame->type == FRAME_END);
    if (is_good && frame->type == FRAME_END)
        forward->client_ended = true;
    else if (is_good)
        is_good = buffer_append(&forward->pending, frame->bytes, frame->len) == 0;
    int wrong = is_good ? push_or_drop(forward) : EPROTO;
    if (wrong) {
        end(forward, wrong);
        return;
    }
    note_activity(forward);
    if (has_ended(forward)) {
        end(forward, 0);
        return;
    }
    if (forward->pending.len >= PENDING_BYTES / 2)
        operator_stream_pause(forward->stream, true);
    watch(forward);
}

// ---- out of it ------------------------------------------------------------------------------------------------------
// An errno value, or 0.
static int pull(struct forward *forward)
{
    char bytes[FRAME_MAX_BYTES];
    ssize_t n = recv(forward->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : errno;
    if (n == 0 && forward->broken == ECONNRESET)
        return ECONNRESET; // the write took the error that this read would have told
    note_activity(forward);
    forward->inside_ended = n == 0;
    operator_stream_send(forward->stream, n ? FRAME_DATA : FRAME_END, bytes, (size_t)n);
    return 0;
}

static void on_drained(void *arg)
{
    watch(arg);
}

static void on_ready(void *arg, uint32_t events)
{
    struct forward *forward = arg;
    int wrong = events & EPOLLOUT ? push_or_drop(forward) : 0;
    if (!wrong && !forward->inside_ended && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        wrong = pull(forward);
    if (wrong || has_ended(forward)) {
        end(forward, wrong);
        return;
    }
    if (forward->pending.len < PENDING_BYTES / 2)
        operator_stream_pause(forward->stream, false);
    watch(forward);
}

// ---- start ----------------------------------------------------------------------------------------------------------
static void on_started(void *arg, struct http_upgrade *upgrade, int fd, const char *early, size_t early_len)
{
    struct forward *forward = arg;
    const struct operator_stream_events events = {.frame = on_frame, .drained = on_drained, .gone = on_gone, .arg = forward};
    int on = 1;
    if (!upgrade) {
        forward_free(forward);
        return;
    }
    setsockopt(forward->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    forward->stream = operator_stream_new(forward->server, upgrade, fd, early, early_len, &events);
    forward->source = loop_watch(forward->server->world->loop, forward->fd, EPOLLIN, on_ready, forward);
    note_activity(forward);
}

struct dialling { // call->state
    struct record *sandbox;
    int port;
};

static void dialling_free(struct dialling *dialling)
{
    record_free(dialling->sandbox);
    free(dialling);
}

static void on_dialled(void *arg, int fd, const struct error *err)
{
    struct call *call = arg;
    struct dialling *dialling = call->state;
    struct operator_server *server = call->server;
    if (fd < 0) {
        server->forward_count--;
        dialling_free(dialling);
        operator_fail(call, err);
        return;
    }
    struct forward *forward = mem_alloc(sizeof(*forward));
    *forward = (struct forward){.server = server, .uid = mem_strdup(dialling->sandbox->meta.uid), .fd = fd, .port = dialling->port, .pending = BUFFER_INIT(PENDING_BYTES)};
    dialling_free(dialling);
    operator_server_ref(server);
    operator_answer_upgrade(call, &(struct http_upgrade_options){.protocol = STREAM_PROTOCOL, .started = on_started, .arg = forward});
}

static void start_dial(struct call *call)
{
    struct dialling *dialling = call->state;
    struct error err = ERROR_INIT;
    if (call->server->forward_count >= FORWARDS_MAX)
        error_set(&err, ERROR_LIMIT, "close some first", "%d connections are forwarded into sandboxes, the most at once", FORWARDS_MAX);
    else if (request_dial(call->world, dialling->sandbox, dialling->port, on_dialled, call, &err) == 0)
        call->server->forward_count++;
    if (!err.code)
        return;
    dialling_free(dialling);
    operator_fail(call, &err);
}

static int parse_port(const char *text)
{
    size_t len = strlen(text);
    int port = len && len <= 5 && strspn(text, "0123456789") == len ? atoi(text) : 0;
    return port <= 65535 ? port : 0;
}

void ports_connect(struct call *call)
{
    int port = parse_port(call->match.id);
    struct error err = ERROR_INIT;
    if (!port)
        error_set(&err, ERROR_INVALID, "give a port from 1 to 65535", "'%.64s' is no port", call->match.id);
    else if (!http_request_wants_upgrade(call->http, STREAM_PROTOCOL))
        error_set(&err, ERROR_INVALID, "ask with Connection: Upgrade and Upgrade: " STREAM_PROTOCOL, "a connection to a port is a stream");
    if (err.code) {
        operator_fail(call, &err);
        return;
    }
    struct record *sandbox = operator_resolve(call, KIND_SANDBOX);
    if (!sandbox)
        return;
    struct dialling *dialling = mem_alloc(sizeof(*dialling));
    *dialling = (struct dialling){sandbox, port};
    call->state = dialling;
    operator_wait_on_loop(call, start_dial, NULL);
}
