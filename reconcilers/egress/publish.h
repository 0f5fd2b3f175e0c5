// Ports of the sandbox on the host: connections accepted on a listener of the host are joined with connections that
// the connector makes inside.
#pragma once
#include "reconcilers/egress/egress.h"

struct published;
// Takes the listener. Each fails with a sentence.
int publish_add(struct egress *egress, uint16_t port, int listener_fd, struct error *err);
int publish_remove(struct egress *egress, uint16_t port, struct error *err); // ends its connections
void publish_remove_all(struct egress *egress);
