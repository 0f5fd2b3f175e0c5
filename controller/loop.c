#include "controller/loop.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/heap.h"
#include "controller/thread.h"
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define BATCH 64

struct loop_source {
    struct loop *loop;
    int fd;
    uint32_t events; // 0 = paused: not in the epoll set
    bool is_dead;    // unwatched; memory stays until no event batch can name it
    void (*fn)(void *arg, uint32_t events);
    void *arg;
    struct loop_source *next; // in loop->sources
    struct loop_source **at;
};

struct loop_timer {
    struct heap_node node; // first: a node is its timer
    struct loop *loop;
    void (*fn)(void *arg);
    void *arg;
    bool is_running;
};

struct post {
    struct post *next;
    void (*fn)(void *arg);
    void *arg;
    bool *is_done; // loop_call's flag, guarded by the loop's lock
};

struct loop {
    struct clock *clock;
    int epoll_fd, wake_fd;
    pthread_t thread;
    atomic_bool is_woken; // the eventfd was written and not read yet
    pthread_mutex_t lock; // guards all below
    pthread_cond_t moved; // a callback ended or a loop_call is done
    bool is_stopping;
    struct heap timers;
    struct post *posts, **posts_end;
    struct loop_source *sources, *dead_sources;
    const struct loop_source *running; // whose callback is being run
};

static _Thread_local const struct loop *current_loop;

bool loop_is_current(const struct loop *loop)
{
    return current_loop == loop;
}

struct clock *loop_clock(struct loop *loop)
{
    return loop->clock;
}

static void wake(void *arg)
{
    struct loop *loop = arg;
    if (atomic_exchange(&loop->is_woken, true))
        return;
    eventfd_write(loop->wake_fd, 1);
}

static void wake_unless_current(struct loop *loop)
{
    if (!loop_is_current(loop)) // the loop's own thread looks again before it waits
        wake(loop);
}

// ---- sources ------------------------------------------------------------------------------------

static void set_interest(struct loop_source *source, int operation)
{
    struct epoll_event event = {.events = source->events, .data.ptr = source};
    if (epoll_ctl(source->loop->epoll_fd, operation, source->fd, &event) == 0)
        return;
    // A descriptor that was closed first, is watched twice or cannot be polled: a fault of the caller, and
    // going on would leave a pointer in the kernel that outlives its source.
    fprintf(stderr, "chat2shell: epoll_ctl(%d) on descriptor %d failed: %s\n", operation, source->fd,
            strerrordesc_np(errno));
    abort();
}

struct loop_source *loop_watch(struct loop *loop, int fd, uint32_t events,
                               void (*fn)(void *arg, uint32_t events), void *arg)
{
    struct loop_source *source = mem_alloc(sizeof(*source));
    *source = (struct loop_source){.loop = loop, .fd = fd, .events = events, .fn = fn, .arg = arg};
    pthread_mutex_lock(&loop->lock);
    source->next = loop->sources;
    source->at = &loop->sources;
    if (source->next)
        source->next->at = &source->next;
    loop->sources = source;
    if (events)
        set_interest(source, EPOLL_CTL_ADD);
    pthread_mutex_unlock(&loop->lock);
    return source;
}

void loop_rewatch(struct loop_source *source, uint32_t events)
{
    pthread_mutex_lock(&source->loop->lock);
    assert(!source->is_dead);
    bool was_in = source->events != 0;
    if (source->events != events) {
        source->events = events;
        if (was_in || events)
            set_interest(source, !events ? EPOLL_CTL_DEL : was_in ? EPOLL_CTL_MOD : EPOLL_CTL_ADD);
    }
    pthread_mutex_unlock(&source->loop->lock);
}

void loop_unwatch(struct loop_source *source)
{
    if (!source)
        return;
    struct loop *loop = source->loop;
    pthread_mutex_lock(&loop->lock);
    assert(!source->is_dead);
    if (source->events)
        set_interest(source, EPOLL_CTL_DEL);
    source->is_dead = true;
    *source->at = source->next;
    if (source->next)
        source->next->at = source->at;
    while (loop->running == source && !loop_is_current(loop))
        pthread_cond_wait(&loop->moved, &loop->lock);
    source->next = loop->dead_sources; // an event batch in flight may still name it
    loop->dead_sources = source;
    pthread_mutex_unlock(&loop->lock);
}

// Between two batches: the kernel forgot these before the next one is asked for.
static struct loop_source *bury(struct loop_source *dead)
{
    while (dead) {
        struct loop_source *next = dead->next;
        free(dead);
        dead = next;
    }
    return NULL;
}

static void run_source(struct loop *loop, struct loop_source *source, uint32_t events)
{
    pthread_mutex_lock(&loop->lock);
    events &= source->events | EPOLLERR | EPOLLHUP;
    bool is_wanted = !source->is_dead && source->events && events;
    if (is_wanted)
        loop->running = source;
    pthread_mutex_unlock(&loop->lock);
    if (!is_wanted)
        return;
    source->fn(source->arg, events);
    pthread_mutex_lock(&loop->lock);
    loop->running = NULL;
    pthread_cond_broadcast(&loop->moved);
    pthread_mutex_unlock(&loop->lock);
}

// ---- timers -------------------------------------------------------------------------------------

struct loop_timer *loop_at(struct loop *loop, struct boot_time deadline, void (*fn)(void *arg), void *arg)
{
    struct loop_timer *timer = mem_alloc(sizeof(*timer));
    *timer = (struct loop_timer){.loop = loop, .fn = fn, .arg = arg};
    pthread_mutex_lock(&loop->lock);
    heap_put(&loop->timers, &timer->node, deadline.ms);
    bool is_first = heap_first(&loop->timers) == &timer->node;
    pthread_mutex_unlock(&loop->lock);
    if (is_first)
        wake_unless_current(loop);
    return timer;
}

struct loop_timer *loop_after(struct loop *loop, int64_t delay_ms, void (*fn)(void *arg), void *arg)
{
    int64_t now_ms = clock_boot(loop->clock).ms;
    int64_t deadline_ms = delay_ms < INT64_MAX - now_ms ? now_ms + delay_ms : INT64_MAX;
    return loop_at(loop, (struct boot_time){deadline_ms}, fn, arg);
}

void loop_cancel(struct loop_timer *timer)
{
    if (!timer || timer->is_running) // its own callback cancels it: it is freed when that ends
        return;
    struct loop *loop = timer->loop;
    pthread_mutex_lock(&loop->lock);
    heap_remove(&loop->timers, &timer->node);
    pthread_mutex_unlock(&loop->lock);
    free(timer);
}

static struct loop_timer *take_due(struct loop *loop, int64_t now_ms, uint64_t before)
{
    pthread_mutex_lock(&loop->lock);
    struct heap_node *node = heap_first(&loop->timers);
    if (node && (node->deadline_ms > now_ms || node->order >= before))
        node = NULL;
    if (node) {
        heap_remove(&loop->timers, node);
        ((struct loop_timer *)node)->is_running = true;
    }
    pthread_mutex_unlock(&loop->lock);
    return (struct loop_timer *)node;
}

static void run_timers(struct loop *loop)
{
    int64_t now_ms = clock_boot(loop->clock).ms;
    pthread_mutex_lock(&loop->lock);
    uint64_t before = loop->timers.next_order; // what callbacks add now waits for the next round
    pthread_mutex_unlock(&loop->lock);
    struct loop_timer *timer;
    while ((timer = take_due(loop, now_ms, before))) {
        timer->fn(timer->arg);
        free(timer);
    }
}

// ---- posts --------------------------------------------------------------------------------------

static void add_post(struct loop *loop, void (*fn)(void *arg), void *arg, bool *is_done)
{
    struct post *post = mem_alloc(sizeof(*post));
    *post = (struct post){.fn = fn, .arg = arg, .is_done = is_done};
    *loop->posts_end = post;
    loop->posts_end = &post->next;
}

void loop_post(struct loop *loop, void (*fn)(void *arg), void *arg)
{
    pthread_mutex_lock(&loop->lock);
    add_post(loop, fn, arg, NULL);
    pthread_mutex_unlock(&loop->lock);
    wake_unless_current(loop);
}

void loop_call(struct loop *loop, void (*fn)(void *arg), void *arg)
{
    if (loop_is_current(loop)) {
        fn(arg);
        return;
    }
    bool is_done = false;
    pthread_mutex_lock(&loop->lock);
    add_post(loop, fn, arg, &is_done);
    wake(loop);
    while (!is_done)
        pthread_cond_wait(&loop->moved, &loop->lock);
    pthread_mutex_unlock(&loop->lock);
}

static struct post *take_posts(struct loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    struct post *posts = TAKE_PTR(loop->posts);
    loop->posts_end = &loop->posts;
    pthread_mutex_unlock(&loop->lock);
    return posts;
}

static void run_posts(struct loop *loop, struct post *posts)
{
    while (posts) {
        struct post *post = posts;
        posts = post->next;
        post->fn(post->arg);
        if (post->is_done) {
            pthread_mutex_lock(&loop->lock);
            *post->is_done = true;
            pthread_cond_broadcast(&loop->moved);
            pthread_mutex_unlock(&loop->lock);
        }
        free(post);
    }
}

// ---- the thread ---------------------------------------------------------------------------------

// How long epoll may wait. A fake clock's time passes only in clock_advance, which wakes the loop.
static int wait_ms(struct loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    loop->dead_sources = bury(loop->dead_sources);
    struct heap_node *first = heap_first(&loop->timers);
    int64_t deadline_ms = first ? first->deadline_ms : INT64_MAX;
    bool is_busy = loop->posts || loop->is_stopping;
    pthread_mutex_unlock(&loop->lock);
    if (is_busy)
        return 0;
    if (deadline_ms == INT64_MAX)
        return -1;
    int64_t left_ms = deadline_ms - clock_boot(loop->clock).ms;
    if (left_ms <= 0)
        return 0;
    if (clock_is_fake(loop->clock))
        return -1;
    return left_ms < CLOCK_MAX_WAIT_MS ? (int)left_ms : CLOCK_MAX_WAIT_MS;
}

static bool is_ended(struct loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    bool is = loop->is_stopping && !loop->posts;
    pthread_mutex_unlock(&loop->lock);
    return is;
}

static void settle_wake(struct loop *loop)
{
    eventfd_t ignored;
    eventfd_read(loop->wake_fd, &ignored);
    atomic_store(&loop->is_woken, false); // after the read: a later wake writes again
}

static void run_sources(struct loop *loop, const struct epoll_event *events, int count)
{
    for (int i = 0; i < count; i++)
        if (events[i].data.ptr)
            run_source(loop, events[i].data.ptr, events[i].events);
}

// One round. Posts are taken first and run last, so that a timer that is due when something is posted runs
// before it.
static void run_round(struct loop *loop)
{
    struct epoll_event events[BATCH];
    int count = epoll_wait(loop->epoll_fd, events, BATCH, wait_ms(loop));
    for (int i = 0; i < count; i++)
        if (!events[i].data.ptr)
            settle_wake(loop);
    struct post *posts = take_posts(loop);
    run_sources(loop, events, count);
    run_timers(loop);
    run_posts(loop, posts);
}

static void *run(void *arg)
{
    struct loop *loop = arg;
    current_loop = loop;
    while (!is_ended(loop))
        run_round(loop);
    return NULL;
}

static void loop_free(struct loop *loop)
{
    clock_off_advance(loop->clock, loop);
    for (struct heap_node *node; (node = heap_first(&loop->timers));) {
        heap_remove(&loop->timers, node);
        free(node);
    }
    heap_free(&loop->timers);
    bury(loop->sources);
    bury(loop->dead_sources);
    close(loop->epoll_fd);
    close(loop->wake_fd);
    pthread_mutex_destroy(&loop->lock);
    pthread_cond_destroy(&loop->moved);
    free(loop);
}

static struct loop *loop_new(struct clock *clock, int epoll_fd, int wake_fd)
{
    struct loop *loop = mem_alloc(sizeof(*loop));
    *loop = (struct loop){.clock = clock, .epoll_fd = epoll_fd, .wake_fd = wake_fd};
    loop->posts_end = &loop->posts;
    pthread_mutex_init(&loop->lock, NULL);
    thread_cond_init(&loop->moved);
    clock_on_advance(clock, wake, loop);
    return loop;
}

int loop_start(struct clock *clock, struct loop **ret, struct error *err)
{
    CLEANUP_CLOSE int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    CLEANUP_CLOSE int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN};
    if (epoll_fd < 0 || wake_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, wake_fd, &event) < 0)
        return error_errno(err, errno, "raise the limit on open files (ulimit -n)",
                           "cannot make the event loop");
    struct loop *loop = loop_new(clock, TAKE_FD(epoll_fd), TAKE_FD(wake_fd));
    if (thread_start(&loop->thread, "loop", run, loop, err) < 0) {
        loop_free(loop);
        return -1;
    }
    *ret = loop;
    return 0;
}

void loop_stop(struct loop *loop)
{
    if (!loop)
        return;
    assert(!loop_is_current(loop));
    pthread_mutex_lock(&loop->lock);
    loop->is_stopping = true;
    pthread_mutex_unlock(&loop->lock);
    wake(loop);
    pthread_join(loop->thread, NULL);
    loop_free(loop);
}
