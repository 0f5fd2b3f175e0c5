// sandbox_create: asks for the sandbox, then waits until it runs, fails or the client's patience ends.
#include "api/tools/run.h"
#include <stdio.h>
#include <string.h>

static void answer(struct tool_call *call, const char *status)
{
    json_t *sandbox = render_sandbox(call->world, call->record);
    json_t *result = json_pack("{s:s, s:o}", "status", status, "sandbox", sandbox);
    tool_note_sandbox(result, call->record, sandbox);
    if (strcmp(status, "creating") == 0)
        tool_note(result, "it takes longer than usual and goes on: call sandbox_get with this id until its "
                          "status is running");
    tool_answer(call, result);
}

// ---- a host path that needs a word
// ---------------------------------------------------------------------------------------
static void answer_approval(struct tool_call *call)
{
    const struct record *approval = call->record;
    json_t *result =
        json_pack("{s:s, s:o}", "status", "approval_required", "approval", render_approval(approval));
    if (approval->spec.approval.decision == APPROVAL_REJECTED)
        tool_note(result,
                  "nothing was mounted: the operator's side has rejected this path; leave out workspace_path to "
                  "work in a fresh workspace, or tell the person");
    else
        tool_note(result,
                  "nothing was mounted: the operator must approve this path on the host with `chat2shell "
                  "approval approve %s`; "
                  "ask for that, then call sandbox_create again with the same arguments",
                  approval->meta.uid);
    tool_answer(call, result);
}

static bool is_usable(const struct record *approval)
{
    return approval->spec.approval.decision == APPROVAL_APPROVED && approval->status.approval.workspace_ref &&
           !record_is_true(approval, "Revoked") && !approval->meta.deletion_at.ms;
}

// Will nothing more become of it without a person?
static bool is_settled(const struct record *approval)
{
    return approval->meta.deletion_at.ms || approval->spec.approval.decision == APPROVAL_REJECTED ||
           approval_is_waiting(approval) || record_is_false(approval, "Valid") || record_is_true(approval, "Revoked");
}

static void request(struct tool_call *call);

// The operator's rules decide in a moment, if they do: then it goes on as if the path had been approved before.
static void look_at_approval(struct tool_call *call)
{
    if (is_usable(call->record) && !call->is_repeated) {
        call->is_repeated = true;
        record_free(call->record);
        call->record = NULL;
        request(call);
    } else if (is_settled(call->record) || call->is_repeated || !tool_try_wait_change(call)) {
        answer_approval(call);
    }
}

static void look(struct tool_call *call)
{
    const struct record *sandbox = call->record;
    bool is_going = sandbox->meta.deletion_at.ms || sandbox->meta.removed_at.ms;
    if (is_going)
        tool_fail_set(call, ERROR_STATE, "call sandbox_create again",
                      "sandbox %s was destroyed while it was being created", sandbox->meta.uid);
    else if (record_is_true(sandbox, "Failed"))
        tool_fail_set(call, ERROR_STATE, "call sandbox_destroy on it, then sandbox_create once more (with its workspace_id to keep the files); if that fails too, tell the person what it says",
                      "sandbox %s could not be created: %s", sandbox->meta.uid, tool_failure_of(sandbox));
    else if (record_is_true(sandbox, "Ready"))
        answer(call, call->outcome == SANDBOX_REUSED ? "reused" : "created");
    else if (!tool_wait_change(call) && !call->is_answered)
        answer(call, "creating");
}

// The step that it is in: workspace, runtime, tool server.
static int find_step(const struct record *sandbox)
{
    if (record_is_true(sandbox, "RuntimeCreated"))
        return 3;
    return record_condition(sandbox, "RuntimeCreated") ? 2 : 1;
}

static void describe(const struct tool_call *call, int64_t waited_ms, struct tool_progress *ret)
{
    const struct record *sandbox = call->next == look ? call->record : NULL; // before that it is being made on another thread
    const struct condition *ready = sandbox ? record_condition(sandbox, "Ready") : NULL;
    long long waited_s = waited_ms / 1000;
    if (!sandbox)
        snprintf(ret->message, sizeof(ret->message), "the request is being recorded, %lld s so far", waited_s);
    else
        snprintf(ret->message, sizeof(ret->message), "sandbox %s, step %d of 3, %lld s so far: %.120s%s%.40s%s",
                 sandbox->meta.uid, find_step(sandbox), waited_s,
                 ready && ready->message ? ready->message : "its workspace is prepared",
                 ready && ready->reason ? " (" : "", ready && ready->reason ? ready->reason : "",
                 ready && ready->reason ? ")" : "");
}

static void requested(struct tool_call *call)
{
    if (call->result < 0)
        tool_fail(call, call->error);
    else if (call->outcome == SANDBOX_NEEDS_APPROVAL) {
        call->next = look_at_approval;
        call->deadline.ms = clock_boot(loop_clock(call->world->loop)).ms + TOOL_RULES_WAIT_MS;
        look_at_approval(call);
    } else {
        call->next = look;
        look(call);
    }
}

static void request(struct tool_call *call)
{
    const struct sandbox_request request = {
        .principal = call->principal,
        .manager = "chat2shell-mcp",
        .workspace_id = tool_text(call, "workspace_id"),
        .workspace_path = tool_text(call, "workspace_path"),
        .workspace_mode = tool_text(call, "workspace_mode"),
    };
    call->deadline.ms = clock_boot(loop_clock(call->world->loop)).ms + TOOL_CREATE_WAIT_MS;
    call->next = requested;
    call->describe = describe;
    request_sandbox(call->world, &request, tool_sandbox_requested, call);
}

void tool_run_sandbox_create(struct tool_call *call)
{
    if (tool_text(call, "workspace_id") && tool_text(call, "workspace_path"))
        tool_fail_set(call, ERROR_INVALID, "give one of them, or neither for a fresh workspace",
                      "workspace_id and workspace_path exclude each other");
    else
        request(call);
}
