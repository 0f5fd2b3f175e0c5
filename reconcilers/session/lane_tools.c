// The plain kinds of call: a tool in the lane's turn, a tool that waits and an extension method beside it.
#include "reconcilers/session/lane.h"
#include "reconcilers/session/rewrite.h"
#include "controller/base/memory.h"

#define HINT_SLOW "the tool was told to stop; look with read or bash at what it left behind before repeating it"

// ---- tools/call ----------------------------------------------------------------------------------------------------

static void tool_send(struct lane_call *call, enum call_step step)
{
    struct error err = ERROR_INIT;
    json_t *params = json_pack("{s:o, s:o}", "name", json_from_text(call->name), "arguments", TAKE_PTR(call->arguments));
    if (call_exchange(call, step, "tools/call", params, &err) < 0)
        call_end(call, NULL, &err);
}

static void tool_start(struct lane_call *call)
{
    tool_send(call, CALL_IN_TURN);
}

static void tool_start_beside(struct lane_call *call)
{
    tool_send(call, CALL_REQUESTING);
}

static void tool_answered(struct lane_call *call, json_t *result, const struct error *err)
{
    if (err) {
        call_end(call, NULL, err);
    } else if (!rewrite_is_tool_result(result)) {
        call_fail(call, ERROR_UNAVAILABLE, "call the tool again; if it keeps failing, destroy the sandbox and create a new one",
                  "the tool server answered %s with something that is not a tool result", call->name);
    } else {
        rewrite_workspace_ids(result, call->lane->public_workspace_id, &call->lane->inner_workspace_id);
        call_end(call, result, NULL);
    }
}

static void tool_expired(struct lane_call *call)
{
    if (call->step == CALL_WAITS_TURN)
        call_fail(call, ERROR_TIMEOUT, "wait for the earlier calls to this sandbox to end, then call again",
                  "the call waited %d minutes for its turn and was not started", LANE_CALL_DEADLINE_MS / 60000);
    else
        call_fail(call, ERROR_TIMEOUT, HINT_SLOW, "%s did not end within %d minutes", call->name, LANE_CALL_DEADLINE_MS / 60000);
}

static void waiting_tool_expired(struct lane_call *call)
{
    call_fail(call, ERROR_TIMEOUT, "call it again", "%s did not answer within %lld ms", call->name, (long long)call->deadline_ms);
}

static struct lane_call *tool_post(struct lanes *lanes, const char *sandbox_uid, const struct call_kind *kind, const char *tool,
                                   json_t *arguments, int64_t deadline_ms, lane_answer_fn done, void *arg)
{
    struct lane_call *call = call_new(lanes, sandbox_uid, kind, done, arg);
    call->name = mem_strdup(tool);
    call->arguments = arguments ? arguments : json_object();
    call->deadline_ms = deadline_ms;
    lanes_post(lanes, &call->arrival);
    return call;
}

struct lane_call *lane_call_tool(struct lanes *lanes, const char *sandbox_uid, const char *tool, json_t *arguments, lane_answer_fn done,
                                 void *arg)
{
    static const struct call_kind kind = {
        .takes_turn = true, .start = tool_start, .answered = tool_answered, .expired = tool_expired};
    return tool_post(lanes, sandbox_uid, &kind, tool, arguments, LANE_CALL_DEADLINE_MS, done, arg);
}

struct lane_call *lane_call_waiting_tool(struct lanes *lanes, const char *sandbox_uid, const char *tool, json_t *arguments,
                                         int64_t wait_ms, lane_answer_fn done, void *arg)
{
    static const struct call_kind kind = {.start = tool_start_beside, .answered = tool_answered, .expired = waiting_tool_expired};
    return tool_post(lanes, sandbox_uid, &kind, tool, arguments, wait_ms + LANE_GRACE_MS, done, arg);
}

// ---- extension methods ---------------------------------------------------------------------------------------------

static void request_start(struct lane_call *call)
{
    struct error err = ERROR_INIT;
    if (call_exchange(call, CALL_REQUESTING, call->name, TAKE_PTR(call->arguments), &err) < 0)
        call_end(call, NULL, &err);
}

static void request_answered(struct lane_call *call, json_t *result, const struct error *err)
{
    if (!err && !json_is_object(result))
        call_fail(call, ERROR_UNAVAILABLE, NULL, "the tool server answered %s with something that is not an object", call->name);
    else
        call_end(call, result, err);
}

static void request_expired(struct lane_call *call)
{
    call_fail(call, ERROR_TIMEOUT, NULL, "the sandbox did not answer %s within %lld ms", call->name, (long long)call->deadline_ms);
}

static struct lane_call *request_post(struct lanes *lanes, const char *sandbox_uid, bool is_own, const char *method, json_t *params,
                                      int64_t deadline_ms, lane_answer_fn done, void *arg)
{
    static const struct call_kind kinds[] = {
        {.needs_sessions = true, .start = request_start, .answered = request_answered, .expired = request_expired},
        {.needs_sessions = true, .is_own = true, .start = request_start, .answered = request_answered, .expired = request_expired},
    };
    struct lane_call *call = call_new(lanes, sandbox_uid, &kinds[is_own], done, arg);
    call->name = mem_strdup(method);
    call->arguments = params;
    if (deadline_ms < LANE_CALL_DEADLINE_MS)
        call->deadline_ms = deadline_ms > 0 ? deadline_ms : 0;
    lanes_post(lanes, &call->arrival);
    return call;
}

struct lane_call *lane_request(struct lanes *lanes, const char *sandbox_uid, const char *method, json_t *params, int64_t deadline_ms,
                               lane_answer_fn done, void *arg)
{
    return request_post(lanes, sandbox_uid, false, method, params, deadline_ms, done, arg);
}

struct lane_call *lane_request_closed(struct lanes *lanes, const char *sandbox_uid, const char *method, json_t *params,
                                      int64_t deadline_ms, lane_answer_fn done, void *arg)
{
    return request_post(lanes, sandbox_uid, true, method, params, deadline_ms, done, arg);
}
