#include "reconcilers/egress/publish.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "reconcilers/egress/connector.h"
#include "reconcilers/egress/listener.h"
#include "reconcilers/egress/relay.h"

// One connection from outside.
struct visit {
    struct relay relay; // side 0: the visitor
    struct published *published;
    struct visit *prev, *next;
    struct connector_request *request; // until the connection inside is there
};

struct published {
    struct listener listener;
    uint16_t port;
    struct visit visits; // ring head
};

static struct published **find(struct egress *egress, uint16_t port)
{
    for (size_t i = 0; i < EGRESS_MAX_PUBLISHED; i++)
        if (egress->published[i] ? egress->published[i]->port == port : port == 0)
            return &egress->published[i];
    return NULL;
}

static void visit_ended(struct relay *relay)
{
    struct visit *visit = CONTAINER_OF(relay, struct visit, relay);
    connector_forget(TAKE_PTR(visit->request));
    visit->prev->next = visit->next;
    visit->next->prev = visit->prev;
    relay->egress->connection_count--;
    loop_retire(&relay->egress->loop, visit);
}

static void visit_connected(void *data, int fd, int errno_value)
{
    struct visit *visit = data;
    (void)errno_value;
    visit->request = NULL;
    if (fd < 0) {
        relay_stop(&visit->relay, true); // as if nothing listened
        return;
    }
    socket_set_nodelay(fd);
    visit->relay.side[1].watch.fd = fd;
    relay_start(&visit->relay);
}

static void visit_accepted(struct listener *listener, int fd)
{
    struct published *published = CONTAINER_OF(listener, struct published, listener);
    struct egress *egress = listener->egress;
    if (egress->connection_count >= egress->connection_max) {
        socket_set_reset(fd);
        close(fd);
        return;
    }
    struct visit *visit = mem_alloc(sizeof(*visit));
    *visit = (struct visit){.published = published, .relay = {.egress = egress, .ended = visit_ended}};
    visit->relay.side[0].watch.fd = fd;
    visit->relay.side[1].watch.fd = -1;
    visit->next = &published->visits;
    visit->prev = published->visits.prev;
    visit->prev->next = visit->next->prev = visit;
    egress->connection_count++;
    socket_set_nodelay(fd);
    visit->request = connector_ask(egress, published->port, visit_connected, visit);
}

int publish_add(struct egress *egress, uint16_t port, int listener_fd, struct error *err)
{
    if (find(egress, port))
        return error_set(err, ERROR_EXISTS, "unpublish it first", "port %u is published already", port);
    struct published **slot = find(egress, 0);
    if (!slot)
        return error_set(err, ERROR_LIMIT, "unpublish another port first", "%d ports are published already",
                         EGRESS_MAX_PUBLISHED);
    CLEANUP_FREE struct published *published = mem_alloc(sizeof(*published));
    published->port = port;
    published->visits.prev = published->visits.next = &published->visits;
    if (listener_open(&published->listener, egress, listener_fd, visit_accepted, err) < 0)
        return -1;
    *slot = TAKE_PTR(published);
    return 0;
}

static void remove_slot(struct egress *egress, struct published **slot)
{
    struct published *published = *slot;
    *slot = NULL;
    listener_close(&published->listener);
    while (published->visits.next != &published->visits)
        relay_stop(&published->visits.next->relay, true);
    loop_retire(&egress->loop, published);
}

int publish_remove(struct egress *egress, uint16_t port, struct error *err)
{
    struct published **slot = find(egress, port);
    if (!slot)
        return error_set(err, ERROR_NOT_FOUND, NULL, "port %u is not published", port);
    remove_slot(egress, slot);
    return 0;
}

void publish_remove_all(struct egress *egress)
{
    for (size_t i = 0; i < EGRESS_MAX_PUBLISHED; i++)
        if (egress->published[i])
            remove_slot(egress, &egress->published[i]);
}
