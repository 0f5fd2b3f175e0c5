// A program in a sandbox with its streams joined to descriptors here, over one connection to the daemon (controller/base/frames.h).
#pragma once
#include "api/client/rest.h"
#include <stdbool.h>
#include <stdint.h>

struct exec_stream {
    const char *sandbox;        // name, uid or prefix
    const char *const *argv;    // NULL-terminated
    const char *label;          // what `logs` calls it; NULL: argv
    const char *cwd;            // NULL = the workspace
    const char *const *env;     // "NAME=VALUE", NULL-terminated; NULL = none
    int input_fd;               // -1 = the program reads nothing
    int output_fd, error_fd;    // byte-exact
    int64_t output_max_bytes;   // on output_fd; 0 = any number. Beyond: ERROR_TOO_LARGE
    bool forwards_signals;      // INT, TERM, HUP and QUIT that reach this process go to the program
    bool ends_with_reader;      // when nobody reads the pipe output_fd any more, at once; else with the next byte
    bool has_terminal;          // it gets a terminal inside, and input_fd, a terminal here, is raw meanwhile
};
// Blocks until the program has ended and its streams are drained. While it runs, signals that are forwarded do not end this
// process; with a terminal they end this call (exit code 128 + number) and the program with it. A closed output ends the program
// as SIGPIPE would (exit code 141). In every case the program has ended, or is being ended, when this returns, the terminal
// is as it was before, and the signal mask, too. Any thread, but signals want to be blocked in the others.
int exec_stream_run(const struct rest *rest, const struct exec_stream *stream, int *ret_exit_code, struct error *err);
