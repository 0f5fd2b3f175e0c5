#include "reconcilers/egress/dial.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "reconcilers/egress/control.h"
#include "reconcilers/egress/relay.h"
#include "reconcilers/egress/route.h"
#include "reconcilers/egress/upstream.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

struct dial {
    struct egress *egress;
    struct endpoint to; // what was asked for
    dial_done done;
    void *data;
    struct lookup *lookup;
    int family;              // that was looked up last: IPv4 first, IPv6 when that led nowhere
    bool is_connecting;      // something was permitted
    struct addresses candidates; // permitted, to be connected to in order (the upstream proxy's with one)
    size_t next;
    struct watch watch;
    struct deadline attempt, total;
    int last_errno;
    // With an upstream proxy:
    struct endpoint checked;    // the judged address that the proxy is asked for
    bool asks_by_name;
    struct upstream_talk *talk; // while its answer is awaited
};

static void connect_next(struct dial *dial);
static void look_up(struct dial *dial, int family);

static void release(struct dial *dial)
{
    resolver_forget(TAKE_PTR(dial->lookup));
    deadline_stop(&dial->attempt);
    deadline_stop(&dial->total);
    watch_close(&dial->egress->loop, &dial->watch);
    free(TAKE_PTR(dial->talk));
    loop_retire(&dial->egress->loop, dial);
}

void dial_cancel(struct dial *dial)
{
    if (dial)
        release(dial);
}

__attribute__((format(printf, 4, 5))) static void fail(struct dial *dial, int status, const char *word,
                                                       const char *format, ...)
{
    struct dial_failure failure = {.status = status, .word = word};
    va_list args;
    va_start(args, format);
    vsnprintf(failure.text, sizeof(failure.text), format, args);
    va_end(args);
    dial_done done = dial->done;
    void *data = dial->data;
    release(dial);
    done(data, -1, &failure);
}

static void succeed(struct dial *dial)
{
    dial_done done = dial->done;
    void *data = dial->data;
    int fd = watch_release(&dial->egress->loop, &dial->watch);
    release(dial);
    done(data, fd, NULL);
}

// Why policy refuses an address, its route included; NULL if it does not.
static const struct address_refusal *judge(struct dial *dial, const struct address *address)
{
    static const struct address_refusal own = {"host", "an address of the host itself"};
    static const struct address_refusal unknown = {"host", "one whose route the host could not tell"};
    const struct address_refusal *refusal = address_refusal(address);
    struct address v4;
    if (refusal)
        return refusal;
    enum route_kind route = route_ask(dial->egress->netlink_fd, address);
    if (route != ROUTE_OWN && address_embedded_v4(address, &v4) &&
        route_ask(dial->egress->netlink_fd, &v4) == ROUTE_OWN)
        route = ROUTE_OWN;
    if (route == ROUTE_OWN)
        return &own;
    if (route == ROUTE_UNKNOWN)
        return &unknown;
    if (route == ROUTE_NONE)
        dial->last_errno = ENETUNREACH;
    return NULL;
}

static void fail_unreachable(struct dial *dial)
{
    const char *via = dial->egress->options.has_upstream ? " through the upstream proxy" : "";
    if (dial->last_errno == ETIMEDOUT)
        fail(dial, 504, NULL, "%s port %u did not answer%s in time. Try again later or check the address.",
             dial->to.host, dial->to.port, via);
    else
        fail(dial, 502, NULL, "Cannot connect to %s port %u%s: %s. Check that the service is up and the port is right.",
             dial->to.host, dial->to.port, via, strerror(dial->last_errno));
}

static void upstream_ready(struct watch *watch, uint32_t events);

// The proxy would not take an address: ask by name, and if that works say that addresses are not checked any more.
static bool is_address_refusal(int status)
{
    return status == 400 || status == 403 || status == 404 || status == 405;
}

static void upstream_answered(struct dial *dial, int status)
{
    free(TAKE_PTR(dial->talk));
    if (status >= 200 && status < 300) {
        if (dial->asks_by_name && dial->egress->address_check) {
            dial->egress->address_check = false;
            control_announce(dial->egress);
        }
        succeed(dial);
    } else if (is_address_refusal(status) && !dial->asks_by_name && !dial->to.is_address) {
        dial->asks_by_name = true;
        dial->next = 0;
        watch_close(&dial->egress->loop, &dial->watch);
        connect_next(dial);
    } else if (status < 0) {
        fail(dial, 502, NULL, "The upstream proxy hung up or gave an answer that is not HTTP. Check the host's proxy.");
    } else {
        fail(dial, 502, NULL, "The upstream proxy refused %s port %u with status %d. Ask who runs the host's proxy.",
             dial->to.host, dial->to.port, status);
    }
}

static void upstream_ready(struct watch *watch, uint32_t events)
{
    struct dial *dial = CONTAINER_OF(watch, struct dial, watch);
    (void)events;
    int status = upstream_receive(watch->fd, dial->talk);
    if (status == 0 || (status > 99 && status < 200)) {
        if (status)
            dial->talk->len = dial->talk->scanned = 0; // an interim answer: the next head follows
        return;
    }
    upstream_answered(dial, status);
}

static void connected(struct dial *dial)
{
    deadline_stop(&dial->attempt);
    socket_set_nodelay(dial->watch.fd);
    if (!dial->egress->options.has_upstream) {
        succeed(dial);
        return;
    }
    dial->talk = mem_alloc(sizeof(*dial->talk));
    if (upstream_send(dial->watch.fd, dial->asks_by_name ? &dial->to : &dial->checked) < 0) {
        upstream_answered(dial, -1);
        return;
    }
    dial->watch.ready = upstream_ready;
    watch_want(&dial->egress->loop, &dial->watch, EPOLLIN);
}

static void connect_ready(struct watch *watch, uint32_t events)
{
    struct dial *dial = CONTAINER_OF(watch, struct dial, watch);
    int failure = 0;
    socklen_t size = sizeof(failure);
    (void)events;
    getsockopt(watch->fd, SOL_SOCKET, SO_ERROR, &failure, &size);
    if (!failure) {
        connected(dial);
        return;
    }
    dial->last_errno = failure;
    watch_close(&dial->egress->loop, watch);
    connect_next(dial);
}

static void attempt_expired(struct deadline *deadline)
{
    struct dial *dial = CONTAINER_OF(deadline, struct dial, attempt);
    dial->last_errno = ETIMEDOUT;
    watch_close(&dial->egress->loop, &dial->watch);
    connect_next(dial);
}

static int connect_to(struct dial *dial, const struct address *address, uint16_t port)
{
    struct sockaddr_storage to;
    socklen_t size = address_to_sockaddr(address, port, &to);
    CLEANUP_CLOSE int fd = socket(address->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&to, size) < 0 && errno != EINPROGRESS)
        return -1;
    dial->watch = (struct watch){.fd = TAKE_FD(fd), .ready = connect_ready};
    watch_want(&dial->egress->loop, &dial->watch, EPOLLOUT);
    return 0;
}

static void connect_next(struct dial *dial)
{
    const struct options *options = &dial->egress->options;
    uint16_t port = options->has_upstream ? options->upstream.port : dial->to.port;
    deadline_stop(&dial->attempt);
    while (dial->next < dial->candidates.count) {
        if (connect_to(dial, &dial->candidates.list[dial->next++], port) < 0) {
            dial->last_errno = errno;
            continue;
        }
        if (dial->next < dial->candidates.count)
            deadline_start(&dial->egress->loop, &dial->attempt, DEADLINE_ATTEMPT);
        return;
    }
    if (dial->family == AF_INET && !dial->to.is_address && !options->has_upstream)
        look_up(dial, AF_INET6);
    else
        fail_unreachable(dial);
}

static void total_expired(struct deadline *deadline)
{
    struct dial *dial = CONTAINER_OF(deadline, struct dial, total);
    if (!dial->is_connecting) {
        fail(dial, 504, NULL, "The name %s was not resolved in time. Try again later or check the host's DNS.",
             dial->to.host);
        return;
    }
    dial->last_errno = ETIMEDOUT;
    fail_unreachable(dial);
}

static void upstream_resolved(void *data, const struct addresses *found, const char *problem)
{
    struct dial *dial = data;
    dial->lookup = NULL;
    if (problem) {
        fail(dial, 502, NULL, "The upstream proxy %s cannot be resolved: %s. Check the host's proxy setting.",
             dial->egress->options.upstream.host, problem);
        return;
    }
    dial->candidates = *found;
    connect_next(dial); // fails in a sentence if there is none
}

static void start_connecting(struct dial *dial)
{
    struct egress *egress = dial->egress;
    dial->is_connecting = true;
    deadline_start(&egress->loop, &dial->total, DEADLINE_DIAL);
    if (!egress->options.has_upstream) {
        connect_next(dial);
        return;
    }
    dial->checked = (struct endpoint){.is_address = true, .port = dial->to.port};
    char text[ADDRESS_TEXT_SIZE];
    address_format(&dial->candidates.list[0], text);
    memcpy(dial->checked.host, text, sizeof(text));
    dial->asks_by_name = !egress->address_check && !dial->to.is_address;
    dial->candidates.count = 0;
    resolver_lookup(egress, egress->options.upstream.host, AF_INET, upstream_resolved, dial, &dial->lookup);
}

// Adds the permitted addresses to the candidates; returns why the first refused one was refused, or NULL.
static const struct address_refusal *sort_out(struct dial *dial, const struct addresses *found,
                                              char text[ADDRESS_TEXT_SIZE])
{
    const struct address_refusal *first = NULL;
    for (size_t i = 0; i < found->count; i++) {
        struct address address = address_normalize(&found->list[i]);
        const struct address_refusal *refusal = judge(dial, &address);
        if (!refusal && dial->candidates.count < RESOLVE_MAX_ADDRESSES) {
            dial->candidates.list[dial->candidates.count++] = address;
        } else if (refusal && !first) {
            first = refusal;
            address_format(&address, text);
        }
    }
    return first;
}

static void refuse(struct dial *dial, const struct address_refusal *refusal, const char *address)
{
    char which[ADDRESS_TEXT_SIZE + 4] = "";
    if (!dial->to.is_address)
        snprintf(which, sizeof(which), " (%s)", address);
    fail(dial, 403, refusal->word,
         "%s%s is refused: it is %s. A sandbox reaches public addresses only; to use a service of the host or its "
         "network, run it inside the sandbox or ask the operator.",
         dial->to.host, which, refusal->text);
}

static void resolved(void *data, const struct addresses *found, const char *problem)
{
    struct dial *dial = data;
    char text[ADDRESS_TEXT_SIZE] = "";
    dial->lookup = NULL;
    const struct address_refusal *refusal = found ? sort_out(dial, found, text) : NULL;
    if (dial->next < dial->candidates.count)
        (dial->is_connecting ? connect_next : start_connecting)(dial);
    else if (dial->is_connecting)
        fail_unreachable(dial); // the other family does not help either
    else if (problem)
        fail(dial, 502, NULL, "The name %s cannot be resolved: %s. Check the spelling.", dial->to.host, problem);
    else if (refusal)
        refuse(dial, refusal, text);
    else if (dial->family == AF_INET)
        look_up(dial, AF_INET6);
    else
        fail(dial, 502, NULL, "The name %s cannot be resolved: it has no address. Check the spelling.", dial->to.host);
}

static void look_up(struct dial *dial, int family)
{
    dial->family = family;
    resolver_lookup(dial->egress, dial->to.host, family, resolved, dial, &dial->lookup);
}

struct dial *dial_new(struct egress *egress, const struct endpoint *to, dial_done done, void *data)
{
    struct dial *dial = mem_alloc(sizeof(*dial));
    *dial = (struct dial){
        .egress = egress, .to = *to, .done = done, .data = data, .watch = {.fd = -1}, .last_errno = EHOSTUNREACH};
    dial->attempt.expired = attempt_expired;
    dial->total.expired = total_expired;
    return dial;
}

void dial_run(struct dial *dial)
{
    const char *denied = dial->to.is_address ? NULL : name_list_match(&dial->egress->options.denied, dial->to.host);
    if (denied) {
        fail(dial, 403, "name", "%s is refused: the operator denies %s and all names below it. Use another service.",
             dial->to.host, denied);
        return;
    }
    deadline_start(&dial->egress->loop, &dial->total, DEADLINE_RESOLVE);
    look_up(dial, AF_INET);
}
