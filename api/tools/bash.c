// bash, bash_poll, bash_stop: one file, because they differ in one call. The sessions are the lane's.
#include "api/tools/run.h"
#include <string.h>

#define YIELD_DEFAULT_MS 10000

static void answered(void *arg, int result, json_t *answer, const struct error *err)
{
    struct tool_call *call = arg;
    call->lane = NULL;
    if (tool_is_over(call))
        return;
    if (result == 0)
        tool_answer(call, json_incref(answer));
    else if (err->code == ERROR_NOT_FOUND && strncmp(err->message, "Unknown Bash session", 20) == 0)
        tool_fail(call, err);
    else
        tool_fail_lane(call, err);
}

static bool is_sandbox_id(struct tool_call *call)
{
    if (id_is_of(KIND_SANDBOX, tool_text(call, "sandbox_id")))
        return true;
    record_free(tool_read_sandbox(call)); // answers: unknown
    return false;
}

void tool_run_bash(struct tool_call *call)
{
    const char *command = tool_text(call, "command");
    if (!command[strspn(command, " \t\r\n\v\f")]) {
        tool_fail_set(call, ERROR_INVALID, "give a shell command line", "command is required");
        return;
    }
    if (is_sandbox_id(call))
        call->lane = lane_bash(call->world->lanes, tool_text(call, "sandbox_id"), command,
                               tool_text(call, "cwd"), tool_int(call, "yield_time_ms", YIELD_DEFAULT_MS),
                               tool_int(call, "timeout_ms", 0), answered, call);
}

void tool_run_bash_poll(struct tool_call *call)
{
    if (is_sandbox_id(call))
        call->lane =
            lane_bash_poll(call->world->lanes, tool_text(call, "sandbox_id"), tool_text(call, "session_id"),
                           tool_int(call, "yield_time_ms", YIELD_DEFAULT_MS), answered, call);
}

void tool_run_bash_stop(struct tool_call *call)
{
    if (is_sandbox_id(call))
        call->lane = lane_bash_stop(call->world->lanes, tool_text(call, "sandbox_id"),
                                    tool_text(call, "session_id"), answered, call);
}
