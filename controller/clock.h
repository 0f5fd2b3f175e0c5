// Time, injectable. Real in the daemon; in tests a fake that only moves when told, so that 24-hour and 30-day
// rules run in milliseconds. Deadlines are wall time in records; waits use boot time, at most
// CLOCK_MAX_WAIT_MS, then look again (a stepped wall clock is noticed within that).
#pragma once
#include "controller/base/time.h"
#include <stdbool.h>

#define CLOCK_MAX_WAIT_MS 60000

struct clock; // thread-safe
struct clock *clock_new_real(void);
struct clock *clock_new_fake(struct wall_time start);
void clock_free(struct clock *clock); // NULL allowed; no hook may be left
struct wall_time clock_wall(const struct clock *clock);
struct boot_time clock_boot(const struct clock *clock);
// Fake only: moves both times forward and wakes every loop and queue that waits on this clock.
void clock_advance(struct clock *clock, int64_t ms);
void clock_step_wall(struct clock *clock, int64_t ms); // fake only: the wall clock jumps, boot time does not
// Called (with any thread's stack) after each clock_advance; used by loops to recompute their wait. A hook must not
// register or remove hooks. After clock_off_advance the hooks of `arg` do not run and are not running.
void clock_on_advance(struct clock *clock, void (*wake)(void *arg), void *arg);
void clock_off_advance(struct clock *clock, void *arg);
bool clock_is_fake(const struct clock *clock);
