// A connection of this API that has left HTTP and carries frames (controller/base/frames.h). Loop thread only. Both directions
// are bounded: what comes in is held back by pausing, what goes out by asking operator_stream_is_full.
#pragma once
#include "api/operator/internal.h"
#include "controller/base/frames.h"

#define STREAM_OUT_BYTES (1024 * 1024)      // waiting for the client; half of it is "full"
#define STREAM_STALL_MS (10 * 60 * 1000)    // for a client to take something of what waits
#define STREAM_LINGER_MS (10 * 1000)        // the same, once it is the rest

struct operator_stream;
struct operator_stream_events {
    void (*frame)(void *arg, const struct frame *frame);
    void (*drained)(void *arg); // it was full, and may be written to again; NULL allowed
    // The client has gone, broke the protocol (it is told so by FAILED) or takes nothing, or the server stops. Once, and nothing
    // else afterwards: the stream is the owner's no more.
    void (*gone)(void *arg);
    void *arg;
};
// Takes the connection (of http_upgrade_options.started). Nothing is told before this has returned.
struct operator_stream *operator_stream_new(struct operator_server *server, struct http_upgrade *upgrade, int fd, const char *early,
                                            size_t early_len, const struct operator_stream_events *events);
// Queues frames; what does not fit any more (the owner did not look) ends the connection.
void operator_stream_send(struct operator_stream *stream, enum frame_type type, const void *bytes, size_t len);
void operator_stream_send_number(struct operator_stream *stream, enum frame_type type, uint32_t value, size_t size);
bool operator_stream_is_full(struct operator_stream *stream);
void operator_stream_pause(struct operator_stream *stream, bool is_paused); // of frames that come
// The owner lets go: what is queued still goes out, then the connection is closed. No event comes any more.
void operator_stream_end(struct operator_stream *stream);
void operator_stream_fail(struct operator_stream *stream, const struct error *err); // FAILED, then the end
// A call becomes a stream: started as in http.h, with what operator_stream_new wants. The call ends here.
void operator_answer_upgrade(struct call *call, const struct http_upgrade_options *options);
