// The request to an upstream proxy for a tunnel, and its answer, on a socket that the caller watches.
#pragma once
#include "reconcilers/egress/egress.h"
#include <stddef.h>

#define UPSTREAM_MAX_HEAD_BYTES 8192

struct upstream_talk {
    size_t len, scanned;
    char head[UPSTREAM_MAX_HEAD_BYTES];
};

int upstream_send(int fd, const struct endpoint *to); // -1 and errno
// Status of the answer, 0 if it is not complete yet, -1 if the proxy's answer cannot be understood or it hung up.
// Reads no byte behind the head.
int upstream_receive(int fd, struct upstream_talk *talk);
