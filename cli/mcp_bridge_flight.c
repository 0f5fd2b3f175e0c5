#include "cli/mcp_bridge_flight.h"
#include "controller/base/memory.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define READ_BYTES (256 * 1024)
#define HEAD_MAX_BYTES (32 * 1024)

void mcp_flight_free(struct mcp_flight *flight)
{
    if (!flight)
        return;
    mcp_message_clear(&flight->message);
    free(flight->where);
    buffer_free(&flight->out);
    buffer_free(&flight->event);
    answer_reader_clear(&flight->reader);
    if (flight->fd >= 0)
        close(flight->fd);
    free(flight);
}

void mcp_flight_keep_alive(struct mcp_flight *flight)
{
    flight->deadline = (struct boot_time){boot_time_now().ms + MCP_FLIGHT_SILENCE_MS};
}

bool mcp_flight_is_sent(const struct mcp_flight *flight)
{
    return flight->is_connected && flight->sent == flight->out.len;
}

bool mcp_flight_is_stream(const struct mcp_flight *flight)
{
    static const char type[] = "text/event-stream";
    return flight->reader.content_type && strncasecmp(flight->reader.content_type, type, sizeof(type) - 1) == 0;
}

size_t mcp_flight_held_bytes(const struct mcp_flight *flight)
{
    return flight->reader.body.cap + flight->event.cap;
}

short mcp_flight_events(const struct mcp_flight *flight)
{
    // An early refusal must be read while the rest of the request is still to be sent.
    return mcp_flight_is_sent(flight) ? POLLIN : flight->is_connected ? POLLIN | POLLOUT : POLLOUT;
}

// ---- connecting ------------------------------------------------------------------------------------------------------
static int refuse_connection(const struct mcp_flight *flight, int errno_value, struct error *err)
{
    return error_set(err, ERROR_UNREACHABLE, "start it with: chat2shell serve, then try again", "chat2shell's daemon does not answer at %s: %s",
                     flight->where, strerrordesc_np(errno_value));
}

int mcp_flight_open(struct mcp_flight *flight, const struct http_target *target, struct error *err)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)target->port)};
    if (inet_pton(AF_INET, target->host, &address.sin_addr) != 1)
        return error_set(err, ERROR_INVALID, NULL, "'%s' is not an IPv4 address", target->host);
    flight->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (flight->fd < 0)
        return error_errno(err, errno, "send fewer requests at once", "cannot make a socket");
    free(flight->where);
    flight->where = mem_format("%s:%d", target->host, target->port);
    mcp_flight_keep_alive(flight);
    if (connect(flight->fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        flight->is_connected = true;
    else if (errno != EINPROGRESS)
        return refuse_connection(flight, errno, err);
    return 0;
}

// ---- making ----------------------------------------------------------------------------------------------------------
static int put_request(struct mcp_flight *flight, const struct http_target *target, const char *path, const struct buffer *headers,
                       struct mcp_span line, struct error *err)
{
    CLEANUP(buffer_free) struct buffer head = BUFFER_INIT(HEAD_MAX_BYTES);
    buffer_format(&head, "POST %s HTTP/1.1\r\nHost: %s:%d\r\nConnection: close\r\nUser-Agent: chat2shell-mcp/" CHAT2SHELL_VERSION "\r\n", path,
                  target->host, target->port);
    buffer_format(&head, "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n", line.len);
    buffer_append(&head, headers->data, headers->len);
    buffer_append_text(&head, "\r\n");
    if (head.is_over || headers->is_over)
        return error_set(err, ERROR_TOO_LARGE, "use a shorter one", "the method or the name is too long for a header");
    flight->out = (struct buffer)BUFFER_INIT(head.len + line.len + 1);
    buffer_append(&flight->out, head.data, head.len);
    buffer_append(&flight->out, line.text, line.len);
    return 0;
}

int mcp_flight_new(const struct http_target *target, const char *path, const struct buffer *headers, struct mcp_span line,
                   struct mcp_message *message, struct mcp_flight **ret, struct error *err)
{
    struct mcp_flight *flight = mem_alloc(sizeof(*flight));
    flight->fd = -1;
    flight->event = (struct buffer)BUFFER_INIT(HTTP_ANSWER_BODY_MAX_BYTES);
    answer_reader_init(&flight->reader);
    if (put_request(flight, target, path, headers, line, err) < 0) {
        mcp_flight_free(flight);
        return -1;
    }
    flight->message = *message;
    *message = (struct mcp_message){0};
    *ret = flight;
    return 0;
}

// ---- sending ---------------------------------------------------------------------------------------------------------
static int end_connecting(struct mcp_flight *flight, struct error *err)
{
    int why = 0;
    socklen_t size = sizeof(why);
    struct pollfd at = {.fd = flight->fd, .events = POLLOUT};
    if (flight->is_connected || poll(&at, 1, 0) == 0)
        return 0;
    getsockopt(flight->fd, SOL_SOCKET, SO_ERROR, &why, &size);
    flight->is_connected = why == 0;
    return why ? refuse_connection(flight, why, err) : 0;
}

static int send_some(struct mcp_flight *flight, struct error *err)
{
    while (flight->sent < flight->out.len) {
        ssize_t n = send(flight->fd, flight->out.data + flight->sent, flight->out.len - flight->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n < 0 && errno != EPIPE && errno != ECONNRESET)
            return error_errno(err, errno, NULL, "cannot send to the daemon");
        flight->sent = n < 0 ? flight->out.len : flight->sent + (size_t)n; // it may have refused early: its answer says why
        mcp_flight_keep_alive(flight);
    }
    buffer_free(&flight->out);
    flight->sent = 0;
    return 0;
}

// ---- receiving -----------------------------------------------------------------------------------------------------
static int receive_some(struct mcp_flight *flight, struct error *err)
{
    CLEANUP_FREE char *bytes = mem_alloc(READ_BYTES);
    ssize_t n = recv(flight->fd, bytes, READ_BYTES, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0 && errno != ECONNRESET)
        return error_errno(err, errno, NULL, "cannot read the daemon's answer");
    if (n > 0 && answer_reader_feed(&flight->reader, bytes, (size_t)n, err) < 0)
        return -1;
    if (n <= 0 && answer_reader_end(&flight->reader, err) < 0)
        return -1;
    mcp_flight_keep_alive(flight);
    return flight->reader.state == ANSWER_DONE;
}

int mcp_flight_step(struct mcp_flight *flight, struct error *err)
{
    if (end_connecting(flight, err) < 0)
        return -1;
    if (!flight->is_connected)
        return 0;
    if (!mcp_flight_is_sent(flight) && send_some(flight, err) < 0)
        return -1;
    return receive_some(flight, err);
}

// ---- events ----------------------------------------------------------------------------------------------------------
static int take_field(struct mcp_flight *flight, struct mcp_span line, struct error *err)
{
    const char *colon = memchr(line.text, ':', line.len);
    struct mcp_span name = {line.text, colon ? (size_t)(colon - line.text) : line.len};
    struct mcp_span value = {colon ? colon + 1 : line.text, colon ? line.len - name.len - 1 : 0};
    if (value.len && value.text[0] == ' ')
        value = (struct mcp_span){value.text + 1, value.len - 1};
    if (mcp_span_equals(name, "event"))
        flight->is_other_event = value.len && !mcp_span_equals(value, "message");
    if (!mcp_span_equals(name, "data"))
        return 0;
    if (flight->event.len)
        buffer_append_char(&flight->event, ' '); // a line's end between two tokens
    if (buffer_append(&flight->event, value.text, value.len) < 0 || flight->event.is_over)
        return error_set(err, ERROR_TOO_LARGE, "ask for less", "an event of the answer is larger than %u bytes", HTTP_ANSWER_BODY_MAX_BYTES);
    return 0;
}

int mcp_flight_each_event(struct mcp_flight *flight, void (*fn)(void *arg, struct mcp_flight *flight, struct mcp_span data), void *arg,
                          struct error *err)
{
    struct buffer *body = &flight->reader.body;
    size_t at = 0;
    for (const char *stop; at < body->len && (stop = memchr(body->data + at, '\n', body->len - at)) != NULL;) {
        struct mcp_span line = {body->data + at, (size_t)(stop - (body->data + at))};
        at += line.len + 1;
        if (line.len && line.text[line.len - 1] == '\r')
            line.len--;
        if (line.len && take_field(flight, line, err) < 0)
            return -1;
        if (line.len)
            continue;
        if (flight->event.len && !flight->is_other_event)
            fn(arg, flight, (struct mcp_span){flight->event.data, flight->event.len});
        buffer_free(&flight->event);
        flight->is_other_event = false;
    }
    buffer_consume(body, at);
    return 0;
}
