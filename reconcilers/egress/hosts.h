// /etc/hosts, read once before the file system is given up: names the operator fixed win over DNS.
#pragma once
#include "controller/base/error.h"
#include "reconcilers/egress/address.h"
#include "reconcilers/egress/name.h"

#define HOSTS_MAX_BYTES (256 * 1024)
#define HOSTS_MAX_ENTRIES 4096

struct hosts_entry {
    char *name; // canonical
    struct address address;
};
struct hosts {
    struct hosts_entry *entries;
    size_t count;
};

// Lines that are not "ADDRESS NAME…" are skipped, as everywhere; what exceeds the limits is ignored.
void hosts_parse(const char *text, struct hosts *ret);
// A missing or unreadable file is an empty one.
void hosts_read(const char *path, struct hosts *ret);
void hosts_free(struct hosts *hosts);
