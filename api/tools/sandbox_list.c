#include "api/tools/run.h"

void tool_run_sandbox_list(struct tool_call *call)
{
    struct record_list list = {0};
    if (store_list(call->world->store, KIND_SANDBOX, &list, NULL, &call->error) < 0) {
        tool_fail(call, &call->error);
        return;
    }
    json_t *sandboxes = json_array();
    for (size_t i = 0; i < list.count; i++)
        json_array_append_new(sandboxes, render_sandbox(call->world, list.items[i]));
    record_list_free(&list);
    tool_answer(call, json_pack("{s:o}", "sandboxes", sandboxes));
}
