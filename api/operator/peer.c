#include "api/operator/peer.h"
#include "controller/base/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 // Linux 6.5
#endif

// The process that connected. By its number only where the kernel has no better: then the number may have
// been given to another process since, whose namespace is compared instead; it is refused all the same unless
// it is the owner's.
static int open_peer(int fd, pid_t pid)
{
    int pidfd = -1;
    socklen_t len = sizeof(pidfd);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) == 0)
        return pidfd;
    if (errno != ENOPROTOOPT && errno != EINVAL)
        return -1;
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static bool is_alive(int pidfd)
{
    struct pollfd wait = {.fd = pidfd, .events = POLLIN};
    return poll(&wait, 1, 0) == 0;
}

static int refuse_unknown(const struct ucred *peer, uid_t uid, struct error *err)
{
    error_set(err, ERROR_REFUSED, NULL,
              "the user namespace of process %ld (uid %u) cannot be seen from here, so it is not trusted",
              (long)peer->pid, (unsigned)peer->uid);
    return error_hint(err, "run the command as the daemon's own user: sudo -u '#%u' chat2shell …",
                      (unsigned)uid);
}

static int check_namespace(const struct ucred *peer, uid_t uid, struct error *err)
{
    char path[64];
    struct stat own, other;
    snprintf(path, sizeof(path), "/proc/%ld/ns/user", (long)peer->pid);
    if (stat("/proc/self/ns/user", &own) < 0)
        return error_errno(err, errno, "mount /proc", "the daemon cannot see its own user namespace");
    if (stat(path, &other) < 0)
        return refuse_unknown(peer, uid, err);
    if (own.st_dev == other.st_dev && own.st_ino == other.st_ino)
        return 0;
    return error_set(err, ERROR_REFUSED, "use the operator API outside of sandboxes and containers",
                     "process %ld lives in another user namespace than the daemon", (long)peer->pid);
}

int peer_check(int fd, const struct ucred *peer, uid_t uid, struct error *err)
{
    if (peer->uid != 0 && peer->uid != uid) {
        error_set(err, ERROR_REFUSED, NULL, "uid %u may not use this daemon's operator API",
                  (unsigned)peer->uid);
        return error_hint(err, "run the command as uid %u, who runs the daemon, or as root", (unsigned)uid);
    }
    if (peer->pid <= 0)
        return refuse_unknown(peer, uid, err);
    // The descriptor first: while it says that the process is there, /proc/PID is that process and no later
    // one.
    CLEANUP_CLOSE int pidfd = open_peer(fd, peer->pid);
    if (pidfd < 0)
        return refuse_unknown(peer, uid, err);
    if (check_namespace(peer, uid, err) < 0)
        return -1;
    if (!is_alive(pidfd))
        return error_set(err, ERROR_REFUSED, "connect again from a process that stays until it is answered",
                         "the process that connected (%ld) has ended", (long)peer->pid);
    return 0;
}
