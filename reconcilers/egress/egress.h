// What the parts of one chat2shell-egress process share. One thread: nothing here is locked.
#pragma once
#include "controller/base/egress_protocol.h"
#include "reconcilers/egress/loop.h"
#include "reconcilers/egress/options.h"
#include <stdbool.h>
#include <stddef.h>

struct resolver;
struct connector;
struct control;
struct published;
struct listener;

// Everything is moved through this one buffer; only what a slow receiver leaves over is kept for each connection.
#define SCRATCH_BYTES (256 * 1024)
#define SCRATCH_SMALL_BYTES (16 * 1024)
// Above this many kept bytes, reads become small, so that hostile slow receivers cannot grow us without bound:
// at most PENDING_HIGH_BYTES + one large read + EGRESS_MAX_CONNECTIONS * 2 * SCRATCH_SMALL_BYTES.
#define PENDING_HIGH_BYTES (8 * 1024 * 1024)

struct egress {
    struct loop loop;
    struct options options;
    int netlink_fd;
    struct resolver *resolver;
    struct connector *connector;
    struct control *control;
    struct listener *proxy;
    struct published *published[EGRESS_MAX_PUBLISHED];
    size_t connection_count; // proxy and relay together
    size_t connection_max;   // EGRESS_MAX_CONNECTIONS, or fewer where descriptors are scarce
    size_t pending_bytes;    // kept for slow receivers, all together
    bool address_check;      // false: an upstream proxy refused addresses
};

extern char egress_scratch[SCRATCH_BYTES];
size_t egress_read_size(const struct egress *egress); // how much to read at once now

// In this order, each once. egress_run returns the exit status when the control socket has ended.
int egress_prepare(struct egress *egress, struct error *err);
int egress_lock_down(struct egress *egress, struct error *err); // lockdown.h: may never return
int egress_run(struct egress *egress, struct error *err);
