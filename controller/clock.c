#include "controller/clock.h"
#include "controller/base/memory.h"
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct hook {
    void (*wake)(void *arg);
    void *arg;
};
struct clock {
    bool is_fake;
    _Atomic int64_t wall_ms, boot_ms; // fake only
    pthread_mutex_t lock; // guards the hooks, and is held while they run: off_advance waits for them
    struct hook *hooks;
    size_t hook_count;
};

static struct clock *clock_new(bool is_fake)
{
    struct clock *clock = mem_alloc(sizeof(*clock));
    clock->is_fake = is_fake;
    pthread_mutex_init(&clock->lock, NULL);
    return clock;
}

struct clock *clock_new_real(void)
{
    return clock_new(false);
}

struct clock *clock_new_fake(struct wall_time start)
{
    struct clock *clock = clock_new(true);
    clock->wall_ms = start.ms;
    clock->boot_ms = 1000000; // not zero: differences must be used, never the value
    return clock;
}

void clock_free(struct clock *clock)
{
    if (!clock)
        return;
    assert(clock->hook_count == 0); // a loop or queue still waits on it
    pthread_mutex_destroy(&clock->lock);
    free(clock->hooks);
    free(clock);
}

struct wall_time clock_wall(const struct clock *clock)
{
    return clock->is_fake ? (struct wall_time){clock->wall_ms} : wall_time_now();
}

struct boot_time clock_boot(const struct clock *clock)
{
    return clock->is_fake ? (struct boot_time){clock->boot_ms} : boot_time_now();
}

bool clock_is_fake(const struct clock *clock)
{
    return clock->is_fake;
}

void clock_advance(struct clock *clock, int64_t ms)
{
    assert(clock->is_fake && ms >= 0);
    clock->wall_ms += ms;
    clock->boot_ms += ms;
    pthread_mutex_lock(&clock->lock);
    for (size_t i = 0; i < clock->hook_count; i++)
        clock->hooks[i].wake(clock->hooks[i].arg);
    pthread_mutex_unlock(&clock->lock);
}

void clock_step_wall(struct clock *clock, int64_t ms)
{
    assert(clock->is_fake);
    clock->wall_ms += ms;
}

void clock_on_advance(struct clock *clock, void (*wake)(void *arg), void *arg)
{
    pthread_mutex_lock(&clock->lock);
    clock->hooks = mem_realloc_array(clock->hooks, clock->hook_count + 1, sizeof(struct hook));
    clock->hooks[clock->hook_count++] = (struct hook){wake, arg};
    pthread_mutex_unlock(&clock->lock);
}

void clock_off_advance(struct clock *clock, void *arg)
{
    pthread_mutex_lock(&clock->lock);
    size_t kept = 0;
    for (size_t i = 0; i < clock->hook_count; i++)
        if (clock->hooks[i].arg != arg)
            clock->hooks[kept++] = clock->hooks[i];
    clock->hook_count = kept;
    pthread_mutex_unlock(&clock->lock);
}
