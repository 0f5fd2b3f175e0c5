#include "api/mcp/event_stream.h"
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <stdlib.h>

#define EVENT_HEAD "event: message\ndata: "
#define EVENT_TAIL "\n\n"
#define COMMENT ":\n\n"

const struct http_reply event_stream_reply = {
    .status = 200,
    .content_type = "text/event-stream",
    .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}},
};

struct event_stream {
    struct http_stream *http;
    struct loop *loop;
    struct loop_timer *keep_alive;
    struct boot_time sent; // the newest message
};

static void arm(struct event_stream *stream);

static struct boot_time now(const struct event_stream *stream)
{
    return clock_boot(loop_clock(stream->loop));
}

// A client that has not read the last one needs no other.
static void keep_alive(void *arg)
{
    struct event_stream *stream = arg;
    stream->keep_alive = NULL;
    if (now(stream).ms >= stream->sent.ms + EVENT_STREAM_KEEP_ALIVE_MS) {
        http_stream_write(stream->http, COMMENT, sizeof(COMMENT) - 1);
        stream->sent = now(stream);
    }
    arm(stream);
}

static void arm(struct event_stream *stream)
{
    const struct boot_time due = {stream->sent.ms + EVENT_STREAM_KEEP_ALIVE_MS};
    stream->keep_alive = loop_at(stream->loop, due, keep_alive, stream);
}

struct event_stream *event_stream_start(struct http_request *request, struct loop *loop, size_t queue_max, http_gone_fn gone,
                                        void *arg)
{
    struct event_stream *stream = mem_alloc(sizeof(*stream));
    stream->loop = loop;
    stream->sent = now(stream);
    stream->http = http_stream_start(
        request, &event_stream_reply,
        &(struct http_stream_options){.queue_max = queue_max, .on_gone = gone, .arg = arg});
    arm(stream);
    return stream;
}

int event_stream_wrap(struct buffer *events, const char *message, size_t len)
{
    if (events->len + sizeof(EVENT_HEAD) + len + sizeof(EVENT_TAIL) > events->max)
        return -1;
    buffer_append_text(events, EVENT_HEAD);
    buffer_append(events, message, len);
    return buffer_append_text(events, EVENT_TAIL);
}

bool event_stream_send(struct event_stream *stream, const char *message, size_t len)
{
    CLEANUP(buffer_free) struct buffer event = BUFFER_INIT(sizeof(EVENT_HEAD) + len + sizeof(EVENT_TAIL));
    if (event_stream_wrap(&event, message, len) < 0 || http_stream_write(stream->http, event.data, event.len) < 0)
        return false;
    stream->sent = now(stream);
    return true;
}

void event_stream_end(struct event_stream *stream, char *events, size_t len)
{
    loop_cancel(stream->keep_alive);
    http_stream_end(stream->http, events, len);
    free(stream);
}
