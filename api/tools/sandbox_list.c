#include "api/tools/list_answer.h"
#include "api/tools/run.h"

// An operator's sandbox that waits for its workspace is none of the contract's yet: each of those has one.
static json_t *render(struct world *world, const struct record *sandbox)
{
    return sandbox->status.sandbox.workspace_uid ? render_sandbox(world, sandbox) : NULL;
}

void tool_run_sandbox_list(struct tool_call *call)
{
    tool_answer_list(call, KIND_SANDBOX, "sandboxes", render);
}
