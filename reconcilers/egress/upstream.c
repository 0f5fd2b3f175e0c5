#include "reconcilers/egress/upstream.h"
#include "reconcilers/egress/http.h"
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

int upstream_send(int fd, const struct endpoint *to)
{
    char target[ENDPOINT_TEXT_SIZE], request[2 * ENDPOINT_TEXT_SIZE + 64];
    endpoint_format(to, target);
    int len = snprintf(request, sizeof(request), "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target);
    return send(fd, request, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT) == len ? 0 : -1;
}

// Takes n bytes that were peeked at out of the socket.
static int consume(int fd, char *to, size_t n)
{
    return recv(fd, to, n, MSG_DONTWAIT) == (ssize_t)n ? 0 : -1;
}

int upstream_receive(int fd, struct upstream_talk *talk)
{
    const char *problem;
    struct http_head head;
    char *to = talk->head + talk->len;
    ssize_t peeked = recv(fd, to, sizeof(talk->head) - talk->len, MSG_PEEK | MSG_DONTWAIT);
    if (peeked < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (peeked <= 0)
        return -1;
    ssize_t size = http_head_end(talk->head, talk->len + (size_t)peeked, &talk->scanned, &problem);
    size_t of_head = size > 0 ? (size_t)size - talk->len : (size_t)peeked;
    if (size < 0 || consume(fd, to, of_head) < 0)
        return -1;
    talk->len += of_head;
    if (size == 0)
        return talk->len == sizeof(talk->head) ? -1 : 0;
    return http_parse_response(talk->head, (size_t)size, &head) < 0 ? -1 : head.status;
}
