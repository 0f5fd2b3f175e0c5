#include "reconcilers/egress/resolve.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "reconcilers/egress/hosts.h"
#include <ares.h>
#include <assert.h>
#include <string.h>
#include <sys/epoll.h>

#define MAX_SOCKETS 32
#define MAX_LOOKUPS (2 * EGRESS_MAX_CONNECTIONS)

struct dns_socket {
    struct watch watch;
    struct egress *egress;
};

struct resolver {
    ares_channel channel;
    struct hosts hosts;
    struct dns_socket *sockets[MAX_SOCKETS];
    size_t lookup_count; // forgotten ones too: c-ares cannot drop a single query
};

struct lookup {
    struct egress *egress;
    resolver_done done; // NULL: forgotten
    void *data;
};

static void socket_ready(struct watch *watch, uint32_t events)
{
    struct dns_socket *socket = CONTAINER_OF(watch, struct dns_socket, watch);
    int fd = watch->fd;
    ares_process_fd(socket->egress->resolver->channel, events & (EPOLLIN | EPOLLHUP | EPOLLERR) ? fd : ARES_SOCKET_BAD,
                    events & (EPOLLOUT | EPOLLERR) ? fd : ARES_SOCKET_BAD);
}

static struct dns_socket **find_socket(struct resolver *resolver, int fd)
{
    struct dns_socket **unused = NULL;
    for (size_t i = 0; i < MAX_SOCKETS; i++) {
        struct dns_socket **slot = &resolver->sockets[i];
        if (*slot && (*slot)->watch.fd == fd)
            return slot;
        if (!*slot && !unused)
            unused = slot;
    }
    return unused;
}

// c-ares tells which of its sockets it wants to hear about; both false: it is about to close it.
static void socket_changed(void *data, ares_socket_t fd, int readable, int writable)
{
    struct egress *egress = data;
    struct dns_socket **slot = find_socket(egress->resolver, fd);
    if (!slot)
        return; // more sockets than we allow: the query times out
    if (!readable && !writable) {
        if (*slot) {
            watch_release(&egress->loop, &(*slot)->watch);
            loop_retire(&egress->loop, TAKE_PTR(*slot));
        }
        return;
    }
    if (!*slot) {
        *slot = mem_alloc(sizeof(**slot));
        **slot = (struct dns_socket){.watch = {.fd = fd, .ready = socket_ready}, .egress = egress};
    }
    watch_want(&egress->loop, &(*slot)->watch, (readable ? EPOLLIN : 0) | (writable ? EPOLLOUT : 0));
}

int resolver_open(struct egress *egress, struct error *err)
{
    struct resolver *resolver = mem_alloc(sizeof(*resolver));
    struct ares_options options = {
        .flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
        .timeout = 2500,
        .tries = 3,
        .lookups = "b", // DNS only: the hosts file is ours, because c-ares would open it for each query
        .sock_state_cb = socket_changed,
        .sock_state_cb_data = egress,
    };
    egress->resolver = resolver;
    int status = ares_library_init(ARES_LIB_INIT_ALL);
    if (status == ARES_SUCCESS)
        status = ares_init_options(&resolver->channel, &options,
                                   ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS |
                                       ARES_OPT_SOCK_STATE_CB);
    if (status != ARES_SUCCESS) {
        free(resolver);
        egress->resolver = NULL;
        return error_set(err, ERROR_UNAVAILABLE, "check /etc/resolv.conf", "cannot prepare name resolution: %s",
                         ares_strerror(status));
    }
    hosts_read("/etc/hosts", &resolver->hosts);
    return 0;
}

void resolver_close(struct egress *egress)
{
    ares_destroy(egress->resolver->channel);
    ares_library_cleanup();
    hosts_free(&egress->resolver->hosts);
    free(TAKE_PTR(egress->resolver));
}

static void take_addresses(struct addresses *to, const struct ares_addrinfo *from)
{
    for (const struct ares_addrinfo_node *node = from->nodes; node; node = node->ai_next)
        if (to->count < RESOLVE_MAX_ADDRESSES && address_from_sockaddr(node->ai_addr, &to->list[to->count]))
            to->count++;
}

static void dns_answered(void *data, int status, int timeouts, struct ares_addrinfo *result)
{
    CLEANUP_FREE struct lookup *lookup = data;
    struct addresses found = {0};
    (void)timeouts;
    lookup->egress->resolver->lookup_count--;
    if (result) {
        take_addresses(&found, result);
        ares_freeaddrinfo(result);
    }
    if (!lookup->done)
        return;
    if (status == ARES_SUCCESS || status == ARES_ENODATA)
        lookup->done(lookup->data, &found, NULL);
    else
        lookup->done(lookup->data, NULL, ares_strerror(status));
}

// Whether the name is there; then DNS is not asked, for the other family neither.
static bool is_in_hosts(const struct hosts *hosts, const char *name, int family, struct addresses *found)
{
    bool is_there = false;
    for (size_t i = 0; i < hosts->count && found->count < RESOLVE_MAX_ADDRESSES; i++) {
        if (strcmp(hosts->entries[i].name, name) != 0)
            continue;
        is_there = true;
        if (hosts->entries[i].address.family == family)
            found->list[found->count++] = hosts->entries[i].address;
    }
    return is_there;
}

void resolver_lookup(struct egress *egress, const char *name, int family, resolver_done done, void *data,
                     struct lookup **ret_lookup)
{
    struct addresses found = {.count = 0};
    *ret_lookup = NULL;
    if (address_parse(name, &found.list[0]))
        found.count = 1;
    if (found.count || is_in_hosts(&egress->resolver->hosts, name, family, &found)) {
        done(data, &found, NULL);
        return;
    }
    if (egress->resolver->lookup_count >= MAX_LOOKUPS) {
        done(data, NULL, "too many names are being looked up");
        return;
    }
    struct lookup *lookup = *ret_lookup = mem_alloc(sizeof(*lookup));
    *lookup = (struct lookup){.egress = egress, .done = done, .data = data};
    egress->resolver->lookup_count++;
    struct ares_addrinfo_hints hints = {.ai_family = family, .ai_flags = ARES_AI_NOSORT};
    ares_getaddrinfo(egress->resolver->channel, name, NULL, &hints, dns_answered, lookup);
}

void resolver_forget(struct lookup *lookup)
{
    if (lookup)
        lookup->done = NULL;
}

int resolver_timeout_ms(struct egress *egress)
{
    struct timeval wait, *nearest = ares_timeout(egress->resolver->channel, NULL, &wait);
    return nearest ? (int)(nearest->tv_sec * 1000 + nearest->tv_usec / 1000 + 1) : -1;
}

void resolver_run_timeouts(struct egress *egress)
{
    if (egress->resolver->lookup_count)
        ares_process_fd(egress->resolver->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}
