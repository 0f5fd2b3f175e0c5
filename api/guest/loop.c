#include "api/guest/loop.h"
#include "controller/base/time.h"
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <unistd.h>

int guest_loop_init(struct loop *loop, struct error *err)
{
    *loop = (struct loop){.epoll_fd = epoll_create1(EPOLL_CLOEXEC)};
    return loop->epoll_fd < 0 ? error_errno(err, errno, NULL, "cannot make an event loop") : 0;
}

void guest_loop_free(struct loop *loop)
{
    if (loop->epoll_fd >= 0)
        close(loop->epoll_fd);
    loop->epoll_fd = -1;
}

int guest_loop_add(struct loop *loop, struct loop_source *source, struct error *err)
{
    assert(!source->is_added && source->ready);
    struct epoll_event event = {.events = source->events, .data.ptr = source};
    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, source->fd, &event) < 0) {
        if (errno != EPERM || loop->always_ready)
            return error_errno(err, errno, NULL, "cannot watch descriptor %d", source->fd);
        loop->always_ready = source;
    }
    source->is_added = true;
    return 0;
}

void guest_loop_set_events(struct loop *loop, struct loop_source *source, uint32_t events)
{
    if (!source->is_added || source->events == events)
        return;
    source->events = events;
    struct epoll_event event = {.events = events, .data.ptr = source};
    if (loop->always_ready != source)
        epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, source->fd, &event);
}

void guest_loop_remove(struct loop *loop, struct loop_source *source)
{
    if (!source->is_added)
        return;
    source->is_added = false;
    if (loop->always_ready == source)
        loop->always_ready = NULL;
    else
        epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
}

void guest_loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t delay_ms)
{
    guest_loop_timer_stop(loop, timer);
    timer->at_ms = boot_time_now().ms + delay_ms;
    timer->is_armed = true;
    timer->prev = NULL;
    timer->next = loop->timers;
    if (loop->timers)
        loop->timers->prev = timer;
    loop->timers = timer;
}

void guest_loop_timer_stop(struct loop *loop, struct loop_timer *timer)
{
    if (!timer->is_armed)
        return;
    timer->is_armed = false;
    if (timer->prev)
        timer->prev->next = timer->next;
    else
        loop->timers = timer->next;
    if (timer->next)
        timer->next->prev = timer->prev;
}

static struct loop_timer *next_timer(struct loop *loop)
{
    struct loop_timer *first = loop->timers;
    for (struct loop_timer *timer = first; timer; timer = timer->next)
        if (timer->at_ms < first->at_ms)
            first = timer;
    return first;
}

static int wait_ms_until(const struct loop_timer *timer, int max_wait_ms)
{
    if (!timer)
        return max_wait_ms;
    int64_t left = timer->at_ms - boot_time_now().ms;
    if (left < 0)
        left = 0;
    if (left > INT_MAX)
        left = INT_MAX;
    return max_wait_ms >= 0 && left > max_wait_ms ? max_wait_ms : (int)left;
}

static bool has_ready_file(const struct loop *loop)
{
    return loop->always_ready && (loop->always_ready->events & EPOLLIN);
}

void guest_loop_step(struct loop *loop, int max_wait_ms)
{
    struct epoll_event event;
    int wait_ms = has_ready_file(loop) ? 0 : wait_ms_until(next_timer(loop), max_wait_ms);
    int n = epoll_wait(loop->epoll_fd, &event, 1, wait_ms);
    struct loop_timer *timer = next_timer(loop);
    if (timer && timer->at_ms <= boot_time_now().ms) {
        guest_loop_timer_stop(loop, timer);
        timer->fire(timer); // may remove the source of `event`: look at that one again in the next step
        return;
    }
    struct loop_source *source = n > 0 ? event.data.ptr : NULL;
    if (source)
        source->ready(source, event.events);
    else if (has_ready_file(loop))
        loop->always_ready->ready(loop->always_ready, EPOLLIN);
}
