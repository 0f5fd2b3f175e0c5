// The `analysis` of show_changes: what the changed files touch, told from paths, imports and manifests.
#pragma once
#include "api/guest/git_changes.h"
#include "api/guest/tool.h"

extern const struct tool_field change_analysis_fields[];
int change_analysis_make(struct tool_call *call, const struct git_changes *changes, json_t **ret,
                         struct error *err);
