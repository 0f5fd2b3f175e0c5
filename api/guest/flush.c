#include "api/guest/flush.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define MAX_HELPERS 7    // threads beside the caller's
#define FILES_A_THREAD 4 // for fewer a thread costs more than it saves
#define STACK_BYTES 65536

struct flushing {
    const int *fds;
    size_t count;
    atomic_size_t next; // not taken by a thread yet
    pthread_mutex_t lock;
    size_t failed; // guarded by lock, with its errno
    int number;
};

static void flush_one(struct flushing *flushing, size_t i)
{
    if (flushing->fds[i] < 0 || fsync(flushing->fds[i]) == 0 ||
        errno == EINVAL) // EINVAL: cannot be flushed at all
        return;
    int number = errno;
    pthread_mutex_lock(&flushing->lock);
    if (i < flushing->failed) {
        flushing->failed = i;
        flushing->number = number;
    }
    pthread_mutex_unlock(&flushing->lock);
}

static void *flush_some(void *at)
{
    struct flushing *flushing = at;
    for (size_t i; (i = atomic_fetch_add(&flushing->next, 1)) < flushing->count;)
        flush_one(flushing, i);
    return NULL;
}

// As many as can be had: the caller does what they do not.
static int start_helpers(struct flushing *flushing, pthread_t helpers[MAX_HELPERS])
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    int count = 0;
    while (count < MAX_HELPERS && (size_t)(count + 2) * FILES_A_THREAD <= flushing->count &&
           pthread_create(&helpers[count], &attr, flush_some, flushing) == 0)
        count++;
    pthread_attr_destroy(&attr);
    return count;
}

size_t flush_files(const int *fds, size_t count)
{
    struct flushing flushing = {
        .fds = fds, .count = count, .lock = PTHREAD_MUTEX_INITIALIZER, .failed = count};
    pthread_t helpers[MAX_HELPERS];
    for (size_t i = 0; i < count; i++)
        if (fds[i] >= 0)
            sync_file_range(fds[i], 0, 0, SYNC_FILE_RANGE_WRITE); // begins to write; fsync waits for it
    int started = start_helpers(&flushing, helpers);
    flush_some(&flushing);
    for (int i = 0; i < started; i++)
        pthread_join(helpers[i], NULL);
    errno = flushing.number;
    return flushing.failed;
}
