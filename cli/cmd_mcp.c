// mcp: a real MCP client of the daemon's own endpoint, for scripts and for trying things out.
#include "api/client/mcp.h"
#include "api/client/token.h"
#include "cli/command.h"
#include "cli/mcp_bridge.h"
#include "cli/printers/print.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define ARGUMENTS_MAX_BYTES (20 * 1024 * 1024)

static int open_client(struct invocation *in, struct mcp_client *ret, struct error *err)
{
    const char *given = invocation_option(in, "url");
    CLEANUP_FREE char *url = given ? mem_strdup(given) : invocation_mcp_url(in, err);
    const struct config *config = url ? invocation_config(in, err) : NULL;
    CLEANUP_SECRET char *authorization = NULL;
    if (!config || client_read_authorization(config->mcp_token_file, &authorization, err) < 0)
        return -1;
    return mcp_client_open(url, authorization, ret, err);
}

// ---- tools --------------------------------------------------------------------------------------------------------------
// A stop inside a number or a file's name does not end a sentence.
static size_t first_sentence(const char *text)
{
    size_t len = 0;
    while (text[len] && text[len] != '\n' && !(text[len] == '.' && strchr(" \n", text[len + 1]))) // strchr finds the end of the text too
        len++;
    return len;
}

static void print_tools(const struct invocation *in, const json_t *result)
{
    const json_t *tools = json_object_get(result, "tools");
    const char *hash = json_get_text(json_object_get(result, "_meta"), "dev.chat2shell/catalogue");
    CLEANUP(text_table_free) struct text_table table = {0};
    bool is_name = invocation_is_output(in, "name");
    text_table_add_row(&table, (const char *[]){"NAME", "DESCRIPTION"}, is_name ? 1 : 2);
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i);
        const char *given = json_get_text(tool, "description"), *description = given ? given : "";
        CLEANUP_FREE char *first = mem_strndup(description, first_sentence(description));
        text_table_add_row(&table, (const char *[]){json_get_text(tool, "name"), first}, 2);
    }
    text_table_print(&table, !is_name);
    if (hash && !is_name) {
        CLEANUP_FREE char *line = mem_format("\nThis list is %s: a client that shows another one has an old copy.\n", hash);
        print_text(line);
    }
}

static int run_tools(struct invocation *in, struct error *err)
{
    CLEANUP(mcp_client_clear) struct mcp_client client = {0};
    CLEANUP_JSON json_t *result = NULL;
    if (open_client(in, &client, err) < 0 || mcp_client_call(&client, "tools/list", NULL, &result, err) < 0)
        return -1;
    if (invocation_is_output(in, "json"))
        print_json(result);
    else
        print_tools(in, result);
    return 0;
}

// ---- call ---------------------------------------------------------------------------------------------------------------
static int read_arguments(const struct invocation *in, json_t **ret, struct error *err)
{
    const char *text = in->argument_count > 1 ? in->arguments[1] : "{}";
    CLEANUP(buffer_free) struct buffer input = BUFFER_INIT(ARGUMENTS_MAX_BYTES);
    if (strcmp(text, "-") == 0 && fs_read_all(STDIN_FILENO, &input, err) < 0)
        return error_context(err, "cannot read the arguments from standard input");
    if (strcmp(text, "-") == 0)
        text = buffer_text(&input);
    CLEANUP_JSON json_t *arguments = NULL;
    if (json_parse(text, strlen(text), &arguments, err) < 0) {
        error_hint(err, "write them like '{\"sandbox_id\": \"sbx_…\"}'");
        return error_context(err, "the arguments are not JSON");
    }
    if (!json_is_object(arguments))
        return error_set(err, ERROR_INVALID, "write them like '{\"sandbox_id\": \"sbx_…\"}'", "the arguments must be a JSON object");
    *ret = TAKE_PTR(arguments);
    return 0;
}

// "sandbox.workspace.root", "tools[0].name" as "tools.0.name". Borrowed; NULL if there is none.
static const json_t *walk(const json_t *value, const char *path)
{
    while (value && *path) {
        size_t len = strcspn(path, ".");
        CLEANUP_FREE char *part = mem_strndup(path, len);
        value = json_is_array(value) ? json_array_get(value, strtoul(part, NULL, 10)) : json_object_get(value, part);
        path += len + (path[len] == '.');
    }
    return value;
}

static int print_value(const json_t *result, const char *path, struct error *err)
{
    const json_t *value = walk(result, path);
    if (!value)
        return error_set(err, ERROR_NOT_FOUND, "run it without --get to see everything", "the result has no '%.200s'", path);
    if (json_is_string(value)) {
        fwrite(json_string_value(value), 1, json_string_length(value), stdout); // raw: for scripts, as asked
    } else {
        CLEANUP_FREE char *text = json_to_text(value);
        fputs(text, stdout);
    }
    fputc('\n', stdout);
    return 0;
}

static const char *text_of(const json_t *result)
{
    const char *text = json_get_text(json_array_get(json_object_get(result, "content"), 0), "text");
    return text ? text : "";
}

static int run_call(struct invocation *in, struct error *err)
{
    CLEANUP(mcp_client_clear) struct mcp_client client = {0};
    CLEANUP_JSON json_t *arguments = NULL, *result = NULL;
    if (read_arguments(in, &arguments, err) < 0 || open_client(in, &client, err) < 0)
        return -1;
    CLEANUP_JSON json_t *params = json_pack("{s:s, s:O}", "name", in->arguments[0], "arguments", arguments);
    if (!params)
        return error_set(err, ERROR_USAGE, NULL, "the tool's name is not text");
    if (mcp_client_call(&client, "tools/call", params, &result, err) < 0)
        return -1;
    if (json_get_bool(result, "isError", false)) {
        in->exit_code = 1;
        complain_text(text_of(result)); // it says what to do itself
        return 0;
    }
    const json_t *structured = json_object_get(result, "structuredContent");
    const char *path = invocation_option(in, "get");
    if (path)
        return print_value(structured, path, err);
    if (structured)
        print_json(structured);
    else
        print_text(text_of(result));
    return 0;
}

// ---- the bridge ---------------------------------------------------------------------------------------------------------
static int locate_endpoint(void *arg, struct mcp_client *ret, struct error *err)
{
    struct invocation *in = arg;
    const char *given = invocation_option(in, "url");
    CLEANUP_FREE char *url = given ? mem_strdup(given) : invocation_mcp_url(in, err);
    const struct config *config = url ? invocation_config(in, err) : NULL;
    CLEANUP(mcp_client_clear) struct mcp_client endpoint = {0};
    if (!config || client_read_authorization(config->mcp_token_file, &endpoint.authorization, err) < 0 || mcp_client_parse_url(url, &endpoint, err) < 0)
        return -1;
    *ret = endpoint;
    endpoint = (struct mcp_client){0};
    return 0;
}

// What can never become right is told at once; a daemon that is not there yet may come.
static int check_settings(struct invocation *in, struct error *err)
{
    CLEANUP(mcp_client_clear) struct mcp_client endpoint = {0};
    const char *given = invocation_option(in, "url");
    if (given && mcp_client_parse_url(given, &endpoint, err) < 0)
        return -1;
    return invocation_config(in, err) ? 0 : -1;
}

static int run_bridge(struct invocation *in, struct error *err)
{
    const struct mcp_bridge_options options = {.input_fd = STDIN_FILENO, .output_fd = STDOUT_FILENO, .locate = locate_endpoint, .arg = in};
    int signal = 0;
    if (check_settings(in, err) < 0)
        return -1;
    if (isatty(STDIN_FILENO))
        fputs("An MCP client is meant to start this: it speaks one JSON-RPC message a line. See chat2shell mcp --help.\n", stderr);
    if (mcp_bridge_run(&options, &signal, err) < 0)
        return -1;
    in->exit_code = signal == SIGINT ? 128 + SIGINT : 0;
    return 0;
}

// ---- the rows -----------------------------------------------------------------------------------------------------------
static const char *const tool_outputs[] = {"table", "name", "json", NULL};
#define OPTION_URL {.name = "url", .value = "URL", .doc = "the endpoint; by default the daemon's, from the environment"}
static const struct option_row tools_options[] = {OPTION_OUTPUT(tool_outputs, "how to print them"), OPTION_URL};
static const struct option_row call_options[] = {{.name = "get", .value = "PATH", .doc = "print one value of the result, text without quotes"}, OPTION_URL};
static const struct example call_examples[] = {
    {"chat2shell mcp call sandbox_create '{}' --get sandbox.id", "make a sandbox and print its id"},
    {"chat2shell mcp call bash '{\"sandbox_id\": \"sbx_…\", \"command\": \"uname -a\"}'", "run a command in it"},
};
static const struct command children[] = {
    {.name = "tools", .synopsis = "", .summary = "List the tools", .run = run_tools, COMMAND_OPTIONS(tools_options)},
    {.name = "call", .synopsis = "TOOL [JSON|-]", .summary = "Call a tool and print its result", .min_arguments = 1, .max_arguments = 2, .run = run_call,
     COMMAND_OPTIONS(call_options), COMMAND_EXAMPLES(call_examples)},
};
static const struct option_row bridge_options[] = {OPTION_URL};
static const struct example bridge_examples[] = {
    {"{\"mcpServers\": {\"chat2shell\": {\"command\": \"chat2shell\", \"args\": [\"mcp\"]}}}", "how most clients are told to start it"},
    {"claude mcp add chat2shell -- chat2shell mcp", "how Claude Code is told"},
};
static const char bridge_details[] =
    "Without a command it is an MCP server on standard input and output for clients that start their servers themselves: each line is handed to the "
    "running daemon, and what the daemon answers is written as a line. Everything else goes to standard error. It stays when the daemon is not there "
    "or starts again, and answers every request with an error meanwhile. It ends when the client closes its side or stops reading; requests that "
    "are still under way then get two seconds since the last answer. Where the endpoint asks for a token (CHAT2SHELL_AUTH), "
    "CHAT2SHELL_MCP_TOKEN_FILE names the file with one, for this and for the commands above.";
const struct command command_mcp = {.name = "mcp", .synopsis = "[COMMAND]", .summary = "Speak MCP to the daemon: on standard input and output, or one call",
    .details = bridge_details, .run = run_bridge, COMMAND_OPTIONS(bridge_options), COMMAND_EXAMPLES(bridge_examples), COMMAND_CHILDREN(children)};
