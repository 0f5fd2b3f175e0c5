#include "reconcilers/session/printed.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#define CHUNK 4096
#define BURST_BYTES (64 * 1024) // after that many …
#define REST_MS 100             // … nothing is read for so long
#define LAST_READS 64           // at the end: what a pipe may still hold

// Returns what read() returned.
static ssize_t take(struct printed *printed)
{
    char bytes[CHUNK];
    ssize_t n = read(printed->fd, bytes, sizeof(bytes));
    if (n > 0) {
        last_lines_add(printed->last, bytes, (size_t)n);
        printed->burst_bytes += (size_t)n;
    }
    return n;
}

static void on_readable(void *arg, uint32_t events);

static void on_rested(void *arg)
{
    struct printed *printed = arg;
    printed->rest = NULL;
    printed->source = loop_watch(printed->loop, printed->fd, EPOLLIN, on_readable, printed);
}

// Not watched at all meanwhile: even a watch for nothing wakes up at the other end's close.
static void rest(struct printed *printed)
{
    printed->burst_bytes = 0;
    loop_unwatch(TAKE_PTR(printed->source));
    printed->rest = loop_after(printed->loop, REST_MS, on_rested, printed);
}

static void on_readable(void *arg, uint32_t events)
{
    struct printed *printed = arg;
    (void)events;
    ssize_t n = take(printed);
    bool is_over = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    if (is_over) {
        printed_stop(printed);
        if (printed->ended)
            printed->ended(printed->arg);
    } else if (printed->burst_bytes >= BURST_BYTES) {
        rest(printed);
    }
}

void printed_start(struct printed *printed, struct loop *loop, int fd, struct last_lines *last, void (*ended)(void *arg), void *arg)
{
    *printed = (struct printed){.loop = loop, .fd = fd, .last = last, .ended = ended, .arg = arg};
    if (fd < 0)
        return;
    fs_set_nonblocking(fd, true);
    printed->source = loop_watch(loop, fd, EPOLLIN, on_readable, printed);
}

void printed_stop(struct printed *printed)
{
    if (printed->fd < 0)
        return;
    for (int i = 0; i < LAST_READS && take(printed) > 0; i++)
        ;
    last_lines_end(printed->last);
    loop_cancel(TAKE_PTR(printed->rest));
    if (printed->source)
        loop_unwatch(TAKE_PTR(printed->source));
    close(TAKE_FD(printed->fd));
}
