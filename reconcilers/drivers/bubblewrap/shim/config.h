// The shim's configuration, read once from the sealed memfd and refused as a whole when anything in it is wrong.
#pragma once
#include "controller/base/error.h"
#include "reconcilers/drivers/bubblewrap/shim/protocol.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct shim_mount {
    int fd;
    const char *target;
    bool is_read_only;
    int64_t device, inode; // identity to check; 0,0 = not checked
};
struct shim_cgroup {
    int version;
    const char *controller; // "memory", "pids", "cpu"; "all" on version 2
    const char *path;       // parent directory under which the sandbox's own is made
};
struct shim_config {
    json_t *root; // owns all strings below
    const char *name, *cwd;
    bool ends_with_controller, is_single_identity, has_network;
    int template_fd; // -1 = the host template
    struct shim_mount mounts[SHIM_MAX_MOUNTS];
    size_t mount_count;
    const json_t *command, *environment; // arrays of strings
    int64_t memory_bytes, pids, cpus_milli, root_bytes;
    struct shim_cgroup cgroups[SHIM_MAX_CGROUPS];
    size_t cgroup_count;
};
int config_read(int fd, struct shim_config *ret, struct error *err);
