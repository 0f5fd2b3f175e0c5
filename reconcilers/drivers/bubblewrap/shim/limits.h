// Resource limits: a cgroup of the sandbox's own below each parent that the daemon found writable, made before anything
// inside runs and removed when everything inside is gone. What holds and what does not is reported, never assumed.
#pragma once
#include "reconcilers/drivers/bubblewrap/shim/config.h"
#include "reconcilers/drivers/bubblewrap/shim/identity.h"

struct limits {
    const struct shim_config *config;
    bool has_memory, has_pids, has_cpu; // by cgroup
};
void limits_make(struct limits *limits);             // creates and sets; what fails does not hold
void limits_join(struct limits *limits, pid_t pid);  // before pid runs anything; clears has_* where it fails
void limits_remove(const struct shim_config *config);
bool limits_killed_for_memory(const struct shim_config *config);
// Adds the names of what holds and sentences about what does not.
void limits_report(const struct limits *limits, enum identity_kind kind, json_t *held, json_t *missing);
