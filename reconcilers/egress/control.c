#include "reconcilers/egress/control.h"
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/base/socket.h"
#include "reconcilers/egress/connector.h"
#include "reconcilers/egress/publish.h"
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define MAX_PROBES 64

struct control {
    struct watch watch;
    struct egress *egress;
    size_t probe_count;
};

struct probe {
    struct egress *egress;
    json_int_t seq;
    uint16_t port;
    bool is_handed_out; // the controller wants the connection itself
};

// The controller reads; one that lets its queue fill up is as good as gone.
static void send_with_fd(struct egress *egress, json_t *message, int fd) // -1: none; stays the caller's
{
    CLEANUP_FREE char *text = json_to_text(message);
    json_decref(message);
    if (socket_send_fds(egress->control->watch.fd, text, strlen(text), &fd, fd >= 0 ? 1 : 0) < 0)
        loop_end(&egress->loop, 1);
}

static void send_message(struct egress *egress, json_t *message)
{
    send_with_fd(egress, message, -1);
}

void control_announce(struct egress *egress)
{
    send_message(egress, json_pack("{s:s, s:i, s:b}", "op", "ready", "version", EGRESS_PROTOCOL_VERSION,
                                   "address_check", egress->address_check));
}

static void answer(struct egress *egress, json_int_t seq, const struct error *failure)
{
    json_t *message = json_pack("{s:I, s:b}", "seq", seq, "ok", failure == NULL);
    if (failure)
        json_object_set_new(message, "error", json_from_text(failure->message));
    send_message(egress, message);
}

static int run_publish(struct egress *egress, json_int_t seq, uint16_t port, int *fd, struct error *err)
{
    if (*fd < 0)
        return error_set(err, ERROR_INVALID, NULL, "publish comes without a listening socket");
    if (publish_add(egress, port, *fd, err) < 0)
        return -1;
    *fd = -1;
    answer(egress, seq, NULL);
    return 0;
}

static int run_unpublish(struct egress *egress, json_int_t seq, uint16_t port, int *fd, struct error *err)
{
    (void)fd;
    if (publish_remove(egress, port, err) < 0)
        return -1;
    answer(egress, seq, NULL);
    return 0;
}

static void probed(void *data, int fd, int errno_value)
{
    CLEANUP_FREE struct probe *probe = data;
    struct error failure = ERROR_INIT;
    probe->egress->control->probe_count--;
    if (fd >= 0) {
        send_with_fd(probe->egress, json_pack("{s:I, s:b}", "seq", probe->seq, "ok", 1), probe->is_handed_out ? fd : -1);
        close(fd);
        return;
    }
    if (errno_value == ECONNREFUSED)
        error_set(&failure, ERROR_UNAVAILABLE, NULL, "nothing listens on port %u", probe->port);
    else if (errno_value == 0)
        error_set(&failure, ERROR_INTERNAL, NULL, "port %u was answered with a wrong descriptor", probe->port);
    else
        error_set(&failure, ERROR_UNAVAILABLE, NULL, "port %u cannot be reached: %s", probe->port,
                  strerror(errno_value));
    answer(probe->egress, probe->seq, &failure);
}

static int ask_port(struct egress *egress, json_int_t seq, uint16_t port, bool is_handed_out, struct error *err)
{
    if (egress->control->probe_count == MAX_PROBES)
        return error_set(err, ERROR_LIMIT, NULL, "%d probes are under way", MAX_PROBES);
    struct probe *probe = mem_alloc(sizeof(*probe));
    *probe = (struct probe){egress, seq, port, is_handed_out};
    egress->control->probe_count++;
    connector_ask(egress, port, probed, probe);
    return 0;
}

static int run_probe(struct egress *egress, json_int_t seq, uint16_t port, int *fd, struct error *err)
{
    (void)fd;
    return ask_port(egress, seq, port, false, err);
}

static int run_connect(struct egress *egress, json_int_t seq, uint16_t port, int *fd, struct error *err)
{
    (void)fd;
    return ask_port(egress, seq, port, true, err);
}

// Each answers when it succeeds (at once or later); failures are answered here.
static const struct operation {
    const char *name;
    int (*run)(struct egress *egress, json_int_t seq, uint16_t port, int *fd, struct error *err);
} operations[] = {{"publish", run_publish}, {"unpublish", run_unpublish}, {"probe", run_probe}, {"connect", run_connect}};

static int run_message(struct egress *egress, const char *bytes, size_t len, int *fd, json_int_t *seq,
                       struct error *err)
{
    CLEANUP_JSON json_t *message = NULL;
    if (json_parse(bytes, len, &message, err) < 0)
        return -1;
    *seq = json_get_int(message, "seq", -1);
    const char *name = json_get_text(message, "op");
    json_int_t port = json_get_int(message, "port", 0);
    if (port < 1 || port > 65535)
        return error_set(err, ERROR_INVALID, NULL, "port is not a number from 1 to 65535");
    for (size_t i = 0; i < ARRAY_LEN(operations); i++)
        if (name && strcmp(operations[i].name, name) == 0)
            return operations[i].run(egress, *seq, (uint16_t)port, fd, err);
    return error_set(err, ERROR_INVALID, NULL, "op is not one of publish, unpublish, probe, connect");
}

static void control_ready(struct watch *watch, uint32_t events)
{
    struct control *control = CONTAINER_OF(watch, struct control, watch);
    struct error err = ERROR_INIT;
    char bytes[EGRESS_MESSAGE_MAX_BYTES];
    CLEANUP_CLOSE int fd = -1;
    size_t fd_count = 1;
    json_int_t seq = -1;
    (void)events;
    ssize_t len = socket_receive_fds(watch->fd, bytes, sizeof(bytes), &fd, &fd_count);
    if (len < 0 && errno == EAGAIN)
        return;
    if (len <= 0) {
        loop_end(&control->egress->loop, len == 0 || errno == ECONNRESET ? 0 : 1);
        return;
    }
    if (run_message(control->egress, bytes, (size_t)len, &fd, &seq, &err) < 0)
        answer(control->egress, seq, &err);
}

int control_open(struct egress *egress, struct error *err)
{
    int type = 0;
    socklen_t size = sizeof(type);
    int fd = egress->options.control_fd;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0 || type != SOCK_SEQPACKET)
        return error_set(err, ERROR_USAGE, NULL, "--control-fd %d is not a SOCK_SEQPACKET socket", fd);
    struct control *control = mem_alloc(sizeof(*control));
    *control = (struct control){.egress = egress, .watch = {.fd = fd, .ready = control_ready}};
    egress->control = control;
    watch_want(&egress->loop, &control->watch, EPOLLIN);
    return 0;
}

void control_close(struct egress *egress)
{
    watch_close(&egress->loop, &egress->control->watch);
    free(TAKE_PTR(egress->control));
}
