// Runs a helper program (git, curl) to its end, on a worker thread. Its output is bounded, its time too.
#pragma once
#include "api/guest/guest.h"
#include "controller/base/buffer.h"
#include <stdatomic.h>

struct command_spec {
    const char *const *argv; // argv[0] is looked for along PATH
    size_t max_bytes;        // of each stream; what comes after is read and dropped
    bool is_ended_when_full; // instead of that: kill it as soon as more than max_bytes came on stdout
    int cwd_fd;              // a directory
    int stdin_fd;            // -1: /dev/null
    const char *const *env;  // "NAME=VALUE" over the usual environment; NULL-terminated, NULL: none
    int time_limit_ms;       // 0: 20 s
    const atomic_bool *is_cancelled;
};

struct command_result {
    struct buffer out, errors; // owned; cut at their maximum; data is never NULL
    int exit_code;             // 128+N for death by signal N, 127 if there is no such program
    bool is_missing;           // there is no such program: `errors` says so
    bool is_cut;               // stdout had more than max_bytes
};
void command_result_free(struct command_result *result);

// -1 if it could not be started or did not come to its end in time.
int command_run_spec(struct guest *guest, const struct command_spec *spec, struct command_result *ret,
                     struct error *err);
// The same in the workspace root with nothing on its stdin.
int command_run(struct guest *guest, const char *const *argv, size_t max_bytes,
                const atomic_bool *is_cancelled, struct command_result *ret, struct error *err);
