#include "api/guest/workers.h"
#include <errno.h>
#include <limits.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define IDLE_SECONDS 10
#define STOP_SECONDS 5
#define STACK_BYTES (1024 * 1024)

static void finished(struct loop_source *source, uint32_t events)
{
    (void)events;
    struct workers *workers = CONTAINER_OF(source, struct workers, wake);
    eventfd_t count;
    eventfd_read(source->fd, &count);
    pthread_mutex_lock(&workers->lock);
    struct job *job = workers->finished;
    workers->finished = NULL;
    pthread_mutex_unlock(&workers->lock);
    while (job) {
        struct job *next = job->next;
        job->done(job);
        job = next;
    }
}

static struct timespec seconds_from_now(int seconds)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += seconds;
    return at;
}

// Called with the lock; NULL when the thread should end.
static struct job *wait_for_job(struct workers *workers)
{
    struct timespec until = seconds_from_now(IDLE_SECONDS);
    workers->idle++;
    while (!workers->first && !workers->is_stopping) {
        if (workers->threads == 1) // the last one stays: a full process table must not stop the file tools
            pthread_cond_wait(&workers->changed, &workers->lock);
        else if (pthread_cond_timedwait(&workers->changed, &workers->lock, &until) == ETIMEDOUT)
            break;
    }
    workers->idle--;
    struct job *job = workers->first;
    if (job) {
        workers->waiting--;
        workers->first = job->next;
        if (!workers->first)
            workers->last = NULL;
    }
    return job;
}

static void *work(void *at)
{
    struct workers *workers = at;
    pthread_mutex_lock(&workers->lock);
    for (struct job *job; (job = wait_for_job(workers));) {
        pthread_mutex_unlock(&workers->lock);
        job->run(job);
        pthread_mutex_lock(&workers->lock);
        job->next = workers->finished;
        workers->finished = job;
        eventfd_write(workers->wake.fd, 1);
    }
    workers->threads--;
    pthread_cond_broadcast(&workers->changed);
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

// Called with the lock.
static bool start_thread(struct workers *workers)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_t thread;
    bool is_started = pthread_create(&thread, &attr, work, workers) == 0;
    pthread_attr_destroy(&attr);
    workers->threads += is_started;
    return is_started;
}

int workers_init(struct workers *workers, struct loop *loop, struct error *err)
{
    *workers = (struct workers){.loop = loop};
    workers->wake = (struct loop_source){
        .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .events = EPOLLIN, .ready = finished};
    if (workers->wake.fd < 0)
        return error_errno(err, errno, NULL, "cannot make an event descriptor");
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->changed, &attr);
    pthread_condattr_destroy(&attr);
    if (guest_loop_add(loop, &workers->wake, err) < 0)
        return -1;
    pthread_mutex_lock(&workers->lock);
    bool is_started = start_thread(workers);
    pthread_mutex_unlock(&workers->lock);
    return is_started ? 0
                      : error_set(err, ERROR_UNAVAILABLE, "raise the process limit", "cannot start a thread");
}

void workers_submit(struct workers *workers, struct job *job)
{
    job->next = NULL;
    pthread_mutex_lock(&workers->lock);
    if (workers->last)
        workers->last->next = job;
    else
        workers->first = job;
    workers->last = job;
    workers->waiting++;
    if (workers->waiting > workers->idle && workers->threads < WORKERS_MAX)
        start_thread(workers); // if it cannot, one of the others takes the job later
    pthread_cond_signal(&workers->changed);
    pthread_mutex_unlock(&workers->lock);
}

bool workers_stop(struct workers *workers)
{
    struct timespec until = seconds_from_now(STOP_SECONDS);
    pthread_mutex_lock(&workers->lock);
    workers->is_stopping = true;
    pthread_cond_broadcast(&workers->changed);
    while (workers->threads)
        if (pthread_cond_timedwait(&workers->changed, &workers->lock, &until) == ETIMEDOUT)
            break;
    bool is_stopped = workers->threads == 0;
    pthread_mutex_unlock(&workers->lock);
    if (!is_stopped)
        return false;
    guest_loop_remove(workers->loop, &workers->wake);
    finished(&workers->wake, EPOLLIN);
    close(workers->wake.fd);
    return true;
}
