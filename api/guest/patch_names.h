// What a unified diff says about itself: the files it names, its added and removed lines. It is read with the
// counts of its hunks, so a removed line that begins with "-- " is content and no header.
#pragma once
#include "controller/base/cleanup.h"
#include "controller/base/error.h"
#include <stdbool.h>
#include <stddef.h>

#define PATCH_MAX_NAMES 2000

struct patch_names {
    char **names; // owned; in order of appearance, without the first part of header names, each once
    size_t count;
    bool has_stated; // some come from "---", "+++", "rename" or "copy" lines, not from "diff --git" alone
    bool has_symlink, has_submodule;
    size_t additions, deletions;
};

// -1: more than PATCH_MAX_NAMES files. Nothing else fails: what is no patch names nothing.
int patch_names_scan(const char *patch, size_t len, struct patch_names *ret, struct error *err);
// Only the lines; of a diff of any size.
void patch_names_count(const char *patch, size_t len, size_t *ret_additions, size_t *ret_deletions);
void patch_names_free(struct patch_names *names);
#define CLEANUP_PATCH_NAMES CLEANUP(patch_names_free)
