// The connections of a listener: who is there, who loses a place when the house is full, and the deadlines of
// whoever sends or takes too slowly. The library's own timeout only sees silence, not a client that drips a
// byte now and then.
#include "api/http/internal.h"
#include "controller/metrics.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/base/socket.h"
#include <stdlib.h>
#include <string.h>

#define SWEEP_MS 5000

static _Atomic uint64_t last_number;

// ---- the list: longest unchanged first --------------------------------------------------------------------
static bool is_evictable(enum http_phase phase)
{
    return phase != HTTP_WORKING && phase != HTTP_CUT;
}

static void enter(struct http_server *server, struct http_connection *connection)
{
    TAILQ_INSERT_TAIL(is_evictable(connection->phase) ? &server->waiting : &server->working, connection, link);
}

static void leave(struct http_server *server, struct http_connection *connection)
{
    TAILQ_REMOVE(is_evictable(connection->phase) ? &server->waiting : &server->working, connection, link);
}

// Holding the lock.
static void move(struct http_server *server, struct http_connection *connection, enum http_phase phase)
{
    leave(server, connection);
    connection->phase = phase;
    enter(server, connection);
}

bool http_connection_enter(struct http_server *server, struct http_connection *connection,
                           enum http_phase phase, int64_t deadline_ms)
{
    if (!connection)
        return true;
    pthread_mutex_lock(&server->lock);
    bool is_cut = connection->phase == HTTP_CUT;
    if (!is_cut)
        move(server, connection, phase);
    pthread_mutex_unlock(&server->lock);
    http_connection_set_deadline(connection, deadline_ms);
    return !is_cut;
}

void http_connection_set_deadline(struct http_connection *connection, int64_t deadline_ms)
{
    if (connection)
        atomic_store_explicit(&connection->deadline_ms, deadline_ms, memory_order_relaxed);
}

// ---- who must go ------------------------------------------------------------------------------------------
// Holding the lock: the library has not written to this socket since the last whole answer, and will not any
// more, so a sentence fits in before the end. If it does not go out at once it is not sent. Below TLS nothing of ours fits.
static void say_why(struct http_server *server, struct http_connection *connection, int status,
                    const struct error *err)
{
    CLEANUP_FREE char *body = server->options.error_body(server->options.arg, status, err, NULL, 0);
    CLEANUP_FREE char *text = mem_format("HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n"
                                         "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                                         status, status == 408 ? "Request Timeout" : "Service Unavailable",
                                         strlen(body), body);
    (void)!send(connection->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
}

// Holding the lock. The library notices and closes the socket.
static void cut(struct http_server *server, struct http_connection *connection, int status,
                const struct error *err)
{
    bool is_asking = connection->phase == HTTP_FRESH || connection->phase == HTTP_READING_HEAD ||
                     connection->phase == HTTP_READING_BODY;
    if (is_asking && !server->is_tls)
        say_why(server, connection, status, err);
    move(server, connection, HTTP_CUT);
    shutdown(connection->fd, SHUT_RDWR);
}

static void cut_slow(struct http_server *server, struct http_connection *connection)
{
    struct error error = ERROR_INIT;
    error_set(&error, ERROR_TIMEOUT, "send requests in one piece", "%s",
              connection->phase == HTTP_READING_BODY ? "the request's body did not arrive in time"
                                                     : "the request's head did not arrive in time");
    cut(server, connection, 408, &error);
}

static void evict(struct http_server *server, struct http_connection *connection)
{
    struct error error = ERROR_INIT;
    error_set(&error, ERROR_LIMIT, "keep fewer connections open, or try again in a moment",
              "too many connections are open, and this one stood still the longest");
    cut(server, connection, 503, &error);
}

static void cut_late(struct http_server *server, struct http_list *list, int64_t now)
{
    for (struct http_connection *at = TAILQ_FIRST(list), *next; at; at = next) {
        next = TAILQ_NEXT(at, link);
        if (at->phase != HTTP_CUT && atomic_load_explicit(&at->deadline_ms, memory_order_relaxed) < now)
            cut_slow(server, at);
    }
}

static void sweep(void *arg)
{
    struct http_server *server = arg;
    int64_t now = http_server_now_ms(server);
    pthread_mutex_lock(&server->lock); // a socket is closed only after it left its list
    cut_late(server, &server->waiting, now);
    cut_late(server, &server->working, now); // streams whose reader takes nothing
    pthread_mutex_unlock(&server->lock);
    server->sweep = loop_after(server->options.loop, SWEEP_MS, sweep, server);
}

void http_sweep_start(void *arg)
{
    struct http_server *server = arg;
    server->sweep = loop_after(server->options.loop, SWEEP_MS, sweep, server);
}

void http_sweep_stop(void *arg)
{
    struct http_server *server = arg;
    loop_cancel(server->sweep);
    server->sweep = NULL;
}

void http_connections_shut(struct http_server *server)
{
    const struct http_connection *at;
    TAILQ_FOREACH(at, &server->waiting, link) shutdown(at->fd, SHUT_RDWR);
    TAILQ_FOREACH(at, &server->working, link) shutdown(at->fd, SHUT_RDWR);
}

// ---- coming and going -------------------------------------------------------------------------------------
// One client that opens connections and leaves them must not lock the others out: the newcomer stays, and
// whoever stands still the longest goes. Those that wait for a handler's answer stay.
static const char *listener_word(const struct http_server *server)
{
    if (server->options.name)
        return server->options.name;
    return server->options.has_peer ? "unix" : "tcp";
}

static void connection_started(struct http_server *server, struct MHD_Connection *mhd, void **context)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (!info)
        return;
    struct http_connection *connection = mem_alloc(sizeof(*connection));
    connection->fd = info->connect_fd;
    connection->phase = HTTP_FRESH;
    connection->number = atomic_fetch_add(&last_number, 1) + 1;
    connection->deadline_ms = http_server_now_ms(server) + HTTP_HEAD_MS;
    *context = connection;
    metrics_move(METRIC_CONNECTIONS, listener_word(server), 1);
    pthread_mutex_lock(&server->lock);
    enter(server, connection);
    struct http_connection *longest = TAILQ_FIRST(&server->waiting);
    if (++server->connection_count > server->connections_full && longest != connection)
        evict(server, longest);
    pthread_mutex_unlock(&server->lock);
}

static void connection_closed(struct http_server *server, void **context)
{
    struct http_connection *connection = *context;
    *context = NULL;
    if (!connection)
        return;
    metrics_move(METRIC_CONNECTIONS, listener_word(server), -1);
    pthread_mutex_lock(&server->lock);
    server->connection_count--;
    leave(server, connection);
    pthread_mutex_unlock(&server->lock);
    free(connection);
}

void http_connection_changed(void *arg, struct MHD_Connection *mhd, void **context,
                             enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        connection_started(arg, mhd, context);
    else
        connection_closed(arg, context);
}

bool http_connection_peer(const struct http_connection *connection, struct ucred *ret)
{
    return connection && socket_peer(connection->fd, ret) == 0;
}

// Who comes while the server stops, or when even evictions have made no room, is turned away here. The library's own way to stop
// (MHD_quiesce_daemon) takes the listening socket out of the epoll set on this thread and, at the same time, on its own, which
// aborts the process when the second one finds it gone.
enum MHD_Result http_connection_may_enter(void *arg, const struct sockaddr *address, socklen_t len)
{
    (void)address;
    (void)len;
    struct http_server *server = arg;
    pthread_mutex_lock(&server->lock);
    bool may_enter = !server->is_stopping && server->connection_count < server->connections_max;
    pthread_mutex_unlock(&server->lock);
    return may_enter ? MHD_YES : MHD_NO;
}
