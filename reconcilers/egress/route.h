// Asks the kernel, at the moment of dialing, where an address leads: the host's own addresses come and go, and a list
// made at start would be wrong later. Uses a NETLINK_ROUTE socket opened before lock-down (the filter permits no new
// one).
#pragma once
#include "controller/base/error.h"
#include "reconcilers/egress/address.h"

enum route_kind {
    ROUTE_OUTWARD, // leaves through an interface
    ROUTE_OWN,     // the host's own address, or a broadcast, multicast or anycast address of its networks
    ROUTE_NONE,    // unreachable
    ROUTE_UNKNOWN, // the kernel gave no understandable answer: refuse
};

int route_open(struct error *err); // the descriptor, or -1
enum route_kind route_ask(int netlink_fd, const struct address *address);
