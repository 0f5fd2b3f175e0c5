// The methods of the protocol: a table of names and eras, one function each.
#include "api/mcp/exchange.h"
#ifdef CHAT2SHELL_CONFORMANCE_TOOLS
#include "api/tools/conformance/conformance.h"
#endif
#include "controller/base/memory.h"
#include <string.h>

#define SERVER_NAME "chat2shell"
#define LIST_TTL_MS 300000
static const char instructions[] =
    "A full shell in disposable sandboxes. Start with sandbox_create (no arguments for a fresh workspace) "
    "and use its sandbox.id as "
    "sandbox_id everywhere. Run commands with bash; follow long ones with bash_poll and end them with "
    "bash_stop. Files: read, write, "
    "edit, search, tree. sandbox_expose publishes a TCP port. A host directory needs the operator's approval "
    "once: pass workspace_path "
    "and follow the answer. Destroy sandboxes that are done with; idle ones end after 24 hours.";

static json_t *server_info(void)
{
    return json_pack("{s:s, s:s, s:s}", "name", SERVER_NAME, "title", "chat2shell", "version",
                     CHAT2SHELL_VERSION);
}

void mcp_finish_result(json_t *result, enum mcp_era era)
{
    if (era == MCP_LEGACY)
        return;
    json_object_set_new(result, "resultType", json_string("complete"));
    json_t *meta = json_object_get(result, "_meta");
    if (!json_is_object(meta))
        json_object_set_new(result, "_meta", meta = json_object());
    json_object_set_new(meta, MCP_META_SERVER_INFO, server_info());
}

static void answer(struct mcp_call *call, json_t *taken)
{
    CLEANUP_JSON json_t *result = taken;
    mcp_finish_result(result, call->era);
    CLEANUP_FREE char *text = json_to_text(result);
    mcp_call_result(call, text, strlen(text));
}

static void set_cache_hints(json_t *result)
{
    json_object_set_new(result, "ttlMs", json_integer(LIST_TTL_MS));
    json_object_set_new(result, "cacheScope", json_string("private"));
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
    const char *spoken = revision && revision->era == MCP_LEGACY ? revision->name : MCP_NEWEST_LEGACY;
    answer(call, json_pack("{s:s, s:{s:{}}, s:o, s:s}", "protocolVersion", spoken, "capabilities", "tools",
                           "serverInfo", server_info(), "instructions", instructions));
}

static void run_ping(struct mcp_call *call)
{
    mcp_call_result(call, "{}", 2);
}

static void run_discover(struct mcp_call *call)
{
    json_t *result = json_pack("{s:o, s:{s:{}}, s:s}", "supportedVersions", mcp_modern_revisions(),
                               "capabilities", "tools", "instructions", instructions);
    set_cache_hints(result);
    answer(call, result);
}

// ---- tools ------------------------------------------------------------------------------------------------
char *mcp_list_text(const struct catalogue *catalogue, enum mcp_era era, size_t *ret_len)
{
    CLEANUP_JSON json_t *result = json_copy(catalogue->list);
    if (era == MCP_MODERN)
        set_cache_hints(result);
    mcp_finish_result(result, era);
    char *text = json_to_text(result);
    *ret_len = strlen(text);
    return text;
}

static void run_tools_list(struct mcp_call *call)
{
    const json_t *cursor = json_object_get(call->message.params, "cursor");
    if (cursor && !json_is_null(cursor)) // there is one page, so no cursor was ever given out
        mcp_call_error(call, 200, JSONRPC_INVALID_PARAMS, "params.cursor is not one of this server's", NULL);
    else
        mcp_call_result(call, call->exchange->server->list_texts[call->era],
                        call->exchange->server->list_lens[call->era]);
}

// A ready result, with what every modern one has put before its last brace.
static void answer_text(struct mcp_call *call, struct shared_text *taken)
{
    if (call->era == MCP_LEGACY)
        mcp_call_result(call, taken->bytes, taken->len);
    else {
        CLEANUP_JSON json_t *more = json_object();
        mcp_finish_result(more, call->era);
        CLEANUP_FREE char *tail = json_to_text(more);
        CLEANUP_FREE char *text = mem_format("%.*s,%s", (int)taken->len - 1, taken->bytes, tail + 1);
        mcp_call_result(call, text, strlen(text));
    }
    shared_text_unref(taken);
}

static void tool_finished(void *arg, struct tool_result result)
{
    if (result.text)
        answer_text(arg, result.text);
    else
        answer(arg, result.value);
}

static void run_tools_call(struct mcp_call *call)
{
    const json_t *word = json_object_get(call->message.params, "name");
    const char *name = jsonrpc_plain_text(word);
    const struct tool *tool = name ? tool_find(name) : NULL;
    json_t *arguments = json_object_get(call->message.params, "arguments");
    if (!tool) {
        CLEANUP_FREE char *message = name ? mem_format("unknown tool: %.64s", name)
                                          : mem_strdup("params.name must be a string: the tool's name");
        mcp_call_error(call, 200, JSONRPC_INVALID_PARAMS, message, NULL);
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
    struct mcp_server *server = call->exchange->server;
    call->has_tool = true;
    tool_call_start(&call->tool, server->world, &server->catalogue, &server->gate, tool,
                    call->exchange->caller.principal, arguments, tool_finished, call);
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
    CLEANUP_FREE char *message = mem_format("unknown method: %.64s", call->message.method);
    mcp_call_error(call, call->era == MCP_MODERN ? 404 : 200, JSONRPC_METHOD_NOT_FOUND, message, NULL);
}
