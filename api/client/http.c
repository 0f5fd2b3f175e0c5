#include "api/client/http_internal.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/base/socket.h"
#include "controller/base/time.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/un.h>

#define READ_BYTES (64 * 1024)
#define START_IT "start it: chat2shell serve (with the same CHAT2SHELL_ variables as this command)"
#define SEE_STATUS "see what it does: chat2shell status"

void http_answered_clear(struct http_answered *answer)
{
    free(answer->content_type);
    free(answer->warnings);
    free(answer->body);
    *answer = (struct http_answered){0};
}

char *http_escape(const char *text)
{
    static const char digits[] = "0123456789ABCDEF";
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(3 * strlen(text) + 1);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        bool is_plain = (*c >= '0' && *c <= '9') || ((*c | 0x20) >= 'a' && (*c | 0x20) <= 'z') || strchr("-._~", *c);
        if (!is_plain)
            buffer_append(&out, (char[]){'%', digits[*c >> 4], digits[*c & 15]}, 3);
        else
            buffer_append_char(&out, (char)*c);
    }
    return buffer_take_string(&out);
}

// ---- connecting -----------------------------------------------------------------------------------------------------
static int fail_connect_late(int timeout_ms, struct error *err)
{
    return error_set(err, ERROR_TIMEOUT, SEE_STATUS, "the daemon did not take the connection within %d ms", timeout_ms);
}

static int connect_tcp(const struct http_target *target, int timeout_ms, struct error *err)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)target->port)};
    if (inet_pton(AF_INET, target->host, &address.sin_addr) != 1)
        return error_set(err, ERROR_INVALID, NULL, "'%s' is not an IPv4 address", target->host);
    CLEANUP_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return error_errno(err, errno, NULL, "cannot make a socket");
    if (socket_connect(fd, (struct sockaddr *)&address, sizeof(address), timeout_ms) == 0)
        return TAKE_FD(fd);
    if (errno == ETIMEDOUT)
        return fail_connect_late(timeout_ms, err);
    return error_set(err, ERROR_UNREACHABLE, START_IT, "nothing answers at %s:%d: %s", target->host, target->port, strerrordesc_np(errno));
}

static int connect_unix(const char *path, int timeout_ms, struct error *err)
{
    int fd = socket_connect_path(path, SOCK_STREAM, timeout_ms, err);
    if (fd >= 0 || !err)
        return fd;
    if (err->code == ERROR_TIMEOUT)
        return fail_connect_late(timeout_ms, err);
    if (err->code == ERROR_REFUSED)
        return error_hint(err, "run as the user that runs the daemon, or as root");
    return error_set(err, ERROR_UNREACHABLE, START_IT, "the daemon does not answer: nothing listens at %s", path);
}

// ---- one exchange ---------------------------------------------------------------------------------------------------
static int wait_for(int fd, short events, struct boot_time deadline, struct error *err)
{
    for (;;) {
        int64_t left = deadline.ms - boot_time_now().ms;
        struct pollfd at = {.fd = fd, .events = events};
        int n = left > 0 ? poll(&at, 1, left > 60000 ? 60000 : (int)left) : 0;
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return error_errno(err, errno, NULL, "cannot wait for the daemon");
        if (left <= 0)
            return error_set(err, ERROR_TIMEOUT, SEE_STATUS, "the daemon did not answer in time");
    }
}

static int send_all(int fd, const char *bytes, size_t len, struct boot_time deadline, struct error *err)
{
    while (len) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0) {
            bytes += n;
            len -= (size_t)n;
        } else if (errno == EPIPE || errno == ECONNRESET) {
            return 0; // it may have refused early: its answer says why
        } else if (errno == EAGAIN) {
            if (wait_for(fd, POLLOUT, deadline, err) < 0)
                return -1;
        } else if (errno != EINTR) {
            return error_errno(err, errno, NULL, "cannot send to the daemon");
        }
    }
    return 0;
}

int http_connect(const struct http_target *target, int timeout_ms, struct error *err)
{
    return target->socket_path ? connect_unix(target->socket_path, timeout_ms, err) : connect_tcp(target, timeout_ms, err);
}

int http_write_head(struct buffer *head, const struct http_target *target, const struct http_ask *ask, bool keeps, struct error *err)
{
    buffer_format(head, "%s %s HTTP/1.1\r\n", ask->method, ask->path);
    if (target->socket_path)
        buffer_append_text(head, "Host: localhost\r\n");
    else
        buffer_format(head, "Host: %s:%d\r\n", target->host, target->port);
    if (ask->upgrade)
        buffer_format(head, "Connection: Upgrade\r\nUpgrade: %s\r\n", ask->upgrade);
    else if (!keeps)
        buffer_append_text(head, "Connection: close\r\n");
    buffer_append_text(head, "User-Agent: chat2shell/" CHAT2SHELL_VERSION "\r\n");
    for (size_t i = 0; ask->headers && ask->headers[i]; i++)
        buffer_format(head, "%s\r\n", ask->headers[i]);
    if (ask->content_type)
        buffer_format(head, "Content-Type: %s\r\nContent-Length: %zu\r\n", ask->content_type, ask->body_len);
    buffer_append_text(head, "\r\n");
    return head->is_over || head->len > HTTP_HEAD_MAX_BYTES ? error_set(err, ERROR_TOO_LARGE, NULL, "the request's head is too long") : 0;
}

static int send_request(int fd, const struct http_target *target, const struct http_ask *ask, struct boot_time deadline, struct error *err)
{
    CLEANUP(buffer_free) struct buffer head = BUFFER_INIT(HTTP_HEAD_MAX_BYTES);
    if (http_write_head(&head, target, ask, false, err) < 0 || send_all(fd, head.data, head.len, deadline, err) < 0)
        return -1;
    return ask->content_type ? send_all(fd, ask->body, ask->body_len, deadline, err) : 0;
}

// What is there. 1: more may come, 0: the answer is whole.
static int read_some(int fd, struct answer_reader *reader, struct error *err)
{
    CLEANUP_FREE char *bytes = mem_alloc(READ_BYTES);
    ssize_t n = recv(fd, bytes, READ_BYTES, MSG_DONTWAIT);
    if (n > 0)
        return answer_reader_feed(reader, bytes, (size_t)n, err) < 0 ? -1 : reader->state != ANSWER_DONE;
    if (n == 0 || errno == ECONNRESET)
        return answer_reader_end(reader, err);
    if (errno != EAGAIN && errno != EINTR)
        return error_errno(err, errno, NULL, "cannot read the daemon's answer");
    return 1;
}

// Until the answer is whole, or (head_only) what follows its head begins.
static int receive(int fd, struct answer_reader *reader, bool head_only, struct boot_time deadline, struct error *err)
{
    int r = 1;
    while (r > 0 && reader->state != ANSWER_DONE && (!head_only || reader->state == ANSWER_HEAD)) {
        if (wait_for(fd, POLLIN, deadline, err) < 0)
            return -1;
        r = read_some(fd, reader, err);
    }
    return r < 0 ? -1 : 0;
}

struct http_answered http_take_answer(struct answer_reader *reader)
{
    size_t len = reader->body.len;
    struct http_answered answer = {reader->status, TAKE_PTR(reader->content_type), TAKE_PTR(reader->warnings), NULL, len};
    answer.body = buffer_take_string(&reader->body);
    return answer;
}

int http_exchange(const struct http_target *target, const struct http_ask *ask, struct http_answered *ret, struct error *err)
{
    struct boot_time deadline = {boot_time_now().ms + ask->timeout_ms};
    CLEANUP_CLOSE int fd = http_connect(target, ask->timeout_ms, err);
    if (fd < 0)
        return -1;
    CLEANUP(answer_reader_clear) struct answer_reader reader;
    answer_reader_init(&reader);
    if (send_request(fd, target, ask, deadline, err) < 0 || receive(fd, &reader, false, deadline, err) < 0)
        return -1;
    *ret = http_take_answer(&reader);
    return 0;
}

int http_upgrade_ask(const struct http_target *target, const struct http_ask *ask, int *ret_fd, struct buffer *early,
                     struct http_answered *ret, struct error *err)
{
    struct boot_time deadline = {boot_time_now().ms + ask->timeout_ms};
    CLEANUP_CLOSE int fd = http_connect(target, ask->timeout_ms, err);
    if (fd < 0)
        return -1;
    CLEANUP(answer_reader_clear) struct answer_reader reader;
    answer_reader_init(&reader);
    reader.may_upgrade = true;
    if (send_request(fd, target, ask, deadline, err) < 0 || receive(fd, &reader, false, deadline, err) < 0)
        return -1;
    *ret_fd = -1;
    if (reader.status != 101)
        *ret = http_take_answer(&reader);
    else if (buffer_append(early, buffer_text(&reader.body), reader.body.len) < 0)
        return error_set(err, ERROR_INTERNAL, NULL, "the daemon sent more than it may before it was asked");
    else
        *ret_fd = TAKE_FD(fd);
    return 0;
}

// ---- streams ----------------------------------------------------------------------------------------------------------
struct answer_stream {
    int fd;
    struct answer_reader reader;
};

int answer_stream_open(const struct http_target *target, const struct http_ask *ask, struct answer_stream **ret, struct error *err)
{
    struct boot_time deadline = {boot_time_now().ms + ask->timeout_ms};
    CLEANUP(answer_stream_free) struct answer_stream *stream = mem_alloc(sizeof(*stream));
    answer_reader_init(&stream->reader);
    stream->fd = http_connect(target, ask->timeout_ms, err);
    if (stream->fd < 0 || send_request(stream->fd, target, ask, deadline, err) < 0 || receive(stream->fd, &stream->reader, true, deadline, err) < 0)
        return -1;
    *ret = TAKE_PTR(stream);
    return 0;
}

void answer_stream_free(struct answer_stream **stream)
{
    if (!*stream)
        return;
    cleanup_close(&(*stream)->fd);
    answer_reader_clear(&(*stream)->reader);
    free(*stream);
    *stream = NULL;
}

int answer_stream_fd(const struct answer_stream *stream)
{
    return stream->fd;
}

int answer_stream_status(const struct answer_stream *stream)
{
    return stream->reader.status;
}

struct buffer *answer_stream_body(struct answer_stream *stream)
{
    return &stream->reader.body;
}

int answer_stream_read(struct answer_stream *stream, struct error *err)
{
    return stream->reader.state == ANSWER_DONE ? 0 : read_some(stream->fd, &stream->reader, err);
}
