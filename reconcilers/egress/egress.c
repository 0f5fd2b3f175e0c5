#include "reconcilers/egress/egress.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "reconcilers/egress/connector.h"
#include "reconcilers/egress/control.h"
#include "reconcilers/egress/lockdown.h"
#include "reconcilers/egress/proxy.h"
#include "reconcilers/egress/publish.h"
#include "reconcilers/egress/resolve.h"
#include "reconcilers/egress/route.h"
#include <errno.h>
#include <malloc.h>

// Two descriptors a connection; the rest: c-ares, published listeners, what is refused, our own.
#define FDS_APART 160

char egress_scratch[SCRATCH_BYTES];

size_t egress_read_size(const struct egress *egress)
{
    return egress->pending_bytes > PENDING_HIGH_BYTES ? SCRATCH_SMALL_BYTES : SCRATCH_BYTES;
}

static int limit_connections(struct egress *egress, struct error *err)
{
    size_t nofile = 0;
    if (lockdown_limit_files(2 * EGRESS_MAX_CONNECTIONS + FDS_APART, &nofile, err) < 0)
        return -1;
    if (nofile < FDS_APART + 16)
        return error_set(err, ERROR_LIMIT, "raise it (ulimit -Hn)", "the descriptor limit %zu is too low", nofile);
    egress->connection_max = (nofile - FDS_APART) / 2;
    return 0;
}

// Everything that needs the file system or a new kind of socket, before both are given up.
int egress_prepare(struct egress *egress, struct error *err)
{
    egress->address_check = true;
    if (limit_connections(egress, err) < 0 || loop_open(&egress->loop, err) < 0)
        return -1;
    if (fs_set_nonblocking(egress->options.control_fd, true) < 0 ||
        fs_set_nonblocking(egress->options.connector_fd, true) < 0)
        return error_errno(err, errno, NULL, "--control-fd or --connector-fd is not an open descriptor");
    egress->netlink_fd = route_open(err);
    if (egress->netlink_fd < 0)
        return -1;
    return resolver_open(egress, err);
}

int egress_lock_down(struct egress *egress, struct error *err)
{
    int keep[] = {egress->options.control_fd, egress->options.proxy_fd, egress->options.connector_fd,
                  egress->loop.epoll_fd, egress->netlink_fd};
    return lockdown_enter(&(struct lockdown){.keep_fds = keep, .keep_count = ARRAY_LEN(keep)}, err);
}

int egress_run(struct egress *egress, struct error *err)
{
    if (control_open(egress, err) < 0 || connector_open(egress, err) < 0 || proxy_open(egress, err) < 0)
        return -1;
    malloc_trim(0); // what start-up used and nobody needs any more
    control_announce(egress);
    while (!egress->loop.is_ending) {
        if (loop_step(&egress->loop, resolver_timeout_ms(egress), err) < 0)
            return -1;
        resolver_run_timeouts(egress);
    }
    return egress->loop.exit_status;
}
