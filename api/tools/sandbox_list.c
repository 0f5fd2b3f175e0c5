#include "api/tools/list_answer.h"
#include "api/tools/run.h"

void tool_run_sandbox_list(struct tool_call *call)
{
    tool_answer_list(call, KIND_SANDBOX, "sandboxes", render_sandbox);
}
