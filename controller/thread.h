// The one way to start a thread in the daemon: small stack, every signal blocked (signals are the main
// thread's), a name for ps and gdb.
//
//     if (thread_start(&store->thread, "store", run, store, err) < 0) return -1;
#pragma once
#include "controller/base/error.h"
#include <pthread.h>

// name: at most 15 characters are kept. The thread must be joined. ERROR_LIMIT if the system refuses.
int thread_start(pthread_t *ret, const char *name, void *(*run)(void *arg), void *arg, struct error *err);
// A condition variable whose timed waits count on CLOCK_MONOTONIC (a stepped wall clock does not move them).
void thread_cond_init(pthread_cond_t *cond);
// Waits at most wait_ms (INT64_MAX: without limit) of real time. Spurious wake-ups are possible.
void thread_cond_wait_ms(pthread_cond_t *cond, pthread_mutex_t *lock, long long wait_ms);
