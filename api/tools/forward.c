// Tools that the tool server in the sandbox does: the arguments without sandbox_id go there, its result comes
// back. What comes back is untrusted: only the members that a CallToolResult has pass, and only in their
// shapes.
#include "api/tools/run.h"

#define WAIT_DEFAULT_S 20 // as the tool server has it

static bool is_content(const json_t *content)
{
    size_t i;
    json_t *item;
    if (!json_is_array(content))
        return false;
    json_array_foreach(content, i, item) if (!json_get_text(item, "type")) return false;
    return true;
}

// NULL if it is not a CallToolResult.
static json_t *clean_result(const json_t *answer)
{
    json_t *content = json_object_get(answer, "content"),
           *structured = json_object_get(answer, "structuredContent");
    bool is_error = json_get_bool(answer, "isError", false);
    if (!is_content(content) || (structured && !json_is_object(structured)) || (!structured && !is_error))
        return NULL;
    json_t *result = json_pack("{s:O}", "content", content);
    if (structured)
        json_object_set(result, "structuredContent", structured);
    if (is_error)
        json_object_set_new(result, "isError", json_true());
    return result;
}

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
    json_t *clean = clean_result(answer);
    if (clean)
        tool_answer_result(call, clean);
    else
        tool_fail_set(call, ERROR_UNAVAILABLE,
                      "try again; if it stays, destroy the sandbox and create another",
                      "the tool server in the sandbox gave an answer that makes no sense");
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

void tool_run_forwarded(struct tool_call *call)
{
    json_t *arguments = begin(call);
    if (arguments)
        call->lane = lane_call_tool(call->world->lanes, tool_text(call, "sandbox_id"), call->tool->name,
                                    arguments, answered, call);
}

void tool_run_forwarded_wait(struct tool_call *call)
{
    json_t *arguments = begin(call);
    if (arguments)
        call->lane = lane_call_waiting_tool(
            call->world->lanes, tool_text(call, "sandbox_id"), call->tool->name, arguments,
            1000 * tool_int(call, "max_wait_seconds", WAIT_DEFAULT_S), answered, call);
}
