// Runs a helper program (git) to its end, on a worker thread. Its output is bounded, its time too.
#pragma once
#include "api/guest/guest.h"
#include "controller/base/buffer.h"
#include <stdatomic.h>

struct command_result {
    struct buffer out, errors; // owned; cut at their maximum
    int exit_code;             // 128+N for death by signal N, 127 if there is no such program
};
void command_result_free(struct command_result *result);

// argv[0] is looked for along PATH; cwd is the workspace root. -1 if it could not run to its end in time.
int command_run(struct guest *guest, const char *const *argv, size_t max_bytes,
                const atomic_bool *is_cancelled, struct command_result *ret, struct error *err);
