// Connections to ports inside the sandbox, made by the net helper on the other end of connector-fd
// (controller/base/egress_protocol.h). What it hands out is checked before use: a TCP socket, connected to the port
// that was asked for, in the same network namespace as proxy-fd.
#pragma once
#include "reconcilers/egress/egress.h"

#define CONNECTOR_MAX_UNANSWERED 64

struct connector_request; // one connection that was asked for
// fd is the caller's, or -1 with an errno value (0 for an answer that failed the checks). The request is gone.
typedef void (*connector_done)(void *data, int fd, int errno_value);

int connector_open(struct egress *egress, struct error *err);
void connector_close(struct egress *egress);
// Queued while 64 are unanswered; ends with ETIMEDOUT after the dial deadline. `done` never runs inside this call.
struct connector_request *connector_ask(struct egress *egress, uint16_t port, connector_done done, void *data);
void connector_forget(struct connector_request *request); // `done` will not be called
