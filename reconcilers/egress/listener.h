// A listening socket that accepts in bursts and pauses where the system is out of something.
#pragma once
#include "reconcilers/egress/egress.h"

struct listener {
    struct egress *egress;
    struct watch watch;
    struct deadline pause;
    void (*accepted)(struct listener *listener, int fd); // takes the descriptor
};
// Checks that fd is a listening TCP socket. The listener owns it on success, the caller on failure.
int listener_open(struct listener *listener, struct egress *egress, int fd,
                  void (*accepted)(struct listener *listener, int fd), struct error *err);
void listener_close(struct listener *listener);
