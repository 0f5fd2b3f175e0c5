// A child process as an asynchronous operation: own process group, pidfd, deadline, output cap, cancel.
#pragma once
#include "controller/loop.h"
#include "controller/spawn.h"

struct operation;
struct operation_result {
    bool is_cancelled, is_timed_out, is_output_cut;
    int exit_code;            // 128+N for a signal
    const char *output;       // stdout and stderr as they came; NUL-terminated; valid in the callback only
    size_t output_len;
    const char *printed;      // stdout apart
    size_t printed_len;
    const char *errors;       // stderr apart
    size_t errors_len;
};
typedef void (*operation_done_fn)(void *arg, const struct operation_result *result);

// Starts it; `done` runs once on the loop thread when the process is reaped and what its pipes held was read: a process
// that it left behind with the pipes is not waited for. Deadline (deadline_ms > 0) and cancel: SIGTERM to the group, SIGKILL
// 2 s later, and to what is left of the group when the process itself ends. options->fds must not name 1 or 2, and holds at
// most SPAWN_MAX_FDS - 2 entries; the options are not needed after the return. At most output_max_bytes of output, of
// printed and of errors are kept each, the rest is read and dropped (is_output_cut). Any thread. On failure `done` does not run.
// *ret (NULL allowed) is set before `done` can run, and is valid until `done` returns: who cancels from another thread
// guards it with a lock that `done` takes too. Cancel and await all operations before loop_stop.
int operation_start(struct loop *loop, struct spawner *spawner, const struct spawn_options *options, int64_t deadline_ms,
                    size_t output_max_bytes, operation_done_fn done, void *arg, struct operation **ret, struct error *err);
void operation_cancel(struct operation *operation); // any thread, does not wait; `done` still runs, with is_cancelled
pid_t operation_pid(const struct operation *operation); // of the process, and of its group; until `done` returns
