// The guest's event loop: one thread, epoll, one event at a time (so that a source may be removed by any
// handler), timers in boot time. Everything here is called from the loop thread only.
//
//     guest_loop_add(loop, &source);                      source.ready runs when source.fd has one of
//     source.events guest_loop_timer_start(loop, &timer, 1500);         timer.fire runs once, 1.5 s later
#pragma once
#include "controller/base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

struct loop_source {
    int fd; // the owner's; the loop never closes it
    uint32_t events;
    void (*ready)(struct loop_source *source, uint32_t events);
    bool is_added;
};

struct loop_timer {
    int64_t at_ms; // boot time
    void (*fire)(struct loop_timer *timer);
    bool is_armed;
    struct loop_timer *prev, *next;
};

struct loop {
    int epoll_fd;
    struct loop_timer *timers;        // unsorted: there are few
    struct loop_source *always_ready; // a regular file as stdin: epoll does not take it
};

int guest_loop_init(struct loop *loop, struct error *err);
void guest_loop_free(struct loop *loop);
int guest_loop_add(struct loop *loop, struct loop_source *source, struct error *err);
void guest_loop_set_events(struct loop *loop, struct loop_source *source,
                           uint32_t events);                           // 0 pauses the source
void guest_loop_remove(struct loop *loop, struct loop_source *source); // also if it was not added
void guest_loop_timer_start(struct loop *loop, struct loop_timer *timer,
                            int64_t delay_ms); // restarts an armed one
void guest_loop_timer_stop(struct loop *loop, struct loop_timer *timer);
// Sleeps until an event or a timer, at most max_wait_ms (-1: no bound), and runs its handler.
void guest_loop_step(struct loop *loop, int max_wait_ms);
