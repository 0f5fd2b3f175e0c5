// The tools' entry points: one file each, named in the table only.
#pragma once
#include "api/tools/tools.h"

void tool_run_sandbox_create(struct tool_call *call);
void tool_run_sandbox_list(struct tool_call *call);
void tool_run_sandbox_get(struct tool_call *call);
void tool_run_sandbox_expose(struct tool_call *call);
void tool_run_sandbox_destroy(struct tool_call *call);
void tool_run_workspace_list(struct tool_call *call);
void tool_run_bash(struct tool_call *call);
void tool_run_bash_poll(struct tool_call *call);
void tool_run_bash_stop(struct tool_call *call);
void tool_run_forwarded(struct tool_call *call); // read, write, …: the tool server in the sandbox does them
void tool_run_forwarded_wait(struct tool_call *call); // one that has max_wait_seconds: it takes no turn in the lane
