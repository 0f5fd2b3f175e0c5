// Start and stop, and who may speak at all.
#include "api/operator/internal.h"
#include "api/operator/exec.h"
#include "api/operator/listener.h"
#include "api/operator/peer.h"
#include "api/operator/watch.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/base/socket.h"
#include "controller/log.h"
#include "controller/thread.h"
#include <string.h>

#define HTTP_THREADS 2
#define STOP_WAIT_MS 10000 // for calls whose answer nobody will read

void operator_server_ref(struct operator_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->refs++;
    pthread_mutex_unlock(&server->lock);
}

static void server_free(struct operator_server *server)
{
    operator_execs_free(server->execs);
    watch_hub_free(server->watches);
    listener_free(server->listener);
    pthread_cond_destroy(&server->ended);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

void operator_server_unref(struct operator_server *server)
{
    pthread_mutex_lock(&server->lock);
    bool is_last = --server->refs == 0;
    pthread_cond_signal(&server->ended);
    pthread_mutex_unlock(&server->lock);
    if (is_last)
        server_free(server);
}

// ---- before the body
// ------------------------------------------------------------------------------------------------
static bool refuse(struct http_refusal *refusal, int status, const char *allow)
{
    refusal->status = status;
    if (allow)
        refusal->headers[0] = (struct http_header){"Allow", allow};
    return false;
}

bool operator_check_route(struct http_request *request, struct http_refusal *refusal)
{
    struct route_match match;
    route_find(http_request_method(request), http_request_path(request), &match);
    bool is_known = match.route != NULL;
    const char *allow = match.allow;
    route_match_clear(&match);
    if (is_known)
        return true;
    if (allow) {
        error_set(&refusal->error, ERROR_UNSUPPORTED, NULL, "this path does not take %s, only %s",
                  http_request_method(request), allow);
        return refuse(refusal, 405, allow);
    }
    error_set(&refusal->error, ERROR_NOT_FOUND, "what there is: /apis, /api/v1, /openapi/v3, /healthz, /metrics", "there is no such path here: %.200s",
              http_request_path(request));
    return refuse(refusal, 404, NULL);
}

static bool check_head(void *arg, struct http_request *request, struct http_refusal *refusal)
{
    const struct operator_server *server = arg;
    struct ucred peer;
    if (!http_request_peer(request, &peer)) {
        error_set(&refusal->error, ERROR_REFUSED, NULL,
                  "the kernel does not say who is at the other end of this connection");
        return refuse(refusal, 403, NULL);
    }
    if (peer_check(http_request_socket(request), &peer, server->uid, &refusal->error) < 0) {
        log_warning("operator API: refused process %ld of uid %u: %s", (long)peer.pid, (unsigned)peer.uid,
                    refusal->error.message);
        return refuse(refusal, 403, NULL);
    }
    return operator_check_route(request, refusal);
}

char *operator_error_body(void *arg, int status, const struct error *err, const char *body, size_t len)
{
    (void)arg, (void)body, (void)len; // a Status repeats nothing of the request
    CLEANUP_JSON json_t *json = status_to_json(status, err, NULL, NULL);
    return json_to_text(json);
}

static void handle(void *arg, struct http_request *request)
{
    struct ucred peer = {0};
    http_request_peer(request, &peer);
    operator_call_start(arg, request, mem_format("operator:uid=%u", (unsigned)peer.uid));
}

// ---- start and stop
// ---------------------------------------------------------------------------------------------------
static int listen_and_start(struct operator_server *server, struct error *err)
{
    CLEANUP_CLOSE int dir_fd = -1;
    if (fs_make_private_dir(server->world->config->state_dir, &dir_fd, err) < 0)
        return -1;
    int fd = socket_listen_at(dir_fd, OPERATOR_SOCKET_NAME, SOCK_STREAM, err);
    if (fd < 0)
        return -1;
    const struct http_server_options options = {
        .loop = server->world->loop,
        .listen_fd = fd,
        .thread_count = HTTP_THREADS,
        .has_peer = true,
        .body_max_bytes = OPERATOR_BODY_MAX_BYTES,
        .check_head = check_head,
        .handle = handle,
        .error_body = operator_error_body,
        .arg = server,
    };
    return http_server_start(&options, &server->http, err);
}

// The TLS listener before the socket: over that its changes are asked for, and they are made by one thread at a time.
static int serve(struct operator_server *server, struct error *err)
{
    if (watch_hub_start(server->world, &server->watches, err) < 0)
        return -1;
    listener_resume(server->listener);
    return listen_and_start(server, err);
}

int operator_server_start(struct world *world, struct operator_server **ret, struct error *err)
{
    struct operator_server *server = mem_alloc(sizeof(*server));
    server->world = world;
    server->uid = geteuid();
    server->refs = 1;
    server->started_at = clock_wall(world->clock);
    pthread_mutex_init(&server->lock, NULL);
    thread_cond_init(&server->ended);
    server->execs = operator_execs_new(world);
    server->listener = listener_new(server);
    if (serve(server, err) < 0) {
        operator_server_stop(server);
        return error_context(err, "the operator API cannot be served");
    }
    *ret = server;
    return 0;
}

// Calls that nobody waits for any more still end by callbacks, which use the world: it must outlive them.
static void wait_for_calls(struct operator_server *server)
{
    int64_t until = boot_time_now().ms + STOP_WAIT_MS, left;
    pthread_mutex_lock(&server->lock);
    while (server->refs > 1 && (left = until - boot_time_now().ms) > 0)
        thread_cond_wait_ms(&server->ended, &server->lock, left);
    size_t count = server->refs - 1;
    pthread_mutex_unlock(&server->lock);
    if (count)
        log_warning("%zu requests of the operator API did not end in time", count);
}

void operator_server_stop(struct operator_server *server)
{
    if (!server)
        return;
    watch_hub_end(server->watches);
    http_server_stop(server->http);
    listener_stop(server->listener);
    operator_execs_stop(server->execs);
    wait_for_calls(server);
    operator_server_unref(server);
}

void operator_server_set_mcp_port(struct operator_server *server, int port)
{
    atomic_store(&server->mcp_port, port);
}

struct new_tunnel {
    struct operator_server *server;
    struct tunnel *tunnel;
};

static void take_tunnel(void *arg)
{
    const struct new_tunnel *new_tunnel = arg;
    new_tunnel->server->tunnel = new_tunnel->tunnel;
}

void operator_server_set_tunnel(struct operator_server *server, struct tunnel *tunnel)
{
    if (server)
        loop_call(server->world->loop, take_tunnel, &(struct new_tunnel){server, tunnel});
}
