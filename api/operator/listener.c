#include "api/operator/listener.h"
#include "api/operator/internal.h"
#include "api/operator/listener_files.h"
#include "api/operator/listener_front.h"
#include "controller/base/memory.h"
#include "controller/log.h"
#include "controller/thread.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/queue.h>

#define HTTP_THREADS 1

// One token's time: whoever came in with it is gone when the door is.
struct door {
    struct operator_server *server;
    struct http_server *http;
    unsigned char digest[TOKEN_DIGEST_BYTES];
    _Atomic bool is_closing; // its token has ended
};

enum change_kind { CHANGE_OPEN, CHANGE_ROTATE, CHANGE_CLOSE };
struct change {
    STAILQ_ENTRY(change) link;
    enum change_kind kind;
    struct call *call;
};

struct listener {
    struct operator_server *server;
    int listen_fd;     // whoever makes the changes; kept while one door follows another, so that the port is never another's
    struct door *door; // likewise
    pthread_mutex_t lock; // guards the rest
    STAILQ_HEAD(, change) changes;
    size_t change_count;
    pthread_t worker;
    bool has_worker, is_working, is_stopping;
    struct listener_view view;
    char *certificate; // public; NULL: never opened
};

// ---- the door -----------------------------------------------------------------------------------------------------------------
static bool check_head(void *arg, struct http_request *request, struct http_refusal *refusal)
{
    const struct door *door = arg;
    return listener_check_front(request, door->is_closing ? NULL : door->digest, refusal) && operator_check_route(request, refusal);
}

static void handle(void *arg, struct http_request *request)
{
    const struct door *door = arg;
    operator_call_start(door->server, request, mem_strdup(LISTENER_PRINCIPAL));
}

static void door_close(struct door *door)
{
    if (!door)
        return;
    door->is_closing = true; // what comes in on open connections while the server stops
    http_server_stop(door->http);
    free(door);
}

static struct door *door_open(struct listener *listener, const unsigned char digest[TOKEN_DIGEST_BYTES], const char *pem, struct error *err)
{
    int fd = fcntl(listener->listen_fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return error_errno(err, errno, "raise the limit on open files", "the socket cannot be served"), NULL;
    struct door *door = mem_alloc(sizeof(*door));
    door->server = listener->server;
    memcpy(door->digest, digest, TOKEN_DIGEST_BYTES);
    const struct http_server_options options = {
        .loop = listener->server->world->loop,
        .listen_fd = fd,
        .thread_count = HTTP_THREADS,
        .name = "kubernetes",
        .tls_pem = pem,
        .connections_max = LISTENER_CONNECTIONS_MAX,
        .body_max_bytes = OPERATOR_BODY_MAX_BYTES,
        .check_head = check_head,
        .handle = handle,
        .error_body = operator_error_body,
        .arg = door,
    };
    if (http_server_start(&options, &door->http, err) < 0) {
        free(door);
        return NULL;
    }
    return door;
}

// ---- changes ------------------------------------------------------------------------------------------------------------------
static void publish(struct listener *listener, bool is_on, const struct error *trouble, const char *certificate)
{
    pthread_mutex_lock(&listener->lock);
    listener->view = (struct listener_view){.is_on = is_on, .port = listener->door ? http_listen_port(listener->listen_fd) : 0};
    if (trouble)
        listener->view.trouble = *trouble;
    if (certificate)
        mem_replace(&listener->certificate, certificate);
    pthread_mutex_unlock(&listener->lock);
}

static void close_socket(struct listener *listener)
{
    if (listener->listen_fd >= 0)
        close(listener->listen_fd);
    listener->listen_fd = -1;
}

// remembered: 0 where it was off.
static int open_socket(struct listener *listener, int remembered, struct error *err)
{
    int configured = listener->server->world->config->kube_port, port = configured ? configured : remembered;
    if (listener->listen_fd >= 0)
        return 0;
    int fd = http_listen_tcp(LISTENER_HOST, port, err);
    if (fd < 0)
        return error_hint(err, "stop the program that listens there, or start the daemon with another CHAT2SHELL_KUBE_PORT; then: chat2shell kubeconfig");
    listener->listen_fd = fd;
    return 0;
}

static int open_door(struct listener *listener, const struct listener_files *files, int remembered, bool is_new_token, struct error *err)
{
    CLEANUP_SECRET char *pem = NULL;
    CLEANUP_FREE char *certificate = NULL;
    unsigned char digest[TOKEN_DIGEST_BYTES];
    struct wall_time now = clock_wall(listener->server->world->clock);
    if (listener_files_take_certificate(files, now, &pem, &certificate, err) < 0 || listener_files_take_token(files, is_new_token, digest, err) < 0 ||
        open_socket(listener, remembered, err) < 0)
        return -1;
    door_close(TAKE_PTR(listener->door));
    listener->door = door_open(listener, digest, pem, err);
    if (!listener->door || listener_files_write_port(files, http_listen_port(listener->listen_fd), err) < 0) {
        door_close(TAKE_PTR(listener->door));
        return -1;
    }
    publish(listener, true, NULL, certificate);
    return 0;
}

static int turn_on(struct listener *listener, bool is_new_token, struct error *err)
{
    CLEANUP(listener_files_close) struct listener_files files = LISTENER_FILES_INIT;
    struct error ignored = ERROR_INIT;
    int port = 0;
    if (listener->door && !is_new_token)
        return 0;
    if (listener_files_open(listener->server->world->config->state_dir, true, &files, err) < 0)
        return -1;
    listener_files_read_port(&files, &port, &ignored); // what is damaged is written anew
    if (open_door(listener, &files, port, is_new_token, err) == 0)
        return 0;
    if (!listener->door)
        close_socket(listener);
    publish(listener, port != 0, err, NULL);
    return -1;
}

static int turn_off(struct listener *listener, struct error *err)
{
    CLEANUP(listener_files_close) struct listener_files files = LISTENER_FILES_INIT;
    int opened = listener_files_open(listener->server->world->config->state_dir, false, &files, err);
    int removed = opened == 0 ? listener_files_remove_port(&files, err) : -1;
    door_close(TAKE_PTR(listener->door)); // whatever the disk says: nobody is served from here on
    close_socket(listener);
    int ended = opened == 0 ? listener_files_remove_token(&files, removed < 0 ? NULL : err) : -1;
    publish(listener, removed < 0, NULL, NULL);
    return removed < 0 || ended < 0 ? -1 : 0;
}

static int make_change(struct listener *listener, const struct change *change, struct error *err)
{
    static const char *const words[] = {[CHANGE_OPEN] = "open", [CHANGE_ROTATE] = "the token is a new one", [CHANGE_CLOSE] = "closed, and its token has ended"};
    bool is_news = change->kind != CHANGE_OPEN || !listener->door;
    int r = change->kind == CHANGE_CLOSE ? turn_off(listener, err) : turn_on(listener, change->kind == CHANGE_ROTATE, err);
    if (r < 0)
        return error_context(err, "the Kubernetes listener");
    if (is_news)
        log_info("Kubernetes listener: %s, as %s asked for", words[change->kind], change->call->principal);
    return 0;
}

// ---- the thread -----------------------------------------------------------------------------------------------------------------
static struct change *next_change(struct listener *listener)
{
    pthread_mutex_lock(&listener->lock);
    struct change *change = STAILQ_FIRST(&listener->changes);
    if (change) {
        STAILQ_REMOVE_HEAD(&listener->changes, link);
        listener->change_count--;
    }
    listener->is_working = change != NULL;
    pthread_mutex_unlock(&listener->lock);
    return change;
}

static json_t *describe(struct listener *listener)
{
    CLEANUP_FREE char *token_path = listener_files_token_path(listener->server->world->config->state_dir);
    pthread_mutex_lock(&listener->lock);
    const struct listener_view *view = &listener->view;
    json_t *json = json_pack("{s:b, s:b}", "isOn", view->is_on, "isListening", view->port != 0);
    if (view->port) {
        CLEANUP_FREE char *url = mem_format("https://" LISTENER_HOST ":%d", view->port);
        json_set_text(json, "server", url);
        json_set_text(json, "tokenFile", token_path);
        json_set_text(json, "certificate", listener->certificate);
    }
    if (view->trouble.code)
        json_object_set_new(json, "message", json_from_text(view->trouble.message));
    pthread_mutex_unlock(&listener->lock);
    return json;
}

static void *work(void *arg)
{
    struct listener *listener = arg;
    for (struct change *change; (change = next_change(listener)); free(change)) {
        struct error err = ERROR_INIT;
        if (make_change(listener, change, &err) < 0)
            operator_fail(change->call, &err);
        else
            operator_answer(change->call, 200, describe(listener));
    }
    return NULL;
}

// Holding the lock.
static int add_change(struct listener *listener, struct change *change, struct error *err)
{
    if (listener->is_stopping)
        return error_set(err, ERROR_UNAVAILABLE, "connect again when it runs", "the daemon is stopping");
    if (listener->change_count == LISTENER_CHANGES_MAX)
        return error_set(err, ERROR_LIMIT, "try again in a moment", "%d changes of the Kubernetes listener are waiting", LISTENER_CHANGES_MAX);
    if (!listener->is_working && listener->has_worker)
        pthread_join(listener->worker, NULL); // it takes no lock any more
    if (!listener->is_working) {
        listener->has_worker = false;
        STAILQ_INSERT_TAIL(&listener->changes, change, link);
        if (thread_start(&listener->worker, "listener", work, listener, err) < 0) {
            STAILQ_INIT(&listener->changes); // it was the only one
            return -1;
        }
        listener->has_worker = listener->is_working = true;
    } else {
        STAILQ_INSERT_TAIL(&listener->changes, change, link);
    }
    listener->change_count++;
    return 0;
}

static void ask_for(struct call *call, enum change_kind kind)
{
    struct listener *listener = call->server->listener;
    struct change *change = mem_alloc(sizeof(*change));
    struct error err = ERROR_INIT;
    *change = (struct change){.kind = kind, .call = call};
    pthread_mutex_lock(&listener->lock);
    int r = add_change(listener, change, &err);
    pthread_mutex_unlock(&listener->lock);
    if (r == 0)
        return;
    free(change);
    operator_fail(call, &err);
}

// ---- handlers -------------------------------------------------------------------------------------------------------------------
void kubeconfig_show(struct call *call)
{
    operator_answer(call, 200, describe(call->server->listener));
}

void kubeconfig_open(struct call *call)
{
    ask_for(call, json_get_bool(call->body, "rotate", false) ? CHANGE_ROTATE : CHANGE_OPEN);
}

void kubeconfig_close(struct call *call)
{
    ask_for(call, CHANGE_CLOSE);
}

// ---- life -----------------------------------------------------------------------------------------------------------------------
struct listener *listener_new(struct operator_server *server)
{
    struct listener *listener = mem_alloc(sizeof(*listener));
    listener->server = server;
    listener->listen_fd = -1;
    pthread_mutex_init(&listener->lock, NULL);
    STAILQ_INIT(&listener->changes);
    return listener;
}

void listener_resume(struct listener *listener)
{
    CLEANUP(listener_files_close) struct listener_files files = LISTENER_FILES_INIT;
    struct error err = ERROR_INIT;
    int port = 0;
    int r = listener_files_open(listener->server->world->config->state_dir, false, &files, &err);
    r = r < 0 ? r : listener_files_read_port(&files, &port, &err);
    if (r == 0 && port)
        r = open_door(listener, &files, port, false, &err);
    if (r == 0)
        return;
    close_socket(listener);
    publish(listener, true, &err, NULL);
    log_error("the Kubernetes listener is not open: %s%s%s", err.message, err.hint[0] ? "; to fix it: " : "", err.hint);
}

void listener_look(struct listener *listener, struct listener_view *ret)
{
    pthread_mutex_lock(&listener->lock);
    *ret = listener->view;
    pthread_mutex_unlock(&listener->lock);
}

void listener_stop(struct listener *listener)
{
    if (!listener)
        return;
    pthread_mutex_lock(&listener->lock);
    listener->is_stopping = true;
    bool has_worker = listener->has_worker;
    pthread_mutex_unlock(&listener->lock);
    if (has_worker)
        pthread_join(listener->worker, NULL);
    listener->has_worker = false;
    door_close(TAKE_PTR(listener->door));
    close_socket(listener);
}

void listener_free(struct listener *listener)
{
    if (!listener)
        return;
    assert(!listener->door && !listener->has_worker);
    pthread_mutex_destroy(&listener->lock);
    free(listener->certificate);
    free(listener);
}
