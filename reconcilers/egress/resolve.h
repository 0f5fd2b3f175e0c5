// Names to addresses: /etc/hosts, then DNS through c-ares, on the process's loop. Configuration is read when opened,
// before the file system is given up. Names are taken as fully qualified: search domains are not tried, because
// the name that is judged must be the name that is asked.
#pragma once
#include "reconcilers/egress/address.h"
#include "reconcilers/egress/egress.h"

#define RESOLVE_MAX_ADDRESSES 16

struct addresses {
    struct address list[RESOLVE_MAX_ADDRESSES];
    size_t count;
};

// Exactly one of found and problem (a sentence's end: "… cannot be resolved: PROBLEM") is given. found is empty for a
// name that exists without an address of the family. May be called before resolver_lookup returns.
typedef void (*resolver_done)(void *data, const struct addresses *found, const char *problem);

struct lookup;

int resolver_open(struct egress *egress, struct error *err);
void resolver_close(struct egress *egress);
// One family at a time: servers that never answer for the other one are common, and must not hold the first one up.
// An address as text is found as itself, whatever the family.
// *ret_lookup is set before `done` can run and must be forgotten in it; until then resolver_forget drops the interest.
void resolver_lookup(struct egress *egress, const char *name, int family, resolver_done done, void *data,
                     struct lookup **ret_lookup);
void resolver_forget(struct lookup *lookup);
// For the loop: how long it may sleep at most (-1: no limit), and what to do when that has passed.
int resolver_timeout_ms(struct egress *egress);
void resolver_run_timeouts(struct egress *egress);
