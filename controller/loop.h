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
// Runs what was posted before (and what that posts), joins the thread, frees the loop with its sources and timers, whose
// callbacks do not run any more. Not on the loop thread. NULL allowed.
void loop_stop(struct loop *loop);
bool loop_is_current(const struct loop *loop);                            // on the loop's own thread?

// Any thread. events: EPOLLIN, EPOLLOUT, EPOLLRDHUP… (level-triggered); 0 = paused: nothing is delivered, hang-ups
// included, until loop_rewatch. The descriptor must be pollable and watched once (dup it to watch it twice), and is
// closed after loop_unwatch, never before: the process aborts otherwise, because events would reach freed memory.
struct loop_source *loop_watch(struct loop *loop, int fd, uint32_t events, void (*fn)(void *arg, uint32_t events), void *arg);
void loop_rewatch(struct loop_source *source, uint32_t events);
// Any thread; frees the source; NULL allowed. After it returns the callback will not run again and is not running (unless
// called from inside it). From other threads it waits for a running callback: hold no lock that the callback takes.
void loop_unwatch(struct loop_source *source);

// One shot at `deadline`, any thread; freed after it ran or by loop_cancel. Equal deadlines run in order of making.
struct loop_timer *loop_at(struct loop *loop, struct boot_time deadline, void (*fn)(void *arg), void *arg);
struct loop_timer *loop_after(struct loop *loop, int64_t delay_ms, void (*fn)(void *arg), void *arg);
// NULL allowed; only on the loop thread or before it could have run. From inside the timer's own callback it does nothing.
void loop_cancel(struct loop_timer *timer);

// Any thread. Runs fn on the loop thread soon, in order of posting. Timers that are due at the time of posting run before it
// (so with a fake clock: clock_advance, then loop_call, and the due timers have run).
void loop_post(struct loop *loop, void (*fn)(void *arg), void *arg);
// Runs fn on the loop thread and waits for it (runs it at once when already there). Hold no lock that the loop takes.
void loop_call(struct loop *loop, void (*fn)(void *arg), void *arg);
struct clock *loop_clock(struct loop *loop);
