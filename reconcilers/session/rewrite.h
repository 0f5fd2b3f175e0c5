// The tool server's own workspace id never leaves: callers know the workspace by its public id.
#pragma once
#include "controller/base/json.h"

// In a tool's result, changes structuredContent's top-level workspace_id and selected_workspace_id to the public id and,
// where the inner id has its known form, every occurrence in text items. Results without those keys stay as they are.
void rewrite_workspace_ids(json_t *result, const char *public_id);
// A CallToolResult: an object whose content is an array of objects with a type.
bool rewrite_is_tool_result(const json_t *result);
