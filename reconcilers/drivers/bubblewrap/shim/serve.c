#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/base/socket.h"
#include "reconcilers/drivers/bubblewrap/shim/shim.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>

static const char *const state_names[] = {[SHIM_STARTING] = "starting", [SHIM_RUNNING] = "running", [SHIM_ENDING] = "ending"};

void shim_send(int fd, json_t *message, const int *fds, size_t fd_count)
{
    json_object_set_new(message, "v", json_integer(SHIM_PROTOCOL_VERSION));
    CLEANUP_FREE char *text = json_to_text(message);
    json_decref(message);
    if (fd >= 0)
        socket_send_fds(fd, text, strlen(text), fds, fd_count); // whoever does not read loses it; its end is noticed apart
}

struct request {
    int fd;
    json_int_t seq;
};

static void answer(const struct request *request, json_t *message, const int *fds, size_t fd_count)
{
    json_object_set_new(message, "seq", json_integer(request->seq));
    shim_send(request->fd, message, fds, fd_count);
}

static void do_hello(struct shim *shim, const struct request *request)
{
    answer(request,
           json_pack("{s:b, s:i, s:s, s:s}", "ok", 1, "version", SHIM_PROTOCOL_VERSION, "name", shim->config.name, "state",
                     state_names[shim->state]),
           NULL, 0);
}

static void do_stdio(struct shim *shim, const struct request *request)
{
    if (shim->state == SHIM_RUNNING)
        answer(request, json_pack("{s:b, s:[sss]}", "ok", 1, "fds", "stdin", "stdout", "stderr"), shim->stdio, 3);
    else
        answer(request, json_pack("{s:b, s:s}", "ok", 0, "error", "the sandbox is not running"), NULL, 0);
}

static void do_network(struct shim *shim, const struct request *request)
{
    const int fds[] = {shim->proxy_fd, shim->net.connector_fd};
    if (shim->state == SHIM_RUNNING && shim->config.has_network)
        answer(request, json_pack("{s:b, s:[ss]}", "ok", 1, "fds", "proxy", "connector"), fds, ARRAY_LEN(fds));
    else
        answer(request, json_pack("{s:b, s:s}", "ok", 0, "error", "the sandbox is not running, or has no network"), NULL, 0);
}

static void do_end(struct shim *shim, const struct request *request)
{
    shim->state = SHIM_ENDING;
    answer(request, json_pack("{s:b}", "ok", 1), NULL, 0);
}

// What may be asked. Everything else is answered with a sentence and changes nothing.
static const struct operation {
    const char *name;
    void (*run)(struct shim *shim, const struct request *request);
} operations[] = {{"hello", do_hello}, {"stdio", do_stdio}, {"network", do_network}, {"end", do_end}};

static void dispatch(struct shim *shim, const struct request *request, const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(operations); i++)
        if (name && strcmp(operations[i].name, name) == 0) {
            operations[i].run(shim, request);
            return;
        }
    answer(request, json_pack("{s:b, s:s}", "ok", 0, "error", "unknown operation"), NULL, 0);
}

// One message; false at the peer's end. Descriptors that come along are closed by the receive.
static bool receive(struct shim *shim, int fd)
{
    char bytes[SHIM_MESSAGE_MAX_BYTES];
    ssize_t n = socket_receive_fds(fd, bytes, sizeof(bytes), NULL, NULL);
    if (n == 0 || (n < 0 && errno != EMSGSIZE))
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    CLEANUP_JSON json_t *message = NULL;
    struct request request = {.fd = fd};
    if (n < 0 || json_parse(bytes, (size_t)n, &message, NULL) < 0 || !json_is_object(message) ||
        json_get_int(message, "v", 0) != SHIM_PROTOCOL_VERSION) {
        answer(&request, json_pack("{s:b, s:s}", "ok", 0, "error", "not a message of this protocol's version"), NULL, 0);
        return true;
    }
    request.seq = json_get_int(message, "seq", 0);
    dispatch(shim, &request, json_get_text(message, "op"));
    return true;
}

static void lose_controller(struct shim *shim)
{
    close(TAKE_FD(shim->controller_fd));
    if (shim->config.ends_with_controller)
        shim->state = SHIM_ENDING;
}

bool shim_may_go_on(struct shim *shim)
{
    if (!receive(shim, shim->controller_fd))
        lose_controller(shim);
    return shim->state != SHIM_ENDING;
}

static void accept_client(struct shim *shim)
{
    CLEANUP_CLOSE int fd = accept4(shim->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct ucred peer;
    if (fd < 0 || socket_peer(fd, &peer) < 0 || (peer.uid != geteuid() && peer.uid != 0))
        return;
    for (size_t i = 0; i < SHIM_MAX_CLIENTS; i++)
        if (shim->clients[i] < 0) {
            shim->clients[i] = TAKE_FD(fd);
            return;
        }
}

// Orphans of bubblewrap end up here (child subreaper). The exit status of the sandbox is bubblewrap's.
static void reap(struct shim *shim)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == shim->bwrap_pid) {
            shim->bwrap_pid = -1;
            shim->exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        }
}

void shim_serve(struct shim *shim)
{
    while (shim->state == SHIM_RUNNING) {
        struct pollfd polls[4 + SHIM_MAX_CLIENTS] = {{.fd = shim->controller_fd, .events = POLLIN},
                                                     {.fd = shim->listen_fd, .events = POLLIN},
                                                     {.fd = shim->init_pidfd, .events = POLLIN},
                                                     {.fd = shim->bwrap_pidfd, .events = POLLIN}};
        for (size_t i = 0; i < SHIM_MAX_CLIENTS; i++)
            polls[4 + i] = (struct pollfd){.fd = shim->clients[i], .events = POLLIN};
        if (poll(polls, ARRAY_LEN(polls), -1) < 0 && errno != EINTR)
            return;
        if (polls[0].revents && !receive(shim, shim->controller_fd))
            lose_controller(shim);
        if (polls[1].revents)
            accept_client(shim);
        for (size_t i = 0; i < SHIM_MAX_CLIENTS; i++)
            if (polls[4 + i].revents && !receive(shim, shim->clients[i]))
                close(TAKE_FD(shim->clients[i]));
        reap(shim);
        if (polls[3].revents || polls[2].revents)
            return;
    }
}
