#include "api/tools/conformance/conformance.h"
#include "controller/base/memory.h"
#include <string.h>

#define MISSING_CAPABILITY (-32021)

static const json_t *capabilities(const struct mcp_call *call)
{
    return json_object_get(json_object_get(call->message.params, "_meta"), MCP_META_CAPABILITIES);
}

static bool refuse_capability(struct mcp_call *call)
{
    if (json_object_get(capabilities(call), "sampling"))
        return false;
    mcp_call_error(call, 400, MISSING_CAPABILITY, "this tool needs the client's sampling capability",
                   json_pack("{s:{s:{}}}", "requiredCapabilities", "sampling"));
    return true;
}

// ---- arguments in headers -------------------------------------------------------------------------------------------------
// The text that a header must have for that argument; NULL for none.
static char *wanted_text(const json_t *argument)
{
    if (json_is_string(argument))
        return mem_strdup(json_string_value(argument));
    if (json_is_boolean(argument))
        return mem_strdup(json_is_true(argument) ? "true" : "false");
    return json_is_integer(argument) ? json_to_text(argument) : NULL;
}

static bool is_same(const json_t *argument, const char *wanted, const char *found)
{
    char *end = NULL;
    if (!json_is_integer(argument))
        return strcmp(wanted, found) == 0;
    long long number = strtoll(found, &end, 10);
    return found[0] && !*end && number == json_integer_value(argument);
}

// Why the header and the argument do not agree; NULL if they do.
static const char *find_difference(const struct mcp_call *call, const char *suffix, const json_t *argument)
{
    CLEANUP_FREE char *name = mem_format("Mcp-Param-%s", suffix);
    CLEANUP_FREE char *header = http_request_header(call->exchange->http, name);
    CLEANUP_FREE char *wanted = wanted_text(argument);
    if (!header || !wanted)
        return header ? "is there without its argument" : wanted ? "is missing" : NULL;
    CLEANUP_FREE char *found = mcp_decode_header(header);
    if (!found)
        return "is malformed";
    return is_same(argument, wanted, found) ? NULL : "differs from its argument";
}

static bool refuse_headers(struct mcp_call *call, const json_t *arguments)
{
    const struct catalogue *catalogue = &call->exchange->server->catalogue;
    json_t *entry = json_object_get(catalogue->entries, "test_x_mcp_header"), *rule;
    json_t *properties = json_object_get(json_object_get(entry, "inputSchema"), "properties");
    const char *name;
    json_object_foreach(properties, name, rule)
    {
        const char *suffix = json_get_text(rule, "x-mcp-header");
        const char *difference = suffix ? find_difference(call, suffix, json_object_get(arguments, name)) : NULL;
        if (!difference)
            continue;
        CLEANUP_FREE char *message = mem_format("the Mcp-Param-%s header %s", suffix, difference);
        mcp_call_error(call, 400, MCP_HEADER_MISMATCH, message, NULL);
        return true;
    }
    return false;
}

bool conformance_refuse(struct mcp_call *call, const struct tool *tool, const json_t *arguments)
{
    if (call->era != MCP_MODERN)
        return false;
    if (strcmp(tool->name, "test_missing_capability") == 0)
        return refuse_capability(call);
    return strcmp(tool->name, "test_x_mcp_header") == 0 && refuse_headers(call, arguments);
}
