// A descriptor that output goes to without ever waiting in write(): what it does not take at once waits here, and whoever polls
// tells when it takes more. Other programs may share the descriptor, so its own flags stay as they are.
#pragma once
#include "controller/base/buffer.h"
#include "controller/base/error.h"
#include <poll.h>
#include <stdbool.h>

#define OUTLET_WAITING_BYTES (256 * 1024) // most that waits: hold back the source before

struct outlet {
    int fd;       // to write to
    int own_fd;   // -1, or the same as fd: opened anew, not to wait
    bool is_socket, may_wait; // may_wait: every write of a piece is preceded by a poll
    bool is_closed; // nobody reads it any more
    struct buffer waiting;
    size_t sent; // of waiting
};
void outlet_open(struct outlet *outlet, int fd);
void outlet_close(struct outlet *outlet);
bool outlet_is_waiting(const struct outlet *outlet);
// Writes what goes at once, keeps the rest. A reader that has gone sets is_closed and is no failure.
int outlet_put(struct outlet *outlet, const char *bytes, size_t len, struct error *err);
int outlet_push(struct outlet *outlet, struct error *err); // poll said it takes more
