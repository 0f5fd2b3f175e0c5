// How this project is checked, by its manifests in the workspace root.
#pragma once
#include "api/guest/tool.h"
#include "api/guest/workspace.h"

extern const struct tool_field project_command_fields[];
json_t *project_commands_of(const struct workspace *workspace); // an array; the caller's
