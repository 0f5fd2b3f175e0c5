// A removal under way: shared by remove.c (its life) and remove_steps.c (what it does). Loop thread only.
#pragma once
#include "reconcilers/drivers/bubblewrap/bubblewrap.h"

enum step_result { STEP_NEXT, STEP_WAIT, STEP_FAILED };
struct removal_waiter {
    driver_done_fn done;
    void *arg;
};
struct removal {
    struct removal *next;
    struct bubblewrap *bw;
    char *name;
    struct removal_waiter *waiters;
    size_t waiter_count, step;
    struct boot_time step_began;
    struct loop_timer *timer;
    bool was_asked;                 // the current step asked for something once
    struct error child_error;       // of the clone's removal
    int dir_fd;                     // the runtime directory, -1 if absent
    int lock_fd;                    // its lock, held to the end
    int leftover_fd, leftover_pidfd; // an earlier daemon's shim
    int child_pidfd;                // a purge under way
    struct loop_source *child_source;
};
typedef enum step_result (*removal_step_fn)(struct removal *removal, struct error *err);
extern const removal_step_fn removal_steps[];
extern const size_t removal_step_count;
void removal_advance(struct removal *removal);
enum step_result removal_wait(struct removal *removal, int64_t delay_ms); // STEP_WAIT, looking again after delay_ms
int64_t removal_step_age_ms(const struct removal *removal);
