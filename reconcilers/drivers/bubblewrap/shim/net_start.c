#include "controller/base/cleanup.h"
#include "controller/base/socket.h"
#include "reconcilers/drivers/bubblewrap/shim/net.h"
#include "reconcilers/drivers/bubblewrap/shim/protocol.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <signal.h>

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

// In the child: the four descriptors at their numbers, the image somewhere above, everything else closed by exec.
static _Noreturn void become_helper(int boot_fd, int connector_fd, int userns_fd, int netns_fd)
{
    const int from[] = {boot_fd, connector_fd, userns_fd, netns_fd};
    int high[ARRAY_LEN(from)];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (size_t i = 0; i < ARRAY_LEN(from); i++)
        high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 64);
    int image_fd = fcntl(SHIM_FD_IMAGE, F_DUPFD_CLOEXEC, 64);
    for (size_t i = 0; i < ARRAY_LEN(from); i++)
        if (dup2(high[i], NET_FD_BOOT + (int)i) < 0)
            _exit(1);
    close_range(NET_FD_NETNS + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = 0; i < 3; i++)
        dup2(null_fd, i);
    char *const argv[] = {"chat2shell-net", "net", NULL};
    char *const environment[] = {NULL};
    fexecve(image_fd, argv, environment);
    _exit(127);
}

int net_start(const struct identity *identity, int netns_fd, struct net_helper *ret, struct error *err)
{
    int boot[2], connector[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, boot) < 0)
        return error_errno(err, errno, NULL, "cannot make a socket for the net helper");
    CLEANUP_CLOSE int own_boot_fd = boot[0];
    CLEANUP_CLOSE int other_boot = boot[1];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, connector) < 0)
        return error_errno(err, errno, NULL, "cannot make a socket for the net helper");
    CLEANUP_CLOSE int own_connector_fd = connector[0];
    CLEANUP_CLOSE int other_connector = connector[1];
    pid_t pid = fork();
    if (pid == 0)
        become_helper(other_boot, other_connector, identity->userns_fd, netns_fd);
    if (pid < 0)
        return error_errno(err, errno, NULL, "cannot start the net helper");
    *ret = (struct net_helper){.pid = pid, .boot_fd = TAKE_FD(own_boot_fd), .connector_fd = TAKE_FD(own_connector_fd)};
    return 0;
}

static bool cookie(int fd, uint64_t *ret)
{
    socklen_t size = sizeof(*ret);
    return getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, ret, &size) == 0;
}

// Domain, type and network of what came out: a listener of the host itself would be a hole in the other direction.
static int check_listener(int fd, struct error *err)
{
    int domain = 0, type = 0;
    socklen_t size = sizeof(domain);
    uint64_t own, other;
    CLEANUP_CLOSE int host_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) < 0 || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0 ||
        domain != AF_INET || type != SOCK_STREAM || host_fd < 0 || !cookie(fd, &own) || !cookie(host_fd, &other) || own == other)
        return error_set(err, ERROR_INTERNAL, NULL, "the net helper handed out something else than a listener in the sandbox");
    return 0;
}

int net_take_listener(const struct net_helper *helper, struct error *err)
{
    struct net_boot message = {0};
    int fd = -1;
    size_t fd_count = 1;
    ssize_t n = socket_receive_fds(helper->boot_fd, &message, sizeof(message), &fd, &fd_count);
    CLEANUP_CLOSE int listener_fd = fd_count == 1 && n > 0 ? fd : -1;
    if (n != (ssize_t)sizeof(message))
        return error_set(err, ERROR_INTERNAL, NULL, "the net helper ended before it opened the sandbox's listener");
    if (message.errno_value != 0 || listener_fd < 0)
        return error_errno(err, message.errno_value, NULL, "the net helper could not %.59s", message.step);
    return check_listener(listener_fd, err) < 0 ? -1 : TAKE_FD(listener_fd);
}
