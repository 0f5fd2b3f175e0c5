// A few threads for the tools that touch files. Threads start when there is work and end when there was none
// for a while, so an idle guest has one of them only. Finished jobs come back to the loop thread.
#pragma once
#include "api/guest/loop.h"
#include <pthread.h>

#define WORKERS_MAX 4

struct job {
    void (*run)(struct job *job);  // on a worker
    void (*done)(struct job *job); // on the loop thread, afterwards
    struct job *next;
};

struct workers {
    struct loop *loop;
    struct loop_source wake; // eventfd: something is in `finished`
    pthread_mutex_t lock;    // guards all below
    pthread_cond_t changed;
    struct job *first, *last; // waiting
    struct job *finished;
    int threads, idle, waiting; // waiting: jobs that no thread has taken
    bool is_stopping;
};

int workers_init(struct workers *workers, struct loop *loop, struct error *err);
void workers_submit(struct workers *workers, struct job *job);
// Waits for running jobs (they look at their cancel flag) up to 5 s. False if some still run: then only _exit
// is safe.
bool workers_stop(struct workers *workers);
