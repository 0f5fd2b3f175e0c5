#include "reconcilers/session/line_channel.h"
#include "reconcilers/session/printed.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define READ_CHUNK (64 * 1024)
#define READ_BUDGET (256 * 1024) // of one turn: a chatty sandbox does not starve the others' events
#define WRITE_BUDGET (1024 * 1024)

struct line_channel {
    struct loop *loop;
    const struct line_channel_events *events;
    void *arg;
    int input_fd, output_fd;
    struct loop_source *input, *output;
    struct printed errors;
    struct loop_timer *stall; // runs while a large line is unfinished
    struct buffer in;         // [0, scanned) holds no newline
    size_t scanned;
    struct buffer out; // [0, sent) is in the pipe already
    size_t sent;
    struct last_lines last;
    bool is_closed;
};

// ---- the end -----------------------------------------------------------------------------------------------------

static void stop_watching(struct loop_source **source, int *fd)
{
    if (*source)
        loop_unwatch(TAKE_PTR(*source));
    if (*fd >= 0)
        close(TAKE_FD(*fd));
}

void line_channel_close(struct line_channel *channel)
{
    if (channel->is_closed)
        return;
    channel->is_closed = true;
    // The reason of a death is usually the last thing on stderr; it may still be in the pipe.
    printed_stop(&channel->errors);
    stop_watching(&channel->input, &channel->input_fd);
    stop_watching(&channel->output, &channel->output_fd);
    loop_cancel(TAKE_PTR(channel->stall));
    buffer_free(&channel->out);
}

void line_channel_free(struct line_channel *channel)
{
    if (!channel)
        return;
    line_channel_close(channel);
    buffer_free(&channel->in);
    last_lines_free(&channel->last);
    free(channel);
}

static void end(struct line_channel *channel, const char *reason)
{
    if (channel->is_closed)
        return;
    line_channel_close(channel);
    channel->events->ended(channel->arg, reason);
}

// ---- reading -----------------------------------------------------------------------------------------------------

static void on_stall(void *arg)
{
    struct line_channel *channel = arg;
    channel->stall = NULL;
    end(channel, "it began a message and did not finish it within a minute");
}

// A buffer that holds much of an unfinished line is memory a sandbox can make us keep: it gets a time limit.
static void watch_stall(struct line_channel *channel)
{
    bool is_large = channel->in.len > LINE_STALL_BYTES;
    if (is_large && !channel->stall)
        channel->stall = loop_after(channel->loop, LINE_STALL_MS, on_stall, channel);
    if (!is_large)
        loop_cancel(TAKE_PTR(channel->stall));
}

// Hands out the complete lines in the buffer. Stops when one of them closes the channel.
static void emit_lines(struct line_channel *channel)
{
    size_t start = 0;
    while (!channel->is_closed) {
        const char *from = channel->in.data + channel->scanned;
        const char *newline = memchr(from, '\n', channel->in.len - channel->scanned);
        size_t stop = newline ? (size_t)(newline - channel->in.data) : channel->in.len;
        channel->scanned = stop;
        if (stop - start > LINE_MAX_BYTES) {
            end(channel, "it sent a message over the limit of 24 MiB");
            return;
        }
        if (!newline)
            break;
        channel->events->line(channel->arg, channel->in.data + start, stop - start);
        start = channel->scanned = stop + 1;
        loop_cancel(TAKE_PTR(channel->stall)); // the next line has its own time
    }
    buffer_consume(&channel->in, start);
    channel->scanned -= start;
    if (!channel->in.len)
        buffer_free(&channel->in);
}

// Returns what read() returned; the bytes are in the buffer.
static ssize_t fill(struct line_channel *channel)
{
    char *at = buffer_reserve(&channel->in, READ_CHUNK);
    ssize_t n = read(channel->output_fd, at, READ_CHUNK);
    if (n > 0)
        channel->in.len += (size_t)n;
    else if (!channel->in.len)
        buffer_free(&channel->in);
    return n;
}

static void read_output(struct line_channel *channel)
{
    for (size_t got = 0; got < READ_BUDGET && !channel->is_closed;) {
        ssize_t n = fill(channel);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n <= 0) {
            end(channel, n == 0 ? "its process ended" : "its output cannot be read any more");
            return;
        }
        got += (size_t)n;
        channel->events->moved(channel->arg);
        emit_lines(channel);
        if (n < READ_CHUNK)
            break; // the pipe was drained
    }
    if (!channel->is_closed)
        watch_stall(channel);
}

static void on_output(void *arg, uint32_t events)
{
    (void)events;
    read_output(arg);
}

// ---- writing -----------------------------------------------------------------------------------------------------

// Drops what is in the pipe already once it is most of the buffer, so that a large message is not moved often.
static void drop_sent(struct line_channel *channel)
{
    if (channel->sent == channel->out.len) {
        buffer_free(&channel->out);
        channel->sent = 0;
    } else if (channel->sent > channel->out.len / 2) {
        buffer_consume(&channel->out, channel->sent);
        channel->sent = 0;
    }
}

// Errors end the channel from the loop (EPOLLERR on the descriptor), never from inside a send.
static void flush(struct line_channel *channel)
{
    for (size_t start = channel->sent; channel->sent < channel->out.len && channel->sent - start < WRITE_BUDGET;) {
        ssize_t n = write(channel->input_fd, channel->out.data + channel->sent, channel->out.len - channel->sent);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        channel->sent += (size_t)n;
    }
    drop_sent(channel);
    loop_rewatch(channel->input, channel->out.len ? EPOLLOUT : EPOLLERR);
}

static void on_input(void *arg, uint32_t events)
{
    struct line_channel *channel = arg;
    if (events & (EPOLLERR | EPOLLHUP)) {
        read_output(channel); // its last answers may be there still
        end(channel, "it closed its input");
        return;
    }
    channel->events->moved(channel->arg); // the pipe was full and is not: somebody reads
    flush(channel);
}

static int append_dump(const char *bytes, size_t len, void *arg)
{
    return buffer_append(arg, bytes, len);
}

int line_channel_send(struct line_channel *channel, const json_t *message, struct error *err)
{
    if (channel->is_closed)
        return error_set(err, ERROR_UNAVAILABLE, NULL, "the connection to the tool server is closed");
    size_t before = channel->out.len;
    channel->out.is_over = false;
    int failed = json_dump_callback(message, append_dump, &channel->out, JSON_COMPACT) || buffer_append_char(&channel->out, '\n');
    size_t len = channel->out.len - before;
    if (!failed && len <= LINE_MAX_BYTES) {
        flush(channel);
        return 0;
    }
    bool is_large = len > LINE_MAX_BYTES || (channel->out.is_over && !before);
    if (channel->out.data)
        channel->out.data[channel->out.len = before] = '\0';
    drop_sent(channel);
    if (is_large)
        return error_set(err, ERROR_TOO_LARGE, "send it in smaller pieces", "the message is over the tool server's limit of 24 MiB");
    return error_set(err, ERROR_LIMIT, "wait for calls in progress, then try again",
                     "the tool server is not reading: too much waits to be sent to it");
}

// ---- birth -------------------------------------------------------------------------------------------------------

struct line_channel *line_channel_new(struct loop *loop, struct driver_session *session, const struct line_channel_events *events,
                                      void *arg)
{
    struct line_channel *channel = mem_alloc(sizeof(*channel));
    *channel = (struct line_channel){.loop = loop,
                                     .events = events,
                                     .arg = arg,
                                     .input_fd = TAKE_FD(session->input_fd),
                                     .output_fd = TAKE_FD(session->output_fd),
                                     .in = BUFFER_INIT(LINE_MAX_BYTES + 2 * READ_CHUNK),
                                     .out = BUFFER_INIT(LINE_BACKLOG_BYTES),
                                     .last = LAST_LINES_INIT};
    channel->last.told = events->printed;
    channel->last.arg = arg;
    fs_set_nonblocking(channel->input_fd, true);
    fs_set_nonblocking(channel->output_fd, true);
    channel->input = loop_watch(loop, channel->input_fd, EPOLLERR, on_input, channel);
    channel->output = loop_watch(loop, channel->output_fd, EPOLLIN, on_output, channel);
    printed_start(&channel->errors, loop, TAKE_FD(session->error_fd), &channel->last, NULL, NULL);
    return channel;
}

const struct text_list *line_channel_last_lines(const struct line_channel *channel)
{
    return &channel->last.lines;
}
