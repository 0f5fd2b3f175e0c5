#include "api/guest/tool.h"
#include "api/guest/request.h"
#include "api/guest/workspace.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

extern const struct tool guest_tool_server_config;
extern const struct tool guest_tool_load_skill;
extern const struct tool guest_tool_open_current_workspace;
extern const struct tool guest_tool_inspect_workspace;
extern const struct tool guest_tool_tree;
extern const struct tool guest_tool_search;
extern const struct tool guest_tool_read;
extern const struct tool guest_tool_view_image;
extern const struct tool guest_tool_write;
extern const struct tool guest_tool_edit;
extern const struct tool guest_tool_apply_patch;
extern const struct tool guest_tool_import_file;
extern const struct tool guest_tool_bash;
extern const struct tool guest_tool_show_changes;
extern const struct tool guest_tool_read_handoff;
extern const struct tool guest_tool_wait_for_handoff;
extern const struct tool guest_tool_export_pro_context;
extern const struct tool guest_tool_handoff_to_agent;

const struct tool *const guest_tools[] = {
    &guest_tool_server_config,
    &guest_tool_load_skill,
    &guest_tool_open_current_workspace,
    &guest_tool_inspect_workspace,
    &guest_tool_tree,
    &guest_tool_search,
    &guest_tool_read,
    &guest_tool_view_image,
    &guest_tool_write,
    &guest_tool_edit,
    &guest_tool_apply_patch,
    &guest_tool_import_file,
    &guest_tool_bash,
    &guest_tool_show_changes,
    &guest_tool_read_handoff,
    &guest_tool_wait_for_handoff,
    &guest_tool_export_pro_context,
    &guest_tool_handoff_to_agent,
    NULL,
};

const struct tool *guest_tool_find(const char *name)
{
    for (size_t i = 0; guest_tools[i]; i++)
        if (strcmp(guest_tools[i]->name, name) == 0)
            return guest_tools[i];
    return NULL;
}

static int fail_with_class(struct error *err, enum error_code code, const char *hint, const char *class,
                           const char *format, va_list args)
{
    CLEANUP_FREE char *text = mem_vformat(format, args);
    return error_set(err, code, hint, "%s: %s", class, text);
}

int guest_tool_fail(struct error *err, const char *hint, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int result = fail_with_class(err, ERROR_REFUSED, hint, "CodexProError", format, args);
    va_end(args);
    return result;
}

int guest_tool_fail_type(struct error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int result = fail_with_class(err, ERROR_INVALID, NULL, "TypeError", format, args);
    va_end(args);
    return result;
}

// "ENOENT: no such file or directory, open 'a.txt'": the form that clients of this contract know.
int guest_tool_fail_errno(struct error *err, int errno_value, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *text = mem_vformat(format, args);
    va_end(args);
    const char *name = strerrorname_np(errno_value);
    const char *description = strerrordesc_np(errno_value);
    CLEANUP_FREE char *words = mem_strdup(description ? description : "unknown error");
    if (words[0] >= 'A' && words[0] <= 'Z')
        words[0] = (char)(words[0] - 'A' + 'a');
    error_errno(err, errno_value, NULL, "system"); // picks the code
    return error_set(err, err ? err->code : ERROR_IO, NULL, "Error: %s: %s, %s", name ? name : "EUNKNOWN",
                     words, text);
}

json_t *guest_tool_start_structured(const struct tool *tool, const struct workspace *workspace)
{
    json_t *structured = json_object();
    json_set_text(structured, "codexpro_tool", tool->name);
    json_set_text(structured, "codexpro_title", tool->title);
    if (tool->has_no_workspace)
        return structured;
    json_set_text(structured, "workspace_id", workspace->id);
    json_set_text(structured, "root", workspace->root);
    return structured;
}

static json_t *text_result(const char *text, size_t len, bool is_error)
{
    json_t *item = json_object(), *content = json_array(), *result = json_object();
    json_object_set_new(item, "type", json_string("text"));
    json_object_set_new(item, "text", json_from_bytes(text, len));
    json_array_append_new(content, item);
    json_object_set_new(result, "content", content);
    if (is_error)
        json_object_set_new(result, "isError", json_true());
    return result;
}

json_t *guest_tool_result(json_t *structured, const char *text, size_t len)
{
    json_t *result = text_result(text, len, false);
    json_object_set_new(result, "structuredContent", structured);
    return result;
}

json_t *guest_tool_failure(const struct tool *tool, const struct error *err)
{
    size_t end = strlen(err->message);
    const char *stop = end && err->message[end - 1] == '.' ? "" : ".";
    CLEANUP_FREE char *text =
        err->hint[0] ? mem_format("%s%s Hint: %s.", err->message, stop, err->hint) : mem_strdup(err->message);
    json_t *result = text_result(text, strlen(text), true);
    json_t *structured = json_object();
    json_set_text(structured, "codexpro_tool", tool->name);
    json_set_text(structured, "codexpro_title", tool->title);
    json_set_text(structured, "error", text);
    json_object_set_new(result, "structuredContent", structured);
    return result;
}

static void run_tool(struct request *request)
{
    struct guest *guest = request->guest;
    struct error err = ERROR_INIT;
    struct tool_call call = {
        .guest = guest,
        .workspace = &guest->workspace,
        .args = request->args,
        .is_cancelled = &request->is_cancelled,
        .structured = guest_tool_start_structured(request->tool, &guest->workspace),
    };
    json_t *result;
    if (request->tool->run(&call, &err) < 0) {
        json_decref(call.structured);
        result = guest_tool_failure(request->tool, &err);
    } else {
        result = guest_tool_result(call.structured, call.text, call.text_len);
        if (call.content)
            json_array_extend(json_object_get(result, "content"), call.content);
    }
    json_decref(call.content);
    free(call.text);
    request->answer = rpc_result_text(request->id, result);
}

static void answer_problem(struct request *request, char *text)
{
    request_answer(request, text_result(text, strlen(text), true));
    free(text);
}

void guest_tool_call_request(struct request *request)
{
    const char *name = json_get_text(request->params, "name");
    const json_t *given = json_object_get(request->params, "arguments");
    if (!name || (given && !json_is_object(given))) {
        struct error err = ERROR_INIT;
        error_set(&err, ERROR_INVALID, NULL,
                  "tools/call needs a tool name, and arguments that are an object");
        request_fail(request, RPC_INTERNAL_ERROR, &err);
        return;
    }
    const struct tool *tool = guest_tool_find(name);
    if (!tool) {
        answer_problem(request, mem_format("MCP error -32602: Tool %s not found", name));
        return;
    }
    CLEANUP_FREE char *problem = NULL;
    if (guest_tool_check_args(tool, given, &request->args, &problem) < 0) {
        answer_problem(
            request, mem_format("MCP error -32602: Input validation error: Invalid arguments for tool %s: %s",
                                tool->name, problem));
        return;
    }
    request->tool = tool;
    if (tool->start)
        tool->start(request, request->args);
    else
        request_submit(request, run_tool);
}
