// A server's life: the library's daemon over a listening socket of ours, the sweep over connections, stop.
#include "api/http/internal.h"
#include "api/http/microhttpd_library.h"
#include "controller/base/memory.h"
#include "controller/thread.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define DRAIN_MS 2000 // real time: the clients are real
// One version, without the renegotiation, compression and choices of the older ones; every client of today has it.
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3"

void http_server_ref(struct http_server *server)
{
    atomic_fetch_add_explicit(&server->refs, 1, memory_order_relaxed);
}

void http_server_unref(struct http_server *server)
{
    if (atomic_fetch_sub(&server->refs, 1) != 1)
        return;
    pthread_cond_destroy(&server->drained);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

int64_t http_server_now_ms(const struct http_server *server)
{
    return clock_boot(loop_clock(server->options.loop)).ms;
}

void http_server_count_active(struct http_server *server, int change)
{
    pthread_mutex_lock(&server->lock);
    server->active_count += (size_t)change;
    if (!server->active_count && server->is_stopping)
        pthread_cond_broadcast(&server->drained);
    pthread_mutex_unlock(&server->lock);
}

// ---- start and stop ---------------------------------------------------------------------------------------
// The connections' share of the descriptors that this process may have: half, and the rest for sandboxes.
static void set_room(struct http_server *server)
{
    struct rlimit limit;
    server->connections_max = server->options.connections_max ? server->options.connections_max : HTTP_CONNECTIONS_MAX;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < server->connections_max)
        server->connections_max = limit.rlim_cur / 2;
    server->connections_full = server->connections_max * HTTP_CONNECTIONS_FULL / HTTP_CONNECTIONS_MAX;
}

static struct MHD_Daemon *start_daemon(struct http_server *server)
{
    const struct http_server_options *options = &server->options;
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE | (options->tls_pem ? MHD_USE_TLS : 0);
    struct MHD_OptionItem items[] = {
        {MHD_OPTION_LISTEN_SOCKET, options->listen_fd, NULL},
        // Its threads share this evenly, the clients do not: the limit that counts is connections_max.
        {MHD_OPTION_CONNECTION_LIMIT, (intptr_t)server->connections_max * options->thread_count, NULL},
        {MHD_OPTION_CONNECTION_TIMEOUT, HTTP_IDLE_MS / 1000, NULL},
        {MHD_OPTION_STRICT_FOR_CLIENT, 0, NULL}, // head.c and head_read.c are stricter, and their answers are ours
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, HTTP_MEMORY_BYTES, NULL},
        {MHD_OPTION_CONNECTION_MEMORY_INCREMENT, 4 * 1024, NULL},
        {MHD_OPTION_THREAD_POOL_SIZE, options->thread_count > 1 ? options->thread_count : 0, NULL},
        {options->tls_pem ? MHD_OPTION_HTTPS_MEM_KEY : MHD_OPTION_END, 0, (void *)options->tls_pem},
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)options->tls_pem},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, TLS_PRIORITIES},
        {MHD_OPTION_END, 0, NULL},
    };
    return MHD_start_daemon(flags, 0, http_connection_may_enter, server, http_exchange_access, server, MHD_OPTION_ARRAY, items,
                            MHD_OPTION_URI_LOG_CALLBACK, http_exchange_begin, server,
                            MHD_OPTION_NOTIFY_COMPLETED, http_exchange_completed, server,
                            MHD_OPTION_NOTIFY_CONNECTION, http_connection_changed, server, MHD_OPTION_END);
}

int http_server_start(const struct http_server_options *options, struct http_server **ret, struct error *err)
{
    assert(options->loop && options->handle && options->error_body);
    if (microhttpd_load(err) < 0) {
        close(options->listen_fd);
        return -1;
    }
    struct http_server *server = mem_alloc(sizeof(*server));
    server->options = *options;
    server->options.body_max_bytes = options->body_max_bytes ? options->body_max_bytes : HTTP_BODY_MAX_BYTES;
    server->is_tls = options->tls_pem != NULL;
    server->refs = 1;
    pthread_mutex_init(&server->lock, NULL);
    thread_cond_init(&server->drained);
    TAILQ_INIT(&server->waiting);
    TAILQ_INIT(&server->working);
    set_room(server);
    server->daemon = start_daemon(server);
    if (!server->daemon) {
        int saved = errno;
        close(options->listen_fd);
        http_server_unref(server);
        return error_errno(err, saved, "raise the limit on open files and threads",
                           "cannot start the HTTP server");
    }
    server->options.tls_pem = NULL; // the caller's
    loop_call(options->loop, http_sweep_start, server);
    *ret = server;
    return 0;
}

static struct http_request *first_suspended(struct http_server *server)
{
    pthread_mutex_lock(&server->lock);
    struct http_request *request = server->suspended;
    if (request)
        http_request_ref(request);
    pthread_mutex_unlock(&server->lock);
    return request;
}

// On the loop thread, so that on_gone runs where it is promised to.
static void end_waits(void *arg)
{
    struct http_server *server = arg;
    struct http_request *request;
    while ((request = first_suspended(server))) {
        http_request_end_wait(request, 503, http_stopping_reply(server));
        http_request_unref(request);
    }
    http_upgrades_stop(server);
}

// Answers that are ready go out first, for a bounded time: the library drops what is unsent when it stops.
static void drain(struct http_server *server)
{
    int64_t end_ms = boot_time_now().ms + DRAIN_MS;
    pthread_mutex_lock(&server->lock);
    for (int64_t left_ms = DRAIN_MS; server->active_count && left_ms > 0;
         left_ms = end_ms - boot_time_now().ms)
        thread_cond_wait_ms(&server->drained, &server->lock, left_ms);
    if (server->upgrade_count) // answered, but its client leaves unread what came before
        http_connections_shut(server);
    while (server->suspended_count || server->upgrade_count) // the library aborts if one is left
        pthread_cond_wait(&server->drained, &server->lock);
    pthread_mutex_unlock(&server->lock);
}

void http_server_stop(struct http_server *server)
{
    if (!server)
        return;
    assert(!loop_is_current(server->options.loop));
    loop_call(server->options.loop, http_sweep_stop, server);
    pthread_mutex_lock(&server->lock);
    server->is_stopping = true;
    pthread_mutex_unlock(&server->lock);
    loop_call(server->options.loop, end_waits, server);
    drain(server);
    MHD_stop_daemon(server->daemon); // closes the listening socket
    http_server_unref(server);
}

void http_server_get_stats(struct http_server *server, struct http_server_stats *ret)
{
    pthread_mutex_lock(&server->lock);
    *ret = (struct http_server_stats){.connections = server->connection_count,
                                       .waiting = server->suspended_count,
                                       .body_bytes = server->body_bytes};
    pthread_mutex_unlock(&server->lock);
}
