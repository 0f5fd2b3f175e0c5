// Unix sockets and descriptor passing. All sockets are close-on-exec.
#pragma once
#include "controller/base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#define SOCKET_MAX_FDS 8

// A listening socket at dir_fd/name with mode 0600 (any stale one is replaced). type is SOCK_STREAM or
// SOCK_SEQPACKET. Long paths work: it is bound through /proc/self/fd. Returns the descriptor or -1.
int socket_listen_at(int dir_fd, const char *name, int type, struct error *err);
// A blocking socket connected to the one at dir_fd/name, or at path. Where the listener's queue is full it waits, at most
// timeout_ms (from 1) for it to take the connection: then ERROR_TIMEOUT.
// ERROR_NOT_FOUND: there is no such socket. Returns the descriptor or -1.
int socket_connect_at(int dir_fd, const char *name, int type, int timeout_ms, struct error *err);
int socket_connect_path(const char *path, int type, int timeout_ms, struct error *err);
// The same for a socket of any family: 0, or -1 and errno (ETIMEDOUT: nothing took it in time).
int socket_connect(int fd, const struct sockaddr *address, socklen_t size, int timeout_ms);
// One message with up to SOCKET_MAX_FDS descriptors (which stay the caller's). Returns bytes sent or -1 and errno.
ssize_t socket_send_fds(int fd, const void *bytes, size_t len, const int *fds, size_t fd_count);
// Receives one message; *fd_count in: room in fds, out: received (the caller owns them). Extra ones are closed.
// Returns bytes, 0 at end, -1 and errno (EMSGSIZE if the message was cut).
ssize_t socket_receive_fds(int fd, void *bytes, size_t len, int *fds, size_t *fd_count);
int socket_peer(int fd, struct ucred *ret);
