// What the sandbox's root directory holds before bubblewrap takes it over. All of it is made in the sandbox's own mount
// and user namespace, in directories that only the staging process sees.
#pragma once
#include "controller/base/error.h"
#include "reconcilers/drivers/bubblewrap/shim/config.h"

// The `host` template: a closed list of the host's files, everything else is made up here.
int rootfs_fill_host(const char *root, const char *local, struct error *err);
// What both templates need: hosts, name resolution, the tool server and `sudo`.
int rootfs_fill_common(const char *root, const char *guest_program, struct error *err);
// Small parts that stage.c shares. Paths are of the staging area.
int rootfs_make_dir(const char *path, mode_t mode, struct error *err); // the parent exists; there already is fine
int rootfs_bind(const char *from, const char *to, struct error *err);  // read-only, no devices, no setuid
