// bash, bash_poll, bash_stop: one file, because they differ in one call. The sessions are the lane's.
#include "api/tools/run.h"
#include <stdio.h>
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

// ---- what a waiting call says about itself ----------------------------------------------------------------
static void describe_session(const struct lane_look *look, int64_t waited_ms, struct tool_progress *ret)
{
    snprintf(ret->message, sizeof(ret->message), "waiting for %s for %lld s: %lld bytes printed so far",
             look->session_id ? look->session_id : "the command", (long long)waited_ms / 1000,
             (long long)look->printed_bytes);
}

static void describe_bash(const struct tool_call *call, int64_t waited_ms, struct tool_progress *ret)
{
    struct lane_look look = {.stage = LANE_STAGE_RUNNING};
    long long waited_s = waited_ms / 1000;
    ret->total_ms = tool_int(call, "yield_time_ms", YIELD_DEFAULT_MS);
    if (call->lane)
        lane_call_look(call->lane, &look);
    if (look.stage == LANE_STAGE_WAITING)
        describe_session(&look, waited_ms, ret);
    else if (look.stage == LANE_STAGE_QUEUED)
        snprintf(ret->message, sizeof(ret->message),
                 "the command has been waiting for %lld s for its turn to start: calls before it: %zu", waited_s, look.ahead);
    else
        snprintf(ret->message, sizeof(ret->message), "the command is being started, %lld s so far", waited_s);
}

static void describe_poll(const struct tool_call *call, int64_t waited_ms, struct tool_progress *ret)
{
    struct lane_look look = {0};
    ret->total_ms = tool_int(call, "yield_time_ms", YIELD_DEFAULT_MS);
    if (call->lane)
        lane_call_look(call->lane, &look);
    describe_session(&look, waited_ms, ret);
}

static void describe_stop(const struct tool_call *call, int64_t waited_ms, struct tool_progress *ret)
{
    (void)call;
    snprintf(ret->message, sizeof(ret->message), "waiting for the command to end, %lld s so far", (long long)waited_ms / 1000);
}

// ---- the tools --------------------------------------------------------------------------------------------
void tool_run_bash(struct tool_call *call)
{
    const char *command = tool_text(call, "command");
    if (!command[strspn(command, " \t\r\n\v\f")]) {
        tool_fail_set(call, ERROR_INVALID, "give a shell command line", "command is required");
        return;
    }
    call->describe = describe_bash;
    if (is_sandbox_id(call))
        call->lane = lane_bash(call->world->lanes, tool_text(call, "sandbox_id"), command,
                               tool_text(call, "cwd"), tool_int(call, "yield_time_ms", YIELD_DEFAULT_MS),
                               tool_int(call, "timeout_ms", 0), answered, call);
    tool_follow_lane(call);
}

void tool_run_bash_poll(struct tool_call *call)
{
    call->describe = describe_poll;
    if (is_sandbox_id(call))
        call->lane =
            lane_bash_poll(call->world->lanes, tool_text(call, "sandbox_id"), tool_text(call, "session_id"),
                           tool_int(call, "yield_time_ms", YIELD_DEFAULT_MS), answered, call);
    tool_follow_lane(call);
}

void tool_run_bash_stop(struct tool_call *call)
{
    call->describe = describe_stop;
    if (is_sandbox_id(call))
        call->lane = lane_bash_stop(call->world->lanes, tool_text(call, "sandbox_id"),
                                    tool_text(call, "session_id"), answered, call);
    tool_follow_lane(call);
}
