// The command line (controller/base/egress_protocol.h).
#pragma once
#include "controller/base/error.h"
#include "reconcilers/egress/name.h"
#include <stdbool.h>

struct options {
    int control_fd, proxy_fd, connector_fd;
    struct name_list denied;
    bool has_upstream;
    struct endpoint upstream; // an http:// proxy
};
int options_parse(int argc, char **argv, struct options *ret, struct error *err);
