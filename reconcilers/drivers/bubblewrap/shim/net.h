// The net helper: `chat2shell-net net`, run from the sealed image. It joins the sandbox's user and network namespaces and
// nothing else, opens the egress listener there, and then connects to ports inside on request. Descriptors travel
// outwards only: it neither accepts any nor holds any but its sockets.
#pragma once
#include "controller/base/error.h"
#include "reconcilers/drivers/bubblewrap/shim/identity.h"
#include <sys/types.h>

enum net_fd { NET_FD_BOOT = 3, NET_FD_CONNECTOR, NET_FD_USERNS, NET_FD_NETNS };
#define NET_MAX_PENDING 64
#define NET_CONNECT_DEADLINE_MS 5000

struct net_boot { // the one message on NET_FD_BOOT, with the listener where errno_value is 0
    int32_t errno_value;
    char step[60];
};
int net_main(int argc, char **argv);
void net_serve(int connector_fd); // until its end

// The shim's side.
struct net_helper {
    pid_t pid;
    int boot_fd, connector_fd;
};
int net_start(const struct identity *identity, int netns_fd, struct net_helper *ret, struct error *err);
// Reads the boot message; checks that the listener is a TCP socket of another network than the host's.
int net_take_listener(const struct net_helper *helper, struct error *err);
