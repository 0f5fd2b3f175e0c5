#include "controller/tunnel.h"
#include "controller/base/memory.h"
#include "controller/log.h"
#include "controller/thread.h"
#include "controller/tunnel_state.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>

#define RUNTIME_DIR "tunnel" // below the state directory
#define OUTPUT_KEEP_BYTES 1024
#define STATUS_MAX_BYTES 4096
#define CLIENT_DEADLINE_MS (365LL * 24 * 3600 * 1000) // then it is started anew
#define STOP_GRACE_MS 2000

static void start_client(void *arg);

// ---- its end ---------------------------------------------------------------------------------------------------------------------

static void tell_ended(struct tunnel *tunnel)
{
    pthread_mutex_lock(&tunnel->lock);
    tunnel->has_ended = true;
    pthread_cond_signal(&tunnel->ended);
    pthread_mutex_unlock(&tunnel->lock);
}

static void start_later(struct tunnel *tunnel, const char *reason)
{
    struct boot_time now = clock_boot(tunnel->clock);
    bool was_steady = now.ms - tunnel->started_at.ms >= TUNNEL_STEADY_MS;
    int64_t next_ms = tunnel->backoff_ms * 2 < TUNNEL_BACKOFF_MAX_MS ? tunnel->backoff_ms * 2 : TUNNEL_BACKOFF_MAX_MS;
    tunnel->backoff_ms = was_steady || !tunnel->backoff_ms ? TUNNEL_BACKOFF_MIN_MS : next_ms;
    tunnel->restart_at.ms = now.ms + tunnel->backoff_ms;
    tunnel->timer = loop_after(tunnel->loop, tunnel->backoff_ms, start_client, tunnel);
    tunnel_set_state(tunnel, TUNNEL_ENDED, reason);
    log_warning("the tunnel client ended (%s); it is started again in %lld s", reason, (long long)(tunnel->backoff_ms / 1000));
    tunnel_answer_askers(tunnel);
}

static void close_run(struct tunnel *tunnel)
{
    tunnel_forget_health(tunnel);
    loop_unwatch(TAKE_PTR(tunnel->status_source));
    if (tunnel->status_fd >= 0)
        close(TAKE_FD(tunnel->status_fd));
    if (tunnel->client_pidfd >= 0)
        close(TAKE_FD(tunnel->client_pidfd));
    buffer_free(&tunnel->status_text);
    tunnel->client_pid = 0;
}

// ---- its life --------------------------------------------------------------------------------------------------------------------

static void client_ended(void *arg, const struct operation_result *result)
{
    struct tunnel *tunnel = arg;
    tunnel_read_confinement(tunnel); // while its parent can be told
    tunnel->operation = NULL;
    close_run(tunnel);
    loop_cancel(TAKE_PTR(tunnel->timer));
    if (tunnel->is_stopping) {
        tell_ended(tunnel);
    } else if (tunnel_confinement_failed(tunnel, result)) {
        tunnel_go_without(tunnel, result->errors);
        start_client(tunnel);
    } else {
        CLEANUP_FREE char *reason = mem_format("exit code %d", result->exit_code);
        tunnel->exit_code = result->exit_code;
        start_later(tunnel, reason);
    }
}

static int spawn_client(struct tunnel *tunnel, struct error *err)
{
    CLEANUP_FREE char *id = NULL;
    int ends[2];
    if (tunnel_check(tunnel->config, &id, err) < 0) // again: they may have changed since
        return -1;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return error_errno(err, errno, NULL, "cannot make a pipe");
    tunnel->status_fd = ends[0];
    CLEANUP_CLOSE int status_end = ends[1];
    CLEANUP(tunnel_command_free) struct tunnel_command environment = tunnel_command_environment();
    CLEANUP(tunnel_command_free) struct tunnel_command command = tunnel_command_make(
        &(struct tunnel_call){.config = tunnel->config, .id = id, .mcp_url = tunnel->mcp_url, .runtime_dir = tunnel->runtime_dir, .bwrap = tunnel->bwrap});
    struct spawn_options options = {.path = command.argv[0], .argv = (const char *const *)command.argv,
                                    .environment = (const char *const *)environment.argv, .dies_with_us = true};
    if (tunnel->bwrap)
        options.fds[options.fd_count++] = (struct spawn_fd){status_end, TUNNEL_STATUS_FD};
    return operation_start(tunnel->loop, tunnel->spawner, &options, CLIENT_DEADLINE_MS, OUTPUT_KEEP_BYTES, client_ended, tunnel, &tunnel->operation, err);
}

static void start_client(void *arg)
{
    struct tunnel *tunnel = arg;
    struct error err = ERROR_INIT;
    tunnel->timer = NULL;
    tunnel->started_at = clock_boot(tunnel->clock);
    tunnel->was_confined = false;
    unlinkat(tunnel->dir_fd, TUNNEL_URL_NAME, 0); // of a run before this one
    if (tunnel->bwrap && access(tunnel->bwrap, X_OK) < 0)
        tunnel_go_without(tunnel, "bubblewrap is not installed (sudo apt install bubblewrap)");
    if (spawn_client(tunnel, &err) < 0) {
        close_run(tunnel);
        start_later(tunnel, err.message);
        return;
    }
    tunnel_watch_confinement(tunnel);
    tunnel->starts++;
    tunnel_set_state(tunnel, TUNNEL_STARTING, NULL);
    log_info("the tunnel client was started");
}

static void end_by_force(void *arg)
{
    struct tunnel *tunnel = arg;
    tunnel->timer = NULL;
    operation_cancel(tunnel->operation);
}

static void stop_client(void *arg)
{
    struct tunnel *tunnel = arg;
    tunnel->is_stopping = true;
    loop_unwatch(TAKE_PTR(tunnel->watch_source));
    loop_cancel(TAKE_PTR(tunnel->timer));
    tunnel_forget_health(tunnel);
    tunnel_answer_askers(tunnel);
    if (!tunnel->operation)
        tell_ended(tunnel);
    else if (tunnel->client_pidfd >= 0 && spawn_signal(tunnel->client_pidfd, SIGTERM) == 0)
        tunnel->timer = loop_after(tunnel->loop, STOP_GRACE_MS, end_by_force, tunnel); // its end ends bubblewrap
    else
        operation_cancel(tunnel->operation);
}

// ---- start, question and stop ----------------------------------------------------------------------------------------------------

static void do_nothing(void *arg)
{
    (void)arg;
}

static void tunnel_free(struct tunnel *tunnel)
{
    char *texts[] = {tunnel->mcp_url, tunnel->runtime_dir, tunnel->not_confined, tunnel->reason};
    const int fds[] = {tunnel->dir_fd, tunnel->watch_fd};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        free(texts[i]);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    pthread_cond_destroy(&tunnel->ended);
    pthread_mutex_destroy(&tunnel->lock);
    free(tunnel);
}

int tunnel_start(const struct tunnel_options *options, struct tunnel **ret, struct error *err)
{
    const struct config *config = options->config;
    struct tunnel *tunnel = mem_alloc(sizeof(*tunnel));
    *tunnel = (struct tunnel){.config = config,       .clock = options->clock, .loop = options->loop, .spawner = options->spawner,
                              .bwrap = options->bwrap, .exit_code = -1,         .dir_fd = -1,          .watch_fd = -1,
                              .status_fd = -1,         .client_pidfd = -1,      .ask_ms = TUNNEL_ASK_MIN_MS,
                              .status_text = BUFFER_INIT(STATUS_MAX_BYTES)};
    tunnel->mcp_url = mem_format("http://%s:%d/mcp", strcmp(config->host, "0.0.0.0") == 0 ? "127.0.0.1" : config->host, options->mcp_port);
    tunnel->runtime_dir = mem_format("%s/" RUNTIME_DIR, config->state_dir);
    tunnel->not_confined = options->bwrap ? NULL : mem_strdup("it was not asked for");
    pthread_mutex_init(&tunnel->lock, NULL);
    thread_cond_init(&tunnel->ended);
    if (tunnel_watch_directory(tunnel, err) < 0) {
        tunnel_free(tunnel);
        return -1;
    }
    loop_call(tunnel->loop, start_client, tunnel);
    *ret = tunnel;
    return 0;
}

void tunnel_stop(struct tunnel *tunnel)
{
    if (!tunnel)
        return;
    loop_call(tunnel->loop, stop_client, tunnel);
    pthread_mutex_lock(&tunnel->lock);
    while (!tunnel->has_ended)
        pthread_cond_wait(&tunnel->ended, &tunnel->lock);
    pthread_mutex_unlock(&tunnel->lock);
    loop_call(tunnel->loop, do_nothing, NULL); // the callback that told it has returned
    tunnel_free(tunnel);
}
