// The tool server's own workspace id never leaves: callers know the workspace by its public id.
//
// The inner id is known from the results that name it (structuredContent.workspace_id or selected_workspace_id), and is
// remembered for results that only mention it: errors, cache keys, a file that export_pro_context wrote and read shows. The
// file itself keeps it, as does what a shell command prints, which is given byte for byte; the id is no secret in there.
#pragma once
#include "controller/base/json.h"

// In a tool's result, changes structuredContent's top-level workspace_id and selected_workspace_id to the public id, and
// every occurrence of an inner id of the known form in the strings of content (but not in data of images) and
// structuredContent. *inner: the id remembered (NULL = none yet), which is replaced, too; the caller's.
void rewrite_workspace_ids(json_t *result, const char *public_id, char **inner);
// A CallToolResult: an object whose content is an array of objects with a type.
bool rewrite_is_tool_result(const json_t *result);
