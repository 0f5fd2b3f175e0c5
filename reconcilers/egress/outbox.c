#include "reconcilers/egress/outbox.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

// Bytes that the socket took, 0 if it is full, -1 if it is broken.
static ssize_t send_some(int fd, const char *bytes, size_t len)
{
    ssize_t sent;
    do
        sent = send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM) ? 0 : sent;
}

static void keep(struct egress *egress, struct outbox *outbox, const char *bytes, size_t len)
{
    char *data = mem_alloc(outbox->len + len);
    if (outbox->len)
        memcpy(data, outbox->data + outbox->start, outbox->len);
    memcpy(data + outbox->len, bytes, len);
    free(outbox->data);
    outbox->data = data;
    outbox->start = 0;
    outbox->len += len;
    egress->pending_bytes += len;
}

int outbox_send(struct egress *egress, struct outbox *outbox, int fd, const void *bytes, size_t len)
{
    ssize_t sent = outbox->len || !len ? 0 : send_some(fd, bytes, len);
    if (sent < 0)
        return -1;
    if ((size_t)sent < len)
        keep(egress, outbox, (const char *)bytes + sent, len - (size_t)sent);
    return 0;
}

int outbox_flush(struct egress *egress, struct outbox *outbox, int fd)
{
    if (!outbox->len)
        return 0;
    ssize_t sent = send_some(fd, outbox->data + outbox->start, outbox->len);
    if (sent < 0)
        return -1;
    outbox->start += (size_t)sent;
    outbox->len -= (size_t)sent;
    egress->pending_bytes -= (size_t)sent;
    if (!outbox->len)
        outbox_clear(egress, outbox);
    return 0;
}

void outbox_clear(struct egress *egress, struct outbox *outbox)
{
    egress->pending_bytes -= outbox->len;
    free(outbox->data);
    *outbox = (struct outbox){0};
}
