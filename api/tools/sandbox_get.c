// sandbox_get: one sandbox, destroyed ones too for as long as their tombstone is kept.
#include "api/tools/run.h"

void tool_run_sandbox_get(struct tool_call *call)
{
    CLEANUP_RECORD struct record *sandbox = tool_read_sandbox(call);
    if (!sandbox)
        return;
    json_t *result = render_sandbox(call->world, sandbox);
    if (!sandbox->meta.removed_at.ms)
        tool_note_sandbox(result, sandbox, result);
    tool_answer(call, result);
}
