// Where a patch is applied: a private directory in /tmp with copies of the files that it names. git never
// touches the workspace, so a patch that fails half-way has changed nothing, and no link or race in the
// workspace can lead git astray. What came out is then put in its places by install.h.
#pragma once
#include "api/guest/patch_names.h"
#include "api/guest/tool.h"
#include "api/guest/workspace.h"

#define PATCH_MAX_COPY_BYTES (64 * 1024 * 1024)
#define PATCH_WORK_DIR "work"
#define PATCH_GIT_DIR "git" // beside it: an empty repository

struct patch_file {
    struct place place; // in the workspace; the same path in the scratch directory
    bool existed;       // as a regular file
    bool is_rules;      // a .gitattributes that is there only because git obeys it
    struct stat before; // in the workspace
    struct stat copy;   // in the scratch directory, before git
};

struct patch_scratch {
    char *name;        // of the directory, in parent_fd; NULL until it is made
    int fd, parent_fd; // fd: where the copies are, PATCH_WORK_DIR in it
    struct patch_file *files;
    size_t count, copied_bytes;
};
#define PATCH_SCRATCH_INIT                                                                                   \
    {                                                                                                        \
        .fd = -1, .parent_fd = -1                                                                            \
    }

// Checks each name as a writer's path and finds where it leads. Nothing is copied yet.
int patch_scratch_add_names(struct patch_scratch *scratch, const struct workspace *workspace,
                            const struct patch_names *names, struct error *err);
// Makes the directory below tmp and the copies.
int patch_scratch_fill(struct patch_scratch *scratch, const struct workspace *workspace, const char *tmp,
                       struct error *err);
// After git: what it changed becomes files of the workspace, all or none. *ret_changed is how many.
int patch_scratch_install(struct patch_scratch *scratch, const struct workspace *workspace,
                          size_t *ret_changed, struct error *err);
void patch_scratch_free(struct patch_scratch *scratch); // removes the directory
