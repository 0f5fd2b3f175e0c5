// Bytes on their way to one socket. What the socket takes goes at once; only the rest is kept, in a buffer that
// exists while there is one.
#pragma once
#include "reconcilers/egress/egress.h"
#include <stdbool.h>
#include <stddef.h>

struct outbox {
    char *data;
    size_t start, len; // bytes [start, start + len) wait
};

// Sends or keeps all of the bytes. -1 and errno if the connection is broken.
int outbox_send(struct egress *egress, struct outbox *outbox, int fd, const void *bytes, size_t len);
int outbox_flush(struct egress *egress, struct outbox *outbox, int fd);
void outbox_clear(struct egress *egress, struct outbox *outbox);
static inline bool outbox_is_empty(const struct outbox *outbox)
{
    return outbox->len == 0;
}
