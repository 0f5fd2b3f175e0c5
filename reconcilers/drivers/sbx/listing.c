// `sbx ls --json`, shared: a question that comes while another waits for its call gets the same answer, one that comes while a
// call runs gets the next (its list must be younger than the question). A call that hangs delays nobody but those who wait
// for it, because the next one starts beside it.
#include "controller/base/memory.h"
#include "reconcilers/drivers/sbx/sbx.h"
#include <stdlib.h>

#define GAP_MS 100      // between the starts of two calls
#define RUNNING_MAX 4   // calls at once

struct list_waiter {
    struct list_waiter *next;
    list_fn done; // NULL: it left
    void *arg;
};
struct list_batch {
    struct list_batch *next;
    struct sbx *sbx;
    struct call *call; // NULL: it is to start; at most one batch, the newest
    struct list_waiter *waiters;
};

static void start_when_due(struct sbx *sbx);

static void answer(struct list_batch *batch, const struct sandbox_row_list *sandboxes, const struct error *err)
{
    while (batch->waiters) {
        struct list_waiter *waiter = batch->waiters;
        batch->waiters = waiter->next;
        if (waiter->done)
            waiter->done(waiter->arg, sandboxes, err);
        free(waiter);
    }
}

static void unlink_batch(struct list_batch *batch)
{
    struct list_batch **at = &batch->sbx->batches;
    while (*at != batch)
        at = &(*at)->next;
    *at = batch->next;
}

static void on_listed(void *arg, const struct call_result *result)
{
    struct list_batch *batch = arg;
    struct sbx *sbx = batch->sbx;
    struct error err = ERROR_INIT;
    struct sandbox_row_list sandboxes = {0};
    CLEANUP_JSON json_t *json = NULL;
    unlink_batch(batch);
    int read = sbx_call_json(result, &json, &err);
    if (read == 0 && sbx_sandbox_rows_read(json, &sandboxes, &err) < 0)
        read = error_context(&err, "`sbx ls` answered with something else");
    answer(batch, read == 0 ? &sandboxes : NULL, read == 0 ? NULL : &err);
    sbx_sandbox_rows_free(&sandboxes);
    free(batch);
    start_when_due(sbx);
}

static void start_batch(struct list_batch *batch)
{
    static const char *const texts[] = {"ls", "--json", NULL};
    struct call_options options = {.deadline_ms = batch->sbx->deadlines.call_ms};
    sbx_words_add_all(&options.words, texts);
    batch->sbx->last_list = clock_boot(batch->sbx->clock);
    batch->call = sbx_call_start(batch->sbx, &options, on_listed, batch);
}

static void on_timer(void *arg)
{
    struct sbx *sbx = arg;
    sbx->list_timer = NULL;
    start_when_due(sbx);
}

static void start_when_due(struct sbx *sbx)
{
    struct list_batch *next = sbx->batches;
    int running = 0;
    for (struct list_batch *at = sbx->batches; at; at = at->next)
        running += at->call != NULL;
    if (next == NULL || next->call || running >= RUNNING_MAX || sbx->list_timer)
        return;
    int64_t gap = sbx->last_list.ms ? sbx->last_list.ms + GAP_MS - clock_boot(sbx->clock).ms : 0;
    if (gap <= 0)
        start_batch(next);
    else
        sbx->list_timer = loop_after(sbx->loop, gap < GAP_MS ? gap : GAP_MS, on_timer, sbx);
}

void sbx_list_ask(struct sbx *sbx, list_fn done, void *arg)
{
    struct list_batch *batch = sbx->batches;
    if (sbx->is_closing) {
        struct error err = ERROR_INIT;
        error_set(&err, ERROR_CANCELLED, NULL, "chat2shell is shutting down");
        done(arg, NULL, &err);
        return;
    }
    if (batch == NULL || batch->call) {
        batch = mem_alloc(sizeof(*batch));
        *batch = (struct list_batch){.next = sbx->batches, .sbx = sbx};
        sbx->batches = batch;
    }
    struct list_waiter *waiter = mem_alloc(sizeof(*waiter));
    *waiter = (struct list_waiter){batch->waiters, done, arg};
    batch->waiters = waiter;
    start_when_due(sbx);
}

void sbx_list_leave(struct sbx *sbx, void *arg)
{
    for (struct list_batch *batch = sbx->batches; batch; batch = batch->next)
        for (struct list_waiter *at = batch->waiters; at; at = at->next)
            if (at->arg == arg)
                at->done = NULL;
}

void sbx_list_stop(struct sbx *sbx)
{
    struct error err = ERROR_INIT;
    error_set(&err, ERROR_CANCELLED, NULL, "chat2shell is shutting down");
    loop_cancel(TAKE_PTR(sbx->list_timer));
    for (struct list_batch *batch = sbx->batches, *next; batch; batch = next) {
        next = batch->next;
        answer(batch, NULL, &err);
        if (batch->call == NULL) { // else the call's end frees it
            unlink_batch(batch);
            free(batch);
        }
    }
}
