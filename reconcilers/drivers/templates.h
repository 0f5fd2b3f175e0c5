// Building the templates that sandboxes start from; what `chat2shell setup` calls. It runs without a daemon, and beside
// one: a template appears by a rename, sandboxes that run keep what they started from.
#pragma once
#include "controller/spawn.h"

struct template_build {
    struct spawner *spawner;
    const char *program_dir, *data_root;
    void (*progress)(void *arg, const char *line); // one line of what is happening; the caller's thread
    void *arg;
};
bool template_is_built(const char *data_root); // debian-12
// Builds debian-12 below data_root/templates with mmdebstrap: about a minute, 500 MB of disk. Already built is success;
// what an interrupted build left is removed first; two at once wait for each other. Blocks.
int template_build(const struct template_build *build, struct error *err);
