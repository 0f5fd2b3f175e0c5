// The staging process: a child of the shim that becomes root in the sandbox's user namespace, builds a root directory of
// private mounts in a mount namespace of its own, leaves the host's tree behind, and becomes bubblewrap.
#pragma once
#include "reconcilers/drivers/bubblewrap/shim/config.h"
#include "reconcilers/drivers/bubblewrap/shim/identity.h"

struct stage {
    const struct shim_config *config;
    const struct identity *identity;
    int trees[SHIM_MAX_MOUNTS];                                   // detached mounts; as root made by stage_open_trees()
    int usr_tree, programs_tree, template_tree, layers_tree;      // -1 where not needed
    int stdio[3];                                                 // the foreground process's ends
    int status_fd, report_fd, lock_fd;                            // bubblewrap's status, the probe's report, the lock
    bool limits_processes;                                        // by rlimit, where no cgroup does
};
// Checks the identity of every mount on its own descriptor; as root detaches the trees with their maps.
int stage_open_trees(struct stage *stage, struct error *err);
void stage_close(struct stage *stage);
// In the child: never returns 0.
int stage_run(struct stage *stage, struct error *err);
// The private paths that bubblewrap is given.
#define STAGE_ROOT "/w/root"
#define STAGE_LOCAL "/w/local"
#define STAGE_MOUNT_FORMAT "/m/%zu"
