// Lines to and from an untrusted process over its stdio: bounded framing both ways, nonblocking, on the loop thread
// only. Knows bytes, newlines and time; what a line means is the caller's (stdio_rpc.c).
//
// Reading: a line (newline excluded) of at most LINE_MAX_BYTES reaches `line`. A longer line, a large line that is not
// finished within LINE_STALL_MS, and the end of either pipe end the channel. Writing: as much as the pipe takes at
// once, the rest when it takes more (backpressure: at most LINE_BACKLOG_BYTES wait). Buffers exist only while they
// hold bytes, so an idle channel costs descriptors and nothing else.
#pragma once
#include "controller/base/guest_protocol.h"
#include "controller/base/json.h"
#include "controller/loop.h"
#include "reconcilers/drivers/driver.h"

#define LINE_MAX_BYTES GUEST_MESSAGE_MAX_BYTES
#define LINE_BACKLOG_BYTES (GUEST_MESSAGE_MAX_BYTES + 8 * 1024 * 1024)
#define LINE_STALL_BYTES (64 * 1024)
#define LINE_STALL_MS 60000
#define LAST_LINES_MAX 20  // stderr kept: that many lines …
#define LAST_LINE_CHARS 400 // … of that many characters, printable

struct line_channel;
struct line_channel_events {
    void (*line)(void *arg, const char *bytes, size_t len); // may close the channel, must not free it
    void (*moved)(void *arg);                               // bytes came, or a full pipe was read; must not close the channel
    void (*ended)(void *arg, const char *reason);           // at most once, never after close; must not free it
    void (*printed)(void *arg, const char *line);           // a line of stderr, printable; also while it is closed. NULL allowed
};

// Takes the session's descriptors (sets them to -1) and makes them nonblocking.
struct line_channel *line_channel_new(struct loop *loop, struct driver_session *session, const struct line_channel_events *events,
                                      void *arg);
// Ends it: reads what stderr still holds, closes all descriptors. No event comes afterwards. Again is fine.
void line_channel_close(struct line_channel *channel);
void line_channel_free(struct line_channel *channel); // NULL allowed
// Appends one line. ERROR_TOO_LARGE over LINE_MAX_BYTES, ERROR_LIMIT when the backlog is full, ERROR_UNAVAILABLE closed.
int line_channel_send(struct line_channel *channel, const json_t *message, struct error *err);
// The last lines of stderr, printable, oldest first. Valid until the channel is freed or more arrives.
const struct text_list *line_channel_last_lines(const struct line_channel *channel);
