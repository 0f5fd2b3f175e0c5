// The store thread and its queue.
#include "controller/store/internal.h"
#include "controller/base/memory.h"
#include "controller/thread.h"
#include <assert.h>

static void append(struct request_list *list, struct store_request *request)
{
    *list->last = request;
    list->last = &request->next;
    list->count++;
}

static struct store_request *take_first(struct request_list *list)
{
    struct store_request *request = list->first;
    if (!request)
        return NULL;
    list->first = request->next;
    if (!list->first)
        list->last = &list->first;
    list->count--;
    request->next = NULL;
    return request;
}

bool writer_take(struct store *store, struct store_request **ret)
{
    pthread_mutex_lock(&store->writer.lock);
    struct store_request *request = take_first(&store->writer.queue);
    if (request && request->is_event)
        store->writer.events_queued--;
    pthread_mutex_unlock(&store->writer.lock);
    *ret = request;
    return request;
}

void request_complete(struct store_request *request)
{
    if (request->done)
        request->done(request->arg, request->result, request->failure);
    free(request->failure);
    free(request);
}

static void reject(struct store_request *request, enum error_code code, const char *message)
{
    request->result = -1;
    request->failure = mem_alloc(sizeof(*request->failure));
    error_set(request->failure, code, "try again in a moment", "%s", message);
}

// Under the lock. false: the thread is gone, so the caller completes it.
static bool enqueue(struct writer *writer, struct store_request *request)
{
    if (writer->is_stopping)
        reject(request, ERROR_UNAVAILABLE, "the store is shutting down");
    else if (writer->queue.count >= STORE_QUEUE_MAX || (request->is_event && writer->events_queued >= STORE_EVENTS_QUEUED_MAX))
        reject(request, ERROR_LIMIT, "too many changes wait for the store");
    if (writer->is_finished)
        return false;
    append(request->failure ? &writer->rejected : &writer->queue, request);
    writer->events_queued += request->is_event && !request->failure;
    return true;
}

static void submit(struct store *store, store_tx_fn fn, store_done_fn done, void *arg, bool is_event)
{
    struct store_request *request = mem_alloc(sizeof(*request));
    *request = (struct store_request){.fn = fn, .done = done, .arg = arg, .is_event = is_event};
    pthread_mutex_lock(&store->writer.lock);
    bool is_queued = enqueue(&store->writer, request);
    pthread_cond_signal(&store->writer.changed);
    pthread_mutex_unlock(&store->writer.lock);
    if (!is_queued)
        request_complete(request);
}

void store_submit(struct store *store, store_tx_fn fn, store_done_fn done, void *arg)
{
    submit(store, fn, done, arg, false);
}

void writer_submit_event(struct store *store, store_tx_fn fn, store_done_fn done, void *arg)
{
    submit(store, fn, done, arg, true);
}

void writer_wake(struct store *store)
{
    pthread_mutex_lock(&store->writer.lock);
    pthread_cond_signal(&store->writer.changed);
    pthread_mutex_unlock(&store->writer.lock);
}

bool writer_is_current(const struct store *store)
{
    return store->writer.is_started && pthread_equal(store->writer.thread, pthread_self());
}

// ---- the thread -----------------------------------------------------------------------------------------------

static void wait_for_work(struct store *store)
{
    struct writer *writer = &store->writer;
    while (!writer->queue.first && !writer->rejected.first && !writer->is_stopping) {
        int64_t due = activity_due_ms(store), now = clock_boot(store->clock).ms;
        if (due <= now)
            return;
        int64_t wait_ms = due == INT64_MAX || clock_is_fake(store->clock) ? INT64_MAX : due - now;
        thread_cond_wait_ms(&writer->changed, &writer->lock, wait_ms > CLOCK_MAX_WAIT_MS && wait_ms != INT64_MAX ? CLOCK_MAX_WAIT_MS : wait_ms);
    }
}

static void complete_rejected(struct request_list *rejected)
{
    struct store_request *request;
    while ((request = take_first(rejected)))
        request_complete(request);
}

// One round. Returns false when all is done and the thread may end.
static bool work(struct store *store)
{
    struct writer *writer = &store->writer;
    struct request_list rejected = {.last = &rejected.first};
    pthread_mutex_lock(&writer->lock);
    wait_for_work(store);
    struct store_request *request;
    while ((request = take_first(&writer->rejected)))
        append(&rejected, request);
    bool is_stopping = writer->is_stopping, has_work = writer->queue.first;
    writer->is_finished = is_stopping && !has_work && !rejected.first;
    bool is_finished = writer->is_finished;
    pthread_mutex_unlock(&writer->lock);
    complete_rejected(&rejected);
    int64_t due = activity_due_ms(store);
    bool is_flush = due != INT64_MAX && (is_finished || due <= clock_boot(store->clock).ms);
    if (has_work || is_flush)
        batch_run(store, is_flush);
    return !is_finished;
}

static void *run(void *arg)
{
    struct store *store = arg;
    disk_vfs_use(&store->disk);
    while (work(store))
        ;
    waiters_end(store);
    disk_vfs_use(NULL);
    return NULL;
}

static void on_advance(void *arg)
{
    writer_wake(arg);
}

int writer_start(struct store *store, struct error *err)
{
    struct writer *writer = &store->writer;
    pthread_mutex_init(&writer->lock, NULL);
    thread_cond_init(&writer->changed);
    writer->queue.last = &writer->queue.first;
    writer->rejected.last = &writer->rejected.first;
    pthread_mutex_lock(&writer->lock); // the thread sees its own id
    int r = thread_start(&writer->thread, "store", run, store, err);
    writer->is_started = r == 0;
    pthread_mutex_unlock(&writer->lock);
    if (r == 0)
        clock_on_advance(store->clock, on_advance, store);
    return r;
}

void writer_stop(struct store *store)
{
    struct writer *writer = &store->writer;
    if (!writer->is_started)
        return;
    clock_off_advance(store->clock, store);
    pthread_mutex_lock(&writer->lock);
    writer->is_stopping = true;
    pthread_cond_signal(&writer->changed);
    pthread_mutex_unlock(&writer->lock);
    pthread_join(writer->thread, NULL);
    pthread_cond_destroy(&writer->changed);
    pthread_mutex_destroy(&writer->lock);
}
