// A server's life: the library's daemon over a listening socket of ours, the sweep over connections, stop.
#include "api/http/internal.h"
#include "controller/base/memory.h"
#include "controller/base/socket.h"
#include "controller/thread.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SWEEP_MS 5000
#define DRAIN_MS 2000 // real time: the clients are real

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

// ---- connections ------------------------------------------------------------------------------------------
void http_connection_set_deadline(struct http_connection *connection, int64_t deadline_ms)
{
    if (connection)
        atomic_store_explicit(&connection->deadline_ms, deadline_ms, memory_order_relaxed);
}

void http_connection_set_working(struct http_connection *connection, bool is_working, int64_t now_ms)
{
    if (!connection)
        return;
    atomic_store_explicit(&connection->since_ms, now_ms, memory_order_relaxed);
    atomic_store_explicit(&connection->is_working, is_working, memory_order_relaxed);
}

// Holding the lock. One client that opens connections and leaves them must not lock the others out.
static void evict_longest_idle(struct http_server *server)
{
    struct http_connection *longest = NULL;
    for (struct http_connection *at = server->connections; at; at = at->next)
        if (!at->is_evicted && !atomic_load_explicit(&at->is_working, memory_order_relaxed) &&
            (!longest || atomic_load_explicit(&at->since_ms, memory_order_relaxed) <=
                             atomic_load_explicit(&longest->since_ms, memory_order_relaxed)))
            longest = at; // of equals the one that came first: the list begins with the newest
    if (!longest)
        return;
    longest->is_evicted = true;
    shutdown(longest->fd, SHUT_RDWR);
}

static void connection_started(struct http_server *server, struct MHD_Connection *mhd, void **context)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (!info)
        return;
    struct http_connection *connection = mem_alloc(sizeof(*connection));
    connection->fd = info->connect_fd;
    connection->since_ms = http_server_now_ms(server);
    connection->deadline_ms = connection->since_ms + HTTP_IDLE_MS;
    connection->has_peer = server->options.has_peer && socket_peer(connection->fd, &connection->peer) == 0;
    *context = connection;
    pthread_mutex_lock(&server->lock);
    connection->next = server->connections;
    if (connection->next)
        connection->next->prev = connection;
    server->connections = connection;
    if (++server->connection_count > HTTP_CONNECTIONS_FULL)
        evict_longest_idle(server);
    pthread_mutex_unlock(&server->lock);
}

static void connection_closed(struct http_server *server, void **context)
{
    struct http_connection *connection = *context;
    *context = NULL;
    if (!connection)
        return;
    pthread_mutex_lock(&server->lock);
    server->connection_count--;
    if (connection->prev)
        connection->prev->next = connection->next;
    else
        server->connections = connection->next;
    if (connection->next)
        connection->next->prev = connection->prev;
    pthread_mutex_unlock(&server->lock);
    free(connection);
}

static void connection_changed(void *arg, struct MHD_Connection *mhd, void **context,
                               enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        connection_started(arg, mhd, context);
    else
        connection_closed(arg, context);
}

static void sweep(void *arg)
{
    struct http_server *server = arg;
    int64_t now = http_server_now_ms(server);
    pthread_mutex_lock(&server->lock); // a socket is closed only after it left the list
    for (struct http_connection *at = server->connections; at; at = at->next)
        if (atomic_load_explicit(&at->deadline_ms, memory_order_relaxed) < now)
            shutdown(at->fd, SHUT_RDWR);
    pthread_mutex_unlock(&server->lock);
    server->sweep = loop_after(server->options.loop, SWEEP_MS, sweep, server);
}

static void start_sweep(void *arg)
{
    struct http_server *server = arg;
    server->sweep = loop_after(server->options.loop, SWEEP_MS, sweep, server);
}

static void stop_sweep(void *arg)
{
    struct http_server *server = arg;
    loop_cancel(server->sweep);
    server->sweep = NULL;
}

// ---- start and stop ---------------------------------------------------------------------------------------
// Who comes while the server stops is turned away here. The library's own way (MHD_quiesce_daemon) takes the listening socket out
// of the epoll set on this thread and, at the same time, on its own, which aborts the process when the second one finds it gone.
static enum MHD_Result may_connect(void *arg, const struct sockaddr *address, socklen_t len)
{
    (void)address;
    (void)len;
    struct http_server *server = arg;
    pthread_mutex_lock(&server->lock);
    bool is_stopping = server->is_stopping;
    pthread_mutex_unlock(&server->lock);
    return is_stopping ? MHD_NO : MHD_YES;
}

static struct MHD_Daemon *start_daemon(struct http_server *server)
{
    const struct http_server_options *options = &server->options;
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
    struct MHD_OptionItem items[] = {
        {MHD_OPTION_LISTEN_SOCKET, options->listen_fd, NULL},
        {MHD_OPTION_CONNECTION_LIMIT, HTTP_CONNECTIONS_MAX, NULL},
        {MHD_OPTION_CONNECTION_TIMEOUT, HTTP_IDLE_MS / 1000, NULL},
        {MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL}, // the strictest this version has
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, HTTP_HEAD_MAX_BYTES, NULL},
        {MHD_OPTION_CONNECTION_MEMORY_INCREMENT, 8 * 1024, NULL},
        {MHD_OPTION_THREAD_POOL_SIZE, options->thread_count > 1 ? options->thread_count : 0, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    return MHD_start_daemon(flags, 0, may_connect, server, http_exchange_access, server, MHD_OPTION_ARRAY, items,
                            MHD_OPTION_URI_LOG_CALLBACK, http_exchange_begin, server,
                            MHD_OPTION_NOTIFY_COMPLETED, http_exchange_completed, server,
                            MHD_OPTION_NOTIFY_CONNECTION, connection_changed, server, MHD_OPTION_END);
}

int http_server_start(const struct http_server_options *options, struct http_server **ret, struct error *err)
{
    assert(options->loop && options->handle && options->error_body);
    struct http_server *server = mem_alloc(sizeof(*server));
    server->options = *options;
    server->options.body_max_bytes = options->body_max_bytes ? options->body_max_bytes : HTTP_BODY_MAX_BYTES;
    server->refs = 1;
    pthread_mutex_init(&server->lock, NULL);
    thread_cond_init(&server->drained);
    server->daemon = start_daemon(server);
    if (!server->daemon) {
        int saved = errno;
        close(options->listen_fd);
        http_server_unref(server);
        return error_errno(err, saved, "raise the limit on open files and threads",
                           "cannot start the HTTP server");
    }
    loop_call(options->loop, start_sweep, server);
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
}

// Answers that are ready go out first, for a bounded time: the library drops what is unsent when it stops.
static void drain(struct http_server *server)
{
    int64_t end_ms = boot_time_now().ms + DRAIN_MS;
    pthread_mutex_lock(&server->lock);
    for (int64_t left_ms = DRAIN_MS; server->active_count && left_ms > 0;
         left_ms = end_ms - boot_time_now().ms)
        thread_cond_wait_ms(&server->drained, &server->lock, left_ms);
    while (server->suspended_count) // the library aborts if one is left
        pthread_cond_wait(&server->drained, &server->lock);
    pthread_mutex_unlock(&server->lock);
}

void http_server_stop(struct http_server *server)
{
    if (!server)
        return;
    assert(!loop_is_current(server->options.loop));
    loop_call(server->options.loop, stop_sweep, server);
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
    *ret = (struct http_server_stats){.waiting = server->suspended_count, .body_bytes = server->body_bytes};
    for (struct http_connection *at = server->connections; at; at = at->next)
        ret->connections++;
    pthread_mutex_unlock(&server->lock);
}
