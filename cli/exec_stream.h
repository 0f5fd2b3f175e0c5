// A program in a sandbox with its streams joined to descriptors here, over the operator API's exec requests.
#pragma once
#include "api/client/rest.h"
#include <stdbool.h>
#include <stdint.h>

struct exec_stream {
    const char *sandbox;        // name, uid or prefix
    const char *const *argv;    // NULL-terminated
    const char *cwd;            // NULL = the workspace
    int input_fd;               // -1 = the program reads nothing
    int output_fd, error_fd;    // byte-exact
    int64_t output_max_bytes;   // on output_fd; 0 = any number. Beyond: ERROR_TOO_LARGE
    bool forwards_signals;      // INT, TERM, HUP and QUIT that reach this process go to the program
};
// Blocks until the program has ended and its streams are drained. Once it runs, signals that are forwarded do not end this
// process. A closed output ends the program as SIGPIPE would (exit code 141). The calling process should end soon after: a
// thread may still wait for input.
int exec_stream_run(const struct rest *rest, const struct exec_stream *stream, int *ret_exit_code, struct error *err);
