// Subordinate ids of an ordinary user: /etc/subuid and /etc/subgid, and the setuid tools that write maps with them.
#pragma once
#include "controller/base/error.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct subid_range {
    uint32_t first, count;
};
struct subid_ranges {
    struct subid_range uid, gid;
};
// The first range of the calling user in each file; false when either is absent or the tools are not installed.
bool subid_find(struct subid_ranges *ret);
// Root inside is the caller, ids from 1 are the subordinate ones. Runs newuidmap and newgidmap.
int subid_write_maps(pid_t pid, const struct subid_ranges *ranges, struct error *err);
