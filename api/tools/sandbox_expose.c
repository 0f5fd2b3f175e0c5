// sandbox_expose: asks for the mapping, then waits until it is published.
#include "api/tools/run.h"
#include <stdio.h>

static void look(struct tool_call *call)
{
    const struct condition *published = record_condition(call->record, "Published");
    if (call->record->meta.deletion_at.ms || call->record->meta.removed_at.ms)
        tool_fail_set(call, ERROR_STATE, "call sandbox_get; if its status is running, call sandbox_expose again",
                      "the port was taken back while it was being published");
    else if (published && published->status == CONDITION_TRUE)
        tool_answer(call, render_exposure(call->record));
    else if (!tool_wait_change(call) && !call->is_answered)
        tool_fail_set(call, ERROR_TIMEOUT,
                      "call sandbox_expose again with the same port: it returns the same mapping",
                      "the port is not published yet%s%s", published && published->message ? ": " : "",
                      published && published->message ? published->message : "");
}

static void describe(const struct tool_call *call, int64_t waited_ms, struct tool_progress *ret)
{
    const struct record *record = call->next == look ? call->record : NULL;
    const struct condition *published = record ? record_condition(record, "Published") : NULL;
    const char *why = published ? published->message : NULL;
    snprintf(ret->message, sizeof(ret->message), "the port is being published, %lld s so far%s%.160s",
             (long long)waited_ms / 1000, why ? ": " : "", why ? why : "");
}

static void requested(struct tool_call *call)
{
    if (call->result < 0) {
        tool_fail_lane(call, call->error);
        return;
    }
    call->next = look;
    look(call);
}

void tool_run_sandbox_expose(struct tool_call *call)
{
    CLEANUP_RECORD struct record *sandbox = tool_read_sandbox(call);
    if (!sandbox)
        return;
    call->deadline.ms = clock_boot(loop_clock(call->world->loop)).ms + TOOL_EXPOSE_WAIT_MS;
    call->next = requested;
    call->describe = describe;
    request_expose(call->world, call->principal, sandbox->meta.uid, tool_int(call, "port", 0), tool_record_requested,
                   call);
}
