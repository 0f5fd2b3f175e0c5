// Inside of rpc: what the two kinds of transport give it, and what they tell it.
#pragma once
#include "reconcilers/session/rpc.h"
#include "reconcilers/session/rpc_health.h"
#include <sys/queue.h>

struct rpc_ops {
    // Sends a request; its answer goes to rpc_settle with this id, never from inside. params: borrowed. -1: it was not sent.
    int (*send)(struct rpc *rpc, int64_t id, const char *method, json_t *params, struct error *err);
    void (*notify)(struct rpc *rpc, const char *method, json_t *params); // borrowed
    void (*cancel)(struct rpc *rpc, int64_t id);  // tells the server, if it listens to that
    void (*overdue)(struct rpc *rpc, int64_t id, bool is_tool); // cancelled RPC_CANCEL_MS ago, and pending still
    void (*probe)(struct rpc *rpc);               // asks for a sign of life: rpc_note_heard
    void (*close)(struct rpc *rpc);               // everything to the server ends; nothing is told afterwards
    void (*free)(struct rpc *rpc);                // after close; the rpc included
    const struct text_list *(*last_lines)(const struct rpc *rpc);
};

struct rpc_pending {
    LIST_ENTRY(rpc_pending) link;
    struct rpc *rpc;
    int64_t id;
    bool is_probe, is_tool;
    rpc_answer_fn fn;
    void *arg;
    struct loop_timer *cancelled; // runs since the cancel
};

struct rpc { // first member of a transport's own struct
    const struct rpc_ops *ops;
    struct loop *loop;
    rpc_broken_fn broken;
    rpc_notice_fn notice; // NULL: nothing is wanted
    rpc_printed_fn printed; // likewise
    void *arg;
    LIST_HEAD(, rpc_pending) pending;
    size_t pending_count, probe_count; // probes are among the pending
    int64_t last_id;
    int strikes;
    bool is_broken;
    struct health health;
};

struct rpc *stdio_rpc_new(const struct rpc_place *place, struct driver_session *session);
struct rpc *http_rpc_new(const struct rpc_place *place, struct driver_session *session);

void rpc_settle(struct rpc *rpc, int64_t id, json_t *result /* borrowed */, const struct error *err);
bool rpc_is_pending(const struct rpc *rpc, int64_t id);
void rpc_give_up(struct rpc *rpc, int64_t id); // settles it: nobody waits for its answer any more
// A request that is only a sign of life: no limit counts it, no progress is expected of it.
void rpc_ping(struct rpc *rpc);
void rpc_tell_printed(struct rpc *rpc, const char *line);
void rpc_strike(struct rpc *rpc, const char *what); // it broke the protocol; may break the rpc
