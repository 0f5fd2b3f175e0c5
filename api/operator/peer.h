// Who is at the other end of the operator's socket.
#pragma once
#include "controller/base/error.h"
#include <sys/socket.h>
#include <sys/types.h>

// 0 if the peer is root or `uid` and lives in this process's own user namespace: a process in another one may
// show the owner's uid although it is a sandbox's. ERROR_REFUSED with a sentence otherwise. Never blocks. fd:
// the connection.
int peer_check(int fd, const struct ucred *peer, uid_t uid, struct error *err);
