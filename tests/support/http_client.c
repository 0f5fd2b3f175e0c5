#include "tests/support/http_client.h"
#include "controller/base/memory.h"
#include "tests/support/support.h"
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAIT_MS SUPPORT_PATIENCE_MS

void http_answer_clear(struct http_answer *answer)
{
    free(answer->head);
    free(answer->body);
    *answer = (struct http_answer){0};
}

char *http_answer_header(const struct http_answer *answer, const char *name)
{
    size_t name_len = strlen(name);
    for (const char *line = answer->head ? strstr(answer->head, "\r\n") : NULL; line;
         line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, name_len) != 0 || line[name_len] != ':')
            continue;
        const char *value = line + name_len + 1;
        value += strspn(value, " ");
        return mem_strndup(value, strcspn(value, "\r"));
    }
    return NULL;
}

json_t *http_answer_json(const struct http_answer *answer)
{
    return answer->body ? json_loadb(answer->body, answer->body_len, JSON_DECODE_ANY, NULL) : NULL;
}

int http_client_connect(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        fail_msg("cannot connect to port %d: %s", port, strerror(errno));
    return fd;
}

void http_client_send(int fd, const void *bytes, size_t len)
{
    for (size_t sent = 0; sent < len;) {
        ssize_t n = send(fd, (const char *)bytes + sent, len - sent, MSG_NOSIGNAL);
        if (n <= 0)
            return; // the peer closed: the answer tells why
        sent += (size_t)n;
    }
}

void http_client_send_text(int fd, const char *text)
{
    http_client_send(fd, text, strlen(text));
}

struct http_reader {
    int fd, timeout_ms;
    char *bytes;
    size_t len, at;
    bool is_ended;
};

static bool fill(struct http_reader *reader)
{
    struct pollfd wait = {.fd = reader->fd, .events = POLLIN};
    if (reader->is_ended || poll(&wait, 1, reader->timeout_ms) <= 0)
        return false;
    reader->bytes = mem_realloc(reader->bytes, reader->len + 65537);
    ssize_t n = recv(reader->fd, reader->bytes + reader->len, 65536, 0);
    if (n <= 0)
        reader->is_ended = true;
    else
        reader->len += (size_t)n;
    reader->bytes[reader->len] = '\0';
    return n > 0;
}

static bool need(struct http_reader *reader, size_t count)
{
    while (reader->len - reader->at < count)
        if (!fill(reader))
            return false;
    return true;
}

// Position behind the next CRLF (or blank line) from at; 0 if the connection ends before.
static size_t find_end(struct http_reader *reader, const char *mark)
{
    for (;;) {
        const char *found = reader->len > reader->at ? strstr(reader->bytes + reader->at, mark) : NULL;
        if (found)
            return (size_t)(found - reader->bytes) + strlen(mark);
        if (!fill(reader))
            return 0;
    }
}

static void append(struct http_answer *answer, const char *bytes, size_t len)
{
    answer->body = mem_realloc(answer->body, answer->body_len + len + 1);
    memcpy(answer->body + answer->body_len, bytes, len);
    answer->body_len += len;
    answer->body[answer->body_len] = '\0';
}

static void read_chunks(struct http_reader *reader, struct http_answer *answer)
{
    for (;;) {
        size_t end = find_end(reader, "\r\n");
        size_t size = end ? strtoul(reader->bytes + reader->at, NULL, 16) : 0;
        reader->at = end;
        if (!end || !need(reader, size + 2))
            return;
        append(answer, reader->bytes + reader->at, size);
        reader->at += size + 2;
        if (!size)
            return;
    }
}

void http_reader_next(struct http_reader *reader, struct http_answer *ret)
{
    *ret = (struct http_answer){0};
    size_t start = reader->at, end = find_end(reader, "\r\n\r\n");
    if (!end)
        return;
    ret->head = mem_strndup(reader->bytes + start, end - start);
    ret->status = atoi(ret->head + strcspn(ret->head, " "));
    reader->at = end;
    append(ret, "", 0);
    char *length = http_answer_header(ret, "Content-Length"), *coding = http_answer_header(ret, "Transfer-Encoding");
    size_t len = length ? strtoul(length, NULL, 10) : 0;
    if (coding) {
        read_chunks(reader, ret);
    } else if (need(reader, len)) {
        append(ret, reader->bytes + reader->at, len);
        reader->at += len;
    }
    free(length);
    free(coding);
}

struct http_reader *http_reader_new(int fd, int timeout_ms)
{
    struct http_reader *reader = mem_alloc(sizeof(*reader));
    *reader = (struct http_reader){.fd = fd, .timeout_ms = timeout_ms};
    return reader;
}

void http_reader_free(struct http_reader *reader)
{
    free(reader->bytes);
    free(reader);
}

void http_client_read(int fd, struct http_answer *ret, int timeout_ms)
{
    struct http_reader reader = {.fd = fd, .timeout_ms = timeout_ms};
    http_reader_next(&reader, ret);
    free(reader.bytes);
}

bool http_client_is_closed(int fd, int timeout_ms)
{
    char byte;
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    return poll(&wait, 1, timeout_ms) > 0 && recv(fd, &byte, 1, 0) <= 0;
}

void http_client_raw(int port, const char *bytes, size_t len, struct http_answer *ret)
{
    int fd = http_client_connect(port);
    http_client_send(fd, bytes, len);
    http_client_read(fd, ret, WAIT_MS);
    close(fd);
}

static bool has_line(const char *headers, const char *name)
{
    for (const char *line = headers; line && *line;
         line = strstr(line, "\r\n") ? strstr(line, "\r\n") + 2 : NULL)
        if (strncasecmp(line, name, strlen(name)) == 0)
            return true;
    return false;
}

char *http_client_post_text(const char *path, const char *headers, const char *body)
{
    bool has_host = has_line(headers, "Host:"), has_type = has_line(headers, "Content-Type:"),
         has_accept = has_line(headers, "Accept:");
    return mem_format(
        "POST %s HTTP/1.1\r\n%s%s%sContent-Length: %zu\r\n%s\r\n%s", path,
        has_host ? "" : "Host: 127.0.0.1\r\n", has_type ? "" : "Content-Type: application/json\r\n",
        has_accept ? "" : "Accept: application/json, text/event-stream\r\n", strlen(body), headers, body);
}

void http_client_post(int port, const char *path, const char *headers, const char *body,
                      struct http_answer *ret)
{
    char *text = http_client_post_text(path, headers, body);
    http_client_raw(port, text, strlen(text), ret);
    free(text);
}
