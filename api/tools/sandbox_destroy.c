// sandbox_destroy: asks for the removal, then waits until the runtime is confirmed gone. Repeating it answers
// the same.
#include "api/tools/run.h"
#include <stdio.h>

static void note_unsaved(const struct tool_call *call, json_t *result)
{
    json_int_t changed = json_get_int(call->unsaved, "changed_files", 0),
               commits = json_get_int(call->unsaved, "unexported_commits", 0);
    if (changed > 0 || commits > 0)
        tool_note(result,
                  "the private clone ended with the sandbox and held work that was saved nowhere else: %lld "
                  "changed files, %lld commits",
                  (long long)changed, (long long)commits);
}

static void answer(struct tool_call *call)
{
    json_t *result = render_sandbox(call->world, call->record);
    note_unsaved(call, result);
    if (!call->record->meta.removed_at.ms)
        tool_note(result,
                  "removing it takes longer than usual and goes on: sandbox_get tells when it is destroyed");
    tool_answer(call, result);
}

static void look(struct tool_call *call)
{
    if (call->record->meta.removed_at.ms)
        answer(call);
    else if (!tool_wait_change(call) && !call->is_answered)
        answer(call);
}

static void describe(const struct tool_call *call, int64_t waited_ms, struct tool_progress *ret)
{
    const struct record *record = call->next == look ? call->record : NULL;
    const struct condition *stalled = record ? record_condition(record, "Stalled") : NULL;
    bool is_stalled = stalled && stalled->status == CONDITION_TRUE && stalled->message;
    snprintf(ret->message, sizeof(ret->message), "the sandbox is being removed, %lld s so far%s%.160s",
             (long long)waited_ms / 1000, is_stalled ? ": " : "", is_stalled ? stalled->message : "");
}

static void requested(struct tool_call *call)
{
    if (call->result < 0) {
        tool_fail(call, call->error);
        return;
    }
    call->next = look;
    look(call);
}

void tool_run_sandbox_destroy(struct tool_call *call)
{
    CLEANUP_RECORD struct record *sandbox = tool_read_sandbox(call);
    if (!sandbox)
        return;
    call->deadline.ms = clock_boot(loop_clock(call->world->loop)).ms + TOOL_DESTROY_WAIT_MS;
    call->next = requested;
    call->describe = describe;
    request_destroy(call->world, call->principal, sandbox->meta.uid, tool_record_requested, call);
}
