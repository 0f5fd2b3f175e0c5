// Every tool there is, in the order of tools/list, with the scope that its caller needs where callers are asked who they are.
// A name that is not here is an unknown tool. bash_poll changes nothing, but it takes output away from the one who ran the command.
#include "api/tools/run.h"
#ifdef CHAT2SHELL_CONFORMANCE_TOOLS
#include "api/tools/conformance/conformance.h"
#endif
#include "controller/base/cleanup.h"
#include <string.h>

const struct tool tools[] = {
    {"sandbox_create", TOOL_WAITS, SCOPE_SANDBOXES_MANAGE, tool_run_sandbox_create},
    {"sandbox_list", TOOL_READS, SCOPE_TOOLS_READ, tool_run_sandbox_list},
    {"sandbox_get", TOOL_READS, SCOPE_TOOLS_READ, tool_run_sandbox_get},
    {"sandbox_expose", TOOL_WAITS, SCOPE_SANDBOXES_MANAGE, tool_run_sandbox_expose},
    {"sandbox_destroy", TOOL_WAITS, SCOPE_SANDBOXES_MANAGE, tool_run_sandbox_destroy},
    {"workspace_list", TOOL_READS, SCOPE_TOOLS_READ, tool_run_workspace_list},
    {"bash", TOOL_WAITS, SCOPE_TOOLS_WRITE, tool_run_bash},
    {"bash_poll", TOOL_WAITS, SCOPE_TOOLS_WRITE, tool_run_bash_poll},
    {"bash_stop", TOOL_WAITS, SCOPE_TOOLS_WRITE, tool_run_bash_stop},
    {"server_config", TOOL_FORWARDS, SCOPE_TOOLS_READ, tool_run_forwarded},
    {"load_skill", TOOL_FORWARDS, SCOPE_TOOLS_READ, tool_run_forwarded},
    {"open_current_workspace", TOOL_FORWARDS, SCOPE_TOOLS_READ, tool_run_forwarded},
    {"inspect_workspace", TOOL_FORWARDS, SCOPE_TOOLS_READ, tool_run_forwarded},
    {"tree", TOOL_FORWARDS, SCOPE_TOOLS_READ, tool_run_forwarded},
    {"search", TOOL_FORWARDS, SCOPE_TOOLS_READ, tool_run_forwarded},
    {"read", TOOL_FORWARDS, SCOPE_TOOLS_READ, tool_run_forwarded},
    {"view_image", TOOL_FORWARDS, SCOPE_TOOLS_READ, tool_run_forwarded},
    {"write", TOOL_FORWARDS, SCOPE_TOOLS_WRITE, tool_run_forwarded},
    {"edit", TOOL_FORWARDS, SCOPE_TOOLS_WRITE, tool_run_forwarded},
    {"apply_patch", TOOL_FORWARDS, SCOPE_TOOLS_WRITE, tool_run_forwarded},
    {"import_file", TOOL_FORWARDS, SCOPE_TOOLS_WRITE, tool_run_forwarded},
    {"show_changes", TOOL_FORWARDS, SCOPE_TOOLS_READ, tool_run_forwarded},
    {"read_handoff", TOOL_FORWARDS, SCOPE_TOOLS_READ, tool_run_forwarded},
    {"wait_for_handoff", TOOL_FORWARDS, SCOPE_TOOLS_READ, tool_run_forwarded_wait},
    {"export_pro_context", TOOL_FORWARDS, SCOPE_TOOLS_WRITE, tool_run_forwarded},
    {"handoff_to_agent", TOOL_FORWARDS, SCOPE_TOOLS_WRITE, tool_run_forwarded},
};
const size_t tool_count = ARRAY_LEN(tools);

const struct tool *tool_find(const char *name)
{
    for (size_t i = 0; i < tool_count; i++)
        if (strcmp(tools[i].name, name) == 0)
            return &tools[i];
#ifdef CHAT2SHELL_CONFORMANCE_TOOLS
    return conformance_tool_find(name);
#else
    return NULL;
#endif
}
