// Child processes: spawned with nothing of ours but three descriptors, default signals and an own session;
// reaped in one place (the loop thread, on SIGCHLD), orphans that were given to us included.
// children_spawn may be called from any thread; `exited` runs on the loop thread, without the lock.
#pragma once
#include "controller/base/error.h"
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

struct child {
    pid_t pid; // also its process group; 0 once it was reaped, so that nobody signals a number that is free
    int wait_status;
    void (*exited)(struct child *child);
    struct child *next;
};

struct children {
    pthread_mutex_t lock; // guards the list; held over spawn, so that a child is known before it is reaped
    struct child *first;
};

struct child_spec {
    const char *program; // a path
    char *const *argv, *const *envp;
    int cwd_fd;
    int stdio[3];         // -1: /dev/null
    const char *terminal; // NULL, or a terminal's path: its controlling terminal, in place of stdio
};

void children_init(struct children *children);
// Fills child->pid and adds it; *ret_errno (NULL allowed) is the system's number on failure.
int children_spawn(struct children *children, const struct child_spec *spec, struct child *child,
                   int *ret_errno, struct error *err);
void children_forget(struct children *children, struct child *child); // before its memory goes
bool children_reap(struct children *children);                  // false: there is no child at all any more
void child_signal_group(const struct child *child, int signal); // nothing once it was reaped
int child_exit_code(int wait_status);                           // 128+N for death by signal N
// Kills every process whose parent we are, and those that fall to us by it, until none is left or 2 s passed.
void children_kill_all(struct children *children);
