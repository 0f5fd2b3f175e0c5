// What happens while a POST waits for its answer: progress, the stream that carries it, and the client's end. Only an
// exchange that may have something to say meanwhile has a watch, with one timer of the loop; the others just wait.
#include "api/mcp/event_stream.h"
#include "api/mcp/exchange.h"
#include "controller/base/memory.h"
#include <stdlib.h>
#include <string.h>

#define QUEUE_BYTES (16 * 1024) // beside the tokens

struct mcp_watch { // loop thread, once it was posted
    struct boot_time started;
    struct loop_timer *timer;
    struct event_stream *stream; // NULL: not begun
};

static struct loop *loop_of(const struct mcp_exchange *exchange)
{
    return exchange->server->world->loop;
}

static int64_t waited_ms(const struct mcp_exchange *exchange)
{
    return clock_boot(loop_clock(loop_of(exchange))).ms - exchange->watch->started.ms;
}

// ---- the client's end -------------------------------------------------------------------------------------
void mcp_exchange_gone(void *arg)
{
    struct mcp_exchange *exchange = arg;
    if (!mcp_exchange_try_hold(exchange)) // else the last call's end would free it
        return;
    for (size_t i = 0; i < exchange->count; i++)
        if (exchange->calls[i].has_tool)
            tool_call_cancel(&exchange->calls[i].tool);
    mcp_exchange_release(exchange);
}

// ---- the stream -------------------------------------------------------------------------------------------
static void begin_stream(struct mcp_exchange *exchange)
{
    size_t queue_max = QUEUE_BYTES;
    for (size_t i = 0; i < exchange->count; i++)
        if (exchange->calls[i].message.progress_token_text)
            queue_max += strlen(exchange->calls[i].message.progress_token_text);
    mcp_exchange_hold(exchange); // it may be told right away that the client has gone
    exchange->watch->stream =
        event_stream_start(exchange->http, loop_of(exchange), queue_max, mcp_exchange_gone, exchange);
    mcp_exchange_release(exchange);
}

static bool is_telling(struct mcp_call *call)
{
    pthread_mutex_lock(&call->exchange->lock);
    bool is_waiting = !call->is_done && !call->is_cancelled;
    pthread_mutex_unlock(&call->exchange->lock);
    return is_waiting && call->has_begun && call->message.progress_token_text && call->exchange->takes_events;
}

static void tell(struct mcp_call *call)
{
    struct mcp_exchange *exchange = call->exchange;
    int64_t waited = waited_ms(exchange);
    struct tool_progress what;
    if (!exchange->watch->stream)
        begin_stream(exchange);
    if (!is_telling(call))
        return; // the client had gone
    tool_call_describe(&call->tool, waited, &what);
    CLEANUP_FREE char *text = progress_say(&call->progress, waited, call->message.progress_token_text, &what);
    event_stream_send(exchange->watch->stream, text, strlen(text)); // what does not fit, the next one makes up for
}

// ---- time -------------------------------------------------------------------------------------------------
static void tick(void *arg);

// Who takes events only waits without a word at first, too.
static int64_t next_due_ms(struct mcp_exchange *exchange)
{
    int64_t due_ms = exchange->is_event && !exchange->watch->stream ? EVENT_STREAM_KEEP_ALIVE_MS : INT64_MAX;
    for (size_t i = 0; i < exchange->count; i++) {
        struct mcp_call *call = &exchange->calls[i];
        if (is_telling(call) && progress_due_ms(&call->progress) < due_ms)
            due_ms = progress_due_ms(&call->progress);
    }
    return due_ms;
}

static void arm(struct mcp_exchange *exchange)
{
    struct mcp_watch *watch = exchange->watch;
    loop_cancel(TAKE_PTR(watch->timer));
    int64_t due_ms = next_due_ms(exchange);
    if (due_ms < INT64_MAX)
        watch->timer = loop_at(loop_of(exchange), (struct boot_time){watch->started.ms + due_ms}, tick, exchange);
}

static void tick(void *arg)
{
    struct mcp_exchange *exchange = arg;
    exchange->watch->timer = NULL;
    if (!mcp_exchange_try_hold(exchange)) // else a call that ends inside would free it
        return;
    for (size_t i = 0; i < exchange->count; i++) {
        struct mcp_call *call = &exchange->calls[i];
        if (is_telling(call) && progress_due_ms(&call->progress) <= waited_ms(exchange))
            tell(call);
    }
    if (exchange->is_event && !exchange->watch->stream && waited_ms(exchange) >= EVENT_STREAM_KEEP_ALIVE_MS)
        begin_stream(exchange);
    arm(exchange);
    mcp_exchange_release(exchange);
}

// The tool's: it runs, or waits for something else than before.
static void note_news(void *arg)
{
    struct mcp_call *call = arg;
    struct mcp_exchange *exchange = call->exchange;
    call->has_begun = true;
    call->progress.has_news = true;
    if (!exchange->is_over)
        arm(exchange);
}

// ---- birth and end ----------------------------------------------------------------------------------------
static void start_watch(void *arg)
{
    struct mcp_exchange *exchange = arg;
    if (!exchange->is_over)
        arm(exchange);
    mcp_exchange_unref(exchange);
}

void mcp_watch_call(struct mcp_call *call)
{
    struct mcp_exchange *exchange = call->exchange;
    if (!exchange->takes_events || !(call->message.progress_token_text || exchange->is_event))
        return;
    call->tool.news = note_news;
    if (exchange->watch)
        return;
    exchange->watch = mem_alloc(sizeof(*exchange->watch));
    exchange->watch->started = clock_boot(loop_clock(loop_of(exchange)));
    atomic_fetch_add(&exchange->refs, 1);
    loop_post(loop_of(exchange), start_watch, exchange);
}

struct event_stream *mcp_watch_end(struct mcp_exchange *exchange)
{
    struct mcp_watch *watch = exchange->watch;
    struct event_stream *stream = watch->stream;
    exchange->is_over = true;
    loop_cancel(watch->timer);
    free(watch);
    exchange->watch = NULL;
    return stream;
}
