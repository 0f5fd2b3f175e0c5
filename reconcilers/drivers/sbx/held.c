// The one client that is held open for a session: its streams are the tool server's, its end is the session's. Killing it does
// not end what runs inside.
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/spawn.h"
#include "reconcilers/drivers/sbx/sbx.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <time.h>

#define WAIT_ALL_MS 5000

struct held {
    struct job job; // first
    struct held *next;
    struct sbx *sbx;
    struct words words;
    char **environment; // NULL: the driver's
    struct held_events events;
    bool is_freed; // nobody listens any more
    pid_t pid;
    int pidfd;
    struct loop_source *source;
    struct held_streams streams;
    struct error err;
};

static void unlink_held(struct held *held)
{
    struct held **at = &held->sbx->helds;
    while (*at != held)
        at = &(*at)->next;
    *at = held->next;
}

static void release(struct held *held)
{
    unlink_held(held);
    sbx_words_free(&held->words);
    sbx_call_environment_free(held->environment);
    free(held);
}

static void close_streams(struct held_streams *streams)
{
    int *const fds[] = {&streams->input_fd, &streams->output_fd, &streams->error_fd};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (*fds[i] >= 0)
            close(TAKE_FD(*fds[i]));
}

static void on_exited(void *arg, uint32_t events)
{
    struct held *held = arg;
    int exit_code;
    (void)events;
    if (spawn_reap(held->pidfd, &exit_code) < 0)
        return;
    loop_unwatch(TAKE_PTR(held->source));
    close(TAKE_FD(held->pidfd));
    bool is_heard = !held->is_freed;
    held->is_freed = true;
    if (is_heard)
        held->events.ended(held->events.arg, exit_code);
    release(held);
}

static void spawned(void *arg)
{
    struct held *held = arg;
    if (held->pidfd < 0) {
        if (!held->is_freed)
            held->events.started(held->events.arg, NULL, &held->err);
        release(held);
        return;
    }
    held->source = loop_watch(held->sbx->loop, held->pidfd, EPOLLIN, on_exited, held);
    if (held->is_freed) {
        close_streams(&held->streams);
        spawn_signal_group(held->pid, held->pidfd, SIGKILL);
        return;
    }
    struct held_streams streams = held->streams;
    held->streams = (struct held_streams){-1, -1, -1};
    held->events.started(held->events.arg, &streams, NULL);
}

static int make_pipe(int *ret_read, int *ret_write, struct error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_errno(err, errno, "raise the limit on open files (ulimit -n)", "cannot make a pipe");
    *ret_read = ends[0];
    *ret_write = ends[1];
    return 0;
}

static int spawn(struct held *held, struct error *err)
{
    struct sbx *sbx = held->sbx;
    CLEANUP_FREE char *path = sbx_call_find_program(sbx->program);
    if (path == NULL)
        return error_set(err, ERROR_NOT_FOUND, "install Docker Sandboxes, or set CHAT2SHELL_SBX", "the program %s was not found", sbx->program);
    CLEANUP_CLOSE int in_read = -1, in_write = -1, out_read = -1, out_write = -1, error_read = -1, error_write = -1;
    if (make_pipe(&in_read, &in_write, err) < 0 || make_pipe(&out_read, &out_write, err) < 0 || make_pipe(&error_read, &error_write, err) < 0)
        return -1;
    struct words argv = {0};
    sbx_words_add(&argv, "%s", sbx->program);
    sbx_words_add_all(&argv, (const char *const *)held->words.items);
    const struct spawn_options options = {.path = path,
                                          .argv = (const char *const *)argv.items,
                                          .environment = (const char *const *)(held->environment ? held->environment : sbx->environment),
                                          .fds = {{in_read, STDIN_FILENO}, {out_write, STDOUT_FILENO}, {error_write, STDERR_FILENO}},
                                          .fd_count = 3,
                                          .dies_with_us = true};
    int result = spawn_process(sbx->spawner, &options, &held->pid, &held->pidfd, err);
    sbx_words_free(&argv);
    if (result == 0)
        held->streams = (struct held_streams){TAKE_FD(in_write), TAKE_FD(out_read), TAKE_FD(error_read)};
    return result;
}

static void run(struct job *job)
{
    struct held *held = (struct held *)job;
    if (spawn(held, &held->err) < 0)
        held->pidfd = -1;
    loop_post(held->sbx->loop, spawned, held);
}

struct held *sbx_held_start(struct sbx *sbx, struct words *words, char **environment, const struct held_events *events)
{
    struct held *held = mem_alloc(sizeof(*held));
    *held = (struct held){.job.run = run, .next = sbx->helds, .sbx = sbx, .words = *words, .environment = environment, .events = *events,
                          .pidfd = -1, .streams = {-1, -1, -1}};
    *words = (struct words){0};
    sbx->helds = held;
    sbx_job_add(sbx, &held->job);
    return held;
}

void sbx_held_free(struct held *held)
{
    if (held == NULL || held->is_freed)
        return;
    held->is_freed = true;
    if (held->source)
        spawn_signal_group(held->pid, held->pidfd, SIGKILL); // its exit is reaped later
}

static void count_helds(void *arg)
{
    size_t *const *args = arg;
    struct sbx *sbx = (struct sbx *)args[0];
    *args[1] = 0;
    for (struct held *held = sbx->helds; held; held = held->next)
        ++*args[1];
}

void sbx_held_wait_all(struct sbx *sbx)
{
    size_t count = 0;
    size_t *args[] = {(size_t *)sbx, &count};
    for (int waited_ms = 0; waited_ms < WAIT_ALL_MS; waited_ms += 10) {
        loop_call(sbx->loop, count_helds, args);
        if (count == 0)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
}
