// One reconciler with its queue: runs a key, applies the verdict, counts, and logs each failure once a
// message.
#pragma once
#include "controller/manager.h"
#include "controller/queue/queue.h"

struct runner; // thread-safe: the queue never gives one key to two threads
struct runner *runner_new(const struct reconciler *reconciler,
                          struct clock *clock); // copies, the name included
void runner_free(struct runner *runner);        // NULL allowed; nothing may run
const struct reconciler *runner_reconciler(const struct runner *runner);
struct queue *runner_queue(struct runner *runner);
// Reconciles a key taken from the queue, and is done with it. Frees it.
void runner_run(struct runner *runner, char *key);
void runner_get_stats(struct runner *runner, struct manager_stats *ret);
