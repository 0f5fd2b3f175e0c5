// Mounts that are made from descriptors: the directory that was checked is the directory that is mounted, whatever its
// path names by then. A tree is a detached mount; stage.c attaches it at a private path.
#pragma once
#include "controller/base/error.h"
#include "reconcilers/drivers/bubblewrap/shim/identity.h"
#include <stdbool.h>

enum tree_map {
    TREE_MAP_NONE,
    TREE_MAP_SYSTEM, // owners 0–65535 on disk are 0–65535 inside: templates and programs
    TREE_MAP_OWNER,  // the directory's owner is root inside; others go to the foreign range
};
// As root: detaches a copy of fd's mount with the map, before the sandbox's namespaces exist. Returns the descriptor.
int tree_open_as_root(int fd, enum tree_map map, const struct identity *identity, struct error *err);
// As root inside a user namespace, before it has its own mount namespace: the same without a map.
int tree_open_inside(int fd, struct error *err);
// Attaches the tree at path with the flags (MOUNT_ATTR_*), and for all below it.
int tree_attach(int tree_fd, const char *path, uint64_t attributes, struct error *err);
