#include "controller/thread.h"
#include <assert.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

// The deepest users are JSON parsing (JSON_MAX_DEPTH) and SQLite; sanitizers enlarge every frame several
// times.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STACK_BYTES (4 * 1024 * 1024)
#else
#define STACK_BYTES (512 * 1024) // reserved address space: only touched pages are resident
#endif

int thread_start(pthread_t *ret, const char *name, void *(*run)(void *arg), void *arg, struct error *err)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); // inherited by the new thread
    pthread_t thread;
    int failed = pthread_create(&thread, &attr, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (failed)
        return error_set(err, ERROR_LIMIT, "raise the limit on processes (ulimit -u) or free memory",
                         "cannot start the %s thread: error %d", name, failed);
    char short_name[16];
    snprintf(short_name, sizeof(short_name), "%s", name);
    pthread_setname_np(thread, short_name);
    *ret = thread;
    return 0;
}

void thread_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    int failed = pthread_cond_init(cond, &attr);
    assert(!failed);
    pthread_condattr_destroy(&attr);
}

void thread_cond_wait_ms(pthread_cond_t *cond, pthread_mutex_t *lock, long long wait_ms)
{
    if (wait_ms == LLONG_MAX) {
        pthread_cond_wait(cond, lock);
        return;
    }
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += wait_ms / 1000;
    until.tv_nsec += wait_ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(cond, lock, &until);
}
