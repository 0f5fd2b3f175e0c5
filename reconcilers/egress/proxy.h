// The forward proxy on proxy-fd: CONNECT and absolute-form requests, one at a time a connection.
#pragma once
#include "reconcilers/egress/egress.h"

int proxy_open(struct egress *egress, struct error *err);
void proxy_close(struct egress *egress);
