// Following collections of the operator API: the state first, then every change, over one or several watches at once. A
// watch that the daemon ends is taken up where it stopped; where its place is gone (410), everything is told anew.
//
//     struct watch_ask ask = {.path = "/apis/…/sandboxes?fieldSelector=…"};
//     int r = watch_follow(rest, &ask, 1, deadline_ms, -1, on_event, &state, err); // 1: on_event had enough
#pragma once
#include "api/client/rest.h"
#include <stdbool.h>
#include <stdint.h>

#define WATCH_MAX_ASKS 16
#define WATCH_FOREVER INT64_MAX

enum watch_type {
    WATCH_RESTART, // forget what was told: the state follows. object NULL
    WATCH_ADDED,   // also each object of the state
    WATCH_MODIFIED,
    WATCH_DELETED, // object: its last image
    WATCH_SYNCED,  // the state has been told. object NULL
};
// ask: its index. object is borrowed. 0 = go on, 1 = enough, -1 = error.
typedef int watch_fn(void *arg, size_t ask, enum watch_type type, json_t *object, struct error *err);

struct watch_ask {
    const char *path;   // of the collection, with its query
    const char *accept; // a whole header line, or NULL
    const char *since;  // a resourceVersion: only what changes after it; NULL = the state first
};
// Until fn has enough (1), the deadline (boot time in ms) is over or `leave_fd` (-1: none), a pipe or socket that is
// written to, has lost its reader (0), or something fails (-1).
int watch_follow(const struct rest *rest, const struct watch_ask *asks, size_t count, int64_t deadline_ms, int leave_fd, watch_fn *fn, void *arg,
                 struct error *err);
