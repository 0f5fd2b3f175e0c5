// A conversation over a SOCK_SEQPACKET socket on the loop: requests with sequence numbers and deadlines, answers in any
// order, events in between. Used towards the shim and towards the egress program. Loop thread only.
#pragma once
#include "controller/base/error.h"
#include "controller/loop.h"
#include <jansson.h>

#define CHANNEL_MAX_PENDING 64
#define CHANNEL_MAX_FDS 4

struct channel;
struct channel_message {
    const json_t *object;
    int fds[CHANNEL_MAX_FDS]; // taken by the receiver (set to -1); what is left is closed
    size_t fd_count;
};
// message is NULL when err says why there is no answer. An answer with "ok": false is an error with its sentence.
typedef void (*channel_answer_fn)(void *arg, struct channel_message *message, const struct error *err);

struct channel_events {
    void (*on_event)(void *arg, struct channel_message *message); // messages without "ok"
    void (*on_end)(void *arg);                                    // the peer is gone, and all that it sent was handled; at most once
    void *arg;
};
// Takes fd. peer: "the sandbox's supervisor", for errors.
struct channel *channel_new(struct loop *loop, int fd, size_t message_max_bytes, const char *peer, const struct channel_events *events);
// Fails all pending requests with ERROR_UNAVAILABLE (or CANCELLED) first. NULL allowed.
void channel_free(struct channel *channel);
// Takes the request's reference; adds "seq" and "v". fd -1 = none; stays the caller's.
void channel_call(struct channel *channel, json_t *request, int fd, int64_t deadline_ms, channel_answer_fn answer, void *arg);
