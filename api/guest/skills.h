// SKILL.md files: instructions that a workspace or its user keeps for models. Worker threads only.
#pragma once
#include "api/guest/tool.h"
#include "api/guest/workspace.h"
#include "controller/base/json.h"
#include <stdatomic.h>

#define SKILLS_MAX 500

struct skill {
    char *name, *description; // description may be NULL
    const char *source;       // "workspace", "user" or "plugin"
    char *path;               // "$WORKSPACE/..." or "~/..."
    bool is_global;           // below the home directory, else below the root
};

struct skills {
    struct skill *list;
    size_t count;
    bool is_cut; // there may be more
};

struct skills_options {
    bool include_global;
    bool keep_shadowed; // also those whose name an earlier place has
    size_t max_files;   // SKILL.md files looked at, at most SKILLS_MAX
    const atomic_bool *is_cancelled;
};

// In order of precedence of their places. Bounded in files, directories and time.
void skills_scan(const struct workspace *workspace, const struct skills_options *options, struct skills *ret);
void skills_free(struct skills *skills);
#define CLEANUP_SKILLS CLEANUP(skills_free)
// The SKILL.md itself, for reading; -1 and errno.
int skills_open(const struct workspace *workspace, const struct skill *skill);
json_t *skills_entry(const struct skill *skill); // name, description?, source, path

extern const struct tool_field skill_entry_fields[]; // how a skill stands in a result
