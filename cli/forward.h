// One forwarded connection: a local socket joined to a port in a sandbox, over one connection to the daemon. Half-closes pass
// in both directions; a broken end breaks the other.
#pragma once
#include "api/client/rest.h"

// Blocks until the connection is over. Takes local_fd. -1: it could not be made, or it broke inside, with the reason.
int forward_run(const struct rest *rest, const char *sandbox, int port, int local_fd, struct error *err);
