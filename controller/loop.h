// The event loop: one thread, epoll, timers. All socket and pipe work of the control plane that is not HTTP runs
// here (tool servers' stdio, shim sockets, child exits by pidfd, deadlines). Callbacks run on the loop thread,
// must not block, and must not wait for a commit.
#pragma once
#include "controller/base/error.h"
#include "controller/clock.h"
#include <stdint.h>

struct loop;
struct loop_source; // a watched descriptor (never owned)
struct loop_timer;

int loop_start(struct clock *clock, struct loop **ret, struct error *err); // makes the thread
void loop_stop(struct loop *loop);                                        // joins it; frees the loop
bool loop_is_current(const struct loop *loop);                            // on the loop's own thread?

// Any thread. events: EPOLLIN, EPOLLOUT, EPOLLRDHUP… (level-triggered).
struct loop_source *loop_watch(struct loop *loop, int fd, uint32_t events, void (*fn)(void *arg, uint32_t events), void *arg);
void loop_rewatch(struct loop_source *source, uint32_t events);
// After it returns the callback will not run again and is not running (unless called from inside it).
void loop_unwatch(struct loop_source *source);

// One shot at `deadline`; freed after it ran or by loop_cancel.
struct loop_timer *loop_at(struct loop *loop, struct boot_time deadline, void (*fn)(void *arg), void *arg);
struct loop_timer *loop_after(struct loop *loop, int64_t delay_ms, void (*fn)(void *arg), void *arg);
void loop_cancel(struct loop_timer *timer); // NULL allowed; only on the loop thread or before it could have run

// Runs fn on the loop thread soon, in order of posting.
void loop_post(struct loop *loop, void (*fn)(void *arg), void *arg);
// Runs fn on the loop thread and waits for it (runs it at once when already there).
void loop_call(struct loop *loop, void (*fn)(void *arg), void *arg);
struct clock *loop_clock(struct loop *loop);
