// The templates that sandboxes start from, one row each, and what `chat2shell setup` calls to make them. It runs without a
// daemon, and beside one: a template appears whole or not at all, and sandboxes that run keep what they started from.
#pragma once
#include "controller/spawn.h"
#include <stdbool.h>
#include <stddef.h>

#define TEMPLATE_NAME_DEBIAN "debian-12"
#define TEMPLATE_NAME_CODEXPRO "chat2shell-codexpro:0.30.0"

struct template_build {
    struct spawner *spawner;
    const char *program_dir, *data_root;
    void (*progress)(void *arg, const char *line); // one line of what is happening, maybe of a program's; the caller's thread
    void *arg;
    const char *sbx; // config: the program of Docker Sandboxes
    int stop_fd;     // becomes readable when the user wants no more; -1: never. Only where the row honours it
};

struct template_row {
    const char *name, *driver;
    bool honours_stop; // ERROR_CANCELLED soon after stop_fd is readable, everything cleaned up
    // Makes it, unless it is there. Blocks. What an earlier, interrupted run left is removed first; two at once wait for each other.
    int (*make)(const struct template_build *build, struct error *err);
};
const struct template_row *template_row(size_t i); // NULL past the last
const struct template_row *template_find(const char *name, const char *driver); // by name, or (name NULL) the driver's own; NULL: none

// debian-12, below data_root/templates, with mmdebstrap: about a minute, 500 MB of disk.
bool template_is_built(const char *data_root);
int template_build(const struct template_build *build, struct error *err);
// chat2shell-codexpro:0.30.0, kept by Docker Sandboxes: made from a `shell` sandbox of its own, in which npm installs CodexPro.
// That sandbox's name is in data_root/templates before it is made, and it is removed whatever happens, now or by the next run;
// no other sandbox is touched. Nothing of the host gets in: its workspace is an empty directory in /tmp.
int template_build_sbx(const struct template_build *build, struct error *err);
