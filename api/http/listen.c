#include "api/http/http.h"
#include "controller/base/cleanup.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static socklen_t parse_address(const char *host, int port, union address *ret)
{
    *ret = (union address){0};
    if (inet_pton(AF_INET, host, &ret->v4.sin_addr) == 1) {
        ret->v4.sin_family = AF_INET;
        ret->v4.sin_port = htons((uint16_t)port);
        return sizeof(ret->v4);
    }
    if (inet_pton(AF_INET6, host, &ret->v6.sin6_addr) == 1) {
        ret->v6.sin6_family = AF_INET6;
        ret->v6.sin6_port = htons((uint16_t)port);
        return sizeof(ret->v6);
    }
    return 0;
}

int http_listen_tcp(const char *host, int port, struct error *err)
{
    union address address;
    socklen_t size = port >= 0 && port <= 65535 ? parse_address(host, port, &address) : 0;
    if (!size)
        return error_set(err, ERROR_INVALID, "give a numeric address and a port from 0 to 65535",
                         "cannot listen on %s port %d", host, port);
    CLEANUP_CLOSE int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;
    if (fd < 0)
        return error_errno(err, errno, NULL, "cannot make a TCP socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, &address.any, size) < 0 || listen(fd, 512) < 0) {
        if (errno == EADDRINUSE)
            return error_set(
                err, ERROR_UNAVAILABLE,
                "stop the program that listens there, or choose another port with CHAT2SHELL_PORT",
                "port %d on %s is already in use", port, host);
        return error_errno(err, errno, NULL, "cannot listen on %s port %d", host, port);
    }
    return TAKE_FD(fd);
}

int http_listen_port(int fd)
{
    union address address;
    socklen_t size = sizeof(address);
    if (getsockname(fd, &address.any, &size) < 0)
        return -1;
    if (address.any.sa_family == AF_INET)
        return ntohs(address.v4.sin_port);
    return address.any.sa_family == AF_INET6 ? ntohs(address.v6.sin6_port) : -1;
}
