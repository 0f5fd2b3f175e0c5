// The child's side of a spawn, between fork and exec: only async-signal-safe calls, no allocation, no locks.
#pragma once
#include "controller/spawn.h"

#define SPAWN_MAX_TARGET 256

enum spawn_stage { SPAWN_STAGE_EXEC, SPAWN_STAGE_PARENT, SPAWN_STAGE_DESCRIPTORS, SPAWN_STAGE_SESSION };
struct spawn_failure { // what the child writes into its pipe when it cannot go on
    int stage;
    int errno_value;
};
const char *spawn_stage_words(int stage); // "" or " (moving its descriptors)"

struct spawn_child {
    const struct spawn_options *options;
    int null_fd, failure_fd; // failure_fd is close-on-exec
    pid_t parent;
};
// Forks and runs the child. Returns the pid, or -1 and errno. The calling thread must have every signal
// blocked.
pid_t spawn_child_fork(const struct spawn_child *child);
