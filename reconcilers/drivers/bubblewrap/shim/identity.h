// Who the sandbox's root is on the host: never host root. One user namespace a sandbox, in one of three ways:
//   range   the daemon is root: 65536 ids from a slot of its own (lock file a slot), mounts are idmapped
//   subuid  a user with entries in /etc/subuid and /etc/subgid: root inside is the user, the rest are the subordinate ids
//   single  any other user: one id is mapped; a seccomp filter answers 0 to chown and set*id
// The identities are stated to the user because what works inside differs.
#pragma once
#include "controller/base/error.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum identity_kind { IDENTITY_RANGE, IDENTITY_SUBUID, IDENTITY_SINGLE };

// Slots above systemd's container ranges, below its foreign range. The last slot is never a sandbox's: on disk it holds
// what a workspace's files belong to when something inside gives them to another id than root.
#define IDENTITY_FIRST_ID 1879048192u
#define IDENTITY_IDS 65536u
#define IDENTITY_SLOTS 4093u
#define IDENTITY_FOREIGN_ID (IDENTITY_FIRST_ID + IDENTITY_SLOTS * IDENTITY_IDS)

struct identity {
    enum identity_kind kind;
    int userns_fd;
    int slot_fd;       // range: holds the lock of the slot
    uint32_t base;     // host id of root inside
    bool keeps_groups; // supplementary groups of the daemon could not be dropped
};
const char *identity_name(enum identity_kind kind);
int identity_make(bool is_single, struct identity *ret, struct error *err);
// The calling process becomes root inside the identity's user namespace (single-threaded processes only).
int identity_enter(const struct identity *identity, struct error *err);
// A user namespace with these map texts (root only); the descriptor is the caller's.
int identity_make_map(const char *uid_map, const char *gid_map, struct error *err);
