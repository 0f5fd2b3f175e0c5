#include "reconcilers/egress/listener.h"
#include "controller/base/fs.h"
#include <errno.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define BURST 16 // then other descriptors get their turn

static void listener_ready(struct watch *watch, uint32_t events)
{
    struct listener *listener = CONTAINER_OF(watch, struct listener, watch);
    (void)events;
    for (int i = 0; i < BURST && watch->fd >= 0; i++) {
        int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            listener->accepted(listener, fd);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            watch_want(&listener->egress->loop, watch, 0);
            deadline_start(&listener->egress->loop, &listener->pause, DEADLINE_PAUSE);
        }
        return; // EAGAIN, or a connection that is gone already
    }
}

static void pause_over(struct deadline *deadline)
{
    struct listener *listener = CONTAINER_OF(deadline, struct listener, pause);
    watch_want(&listener->egress->loop, &listener->watch, EPOLLIN);
}

static bool is_tcp_listener(int fd)
{
    static const struct {
        int option, wanted;
    } checks[] = {{SO_TYPE, SOCK_STREAM}, {SO_PROTOCOL, IPPROTO_TCP}, {SO_ACCEPTCONN, 1}};
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        int value;
        socklen_t size = sizeof(value);
        if (getsockopt(fd, SOL_SOCKET, checks[i].option, &value, &size) < 0 || value != checks[i].wanted)
            return false;
    }
    return true;
}

int listener_open(struct listener *listener, struct egress *egress, int fd,
                  void (*accepted)(struct listener *listener, int fd), struct error *err)
{
    if (!is_tcp_listener(fd))
        return error_set(err, ERROR_INVALID, NULL, "descriptor %d is not a listening TCP socket", fd);
    if (fs_set_nonblocking(fd, true) < 0)
        return error_errno(err, errno, NULL, "cannot prepare the listening socket");
    *listener = (struct listener){.egress = egress, .watch = {.fd = fd, .ready = listener_ready}};
    listener->accepted = accepted;
    listener->pause.expired = pause_over;
    watch_want(&egress->loop, &listener->watch, EPOLLIN);
    return 0;
}

void listener_close(struct listener *listener)
{
    deadline_stop(&listener->pause);
    watch_close(&listener->egress->loop, &listener->watch);
}
