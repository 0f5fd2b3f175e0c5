#include "api/tools/list_answer.h"
#include "api/tools/run.h"

static json_t *render(struct world *world, const struct record *workspace)
{
    (void)world;
    return render_workspace(workspace);
}

void tool_run_workspace_list(struct tool_call *call)
{
    tool_answer_list(call, KIND_WORKSPACE, "workspaces", render);
}
