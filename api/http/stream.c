// Answers in pieces: a bounded queue between a writer on any thread and the library's reader on the HTTP
// thread. The reader suspends the connection while the queue is empty.
#include "api/http/internal.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct http_stream { // guarded by request->lock
    struct http_request *request;
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

struct http_stream *http_stream_start(struct http_request *request, const struct http_reply *reply,
                                      const struct http_stream_options *options)
{
    struct http_stream *stream = mem_alloc(sizeof(*stream));
    stream->request = request;
    stream->queue = (struct buffer)BUFFER_INIT(options->queue_max);
    stream->on_writable = options->on_writable;
    stream->arg = options->arg;
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

int http_stream_write(struct http_stream *stream, const void *bytes, size_t len)
{
    struct http_request *request = stream->request;
    int error = 0;
    pthread_mutex_lock(&request->lock);
    if (!stream->queue.len && len)
        expect_progress(stream);
    if (request->is_gone)
        error = EPIPE;
    else if (len > stream->queue.max)
        error = EMSGSIZE;
    else if (buffer_append(&stream->queue, bytes, len) < 0) {
        stream->was_full = true;
        error = EAGAIN;
    }
    bool must_resume = !error && http_request_claim_resume(request);
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
