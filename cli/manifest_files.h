// Reads every file that --filename and --recursive mean, directories in the order of their names.
#pragma once
#include "cli/command.h"
#include "cli/printers/manifest.h"

#define MANIFEST_FILES_MAX 1024 // of one command

struct manifest_files {
    int (*take)(void *arg, struct manifest *manifest);          // takes it over; -1: there are MANIFEST_FILES_MAX already
    void (*failed)(void *arg, const struct error *err);         // one that cannot be read or is not YAML
    void *arg;
};
void manifest_files_read(const struct invocation *in, const struct manifest_files *files);
