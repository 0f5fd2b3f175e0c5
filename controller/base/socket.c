#include "controller/base/socket.h"
#include "controller/base/cleanup.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <fcntl.h>
#include <libgen.h>

static int address_at(int dir_fd, const char *name, struct sockaddr_un *ret, struct error *err)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%s", dir_fd, name);
    if (n < 0 || (size_t)n >= sizeof(ret->sun_path))
        return error_set(err, ERROR_INVALID, NULL, "the socket name %s is too long", name);
    return 0;
}

int socket_listen_at(int dir_fd, const char *name, int type, struct error *err)
{
    struct sockaddr_un address;
    if (address_at(dir_fd, name, &address, err) < 0)
        return -1;
    CLEANUP_CLOSE int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return error_errno(err, errno, NULL, "cannot make a Unix socket");
    unlinkat(dir_fd, name, 0);
    fchmod(fd, 0600); // before bind: the file is never wider, whatever the umask
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return error_errno(err, errno, NULL, "cannot bind the socket %s", name);
    if (fchmodat(dir_fd, name, 0600, 0) < 0 || listen(fd, 128) < 0)
        return error_errno(err, errno, NULL, "cannot listen on the socket %s", name);
    return TAKE_FD(fd);
}

// socket(7): connect() keeps to the limit of sends, too.
int socket_connect(int fd, const struct sockaddr *address, socklen_t size, int timeout_ms)
{
    static const struct timeval none = {0}; // no limit
    if (timeout_ms < 1)
        timeout_ms = 1;
    struct timeval limit = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)); // fails only for what is no socket
    int r = connect(fd, address, size), errno_value = errno;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof(none)); // what is sent later waits as long as it must
    errno = errno_value == EAGAIN || errno_value == EINPROGRESS ? ETIMEDOUT : errno_value; // Unix sockets; TCP
    return r;
}

int socket_connect_at(int dir_fd, const char *name, int type, int timeout_ms, struct error *err)
{
    struct sockaddr_un address;
    if (address_at(dir_fd, name, &address, err) < 0)
        return -1;
    CLEANUP_CLOSE int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return error_errno(err, errno, NULL, "cannot make a Unix socket");
    if (socket_connect(fd, (struct sockaddr *)&address, sizeof(address), timeout_ms) == 0)
        return TAKE_FD(fd);
    if (errno == ETIMEDOUT)
        return error_set(err, ERROR_TIMEOUT, "try again", "nothing took the connection to the socket %s within %d ms: its queue is full", name, timeout_ms);
    return error_errno(err, errno, NULL, "cannot connect to the socket %s", name);
}

int socket_connect_path(const char *path, int type, int timeout_ms, struct error *err)
{
    char dir[4096], base[4096];
    if (strlen(path) >= sizeof(dir))
        return error_set(err, ERROR_INVALID, NULL, "the socket path is too long");
    strcpy(dir, path);
    strcpy(base, path);
    CLEANUP_CLOSE int dir_fd = open(dirname(dir), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0)
        return error_errno(err, errno, NULL, "cannot open the directory of %s", path);
    return socket_connect_at(dir_fd, basename(base), type, timeout_ms, err);
}

union control {
    char bytes[CMSG_SPACE(SOCKET_MAX_FDS * sizeof(int))];
    struct cmsghdr align;
};

ssize_t socket_send_fds(int fd, const void *bytes, size_t len, const int *fds, size_t fd_count)
{
    if (fd_count > SOCKET_MAX_FDS) {
        errno = EINVAL;
        return -1;
    }
    struct iovec part = {.iov_base = (void *)bytes, .iov_len = len};
    union control control = {0};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd_count) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
        memcpy(CMSG_DATA(head), fds, fd_count * sizeof(int));
    }
    ssize_t n;
    do
        n = sendmsg(fd, &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n;
}

static void keep_fds(const struct cmsghdr *head, int *fds, size_t room, size_t *count)
{
    size_t n = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < n; i++) {
        int got;
        memcpy(&got, CMSG_DATA(head) + i * sizeof(int), sizeof(int));
        if (*count < room)
            fds[(*count)++] = got;
        else
            close(got);
    }
}

ssize_t socket_receive_fds(int fd, void *bytes, size_t len, int *fds, size_t *fd_count)
{
    size_t room = fd_count ? *fd_count : 0, count = 0;
    struct iovec part = {.iov_base = bytes, .iov_len = len};
    union control control = {0};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control)};
    ssize_t n;
    do
        n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -1;
    for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head))
        if (head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
            keep_fds(head, fds, room, &count);
    if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
        while (count)
            close(fds[--count]);
        errno = EMSGSIZE;
        return -1;
    }
    if (fd_count)
        *fd_count = count;
    return n;
}

int socket_peer(int fd, struct ucred *ret)
{
    socklen_t size = sizeof(*ret);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret, &size);
}
