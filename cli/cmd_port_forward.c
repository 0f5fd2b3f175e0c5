// port-forward: listeners here, each connection carried into the sandbox by a thread of its own (forward.c). Ends with Ctrl-C, or
// when the sandbox does.
#include "api/client/watch.h"
#include "cli/objects.h"
#include "cli/forward.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/thread.h"
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#define PORTS_MAX 32
#define ADDRESSES_MAX 8
#define CONNECTIONS_MAX 128
#define ACCEPT_PAUSE_MS 100

struct port_pair {
    int local, remote;
};
struct listener {
    int fd, local, remote;
    bool is_ipv6;
    char address[INET6_ADDRSTRLEN];
};
// Lives as long as the process: threads that are never joined use it.
static struct forwarder {
    struct rest rest;
    char *sandbox; // its name
    struct listener listeners[PORTS_MAX * ADDRESSES_MAX];
    size_t count;
    atomic_int connections;
    int over_fds[2]; // the watch writes a byte when the sandbox is gone
    struct error over;
} forwarder;

static const struct invocation plain; // what a connection has to say is for people

// ---- what is asked for ----------------------------------------------------------------------------------------------
static int parse_number(const char *text, size_t len)
{
    int value = 0;
    if (!len || len > 5)
        return -1;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        value = value * 10 + (text[i] - '0');
    }
    return value <= 65535 ? value : -1;
}

// "8080:80", ":80" (a free local port), "80".
static int parse_pair(const char *text, struct port_pair *ret, struct error *err)
{
    const char *colon = strchr(text, ':'), *remote = colon ? colon + 1 : text;
    int inside = parse_number(remote, strlen(remote)), local = !colon ? inside : colon == text ? 0 : parse_number(text, (size_t)(colon - text));
    if (inside < 1 || local < 0)
        return error_set(err, ERROR_USAGE, "give [LOCAL:]REMOTE, as 8080:80, :80 or 80", "'%.40s' is no pair of ports", text);
    *ret = (struct port_pair){local, inside};
    return 0;
}

// ---- listening ------------------------------------------------------------------------------------------------------
static int listen_at(struct listener *listener, const struct port_pair *pair, struct error *err)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)pair->local)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)pair->local)};
    listener->is_ipv6 = inet_pton(AF_INET6, listener->address, &v6.sin6_addr) == 1;
    if (!listener->is_ipv6 && inet_pton(AF_INET, listener->address, &v4.sin_addr) != 1)
        return error_set(err, ERROR_USAGE, "give a numeric address, or localhost", "--address '%.60s' is no address", listener->address);
    struct sockaddr *at = listener->is_ipv6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
    socklen_t size = listener->is_ipv6 ? sizeof(v6) : sizeof(v4);
    int on = 1;
    CLEANUP_CLOSE int fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (fd < 0 || bind(fd, at, size) < 0 || listen(fd, 128) < 0 || getsockname(fd, at, &size) < 0)
        return error_errno(err, errno, "choose another local port, or :REMOTE for a free one", "cannot listen on %s port %d", listener->address, pair->local);
    listener->local = ntohs(listener->is_ipv6 ? v6.sin6_port : v4.sin_port);
    listener->remote = pair->remote;
    listener->fd = TAKE_FD(fd);
    return 0;
}

static int add_listener(const char *address, const struct port_pair *pair, struct error *err)
{
    struct listener *listener = &forwarder.listeners[forwarder.count];
    *listener = (struct listener){.fd = -1};
    snprintf(listener->address, sizeof(listener->address), "%s", strcmp(address, "localhost") == 0 ? "127.0.0.1" : address);
    if (listen_at(listener, pair, err) < 0)
        return -1;
    forwarder.count++;
    printf(listener->is_ipv6 ? "Forwarding from [%s]:%d -> %d\n" : "Forwarding from %s:%d -> %d\n", listener->address, listener->local, listener->remote);
    return 0;
}

static int open_listeners(const struct invocation *in, struct error *err)
{
    const char *addresses[ARGUMENTS_MAX_VALUES] = {"127.0.0.1"};
    size_t address_count = invocation_values(in, "address", addresses);
    address_count = address_count ? address_count : 1;
    if (in->argument_count - 1 > PORTS_MAX || address_count > ADDRESSES_MAX)
        return error_set(err, ERROR_USAGE, "use several commands", "at most %d ports on %d addresses can be forwarded", PORTS_MAX, ADDRESSES_MAX);
    for (int i = 1; i < in->argument_count; i++) {
        struct port_pair pair = {0};
        if (parse_pair(in->arguments[i], &pair, err) < 0)
            return -1;
        for (size_t a = 0; a < address_count; a++)
            if (add_listener(addresses[a], &pair, err) < 0)
                return -1;
    }
    return fflush(stdout) == 0 ? 0 : error_errno(err, errno, NULL, "cannot write the output");
}

// ---- connections ----------------------------------------------------------------------------------------------------
struct connection {
    int fd;
    const struct listener *listener;
};

static void *run_connection(void *arg)
{
    CLEANUP_FREE struct connection *connection = arg;
    struct error err = ERROR_INIT;
    if (forward_run(&forwarder.rest, forwarder.sandbox, connection->listener->remote, connection->fd, &err) < 0)
        complain(&plain, &err);
    atomic_fetch_sub(&forwarder.connections, 1);
    return NULL;
}

static void start_connection(const struct listener *listener, int fd)
{
    struct error err = ERROR_INIT;
    pthread_t thread;
    struct connection *connection = mem_alloc(sizeof(*connection));
    *connection = (struct connection){fd, listener};
    atomic_fetch_add(&forwarder.connections, 1);
    if (thread_start(&thread, "forward", run_connection, connection, &err) == 0) {
        pthread_detach(thread);
        return;
    }
    atomic_fetch_sub(&forwarder.connections, 1);
    complain(&plain, &err);
    close(fd);
    free(connection);
}

static void take_connection(const struct listener *listener)
{
    int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        // Without descriptors or memory the connection stays in the backlog and is told of at once again.
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            poll(NULL, 0, ACCEPT_PAUSE_MS);
        return;
    }
    if (atomic_load(&forwarder.connections) >= CONNECTIONS_MAX) {
        fprintf(stderr, "error: %d connections are open, the most at once; one more was closed\n", CONNECTIONS_MAX);
        close(fd);
        return;
    }
    printf("Handling connection for %d\n", listener->local);
    fflush(stdout);
    start_connection(listener, fd);
}

// ---- the sandbox's end ----------------------------------------------------------------------------------------------
static int look(void *arg, size_t ask, enum watch_type type, json_t *object, struct error *err)
{
    (void)arg, (void)ask;
    const json_t *meta = json_object_get(object, "metadata");
    const char *phase = json_get_text(json_object_get(object, "status"), "phase");
    if (type == WATCH_DELETED || (object && json_object_get(meta, "deletionTimestamp")))
        return error_set(err, ERROR_STATE, NULL, "the sandbox '%s' was destroyed: its ports went with it", forwarder.sandbox);
    if (object && phase && strcasecmp(phase, "failed") == 0)
        return error_set(err, ERROR_STATE, "chat2shell recreate replaces it on the same workspace", "the sandbox '%s' failed: its ports went with it", forwarder.sandbox);
    return 0;
}

static void *run_watch(void *arg)
{
    (void)arg;
    CLEANUP_FREE char *name = http_escape(forwarder.sandbox);
    CLEANUP_FREE char *path = mem_format(REST_API "/sandboxes?fieldSelector=metadata.name%%3D%s", name);
    const struct watch_ask ask = {.path = path};
    if (watch_follow(&forwarder.rest, &ask, 1, WATCH_FOREVER, -1, look, NULL, &forwarder.over) >= 0)
        error_set(&forwarder.over, ERROR_INTERNAL, NULL, "the watch of the sandbox ended");
    close(forwarder.over_fds[1]);
    return NULL;
}

static int find_sandbox(const struct invocation *in, const struct rest *rest, struct error *err)
{
    CLEANUP_JSON json_t *sandbox = NULL;
    if (object_get(rest, kind_info(KIND_SANDBOX), in->arguments[0], &sandbox, err) < 0)
        return -1;
    const char *name = json_get_text(json_object_get(sandbox, "metadata"), "name");
    const char *phase = json_get_text(json_object_get(sandbox, "status"), "phase");
    if (!name)
        return error_set(err, ERROR_INTERNAL, "is the daemon of another version?", "the daemon's answer makes no sense");
    if (!phase || strcasecmp(phase, "running") != 0)
        return error_set(err, ERROR_STATE, "wait for it: chat2shell wait sandbox NAME --for=condition=Ready", "the sandbox '%s' does not run: it is %s", name,
                         phase ? phase : "new");
    forwarder.rest = (struct rest){mem_strdup(rest->socket_path), rest->timeout_ms};
    forwarder.sandbox = mem_strdup(name);
    return 0;
}

// ---- the whole ------------------------------------------------------------------------------------------------------
static int open_signals(struct error *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? error_errno(err, errno, NULL, "cannot watch for signals") : fd;
}

static int serve(int signal_fd, struct error *err)
{
    struct pollfd polls[2 + PORTS_MAX * ADDRESSES_MAX] = {{signal_fd, POLLIN, 0}, {forwarder.over_fds[0], POLLIN, 0}};
    for (size_t i = 0; i < forwarder.count; i++)
        polls[2 + i] = (struct pollfd){forwarder.listeners[i].fd, POLLIN, 0};
    for (;;) {
        if (poll(polls, 2 + forwarder.count, -1) < 0 && errno != EINTR)
            return error_errno(err, errno, NULL, "cannot wait for connections");
        if (polls[0].revents)
            return 0; // Ctrl-C is how this command is meant to end
        if (polls[1].revents)
            return error_copy(err, &forwarder.over);
        for (size_t i = 0; i < forwarder.count; i++)
            if (polls[2 + i].revents)
                take_connection(&forwarder.listeners[i]);
    }
}

static int run(struct invocation *in, struct error *err)
{
    pthread_t watch;
    const struct rest *rest = invocation_rest(in, err);
    if (!rest || find_sandbox(in, rest, err) < 0 || open_listeners(in, err) < 0)
        return -1;
    CLEANUP_CLOSE int signal_fd = open_signals(err);
    if (signal_fd < 0)
        return -1;
    if (pipe2(forwarder.over_fds, O_CLOEXEC) < 0)
        return error_errno(err, errno, NULL, "cannot make a pipe");
    signal(SIGPIPE, SIG_IGN);
    if (thread_start(&watch, "watch", run_watch, NULL, err) < 0)
        return -1;
    pthread_detach(watch);
    return serve(signal_fd, err);
}

static const struct example examples[] = {
    {"chat2shell port-forward dev 8080:80", "http://127.0.0.1:8080 is port 80 of the sandbox dev"},
    {"chat2shell port-forward dev 5432 :3000", "port 5432 on both sides, and port 3000 on a free one here"},
};
static const struct option_row options[] = {
    {.name = "address", .value = "ADDRESS", .doc = "address to listen on (127.0.0.1); others than loopback let others in; may be repeated", .is_repeatable = true},
};
const struct command command_port_forward = {
    .name = "port-forward", .synopsis = "SANDBOX [LOCAL:]REMOTE…", .summary = "Reach ports of a sandbox from here", .min_arguments = 2, .max_arguments = -1,
    .run = run,
    .details = "Connections to the local port are carried to the port inside, where the server may listen on 127.0.0.1 only. A port that nothing\n"
               "listens on breaks the connection and is told; the command goes on until Ctrl-C (exit code 0) or the sandbox's end (5).",
    COMMAND_EXAMPLES(examples), COMMAND_OPTIONS(options),
};
