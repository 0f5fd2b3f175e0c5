#include "cli/outlet.h"
#include "controller/base/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

void outlet_open(struct outlet *outlet, int fd)
{
    struct stat meta = {0};
    char path[32];
    *outlet = (struct outlet){.fd = fd, .own_fd = -1, .waiting = BUFFER_INIT(OUTLET_WAITING_BYTES)};
    if (fstat(fd, &meta) < 0 || S_ISREG(meta.st_mode))
        return;
    outlet->is_socket = S_ISSOCK(meta.st_mode);
    if (S_ISFIFO(meta.st_mode) || S_ISCHR(meta.st_mode)) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        outlet->own_fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    }
    outlet->may_wait = !outlet->is_socket && outlet->own_fd < 0; // somebody else's pipe
    if (outlet->own_fd >= 0)
        outlet->fd = outlet->own_fd;
}

void outlet_close(struct outlet *outlet)
{
    if (outlet->own_fd >= 0)
        close(outlet->own_fd);
    outlet->own_fd = -1;
    buffer_free(&outlet->waiting);
}

bool outlet_is_waiting(const struct outlet *outlet)
{
    return outlet->waiting.len > outlet->sent && !outlet->is_closed;
}

// A pipe that poll calls writable takes PIPE_BUF bytes without waiting.
static ssize_t write_some(const struct outlet *outlet, const char *bytes, size_t len)
{
    struct pollfd at = {.fd = outlet->fd, .events = POLLOUT};
    if (outlet->is_socket)
        return send(outlet->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (!outlet->may_wait)
        return write(outlet->fd, bytes, len);
    if (poll(&at, 1, 0) <= 0) {
        errno = EAGAIN;
        return -1;
    }
    return write(outlet->fd, bytes, len < PIPE_BUF ? len : PIPE_BUF);
}

// How much of it went; the rest must wait.
static int write_all(struct outlet *outlet, const char *bytes, size_t len, size_t *ret_sent, struct error *err)
{
    size_t at = 0;
    while (at < len && !outlet->is_closed) {
        ssize_t n = write_some(outlet, bytes + at, len - at);
        if (n >= 0)
            at += (size_t)n;
        else if (errno == EAGAIN)
            break;
        else if (errno == EPIPE || errno == ECONNRESET || errno == EIO)
            outlet->is_closed = true;
        else if (errno != EINTR)
            return error_errno(err, errno, NULL, "cannot write what the command prints");
    }
    *ret_sent = at;
    return 0;
}

int outlet_push(struct outlet *outlet, struct error *err)
{
    size_t sent = 0;
    if (write_all(outlet, outlet->waiting.data + outlet->sent, outlet->waiting.len - outlet->sent, &sent, err) < 0)
        return -1;
    outlet->sent += sent;
    if (outlet->sent == outlet->waiting.len)
        outlet->waiting.len = outlet->sent = 0;
    return 0;
}

int outlet_put(struct outlet *outlet, const char *bytes, size_t len, struct error *err)
{
    size_t sent = 0;
    if (!outlet_is_waiting(outlet) && write_all(outlet, bytes, len, &sent, err) < 0)
        return -1;
    if (outlet->is_closed || sent == len)
        return 0;
    buffer_consume(&outlet->waiting, outlet->sent);
    outlet->sent = 0;
    if (buffer_append(&outlet->waiting, bytes + sent, len - sent) < 0)
        return error_set(err, ERROR_INTERNAL, NULL, "more output came than may wait");
    return 0;
}
