// Ending a runtime and confirming that nothing of it is left: a list of steps, each of which looks at the world, does what
// is missing, and says whether it is done. So it does not matter whether this daemon made the runtime, an earlier one
// did, or somebody killed half of it.
#include "reconcilers/drivers/bubblewrap/remove.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/spawn.h"
#include <string.h>
#include <sys/epoll.h>

static struct removal *find_removal(struct bubblewrap *bw, const char *name)
{
    for (struct removal *removal = bw->removals; removal; removal = removal->next)
        if (strcmp(removal->name, name) == 0)
            return removal;
    return NULL;
}

static void add_waiter(struct removal *removal, driver_done_fn done, void *arg)
{
    removal->waiters = mem_realloc_array(removal->waiters, removal->waiter_count + 1, sizeof(*removal->waiters));
    removal->waiters[removal->waiter_count++] = (struct removal_waiter){done, arg};
}

static void close_all(struct removal *removal)
{
    int *const fds[] = {&removal->dir_fd, &removal->leftover_fd, &removal->leftover_pidfd, &removal->child_pidfd, &removal->lock_fd};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (*fds[i] >= 0)
            close(TAKE_FD(*fds[i]));
}

static void finish(struct removal *removal, const struct error *err)
{
    struct removal **at = &removal->bw->removals;
    while (*at != removal)
        at = &(*at)->next;
    *at = removal->next;
    loop_cancel(TAKE_PTR(removal->timer));
    loop_unwatch(TAKE_PTR(removal->child_source));
    close_all(removal);
    for (size_t i = 0; i < removal->waiter_count; i++)
        removal->waiters[i].done(removal->waiters[i].arg, err ? -1 : 0, err);
    free(removal->waiters);
    free(removal->name);
    free(removal);
}

static void on_timer(void *arg)
{
    struct removal *removal = arg;
    removal->timer = NULL;
    removal_advance(removal);
}

enum step_result removal_wait(struct removal *removal, int64_t delay_ms)
{
    if (removal->timer == NULL)
        removal->timer = loop_after(removal->bw->loop, delay_ms, on_timer, removal);
    return STEP_WAIT;
}

int64_t removal_step_age_ms(const struct removal *removal)
{
    return clock_boot(removal->bw->clock).ms - removal->step_began.ms;
}

void removal_advance(struct removal *removal)
{
    while (removal->step < removal_step_count) {
        struct error err = ERROR_INIT;
        enum step_result result = removal_steps[removal->step](removal, &err);
        if (result == STEP_WAIT)
            return;
        if (result == STEP_FAILED) {
            error_context(&err, "cannot remove the sandbox's runtime");
            finish(removal, &err);
            return;
        }
        loop_cancel(TAKE_PTR(removal->timer));
        removal->step++;
        removal->step_began = clock_boot(removal->bw->clock);
    }
    finish(removal, NULL);
}

void remove_shim_ended(struct runtime *runtime)
{
    struct removal *removal = find_removal(runtime->bw, runtime->name);
    if (removal)
        removal_advance(removal);
}

void remove_on_loop(struct bubblewrap *bw, const char *name, driver_done_fn done, void *arg)
{
    struct removal *removal = find_removal(bw, name);
    if (removal) {
        add_waiter(removal, done, arg);
        return;
    }
    removal = mem_alloc(sizeof(*removal));
    *removal = (struct removal){.next = bw->removals, .bw = bw, .name = mem_strdup(name), .dir_fd = -1, .leftover_fd = -1,
                                .leftover_pidfd = -1, .child_pidfd = -1, .lock_fd = -1, .step_began = clock_boot(bw->clock)};
    bw->removals = removal;
    add_waiter(removal, done, arg);
    removal_advance(removal);
}

void remove_cancel_all(struct bubblewrap *bw, const struct error *err)
{
    while (bw->removals)
        finish(bw->removals, err);
}

struct remove_call {
    struct bubblewrap *bw;
    char *name;
    driver_done_fn done;
    void *arg;
};

static void run_call(void *arg)
{
    struct remove_call *call = arg;
    remove_on_loop(call->bw, call->name, call->done, call->arg);
    free(call->name);
    free(call);
}

void remove_runtime(struct driver *driver, const char *name, driver_done_fn done, void *arg)
{
    struct remove_call *call = mem_alloc(sizeof(*call));
    *call = (struct remove_call){(struct bubblewrap *)driver, mem_strdup(name), done, arg};
    loop_post(call->bw->loop, run_call, call);
}
