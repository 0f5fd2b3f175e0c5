#include "api/guest/reader.h"
#include "controller/base/fs.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES (64 * 1024)
#define KEEP_BYTES (256 * 1024) // a larger buffer goes back to the system once it is empty

static void take_line(struct reader *reader, const char *start, size_t len)
{
    if (reader->is_skipping)
        reader->is_skipping = false;
    else if (len > reader->max_line)
        reader->too_long(reader);
    else
        reader->line(reader, start, len);
}

static void take_lines(struct reader *reader)
{
    struct buffer *buf = &reader->buffer;
    size_t start = 0;
    for (char *end; (end = memchr(buf->data + reader->scanned, '\n', buf->len - reader->scanned));) {
        size_t at = (size_t)(end - buf->data);
        take_line(reader, buf->data + start, at - start);
        start = reader->scanned = at + 1;
    }
    buffer_consume(buf, start);
    reader->scanned = buf->len;
    if (buf->len > reader->max_line && !reader->is_skipping) {
        reader->too_long(reader);
        reader->is_skipping = true;
    }
    if (reader->is_skipping)
        buf->len = reader->scanned = 0;
    if (!buf->len && buf->cap > KEEP_BYTES)
        buffer_free(buf);
}

static void readable(struct loop_source *source, uint32_t events)
{
    (void)events;
    struct reader *reader = CONTAINER_OF(source, struct reader, source);
    char *at = buffer_reserve(&reader->buffer, READ_BYTES);
    ssize_t n = read(source->fd, at, READ_BYTES);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        guest_loop_remove(reader->loop, source);
        reader->has_ended = true;
        reader->ended(reader);
        return;
    }
    reader->buffer.len += (size_t)n;
    take_lines(reader);
}

int reader_init(struct reader *reader, struct loop *loop, int fd, size_t max_line, struct error *err)
{
    reader->loop = loop;
    reader->max_line = max_line;
    reader->buffer = (struct buffer)BUFFER_INIT(max_line + 2 * READ_BYTES);
    reader->source = (struct loop_source){.fd = fd, .events = EPOLLIN, .ready = readable};
    fs_set_nonblocking(fd, true);
    return guest_loop_add(loop, &reader->source, err);
}

void reader_free(struct reader *reader)
{
    guest_loop_remove(reader->loop, &reader->source);
    buffer_free(&reader->buffer);
}

// Removed and not just masked: epoll reports a hang-up whatever is asked, and would spin.
void reader_pause(struct reader *reader, bool is_paused)
{
    if (is_paused)
        guest_loop_remove(reader->loop, &reader->source);
    else if (!reader->source.is_added && !reader->has_ended)
        guest_loop_add(reader->loop, &reader->source, NULL);
}
