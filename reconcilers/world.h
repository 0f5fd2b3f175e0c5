// Shared by the files of this folder only: what the reconcilers keep in memory, and small helpers.
#pragma once
#include "reconcilers/effects.h"
#include "reconcilers/reconcilers.h"
#include "schemas/kinds/conditions.h"
#include <pthread.h>

#define ACTOR_CONTROLLER ((struct store_actor){"controller", "chat2shell"})
#define ANNOTATION_DECIDED_BY API_GROUP "/decided-by" // Approval
#define PRINCIPAL_RULE "rule/"                        // and the rule's name: who decided

struct reconcilers { // world->reconcilers
    struct effects *effects;
    struct request_worker *worker;
    struct request_worker *looker; // looks around for doctor: a backend that hangs delays no other request
    pthread_mutex_t lock;       // guards what follows
    struct anchor *anchors;     // at most two a runtime that is not confirmed gone
};

// The argument of driver and lane callbacks that may come as long as a runtime exists: freed when it is confirmed gone.
struct anchor {
    struct anchor *next;
    struct world *world;
    char *sandbox_uid, *workspace_uid;
    struct effect *effect; // taken by its end
};
struct anchor *anchor_new(struct world *world, const struct record *sandbox, struct effect *effect);
void anchors_forget(struct world *world, const char *sandbox_uid); // NULL: all

void workspace_register(struct world *world);
void approval_register(struct world *world);
void sandbox_register(struct world *world);
void session_register(struct world *world);
void exposure_register(struct world *world);
void approval_rule_register(struct world *world);

// A bounded queue and one thread for the blocking checks of requests (paths), so that no HTTP, loop or store thread
// waits for a slow file system. At most 256 waiting; beyond, and of one that is stopped (NULL): false.
int request_worker_start(const char *name, struct request_worker **ret, struct error *err);
void request_worker_stop(struct request_worker *worker); // runs what is queued first; NULL allowed
bool request_worker_add(struct request_worker *worker, void (*fn)(void *arg), void *arg);

// The reconcile of a kind that begins effects. Whatever the step does: a slot that was kept for the record and not taken goes to the next.
typedef enum reconcile_verdict (*world_step_fn)(struct world *world, const char *uid, struct reconcile_outcome *outcome, struct error *err);
enum reconcile_verdict world_take_turn(struct world *world, world_step_fn step, const char *uid, struct reconcile_outcome *outcome, struct error *err);

// The live Sandbox that holds a workspace (by bound uid), or *ret = NULL.
int tx_find_holder(struct store_tx *tx, const char *workspace_uid, struct record **ret, struct error *err);
// Requeues the live records of a kind that are bound to that uid (NULL: to none).
void world_enqueue_bound(struct world *world, struct manager *manager, enum kind kind, const char *to_uid);
// store_get_uid that turns ERROR_NOT_FOUND into *ret = NULL.
int world_get(struct world *world, enum kind kind, const char *uid, struct record **ret, struct error *err);
