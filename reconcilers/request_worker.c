#include "controller/base/memory.h"
#include "reconcilers/world.h"
#include "controller/thread.h"

#define REQUEST_QUEUE_MAX 256

struct job {
    void (*fn)(void *arg);
    void *arg;
};

struct request_worker {
    pthread_t thread;
    pthread_mutex_t lock; // guards all below
    pthread_cond_t is_filled;
    struct job jobs[REQUEST_QUEUE_MAX]; // a ring
    size_t first, count;
    bool is_stopping;
};

static void *run(void *arg)
{
    struct request_worker *worker = arg;
    for (;;) {
        pthread_mutex_lock(&worker->lock);
        while (!worker->count && !worker->is_stopping)
            pthread_cond_wait(&worker->is_filled, &worker->lock);
        if (!worker->count) {
            pthread_mutex_unlock(&worker->lock);
            return NULL;
        }
        struct job job = worker->jobs[worker->first];
        worker->first = (worker->first + 1) % REQUEST_QUEUE_MAX;
        worker->count--;
        pthread_mutex_unlock(&worker->lock);
        job.fn(job.arg);
    }
}

int request_worker_start(const char *name, struct request_worker **ret, struct error *err)
{
    struct request_worker *worker = mem_alloc(sizeof(*worker));
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->is_filled, NULL);
    if (thread_start(&worker->thread, name, run, worker, err) < 0) {
        free(worker);
        return -1;
    }
    *ret = worker;
    return 0;
}

bool request_worker_add(struct request_worker *worker, void (*fn)(void *arg), void *arg)
{
    if (!worker)
        return false; // stopped
    pthread_mutex_lock(&worker->lock);
    bool is_added = worker->count < REQUEST_QUEUE_MAX && !worker->is_stopping;
    if (is_added) {
        worker->jobs[(worker->first + worker->count++) % REQUEST_QUEUE_MAX] = (struct job){fn, arg};
        pthread_cond_signal(&worker->is_filled);
    }
    pthread_mutex_unlock(&worker->lock);
    return is_added;
}

void request_worker_stop(struct request_worker *worker)
{
    if (!worker)
        return;
    pthread_mutex_lock(&worker->lock);
    worker->is_stopping = true;
    pthread_cond_signal(&worker->is_filled);
    pthread_mutex_unlock(&worker->lock);
    pthread_join(worker->thread, NULL);
    pthread_mutex_destroy(&worker->lock);
    pthread_cond_destroy(&worker->is_filled);
    free(worker);
}
