#include "cli/mcp_bridge_stdio.h"
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES (64 * 1024)
#define OUTPUT_MAX_BYTES (256u * 1024 * 1024) // one answer at most beyond the high mark, and events

// ---- input ----------------------------------------------------------------------------------------------------------
void mcp_input_init(struct mcp_input *input, int fd)
{
    *input = (struct mcp_input){.fd = fd, .bytes = BUFFER_INIT(MCP_LINE_MAX_BYTES + READ_BYTES)};
}

void mcp_input_clear(struct mcp_input *input)
{
    buffer_free(&input->bytes);
}

int mcp_input_read(struct mcp_input *input, struct error *err)
{
    char *at = buffer_reserve(&input->bytes, READ_BYTES);
    ssize_t n = read(input->fd, at, READ_BYTES);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n < 0)
        return error_errno(err, errno, NULL, "cannot read from standard input");
    input->is_ended = n == 0;
    input->bytes.len += (size_t)n;
    return 0;
}

// Forgets the first len bytes, a part of a line that is too long.
static void discard(struct mcp_input *input, size_t len)
{
    if (!input->is_discarding)
        input->search = (struct mcp_id_search){0};
    input->is_discarding = true;
    mcp_id_search_feed(&input->search, input->bytes.data, len);
}

// Drops what the last call returned.
static void drop_seen(struct mcp_input *input)
{
    buffer_consume(&input->bytes, input->seen);
    input->seen = 0;
}

static void end_line(struct mcp_input *input, size_t len, size_t end_len, struct mcp_input_line *ret)
{
    *ret = (struct mcp_input_line){.text = {input->bytes.data, len}};
    if (input->is_discarding || len > MCP_LINE_MAX_BYTES) {
        discard(input, len);
        input->is_discarding = false;
        *ret = (struct mcp_input_line){.is_too_long = true, .id = mcp_id_search_result(&input->search)};
    }
    input->seen = len + end_len;
}

static bool take_line(struct mcp_input *input, struct mcp_input_line *ret)
{
    drop_seen(input);
    const char *stop = input->bytes.len ? memchr(input->bytes.data, '\n', input->bytes.len) : NULL;
    if (stop) {
        end_line(input, (size_t)(stop - input->bytes.data), 1, ret);
        return true;
    }
    if (input->is_ended && (input->bytes.len || input->is_discarding)) {
        end_line(input, input->bytes.len, 0, ret);
        return true;
    }
    if (input->is_discarding || input->bytes.len > MCP_LINE_MAX_BYTES) {
        discard(input, input->bytes.len);
        buffer_free(&input->bytes);
    }
    return false;
}

bool mcp_input_next(struct mcp_input *input, struct mcp_input_line *ret)
{
    while (take_line(input, ret)) {
        ret->text = mcp_span_trim(ret->text);
        if (ret->text.len || ret->is_too_long)
            return true;
    }
    return false;
}

// ---- output ---------------------------------------------------------------------------------------------------------
void mcp_output_init(struct mcp_output *output, int fd)
{
    *output = (struct mcp_output){.fd = fd, .bytes = BUFFER_INIT(OUTPUT_MAX_BYTES)};
}

void mcp_output_clear(struct mcp_output *output)
{
    buffer_free(&output->bytes);
}

void mcp_output_put(struct mcp_output *output, struct mcp_span line)
{
    char *at = buffer_reserve(&output->bytes, line.len + 1);
    assert(at); // the owner takes in nothing above the high mark, and one answer more fits
    for (size_t i = 0; i < line.len; i++)
        at[i] = line.text[i] == '\n' || line.text[i] == '\r' ? ' ' : line.text[i];
    at[line.len] = '\n';
    output->bytes.len += line.len + 1;
}

size_t mcp_output_waiting(const struct mcp_output *output)
{
    return output->bytes.len - output->sent;
}

// A pipe that is writable takes PIPE_BUF bytes; a socket is asked not to block.
static ssize_t write_some(int fd, const char *bytes, size_t len)
{
    ssize_t n = send(fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    return n < 0 && errno == ENOTSOCK ? write(fd, bytes, len < PIPE_BUF ? len : PIPE_BUF) : n;
}

// A reader who is always a little behind must not make it keep all that he has read. No byte is moved more than once for
// each one that was sent.
static void forget_sent(struct mcp_output *output)
{
    size_t waiting = mcp_output_waiting(output);
    if (waiting && output->sent < waiting)
        return;
    if (waiting)
        buffer_consume(&output->bytes, output->sent);
    else
        buffer_free(&output->bytes);
    output->sent = 0;
}

void mcp_output_write(struct mcp_output *output)
{
    size_t waiting = mcp_output_waiting(output);
    ssize_t n = waiting ? write_some(output->fd, output->bytes.data + output->sent, waiting) : 0;
    if (n < 0 && errno != EINTR && errno != EAGAIN)
        output->is_closed = true;
    if (n > 0)
        output->sent += (size_t)n;
    forget_sent(output);
}
