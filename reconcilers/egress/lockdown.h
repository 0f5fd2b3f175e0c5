// What chat2shell-egress gives up before it reads the first byte that a sandbox or a server chose (README: trust zones).
//
// After lockdown_enter the calling program is two processes. The one that returns (0) is pid 1 of a pid namespace, in user,
// mount, ipc, uts and cgroup namespaces of its own, with an empty read-only root, no capability, no id of any
// privilege, a system call filter without open, exec, clone and AF_UNIX, and no descriptor beside those it was
// told to keep. The other one never returns: it can only wait, and passes the exit status on. Each dies with its
// parent. The network namespace stays the host's: reaching out is this program's job.
//
// Needs no privilege; started as root it first becomes an unprivileged id, so that it is not root for files either.
#pragma once
#include "controller/base/error.h"
#include <stddef.h>

struct lockdown {
    const int *keep_fds; // beside 0–2
    size_t keep_count;
};
// Limits descriptors to `wanted`, or to what the hard limit permits: *ret_nofile.
int lockdown_limit_files(size_t wanted, size_t *ret_nofile, struct error *err);
int lockdown_enter(const struct lockdown *lockdown, struct error *err);
// The filters alone (seccomp.c). `filter_waiting` leaves nothing but waiting and exiting.
int lockdown_filter_working(struct error *err);
int lockdown_filter_waiting(struct error *err);
