// One error type for the whole project: a code from a closed list, a message (what happened and why) and a
// hint (what to do). Fallible functions return 0 or a negative value and fill the caller's error in one
// expression; callers add context going up:
//
//     if (store_get(store, KIND_SANDBOX, name, &record, err) < 0)
//         return error_context(err, "cannot expose port %u", port);
//     return error_set(err, ERROR_INVALID, "give a port from 1 to 65535", "port %ld is out of range", port);
//
// `err` may be NULL where the caller does not care. Outputs are untouched on failure.
#pragma once
#include <stdbool.h>

// Closed list; the meaning of each code for HTTP, Kubernetes, MCP and the CLI is the table in error.c.
enum error_code {
    ERROR_NONE = 0,
    ERROR_INVALID,        // the input is wrong: naming the field
    ERROR_USAGE,          // the command line is wrong
    ERROR_NOT_FOUND,      // no such record, file, session or process
    ERROR_EXISTS,         // a record of that name is there already
    ERROR_CONFLICT,       // stale resourceVersion, or another writer was first
    ERROR_REFUSED,        // policy does not permit it
    ERROR_STATE,          // right request, wrong moment (failed sandbox, bound workspace, …)
    ERROR_TOO_LARGE,      // above a stated size limit
    ERROR_LIMIT,          // above a stated count or rate limit: try later
    ERROR_TIMEOUT,        // a deadline passed
    ERROR_UNAVAILABLE,    // something this depends on does not answer or is shutting down
    ERROR_CANCELLED,      // ended on request before it was done
    ERROR_EXPIRED,        // the position in the change feed is gone: list again
    ERROR_UNSUPPORTED,    // this machine, driver or version cannot
    ERROR_DISK,           // no space, or below the threshold that keeps the store writable
    ERROR_CORRUPT,        // stored bytes are not what was written
    ERROR_IO,             // the operating system refused
    ERROR_UNREACHABLE,    // the daemon does not answer
    ERROR_INTERNAL,       // a fault of ours
    ERROR_CODE_COUNT
};

struct error {
    enum error_code code;
    char message[1024]; // what and why; one sentence, no trailing full stop needed
    char hint[512];     // what to do; may be empty
};

#define ERROR_INIT {.code = ERROR_NONE}

// All return -1, so that `return error_set(…)` is one expression. Texts are cut at the buffers' sizes on a
// UTF-8 boundary. hint may be NULL.
int error_set(struct error *err, enum error_code code, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
// Adds ": <strerror>" and picks the code from errno_value (ENOENT → NOT_FOUND, ENOSPC/EDQUOT → DISK, …).
int error_errno(struct error *err, int errno_value, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
// Puts "context: " before the message.
int error_context(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Replaces the hint by a formatted one.
int error_hint(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Copies from to err (NULL allowed) and returns -1.
int error_copy(struct error *err, const struct error *from);

struct error_meaning {
    const char *name;      // stable word used in JSON and docs: "NotFound"
    int http_status;       // operator API
    const char *reason;    // Kubernetes Status.reason
    int exit_code;         // CLI (man chat2shell: exit codes)
};
const struct error_meaning *error_meaning(enum error_code code);
