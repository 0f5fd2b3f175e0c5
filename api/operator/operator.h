// The operator API: Kubernetes REST conventions on the Unix socket STATE_DIR/operator.sock (0600 in a 0700 directory;
// the peer must be this uid or root and live in the daemon's own user namespace).
#pragma once
#include "reconcilers/reconcilers.h"

#define OPERATOR_SOCKET_NAME "operator.sock"

struct operator_server;
int operator_server_start(struct world *world, struct operator_server **ret, struct error *err);
void operator_server_stop(struct operator_server *server); // NULL allowed; answers everything that waits first
