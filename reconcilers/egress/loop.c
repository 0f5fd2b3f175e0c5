#include "reconcilers/egress/loop.h"
#include "controller/base/memory.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define BATCH 64

int64_t deadline_duration_ms[DEADLINE_COUNT] = {
    [DEADLINE_SOON] = 0,        [DEADLINE_LINGER] = 2000,   [DEADLINE_PAUSE] = 1000, [DEADLINE_ATTEMPT] = 5000,  [DEADLINE_RESOLVE] = 10000,
    [DEADLINE_DIAL] = 15000,    [DEADLINE_HEAD] = 30000, [DEADLINE_ANSWER] = 300000, [DEADLINE_IDLE] = 3600000,
};

int loop_open(struct loop *loop, struct error *err)
{
    *loop = (struct loop){.epoll_fd = epoll_create1(EPOLL_CLOEXEC)};
    for (size_t i = 0; i < DEADLINE_COUNT; i++)
        loop->queues[i].prev = loop->queues[i].next = &loop->queues[i];
    if (loop->epoll_fd < 0)
        return error_errno(err, errno, NULL, "cannot make an epoll descriptor");
    return 0;
}

static void release_retired(struct loop *loop)
{
    for (size_t i = 0; i < loop->retired_count; i++)
        free(loop->retired[i]);
    loop->retired_count = 0;
}

void loop_close(struct loop *loop)
{
    release_retired(loop);
    free(loop->retired);
    close(loop->epoll_fd);
}

void loop_end(struct loop *loop, int exit_status)
{
    loop->is_ending = true;
    loop->exit_status = exit_status;
}

void loop_retire(struct loop *loop, void *memory)
{
    if (loop->retired_count == loop->retired_cap) {
        loop->retired_cap = loop->retired_cap ? loop->retired_cap * 2 : 16;
        loop->retired = mem_realloc_array(loop->retired, loop->retired_cap, sizeof(*loop->retired));
    }
    loop->retired[loop->retired_count++] = memory;
}

static int next_timeout(struct loop *loop, int timeout_ms)
{
    int64_t now = boot_time_now().ms, nearest = INT64_MAX;
    for (size_t i = 0; i < DEADLINE_COUNT; i++)
        if (loop->queues[i].next != &loop->queues[i] && loop->queues[i].next->at_ms < nearest)
            nearest = loop->queues[i].next->at_ms;
    if (nearest == INT64_MAX)
        return timeout_ms;
    int64_t wait = nearest <= now ? 0 : nearest - now;
    return timeout_ms >= 0 && timeout_ms < wait ? timeout_ms : (int)wait;
}

static void run_expired(struct loop *loop)
{
    int64_t now = boot_time_now().ms;
    for (size_t i = 0; i < DEADLINE_COUNT; i++)
        while (loop->queues[i].next != &loop->queues[i] && loop->queues[i].next->at_ms <= now) {
            struct deadline *deadline = loop->queues[i].next;
            deadline_stop(deadline);
            deadline->expired(deadline);
        }
}

int loop_step(struct loop *loop, int timeout_ms, struct error *err)
{
    struct epoll_event events[BATCH];
    int count = epoll_wait(loop->epoll_fd, events, BATCH, next_timeout(loop, timeout_ms));
    if (count < 0 && errno != EINTR)
        return error_errno(err, errno, NULL, "cannot wait for events");
    for (int i = 0; i < count; i++) {
        struct watch *watch = events[i].data.ptr;
        if (watch->fd >= 0 && watch->events)
            watch->ready(watch, events[i].events);
    }
    run_expired(loop);
    release_retired(loop);
    return 0;
}

void watch_want(struct loop *loop, struct watch *watch, uint32_t events)
{
    if (watch->fd < 0 || watch->events == events)
        return;
    int op = !events ? EPOLL_CTL_DEL : watch->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    struct epoll_event event = {.events = events, .data.ptr = watch};
    if (epoll_ctl(loop->epoll_fd, op, watch->fd, &event) < 0)
        abort(); // out of kernel memory, or a fault of ours: going on would hang a connection for ever
    watch->events = events;
}

int watch_release(struct loop *loop, struct watch *watch)
{
    int fd = watch->fd;
    watch_want(loop, watch, 0);
    watch->fd = -1;
    return fd;
}

void watch_close(struct loop *loop, struct watch *watch)
{
    if (watch->fd >= 0)
        close(watch_release(loop, watch));
}

void deadline_start(struct loop *loop, struct deadline *deadline, enum deadline_kind kind)
{
    struct deadline *head = &loop->queues[kind];
    assert(deadline->expired);
    deadline_stop(deadline);
    deadline->at_ms = boot_time_now().ms + deadline_duration_ms[kind];
    deadline->next = head;
    deadline->prev = head->prev;
    head->prev->next = deadline;
    head->prev = deadline;
}

void deadline_stop(struct deadline *deadline)
{
    if (!deadline->next)
        return;
    deadline->prev->next = deadline->next;
    deadline->next->prev = deadline->prev;
    deadline->prev = deadline->next = NULL;
}
