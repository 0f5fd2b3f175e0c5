#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "reconcilers/drivers/sbx/sbx.h"
#include <string.h>
#include <time.h>

#define STARTER_THREADS 4
#define POOL_DEADLINE_MS 60000
#define FREE_DEADLINE_MS 3000 // of the one call that ends all sandboxes

const struct sbx_deadlines sbx_default_deadlines = {
    .create_ms = 120000, .create_call_ms = 90000, .remove_call_ms = 60000, .call_ms = 20000, .session_ms = 60000, .second_look_ms = 2000};

// ---- list --------------------------------------------------------------------------------------------------------------

struct list_call {
    struct list_call *next;
    struct sbx *sbx;
    driver_list_fn done;
    void *arg;
};

static void unlink_call(struct list_call *call)
{
    struct list_call **at = &call->sbx->list_calls;
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
}

static void on_list(void *arg, const struct sandbox_row_list *sandboxes, const struct error *err)
{
    CLEANUP_FREE struct list_call *call = arg;
    struct text_list names = {0};
    unlink_call(call);
    if (err) {
        call->done(call->arg, -1, NULL, err);
        return;
    }
    for (size_t i = 0; i < sandboxes->count; i++)
        if (sbx_owns(call->sbx, sandboxes->items[i].name))
            text_list_add(&names, sandboxes->items[i].name);
    call->done(call->arg, 0, &names, NULL);
    text_list_clear(&names);
}

// Those who look around do not wait any more; creates and removals still do.
static void end_lists(void *arg)
{
    struct sbx *sbx = arg;
    struct error err = ERROR_INIT;
    error_set(&err, ERROR_CANCELLED, NULL, "chat2shell is shutting down");
    while (sbx->list_calls) {
        struct list_call *call = sbx->list_calls;
        sbx_list_leave(sbx, call);
        on_list(call, NULL, &err);
    }
}

static void list_on_loop(void *arg)
{
    struct list_call *call = arg;
    struct sbx *sbx = call->sbx;
    call->next = sbx->list_calls;
    sbx->list_calls = call;
    sbx_list_ask(sbx, on_list, call);
    if (sbx_call_is_interrupted(sbx))
        end_lists(sbx);
}

static void list(struct driver *driver, driver_list_fn done, void *arg)
{
    struct list_call *call = mem_alloc(sizeof(*call));
    *call = (struct list_call){.sbx = sbx_of(driver), .done = done, .arg = arg};
    loop_post(call->sbx->loop, list_on_loop, call);
}

// ---- the end -----------------------------------------------------------------------------------------------------------

struct last_names {
    struct sbx *sbx;
    struct words words; // rm -f NAME…
};

// Nothing new can come any more: what runs is cancelled, what waits is answered.
static void end_all(void *arg)
{
    struct last_names *last = arg;
    struct sbx *sbx = last->sbx;
    struct error err = ERROR_INIT;
    error_set(&err, ERROR_CANCELLED, NULL, "chat2shell is shutting down");
    for (struct runtime *runtime = sbx->runtimes, *next; runtime; runtime = next) {
        next = runtime->next;
        bool is_removing = runtime->is_removing;
        runtime->is_removing = true;
        if (!runtime->is_untouched)
            sbx_words_add(&last->words, "%s", runtime->name);
        if (runtime->starting)
            sbx_session_cancel(runtime->starting, &err);
        if (runtime->creation && !is_removing)
            sbx_create_cancel(runtime->creation);
    }
    sbx_remove_stop(sbx, &err);
    sbx_list_stop(sbx);
    sbx_call_cancel_all(sbx);
}

static void wait_for_calls(struct sbx *sbx)
{
    while (sbx_call_is_any(sbx)) // each was cancelled
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

static void ignore_result(void *arg, const struct call_result *result)
{
    (void)arg;
    (void)result; // the next start finds and removes what is left
}

// One call for all of them: a daemon that stops has no time for more.
static void remove_all(struct last_names *last)
{
    struct call_options options = {.words = last->words, .deadline_ms = FREE_DEADLINE_MS, .is_last = true};
    void *none = NULL;
    if (last->words.count > 2)
        sbx_call_wait_all(last->sbx, &options, 1, ignore_result, &none);
    else
        sbx_words_free(&last->words);
}

static void free_runtimes(void *arg)
{
    struct sbx *sbx = arg;
    while (sbx->runtimes)
        sbx_runtime_free(sbx->runtimes);
}

static void free_parts(struct sbx *sbx)
{
    pool_free(sbx->pool);
    sbx_call_environment_free(sbx->environment);
    pthread_mutex_destroy(&sbx->jobs_lock);
    pthread_mutex_destroy(&sbx->calls_lock);
    free(sbx->clones_dir);
    free(sbx->program);
    free(sbx->program_dir);
    free(sbx->instance);
    free(sbx);
}

static void free_driver(struct driver *driver)
{
    struct sbx *sbx = sbx_of(driver);
    struct last_names last = {.sbx = sbx};
    sbx_words_add(&last.words, "rm");
    sbx_words_add(&last.words, "-f");
    loop_call(sbx->loop, end_all, &last);
    wait_for_calls(sbx);
    remove_all(&last);
    loop_call(sbx->loop, free_runtimes, sbx);
    sbx_held_wait_all(sbx);
    pool_stop(sbx->pool, POOL_DEADLINE_MS);
    free_parts(sbx);
}

// ---- life --------------------------------------------------------------------------------------------------------------

static void interrupt(struct driver *driver)
{
    struct sbx *sbx = sbx_of(driver);
    sbx_call_interrupt(sbx);
    loop_post(sbx->loop, end_lists, sbx);
}

static const struct driver_ops ops = {
    .name = "sbx",
    .descriptors = 6, // of the program that holds it the pidfd and three streams, of the connection a socket and its duplicate
    .create = sbx_create,
    .start_session = sbx_session_start,
    .remove = sbx_remove,
    .publish = sbx_ports_publish,
    .unpublish = sbx_ports_unpublish,
    .probe_port = sbx_ports_probe,
    .dial_port = sbx_ports_dial,
    .list = list,
    .probe = sbx_findings_probe,
    .interrupt = interrupt,
    .describe = sbx_facts_describe,
    .free = free_driver,
};

static struct boot_time never(void *arg)
{
    (void)arg;
    return (struct boot_time){INT64_MAX};
}

int driver_sbx_new(const struct driver_options *options, struct driver **ret, struct error *err)
{
    struct sbx *sbx = mem_alloc(sizeof(*sbx));
    *sbx = (struct sbx){.driver = {.ops = &ops},
                        .clock = options->clock,
                        .loop = options->loop,
                        .spawner = options->spawner,
                        .program = mem_strdup(options->sbx ? options->sbx : "sbx"),
                        .program_dir = mem_strdup(options->program_dir),
                        .instance = mem_strdup_or_null(options->instance),
                        .environment = sbx_call_environment_new(),
                        .deadlines = sbx_default_deadlines,
                        .clones_dir = mem_format("%s/sbx-clones", options->state_dir)};
    pthread_mutex_init(&sbx->jobs_lock, NULL);
    pthread_mutex_init(&sbx->calls_lock, NULL);
    sbx->pool = pool_new(&(struct pool_options){.clock = sbx->clock, .worker_count = STARTER_THREADS, .work = sbx_job_work, .next_due = never, .arg = sbx});
    if (pool_start(sbx->pool, err) < 0) {
        free_parts(sbx);
        return -1;
    }
    *ret = &sbx->driver;
    return 0;
}
