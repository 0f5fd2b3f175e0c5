// The methods of the protocol: a table of names and eras, one function each.
#include "api/mcp/exchange.h"
#ifdef CHAT2SHELL_CONFORMANCE_TOOLS
#include "api/tools/conformance/conformance.h"
#endif
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <string.h>

// How much of a caller's own word an answer repeats, in bytes.
static int shown_len(const char *word)
{
    return (int)utf8_cut(word, strnlen(word, 64));
}

static void answer(struct mcp_call *call, json_t *taken)
{
    CLEANUP_JSON json_t *result = taken;
    mcp_finish_result(result, call->era);
    CLEANUP_FREE char *text = json_to_text(result);
    mcp_call_result(call, text, strlen(text));
}

static void answer_ready(struct mcp_call *call, const struct shared_text *result)
{
    mcp_call_result(call, result->bytes, result->len);
}

// ---- handshake --------------------------------------------------------------------------------------------
static void run_initialize(struct mcp_call *call)
{
    const json_t *word = json_object_get(call->message.params, "protocolVersion");
    const char *asked = jsonrpc_plain_text(word);
    if (!json_is_string(word)) {
        mcp_call_error(call, 200, JSONRPC_INVALID_PARAMS, "params.protocolVersion must be a string", NULL);
        return;
    }
    const struct mcp_revision *revision = mcp_revision_find(asked);
    if (!revision || revision->era != MCP_LEGACY)
        revision = mcp_revision_find(MCP_NEWEST_LEGACY);
    answer_ready(call, call->exchange->server->ready.initialize[mcp_revision_index(revision)]);
}

static void run_ping(struct mcp_call *call)
{
    mcp_call_result(call, "{}", 2);
}

static void run_discover(struct mcp_call *call)
{
    answer_ready(call, call->exchange->server->ready.discover);
}

// ---- tools ------------------------------------------------------------------------------------------------
static void run_tools_list(struct mcp_call *call)
{
    const json_t *cursor = json_object_get(call->message.params, "cursor");
    if (cursor && !json_is_null(cursor)) // there is one page, so no cursor was ever given out
        mcp_call_error(call, 200, JSONRPC_INVALID_PARAMS, "params.cursor is not one of this server's", NULL);
    else
        answer_ready(call, call->exchange->server->ready.tools[call->era]);
}

static void tool_finished(void *arg, struct tool_result result)
{
    struct mcp_call *call = arg;
    if (!result.text) {
        answer(call, result.value);
        return;
    }
    struct shared_text *text = mcp_finish_text(&call->exchange->server->ready, result.text, call->era);
    answer_ready(call, text);
    shared_text_unref(text);
}

static void run_tools_call(struct mcp_call *call)
{
    const json_t *word = json_object_get(call->message.params, "name");
    const char *name = jsonrpc_plain_text(word);
    const struct tool *tool = name ? tool_find(name) : NULL;
    json_t *arguments = json_object_get(call->message.params, "arguments");
    if (!tool) {
        CLEANUP_FREE char *message = name ? mem_format("unknown tool: %.*s", shown_len(name), name)
                                          : mem_strdup("params.name must be a string: the tool's name");
        mcp_call_error(call, 200, JSONRPC_INVALID_PARAMS, message, NULL);
        return;
    }
    if (!(call->exchange->caller.scopes & tool->scope)) {
        mcp_call_refuse_scope(call, tool->scope);
        return;
    }
    if (arguments && !json_is_null(arguments) && !json_is_object(arguments)) {
        mcp_call_error(call, 200, JSONRPC_INVALID_PARAMS, "params.arguments must be an object", NULL);
        return;
    }
#ifdef CHAT2SHELL_CONFORMANCE_TOOLS
    if (conformance_refuse(call, tool, arguments))
        return;
#endif
    arguments = json_is_object(arguments) ? json_incref(arguments) : json_object();
    mcp_call_run_tool(call, tool, arguments, tool_finished);
}

// ---- table ------------------------------------------------------------------------------------------------
static const struct method {
    const char *name;
    bool is_of[2]; // by era
    void (*run)(struct mcp_call *call);
} methods[] = {
    {"initialize", {[MCP_LEGACY] = true}, run_initialize},
    {"ping", {[MCP_LEGACY] = true}, run_ping},
    {"server/discover", {[MCP_MODERN] = true}, run_discover},
    {"tools/list", {true, true}, run_tools_list},
    {"tools/call", {true, true}, run_tools_call},
};

void mcp_method_run(struct mcp_call *call)
{
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        if (strcmp(methods[i].name, call->message.method) == 0 && methods[i].is_of[call->era]) {
            methods[i].run(call);
            return;
        }
    }
    // Through the tunnel a 404 means "session lost" in the legacy era, so it is 200 there.
    CLEANUP_FREE char *message =
        mem_format("unknown method: %.*s", shown_len(call->message.method), call->message.method);
    mcp_call_error(call, call->era == MCP_MODERN ? 404 : 200, JSONRPC_METHOD_NOT_FOUND, message, NULL);
}
