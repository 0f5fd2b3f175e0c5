// Server-sent events, as far as MCP needs them: the data of events named "message" (or not named), in order. Ids, retry
// times, other events and comments are skipped. Line ends are LF, CRLF or CR; an event that no blank line ends does not
// count. Bounded: data of one event, events and bytes of one stream.
#pragma once
#include "controller/base/buffer.h"
#include "controller/base/guest_protocol.h"
#include <stddef.h>

#define SSE_EVENTS_MAX 1000
#define SSE_STREAM_MAX_BYTES (2 * (size_t)GUEST_MESSAGE_MAX_BYTES)

struct sse {
    struct buffer line, data;
    size_t events, bytes;
    bool has_data, is_other;  // of the event being read
    bool is_after_cr;         // a LF now belongs to the line end before it
    bool is_begun;
};
#define SSE_INIT {.line = BUFFER_INIT(GUEST_MESSAGE_MAX_BYTES + 16), .data = BUFFER_INIT(GUEST_MESSAGE_MAX_BYTES)}

// False: no more, please.
typedef bool (*sse_event_fn)(void *arg, const char *data, size_t len);
// NULL, or words for what is over its bound. `fn` may end it early (returns NULL and sets *ret_is_enough).
const char *sse_feed(struct sse *sse, const char *bytes, size_t len, sse_event_fn fn, void *arg, bool *ret_is_enough);
void sse_free(struct sse *sse);
