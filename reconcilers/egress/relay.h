// Two connected sockets and the bytes between them, both ways, until both directions have ended. A half-close is
// passed on. A direction is read only when its last bytes have left, so that a slow receiver slows its sender.
#pragma once
#include "reconcilers/egress/outbox.h"

enum relay_verdict { RELAY_WAIT, RELAY_PASS, RELAY_REFUSE };

struct relay_side {
    struct watch watch;
    struct outbox out; // on its way to this side
    bool has_ended;    // it sends no more
    bool is_shut;      // it was told that nothing more comes
};

struct relay {
    struct egress *egress;
    struct relay_side side[2]; // 0: who asked, 1: who was asked
    struct deadline idle;
    // Judges the first bytes from side 0 before any of them passes; NULL when (or once) everything passes.
    // At most SCRATCH_SMALL_BYTES come at once. RELAY_WAIT keeps them (the judge owns what it needs), RELAY_PASS lets `*bytes` (all held so far) through.
    enum relay_verdict (*judge)(struct relay *relay, const char **bytes, size_t *len, bool is_end);
    void (*judged)(struct relay *relay);
    void (*ended)(struct relay *relay); // both descriptors are closed already; frees the relay (loop_retire)
};

// The sides' descriptors are set and owned by the relay; `ended` is called exactly once, never from here.
void relay_start(struct relay *relay);
// Bytes of side 0 that were read before the relay started. The relay may have ended when this returns.
void relay_feed(struct relay *relay, const char *bytes, size_t len);
// Closes both sides at once (with a reset where bytes were cut off) and calls `ended`.
void relay_stop(struct relay *relay, bool is_reset);
// The next close sends a reset instead of an orderly end.
void socket_set_reset(int fd);
void socket_set_nodelay(int fd);
