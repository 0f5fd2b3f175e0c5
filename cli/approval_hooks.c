#include "cli/approval_hooks.h"
#include "cli/approvals.h"
#include "cli/objects.h"
#include "cli/terminal.h"
#include "controller/base/memory.h"
#include "controller/thread.h"
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

#define AGAIN_MAX 3 // runs for one that changes while it is run

struct job {
    struct job *next;
    json_t *approval; // this thread's own copy
};
struct hooks {
    const struct hook_options *options;
    struct spawner *spawner;
    int stop_fd;
    pthread_t threads[HOOKS_PARALLEL_MAX];
    int thread_count;
    pthread_mutex_t lock; // guards all below
    pthread_cond_t is_filled;
    struct job *first, **last;
    json_t *offered; // uid: generation, of all that wait
    bool is_stopping;
};

static json_int_t generation_of(const json_t *approval)
{
    return json_get_int(json_object_get(approval, "metadata"), "generation", 0);
}

static void job_free(struct job *job)
{
    json_decref(job->approval);
    free(job);
}

// ---- the line -----------------------------------------------------------------------------------------------------------------
void hooks_offer(struct hooks *hooks, const json_t *approval)
{
    pthread_mutex_lock(&hooks->lock);
    const json_t *before = json_object_get(hooks->offered, object_uid(approval));
    if (!before || json_integer_value(before) != generation_of(approval)) {
        struct job *job = mem_alloc(sizeof(*job));
        *job = (struct job){NULL, json_deep_copy(approval)};
        json_object_set_new(hooks->offered, object_uid(approval), json_integer(generation_of(approval)));
        *hooks->last = job;
        hooks->last = &job->next;
        pthread_cond_signal(&hooks->is_filled);
    }
    pthread_mutex_unlock(&hooks->lock);
}

void hooks_settle(struct hooks *hooks, const char *uid)
{
    pthread_mutex_lock(&hooks->lock);
    json_object_del(hooks->offered, uid);
    for (struct job **at = &hooks->first; *at;) {
        struct job *job = *at;
        if (strcmp(object_uid(job->approval), uid) != 0) {
            at = &job->next;
            continue;
        }
        *at = job->next;
        if (hooks->last == &job->next)
            hooks->last = at;
        job_free(job);
    }
    pthread_mutex_unlock(&hooks->lock);
}

// NULL: it is over.
static struct job *take(struct hooks *hooks)
{
    pthread_mutex_lock(&hooks->lock);
    while (!hooks->first && !hooks->is_stopping)
        pthread_cond_wait(&hooks->is_filled, &hooks->lock);
    struct job *job = hooks->is_stopping ? NULL : hooks->first;
    if (job) {
        hooks->first = job->next;
        if (!hooks->first)
            hooks->last = &hooks->first;
    }
    pthread_mutex_unlock(&hooks->lock);
    return job;
}

// ---- one ----------------------------------------------------------------------------------------------------------------------
// What it decides on is what the program was shown. *ret_again: the approval as it is now, if that is something else; a new reference.
static void carry_out(struct hooks *hooks, const json_t *approval, const struct hook_verdict *verdict, json_t **ret_again)
{
    const struct rest *rest = hooks->options->rest;
    CLEANUP_JSON json_t *decided = NULL, *now = NULL;
    struct error err = ERROR_INIT;
    bool approves = verdict->word == HOOK_APPROVE;
    if (approval_decide(rest, approval, NULL, approves ? "approved" : "rejected", verdict->reason, &decided, &err) == 0)
        return;
    if (err.code == ERROR_CONFLICT && object_get(rest, approval_info(), object_uid(approval), &now, NULL) == 0 && approval_is_open(now))
        *ret_again = TAKE_PTR(now);
    else if (err.code != ERROR_CONFLICT || !now || approval_is_pending(now)) // else somebody else was first
        terminal_note("approval/%s: %s could not be stored: %s", object_name(approval), approves ? "the approval" : "the rejection", err.message);
}

static void decide(struct hooks *hooks, struct job *job)
{
    for (int i = 0; i < AGAIN_MAX; i++) {
        CLEANUP(hook_verdict_clear) struct hook_verdict verdict = {0};
        CLEANUP_JSON json_t *again = NULL;
        hook_run(hooks->options, hooks->spawner, job->approval, hooks->stop_fd, &verdict);
        if (verdict.word == HOOK_NOTHING)
            terminal_note("approval/%s waits on: %s", object_name(job->approval), verdict.reason);
        else
            carry_out(hooks, job->approval, &verdict, &again);
        if (!again)
            return;
        json_decref(job->approval);
        job->approval = TAKE_PTR(again);
    }
    terminal_note("approval/%s waits on: it changes all the time", object_name(job->approval));
}

static void *work(void *arg)
{
    struct hooks *hooks = arg;
    for (struct job *job; (job = take(hooks)) != NULL; job_free(job))
        decide(hooks, job);
    return NULL;
}

// ---- life ---------------------------------------------------------------------------------------------------------------------
int hooks_start(const struct hook_options *options, struct hooks **ret, struct error *err)
{
    struct hooks *hooks = mem_alloc(sizeof(*hooks));
    *hooks = (struct hooks){.options = options, .stop_fd = eventfd(0, EFD_CLOEXEC), .offered = json_object()};
    hooks->last = &hooks->first;
    pthread_mutex_init(&hooks->lock, NULL);
    pthread_cond_init(&hooks->is_filled, NULL);
    int r = hooks->stop_fd < 0 ? error_errno(err, errno, NULL, "cannot watch over programs") : spawner_start(&hooks->spawner, err);
    while (r == 0 && hooks->thread_count < options->parallel)
        if ((r = thread_start(&hooks->threads[hooks->thread_count], "hook", work, hooks, err)) == 0)
            hooks->thread_count++;
    if (r < 0) {
        hooks_stop(hooks);
        return -1;
    }
    *ret = hooks;
    return 0;
}

void hooks_stop(struct hooks *hooks)
{
    if (!hooks)
        return;
    pthread_mutex_lock(&hooks->lock);
    hooks->is_stopping = true;
    pthread_cond_broadcast(&hooks->is_filled);
    pthread_mutex_unlock(&hooks->lock);
    if (hooks->stop_fd >= 0)
        eventfd_write(hooks->stop_fd, 1);
    for (int i = 0; i < hooks->thread_count; i++)
        pthread_join(hooks->threads[i], NULL);
    spawner_stop(hooks->spawner);
    for (struct job *job = hooks->first, *next; job; job = next) {
        next = job->next;
        job_free(job);
    }
    if (hooks->stop_fd >= 0)
        close(hooks->stop_fd);
    json_decref(hooks->offered);
    pthread_mutex_destroy(&hooks->lock);
    pthread_cond_destroy(&hooks->is_filled);
    free(hooks);
}
