// Tools that the tool server in the sandbox does: the arguments without sandbox_id go there, its result comes
// back. What comes back is untrusted: result.h.
#include "api/tools/result.h"
#include "api/tools/run.h"
#include <stdio.h>

#define WAIT_DEFAULT_S 20 // as the tool server has it

static void answered(void *arg, int result, json_t *answer, const struct error *err)
{
    struct tool_call *call = arg;
    call->lane = NULL;
    if (tool_is_over(call))
        return;
    if (result < 0) {
        tool_fail_lane(call, err);
        return;
    }
    struct error error = ERROR_INIT;
    json_t *clean = tool_result_clean(call->catalogue, call->tool->name, answer, &error);
    if (clean)
        tool_answer_result(call, clean);
    else
        tool_fail(call, &error);
}

// The arguments for the tool server; NULL and answered if there is no such sandbox.
static json_t *begin(struct tool_call *call)
{
    if (!id_is_of(KIND_SANDBOX, tool_text(call, "sandbox_id"))) {
        record_free(tool_read_sandbox(call)); // answers: unknown
        return NULL;
    }
    json_t *arguments = json_copy(call->arguments);
    json_object_del(arguments, "sandbox_id");
    return arguments;
}

static void describe(const struct tool_call *call, int64_t waited_ms, struct tool_progress *ret)
{
    struct lane_look look = {.stage = LANE_STAGE_RUNNING};
    if (call->lane)
        lane_call_look(call->lane, &look);
    if (look.stage == LANE_STAGE_QUEUED)
        snprintf(ret->message, sizeof(ret->message),
                 "%s has been waiting for %lld s for its turn in the sandbox: calls before it: %zu", call->tool->name,
                 (long long)waited_ms / 1000, look.ahead);
    else
        snprintf(ret->message, sizeof(ret->message), "%s is still working, %lld s so far", call->tool->name,
                 (long long)waited_ms / 1000);
}

static void describe_wait(const struct tool_call *call, int64_t waited_ms, struct tool_progress *ret)
{
    ret->total_ms = 1000 * tool_int(call, "max_wait_seconds", WAIT_DEFAULT_S);
    snprintf(ret->message, sizeof(ret->message), "%s has been waiting for %lld s of at most %lld s", call->tool->name,
             (long long)waited_ms / 1000, (long long)ret->total_ms / 1000);
}

void tool_run_forwarded(struct tool_call *call)
{
    json_t *arguments = begin(call);
    call->describe = describe;
    if (arguments)
        call->lane = lane_call_tool(call->world->lanes, tool_text(call, "sandbox_id"), call->tool->name,
                                    arguments, answered, call);
    tool_follow_lane(call);
}

void tool_run_forwarded_wait(struct tool_call *call)
{
    json_t *arguments = begin(call);
    call->describe = describe_wait;
    if (arguments)
        call->lane = lane_call_waiting_tool(
            call->world->lanes, tool_text(call, "sandbox_id"), call->tool->name, arguments,
            1000 * tool_int(call, "max_wait_seconds", WAIT_DEFAULT_S), answered, call);
    tool_follow_lane(call);
}
