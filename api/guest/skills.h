// SKILL.md files: instructions that a workspace or its user keeps for models. Worker threads only.
#pragma once
#include "api/guest/workspace.h"
#include "controller/base/json.h"

#define SKILLS_MAX 500

struct skill {
    char *name, *description; // description may be NULL
    const char *source;       // "workspace", "user" or "plugin"
    char *path;               // "$WORKSPACE/..." or "~/..."
};

struct skills {
    struct skill *list; // the first of a name is the one that counts
    size_t count;
};

void skills_scan(const struct workspace *workspace, bool include_global, struct skills *ret);
void skills_free(struct skills *skills);
#define CLEANUP_SKILLS CLEANUP(skills_free)
