// Answers in pieces: a bounded queue between a writer on any thread and the library's reader on the HTTP
// thread. The reader suspends the connection while the queue is empty.
//
// While it is suspended the library has nothing unsent and does not touch the socket. On a Unix socket the writer then sends a
// piece itself, as the chunk that the library would make of it: that spares every piece two wakes and a pass of the
// HTTP thread over all its connections. What the socket does not take goes through the queue as ever.
#include "api/http/internal.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define STRAIGHT_MAX_BYTES (32 * 1024) // a chunk of this size is one message to the kernel: taken whole, or not at all
#define CHUNK_HEAD_BYTES 20            // its length in hexadecimal digits, and a line's end

struct http_stream { // guarded by request->lock
    struct http_request *request;
    size_t straight_max; // of a chunk that the writer may send itself; 0: none
    struct buffer queue;
    char *last; // comes after the queue; owned
    size_t last_len, last_sent;
    bool is_closed;
    bool was_full; // the writer waits for on_writable
    void (*on_writable)(void *arg);
    void *arg;
};

void http_stream_free(struct http_stream *stream)
{
    if (!stream)
        return;
    buffer_free(&stream->queue);
    free(stream->last);
    free(stream);
}

static void tell_writable(void *arg)
{
    struct http_stream *stream = arg;
    struct http_request *request = stream->request;
    pthread_mutex_lock(&request->lock);
    void (*fn)(void *) = request->is_gone ? NULL : stream->on_writable; // NULL once closed
    pthread_mutex_unlock(&request->lock);
    if (fn)
        fn(stream->arg);
    http_request_unref(request);
}

// Holding the lock: the client took something, or there is something new for a client that had everything.
static void expect_progress(struct http_stream *stream)
{
    struct http_request *request = stream->request;
    if (!request->is_gone)
        http_connection_set_deadline(request->connection, http_server_now_ms(request->server) + HTTP_REPLY_MS);
}

// Holding the lock: moves at most max bytes out.
static size_t take_piece(struct http_stream *stream, char *bytes, size_t max)
{
    size_t len = stream->queue.len < max ? stream->queue.len : max;
    memcpy(bytes, stream->queue.data, len);
    buffer_consume(&stream->queue, len);
    if (!stream->last_len) // the end has a time of its own
        expect_progress(stream);
    if (stream->was_full && stream->queue.len <= stream->queue.max / 2 && stream->on_writable) {
        stream->was_full = false;
        http_request_ref(stream->request);
        loop_post(stream->request->server->options.loop, tell_writable, stream);
    }
    return len;
}

static size_t take_last(struct http_stream *stream, char *bytes, size_t max)
{
    size_t left = stream->last_len - stream->last_sent, len = left < max ? left : max;
    memcpy(bytes, stream->last + stream->last_sent, len);
    stream->last_sent += len;
    return len;
}

// The library ends such a connection and then does not close it while another one stands still longer: of those with the
// common timeout it only looks at the ones that are late. At those with a timeout of their own it looks every time.
static void close_soon(struct http_request *request)
{
    MHD_set_connection_option(request->mhd, MHD_CONNECTION_OPTION_TIMEOUT, 1u);
}

static ssize_t read_piece(void *arg, uint64_t position, char *bytes, size_t max)
{
    (void)position;
    struct http_stream *stream = arg;
    struct http_request *request = stream->request;
    ssize_t result = 0;
    pthread_mutex_lock(&request->lock);
    if (request->is_gone)
        result = MHD_CONTENT_READER_END_WITH_ERROR;
    else if (stream->queue.len)
        result = (ssize_t)take_piece(stream, bytes, max);
    else if (stream->last_sent < stream->last_len)
        result = (ssize_t)take_last(stream, bytes, max);
    else if (stream->is_closed)
        result = MHD_CONTENT_READER_END_OF_STREAM;
    else if (!http_request_suspend(request))
        result = MHD_CONTENT_READER_END_WITH_ERROR; // the server stops
    else
        http_connection_set_deadline(request->connection, DEADLINE_NONE); // it has taken everything
    pthread_mutex_unlock(&request->lock);
    if (result == MHD_CONTENT_READER_END_WITH_ERROR)
        close_soon(request);
    return result;
}

// ---- the writer's own sending -----------------------------------------------------------------------------
// A message takes half of what the socket may hold at the most.
static size_t straight_max(const struct http_request *request)
{
    int room = 0;
    socklen_t size = sizeof(room);
    if (!request->server->options.has_peer || !request->connection || !request->takes_chunks ||
        getsockopt(request->connection->fd, SOL_SOCKET, SO_SNDBUF, &room, &size) < 0 || room < 1024)
        return 0;
    size_t half = (size_t)room / 2 - 256;
    return half < STRAIGHT_MAX_BYTES ? half : STRAIGHT_MAX_BYTES;
}

// Holding the lock, the connection being suspended: the socket stays open until somebody claims the resume. False: nothing was
// sent. A chunk that was torn apart cannot be mended from here: no byte comes behind it.
static bool send_straight(struct http_stream *stream, const void *bytes, size_t len)
{
    char head[CHUNK_HEAD_BYTES];
    int fd = stream->request->connection->fd, head_len = snprintf(head, sizeof(head), "%zx\r\n", len);
    struct iovec parts[] = {{head, (size_t)head_len}, {(void *)bytes, len}, {"\r\n", 2}};
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    ssize_t sent = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0 && (size_t)sent < (size_t)head_len + len + 2)
        shutdown(fd, SHUT_RDWR);
    return sent > 0;
}

static bool goes_straight(const struct http_stream *stream, size_t len)
{
    return stream->request->is_suspended && !stream->request->is_gone && !stream->queue.len && len &&
           len + CHUNK_HEAD_BYTES + 2 <= stream->straight_max;
}

// ---- what the writer calls --------------------------------------------------------------------------------
struct http_stream *http_stream_start(struct http_request *request, const struct http_reply *reply,
                                      const struct http_stream_options *options)
{
    struct http_stream *stream = mem_alloc(sizeof(*stream));
    stream->request = request;
    stream->queue = (struct buffer)BUFFER_INIT(options->queue_max);
    stream->on_writable = options->on_writable;
    stream->arg = options->arg;
    stream->straight_max = straight_max(request);
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16 * 1024, read_piece, stream, NULL);
    if (!response)
        abort(); // out of memory
    http_reply_add_headers(response, reply);
    pthread_mutex_lock(&request->lock);
    request->stream = stream;
    pthread_mutex_unlock(&request->lock);
    bool is_started = http_request_answer(request, reply->status, reply->must_close, response);
    pthread_mutex_lock(&request->lock);
    request->on_gone = options->on_gone;
    request->gone_arg = options->arg;
    bool is_gone = !is_started || request->is_gone;
    pthread_mutex_unlock(&request->lock);
    if (is_gone)
        http_request_end_wait(request, 0, NULL); // tells on_gone
    return stream;
}

// Holding the lock.
static int queue(struct http_stream *stream, const void *bytes, size_t len)
{
    if (!stream->queue.len && len)
        expect_progress(stream);
    if (stream->request->is_gone)
        return EPIPE;
    if (len > stream->queue.max)
        return EMSGSIZE;
    if (buffer_append(&stream->queue, bytes, len) == 0)
        return 0;
    stream->was_full = true;
    return EAGAIN;
}

int http_stream_write(struct http_stream *stream, const void *bytes, size_t len)
{
    struct http_request *request = stream->request;
    pthread_mutex_lock(&request->lock);
    bool is_sent = goes_straight(stream, len) && send_straight(stream, bytes, len);
    int error = is_sent ? 0 : queue(stream, bytes, len);
    bool must_resume = !is_sent && !error && http_request_claim_resume(request);
    pthread_mutex_unlock(&request->lock);
    if (must_resume)
        http_request_resume(request);
    errno = error;
    return error ? -1 : 0;
}

void http_stream_close(struct http_stream *stream)
{
    http_stream_end(stream, NULL, 0);
}

void http_stream_end(struct http_stream *stream, char *body, size_t len)
{
    struct http_request *request = stream->request;
    pthread_mutex_lock(&request->lock);
    stream->is_closed = true;
    stream->last = body;
    stream->last_len = len;
    if (len)
        expect_progress(stream);
    stream->on_writable = NULL;
    request->on_gone = NULL;
    bool must_resume = http_request_claim_resume(request);
    pthread_mutex_unlock(&request->lock);
    if (must_resume)
        http_request_resume(request);
    http_request_unref(request);
}
