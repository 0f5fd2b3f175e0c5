// One run of the sbx program: argv, environment, deadline, output cap. Its standard input is /dev/null, so that no prompt is
// ever answered. A small pool of threads starts the processes; all else is on the loop.
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/operation.h"
#include "reconcilers/drivers/sbx/sbx.h"
#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>

#define OUTPUT_MAX_BYTES (4 * 1024 * 1024)

struct call {
    struct job job; // first
    struct sbx *sbx;
    struct call *next, **at; // in the list of all, guarded by calls_lock
    struct call_options options;
    char *subject;
    int references; // guarded by calls_lock, like the next three: one of the starting thread, one of the end
    bool is_cancelled, is_done;
    struct operation *operation; // between its start and is_done
    struct error start_error;
    call_done_fn done;
    void *arg;
};

// ---- words -------------------------------------------------------------------------------------------------------------

static void add_word(struct words *words, char *word)
{
    words->items = mem_realloc_array(words->items, words->count + 2, sizeof(*words->items));
    words->items[words->count++] = word;
    words->items[words->count] = NULL;
}

void sbx_words_add(struct words *words, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_word(words, mem_vformat(format, args));
    va_end(args);
}

void sbx_words_add_all(struct words *words, const char *const *texts)
{
    for (size_t i = 0; texts[i]; i++)
        add_word(words, mem_strdup(texts[i]));
}

void sbx_words_free(struct words *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->items[i]);
    free(words->items);
    *words = (struct words){0};
}

// ---- program and environment -------------------------------------------------------------------------------------------

char *sbx_call_find_program(const char *program)
{
    if (program[0] == '/')
        return access(program, X_OK) == 0 ? mem_strdup(program) : NULL;
    const char *path = getenv("PATH");
    CLEANUP_FREE char *dirs = mem_strdup(path ? path : "/usr/local/bin:/usr/bin:/bin");
    char *rest = NULL;
    for (char *dir = strtok_r(dirs, ":", &rest); dir; dir = strtok_r(NULL, ":", &rest)) {
        char *full = mem_format("%s/%s", dir, program);
        if (dir[0] == '/' && access(full, X_OK) == 0)
            return full;
        free(full);
    }
    return NULL;
}

// What sbx needs to find its daemon, its sign-in and the network, and no more: nothing of ours is among it. SSH_AUTH_SOCK is
// left out, so that a daemon that a call starts does not inherit the operator's agent.
static bool is_passed_on(const char *entry)
{
    static const char *const names[] = {"PATH=", "HOME=", "USER=", "LOGNAME=", "LANG=", "LC_ALL=", "TMPDIR=", "DBUS_SESSION_BUS_ADDRESS=",
                                        "DISPLAY=", "WAYLAND_DISPLAY=", "HTTP_PROXY=", "HTTPS_PROXY=", "NO_PROXY=", "http_proxy=",
                                        "https_proxy=", "no_proxy=", "SSL_CERT_FILE=", "SSL_CERT_DIR=", "GNOME_KEYRING_CONTROL="};
    static const char *const prefixes[] = {"XDG_", "DOCKER_"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strncmp(entry, names[i], strlen(names[i])) == 0)
            return true;
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
        if (strncmp(entry, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

char **sbx_call_environment_new(void)
{
    struct words words = {0};
    for (char **at = environ; *at; at++)
        if (is_passed_on(*at))
            add_word(&words, mem_strdup(*at));
    sbx_words_add(&words, "SBX_NO_TELEMETRY=1");
    return words.items;
}

void sbx_call_environment_free(char **environment)
{
    for (char **at = environment; at && *at; at++)
        free(*at);
    free(environment);
}

// ---- one call ----------------------------------------------------------------------------------------------------------

static void unref(struct call *call)
{
    struct sbx *sbx = call->sbx;
    pthread_mutex_lock(&sbx->calls_lock);
    bool is_last = --call->references == 0;
    if (is_last) {
        *call->at = call->next;
        if (call->next)
            call->next->at = call->at;
    }
    pthread_mutex_unlock(&sbx->calls_lock);
    if (!is_last)
        return;
    sbx_words_free(&call->options.words);
    free(call->subject);
    free(call);
}

static void finish(struct call *call, struct call_result *result)
{
    result->verb = call->options.words.items[0];
    result->subject = call->subject;
    result->deadline_ms = call->options.deadline_ms;
    call->done(call->arg, result);
    unref(call);
}

static void on_operation(void *arg, const struct operation_result *from)
{
    struct call *call = arg;
    pthread_mutex_lock(&call->sbx->calls_lock);
    call->is_done = true;
    call->operation = NULL;
    pthread_mutex_unlock(&call->sbx->calls_lock);
    struct call_result result = {.end = from->is_cancelled ? CALL_CANCELLED : from->is_timed_out ? CALL_TIMED_OUT : CALL_EXITED,
                                 .exit_code = from->exit_code,
                                 .output = from->output,
                                 .printed = from->printed,
                                 .errors = from->errors,
                                 .output_len = from->output_len,
                                 .printed_len = from->printed_len,
                                 .errors_len = from->errors_len,
                                 .is_cut = from->is_output_cut};
    finish(call, &result);
}

static void end_unstarted(void *arg)
{
    struct call *call = arg;
    struct call_result result = {.end = call->start_error.code == ERROR_NONE ? CALL_CANCELLED : CALL_NOT_STARTED,
                                 .output = "", .printed = "", .errors = "", .start_error = &call->start_error};
    pthread_mutex_lock(&call->sbx->calls_lock);
    call->is_done = true;
    pthread_mutex_unlock(&call->sbx->calls_lock);
    finish(call, &result);
}

static int start_operation(struct call *call, struct operation **ret)
{
    const struct call_options *options = &call->options;
    const char *program = options->program ? options->program : call->sbx->program;
    CLEANUP_FREE char *path = sbx_call_find_program(program);
    if (path == NULL)
        return error_set(&call->start_error, ERROR_NOT_FOUND,
                         options->program ? NULL : "install Docker Sandboxes, or set CHAT2SHELL_SBX to the path of its program sbx",
                         "the program %s was not found or cannot be run", program);
    struct words argv = {0};
    sbx_words_add(&argv, "%s", program);
    sbx_words_add_all(&argv, (const char *const *)options->words.items);
    const struct spawn_options spawn = {.path = path,
                                        .argv = (const char *const *)argv.items,
                                        .environment = options->environment ? options->environment : (const char *const *)call->sbx->environment,
                                        .dies_with_us = true};
    int result = operation_start(call->sbx->loop, call->sbx->spawner, &spawn, options->deadline_ms, OUTPUT_MAX_BYTES, on_operation, call, ret,
                                 &call->start_error);
    sbx_words_free(&argv);
    return result;
}

static void start(struct job *job)
{
    struct call *call = (struct call *)job;
    struct sbx *sbx = call->sbx;
    struct operation *operation = NULL;
    pthread_mutex_lock(&sbx->calls_lock);
    bool is_cancelled = call->is_cancelled;
    pthread_mutex_unlock(&sbx->calls_lock);
    if (is_cancelled || start_operation(call, &operation) < 0) {
        loop_post(sbx->loop, end_unstarted, call);
    } else {
        pthread_mutex_lock(&sbx->calls_lock);
        if (!call->is_done) // the operation is valid until its end took this lock
            call->operation = operation;
        if (!call->is_done && call->is_cancelled)
            operation_cancel(operation);
        pthread_mutex_unlock(&sbx->calls_lock);
    }
    unref(call);
}

struct call *sbx_call_start(struct sbx *sbx, struct call_options *options, call_done_fn done, void *arg)
{
    assert(options->words.count > 0 && options->deadline_ms > 0);
    assert(options->subject == NULL || sbx_owns(sbx, options->subject)); // never one that could touch another's sandbox
    struct call *call = mem_alloc(sizeof(*call));
    *call = (struct call){.job.run = start, .sbx = sbx, .options = *options, .subject = mem_strdup_or_null(options->subject), .references = 2, .done = done, .arg = arg};
    options->words = (struct words){0};
    pthread_mutex_lock(&sbx->calls_lock);
    call->is_cancelled = (sbx->is_closing && !options->is_last) || (sbx->is_interrupted && options->is_look);
    call->next = sbx->calls;
    call->at = &sbx->calls;
    if (call->next)
        call->next->at = &call->next;
    sbx->calls = call;
    pthread_mutex_unlock(&sbx->calls_lock);
    sbx_job_add(sbx, &call->job);
    return call;
}

static void cancel_locked(struct call *call)
{
    call->is_cancelled = true;
    if (call->operation && !call->is_done)
        operation_cancel(call->operation);
}

void sbx_call_cancel(struct call *call)
{
    if (call == NULL)
        return;
    pthread_mutex_lock(&call->sbx->calls_lock);
    cancel_locked(call);
    pthread_mutex_unlock(&call->sbx->calls_lock);
}

void sbx_call_cancel_all(struct sbx *sbx)
{
    pthread_mutex_lock(&sbx->calls_lock);
    sbx->is_closing = true;
    for (struct call *call = sbx->calls; call; call = call->next)
        cancel_locked(call);
    pthread_mutex_unlock(&sbx->calls_lock);
}

void sbx_call_interrupt(struct sbx *sbx)
{
    pthread_mutex_lock(&sbx->calls_lock);
    sbx->is_interrupted = true;
    for (struct call *call = sbx->calls; call; call = call->next)
        if (call->options.is_look)
            cancel_locked(call);
    pthread_mutex_unlock(&sbx->calls_lock);
}

bool sbx_call_is_interrupted(struct sbx *sbx)
{
    pthread_mutex_lock(&sbx->calls_lock);
    bool is_interrupted = sbx->is_interrupted;
    pthread_mutex_unlock(&sbx->calls_lock);
    return is_interrupted;
}

bool sbx_call_is_any(struct sbx *sbx)
{
    pthread_mutex_lock(&sbx->calls_lock);
    bool is_any = sbx->calls != NULL;
    pthread_mutex_unlock(&sbx->calls_lock);
    return is_any;
}

// ---- many at once ------------------------------------------------------------------------------------------------------

struct gather {
    pthread_mutex_t lock; // guards left
    pthread_cond_t is_done;
    size_t left;
    call_done_fn done;
};
struct gathered {
    struct gather *gather;
    void *arg;
};

static void on_gathered(void *arg, const struct call_result *result)
{
    struct gathered *one = arg;
    struct gather *gather = one->gather;
    gather->done(one->arg, result);
    pthread_mutex_lock(&gather->lock);
    if (--gather->left == 0)
        pthread_cond_broadcast(&gather->is_done);
    pthread_mutex_unlock(&gather->lock);
}

void sbx_call_wait_all(struct sbx *sbx, struct call_options *options, size_t count, call_done_fn done, void *const *args)
{
    assert(!loop_is_current(sbx->loop));
    struct gather gather = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, count, done};
    CLEANUP_FREE struct gathered *all = mem_alloc((count + 1) * sizeof(*all));
    for (size_t i = 0; i < count; i++) {
        all[i] = (struct gathered){&gather, args[i]};
        sbx_call_start(sbx, &options[i], on_gathered, &all[i]);
    }
    pthread_mutex_lock(&gather.lock);
    while (gather.left > 0)
        pthread_cond_wait(&gather.is_done, &gather.lock);
    pthread_mutex_unlock(&gather.lock);
}
