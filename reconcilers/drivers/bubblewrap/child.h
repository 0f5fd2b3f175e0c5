// A child of ours that ends its socket to us by its own end: a supervisor, a network process. A descriptor for each would only say
// a second time what the socket says, so it is held by its number, which stays its own until it is reaped here (a zombie keeps it),
// and by a descriptor only from the socket's end to the reaping. Loop thread only; nobody else may reap it.
//
//     child_hold(&child, loop, pid, on_exit, arg);
//     child_await_end(&child);                      // from the channel's on_end; on_exit comes once it is reaped
#pragma once
#include "controller/loop.h"
#include <stdbool.h>
#include <sys/types.h>

struct child {
    struct loop *loop;
    pid_t pid; // 0: none, or reaped
    int pidfd; // valid while `source` is there
    struct loop_source *source;
    struct loop_timer *again; // no descriptor could be had: asked again
    void (*ended)(void *arg, int exit_code);
    void *arg;
};

// pid: as spawn_process gave it, not reaped.
void child_hold(struct child *child, struct loop *loop, pid_t pid, void (*ended)(void *arg, int exit_code), void *arg);
bool child_is_there(const struct child *child);
// Its socket ended: `ended` comes once, after the child was reaped. Again is fine.
void child_await_end(struct child *child);
// Without a child nothing happens.
void child_signal(const struct child *child, int signal);
// Without reaping: it becomes a zombie of this process. For what is freed whatever happened.
void child_let_go(struct child *child);
// Waits at most timeout_ms and reaps it; `ended` does not come any more. False: it still runs (and is held). True without a child.
bool child_wait(struct child *child, int timeout_ms);
