#include "cli/objects.h"
#include "cli/printers/print.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int run_list(struct invocation *in, struct error *err)
{
    const struct rest *rest = invocation_rest(in, err);
    CLEANUP_FREE char *path = rest_path(kind_info(KIND_WORKSPACE), NULL);
    const char *output = invocation_option(in, "output");
    bool is_table = !output || strcmp(output, "table") == 0 || strcmp(output, "wide") == 0;
    CLEANUP_JSON json_t *list = NULL;
    if (!rest || rest_call(rest, &(struct rest_ask){.method = "GET", .path = path, .accept = is_table ? REST_AS_TABLE : NULL}, &list, NULL, NULL, err) < 0)
        return -1;
    if (!json_array_size(json_object_get(list, is_table ? "rows" : "items")))
        fprintf(stderr, "No workspaces found\n");
    if (!is_table) {
        object_print(in, list);
        return 0;
    }
    CLEANUP(text_table_free) struct text_table table = {0};
    if (text_table_from_server(list, invocation_is_output(in, "wide"), &table) < 0)
        return error_set(err, ERROR_INTERNAL, "is the daemon of another version?", "the daemon's answer is not a table");
    if (table.row_count > 1)
        text_table_print(&table, true);
    return 0;
}

// The daemon has another working directory.
static char *absolute(const char *path, struct error *err)
{
    if (path[0] == '/')
        return mem_strdup(path);
    CLEANUP_FREE char *here = getcwd(NULL, 0);
    if (here)
        return mem_format("%s/%s", here, path);
    error_errno(err, errno, "give an absolute path", "cannot tell the current directory");
    return NULL;
}

static int run_add(struct invocation *in, struct error *err)
{
    const struct rest *rest = invocation_rest(in, err);
    CLEANUP_FREE char *path = rest ? absolute(in->arguments[0], err) : NULL;
    if (!path)
        return -1;
    CLEANUP_JSON json_t *body = json_object(), *workspace = NULL;
    json_t *text = json_string(path);
    if (!text)
        return error_set(err, ERROR_INVALID, "rename it", "the path is not UTF-8");
    json_object_set_new(body, "path", text);
    json_set_text(body, "mode", invocation_option(in, "mode"));
    if (rest_post(rest, REST_OWN "/workspaces", body, &workspace, err) < 0)
        return -1;
    if (object_print(in, workspace))
        return 0;
    CLEANUP_FREE char *line = mem_format("workspace/%s added, its id is %s\n", object_name(workspace), object_uid(workspace));
    print_text(line);
    return 0;
}

static const char *const modes[] = {"clone", "direct", NULL};
static const char *const add_outputs[] = {"table", "json", "yaml", "name", NULL};
static const struct option_row list_options[] = {OPTION_OUTPUT(output_kinds, "how to print them")};
static const struct option_row add_options[] = {
    {.name = "mode", .value = "MODE", .doc = "clone (a private copy of a Git repository) by default; direct is the directory itself", .choices = modes},
    OPTION_OUTPUT(add_outputs, "how to print it"),
};
static const struct example add_examples[] = {{"chat2shell workspace add ~/repositories/demo", "let assistants use it without asking"}};
static const struct command children[] = {
    {.name = "list", .synopsis = "", .summary = "List workspaces", .run = run_list, COMMAND_OPTIONS(list_options)},
    {.name = "add", .synopsis = "PATH", .summary = "Approve a host directory beforehand", .min_arguments = 1, .max_arguments = 1, .run = run_add,
     COMMAND_OPTIONS(add_options), COMMAND_EXAMPLES(add_examples)},
};
const struct command command_workspace = {.name = "workspace", .synopsis = "COMMAND", .summary = "List workspaces, approve host directories beforehand",
                                          COMMAND_CHILDREN(children)};
