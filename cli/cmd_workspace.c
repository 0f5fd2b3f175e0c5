#include "cli/label.h"
#include "cli/objects.h"
#include "cli/printers/print.h"
#include "cli/several.h"
#include "cli/targets.h"
#include "cli/terminal.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct kind_info *info(void)
{
    return kind_info(KIND_WORKSPACE);
}

// ---- list -----------------------------------------------------------------------------------------------------------------
static int run_list(struct invocation *in, struct error *err)
{
    const char *output = invocation_option(in, "output"), *mode = invocation_option(in, "mode");
    bool is_table = !output || strcmp(output, "table") == 0 || strcmp(output, "wide") == 0;
    CLEANUP_FREE char *term = mode ? mem_format("spec.mode=%s", mode) : NULL;
    CLEANUP_FREE char *path = target_query(in, info(), term, NULL);
    CLEANUP_JSON json_t *list = NULL;
    const struct rest *rest = invocation_rest(in, err);
    if (!rest || rest_call(rest, &(struct rest_ask){.method = "GET", .path = path, .accept = is_table ? REST_AS_TABLE : NULL}, &list, NULL, NULL, err) < 0)
        return -1;
    if (!json_array_size(json_object_get(list, is_table ? "rows" : "items")))
        terminal_note("No workspaces found");
    if (!is_table) {
        object_print(in, list);
        return 0;
    }
    CLEANUP(text_table_free) struct text_table table = {0};
    if (text_table_from_server(list, invocation_is_output(in, "wide"), &table) < 0)
        return error_set(err, ERROR_INTERNAL, "is the daemon of another version?", "the daemon's answer is not a table");
    if (table.row_count > 1)
        text_table_print(&table, !invocation_switch(in, "no-headers", false));
    return 0;
}

// ---- add ------------------------------------------------------------------------------------------------------------------
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

static json_t *read_path(const char *word, struct error *err)
{
    CLEANUP_FREE char *path = absolute(word, err);
    json_t *text = path ? json_string(path) : NULL;
    if (path && !text)
        error_set(err, ERROR_INVALID, "rename it", "the path is not UTF-8");
    return text;
}

// KEY=VALUE, as often as given. NULL: none.
static int read_labels(const struct invocation *in, json_t **ret, struct error *err)
{
    const char *words[ARGUMENTS_MAX_VALUES];
    size_t count = invocation_values(in, "label", words);
    CLEANUP_JSON json_t *labels = count ? json_object() : NULL;
    for (size_t i = 0; i < count; i++) {
        const char *equal = strchr(words[i], '=');
        if (!equal || equal == words[i])
            return error_set(err, ERROR_USAGE, "like --label team=web", "--label '%.100s' is not of the form KEY=VALUE", words[i]);
        if (label_add_pair(labels, words[i], "label", err) < 0)
            return -1;
    }
    *ret = TAKE_PTR(labels);
    return 0;
}

// Without name and labels: the one that is there already is fine.
static int add_any(const struct rest *rest, const char *mode, json_t *path, json_t **ret, struct error *err)
{
    CLEANUP_JSON json_t *body = json_pack("{s:O}", "path", path);
    json_set_text(body, "mode", mode);
    return rest_post(rest, REST_OWN "/workspaces", body, ret, err);
}

static int add_new(const struct rest *rest, const char *mode, json_t *path, const char *name, json_t *labels, json_t **ret, struct error *err)
{
    CLEANUP_FREE char *collection = rest_path(info(), NULL);
    CLEANUP_JSON json_t *body = json_pack("{s:s, s:s, s:{}, s:{s:s, s:O}}", "apiVersion", API_GROUP "/" API_VERSION, "kind", info()->name, "metadata", "spec",
                                          "mode", mode ? mode : "clone", "path", path);
    json_set_text(json_object_get(body, "metadata"), "name", name);
    if (labels)
        json_object_set(json_object_get(body, "metadata"), "labels", labels);
    return rest_post(rest, collection, body, ret, err);
}

static void print_added(struct several *several, const json_t *workspace)
{
    const struct invocation *in = several->in;
    several_add(several, workspace);
    if (invocation_is_output(in, "name")) {
        object_print(in, workspace);
    } else if (!invocation_is_output(in, "json") && !invocation_is_output(in, "yaml"))
        terminal_confirm("workspace/%s added, its id is %s", object_name(workspace), object_uid(workspace));
}

static int add_one(struct several *several, const struct rest *rest, const char *word, json_t *labels, struct error *err)
{
    const char *mode = invocation_option(several->in, "mode"), *name = invocation_option(several->in, "name");
    CLEANUP_JSON json_t *path = read_path(word, err), *workspace = NULL;
    if (!path || (name || labels ? add_new(rest, mode, path, name, labels, &workspace, err) : add_any(rest, mode, path, &workspace, err)) < 0)
        return -1;
    print_added(several, workspace);
    return 0;
}

static int add_all(struct several *several, const struct rest *rest, json_t *labels, struct error *err)
{
    const struct invocation *in = several->in;
    for (int i = 0; i < in->argument_count; i++) {
        struct error why = ERROR_INIT;
        if (add_one(several, rest, in->arguments[i], labels, &why) < 0 && several_fail(several, &why, err) < 0)
            return -1;
    }
    return several_end(several, err);
}

static int run_add(struct invocation *in, struct error *err)
{
    CLEANUP(several_clear) struct several several = {0};
    CLEANUP_JSON json_t *labels = NULL;
    if (invocation_option(in, "name") && in->argument_count > 1)
        return error_set(err, ERROR_USAGE, "add them one by one", "--name is of one workspace, and %d paths are given", in->argument_count);
    const struct rest *rest = read_labels(in, &labels, err) < 0 ? NULL : invocation_rest(in, err);
    if (!rest)
        return -1;
    several_begin(&several, in, in->argument_count == 1);
    return add_all(&several, rest, labels, err);
}

// ---- the rows ---------------------------------------------------------------------------------------------------------------
static const char *const host_modes[] = {"clone", "direct", NULL};
static const char *const all_modes[] = {"managed", "clone", "direct", NULL};
static const char *const add_outputs[] = {"table", "json", "yaml", "name", NULL};
static const struct option_row list_options[] = {
    {.name = "mode", .value = "MODE", .doc = "only those of this mode", .choices = all_modes}, OPTION_SELECTOR, OPTION_OUTPUT(output_kinds, "how to print them"), OPTION_SHOW_MANAGERS,
    {.name = "no-headers", .doc = "leave the headings out"}};
static const struct option_row add_options[] = {
    {.name = "mode", .value = "MODE", .doc = "clone (a private copy of a Git repository) by default; direct is the directory itself", .choices = host_modes},
    {.name = "name", .value = "NAME", .doc = "its name; without --name and --label, a workspace that is there already is the answer"},
    {.name = "label", .letter = 'l', .value = "KEY=VALUE", .doc = "a label of it", .is_repeatable = true},
    OPTION_OUTPUT(add_outputs, "how to print it"),
};
static const struct example list_examples[] = {{"chat2shell workspace list --mode managed -o wide", "the directories of chat2shell's own"}};
static const struct example add_examples[] = {
    {"chat2shell workspace add ~/repositories/demo", "let assistants use it without asking"},
    {"chat2shell workspace add ~/repositories/* --label team=web", "several at once"},
};
static const struct command children[] = {
    {.name = "list", .synopsis = "", .summary = "List workspaces", .run = run_list, COMMAND_OPTIONS(list_options), COMMAND_EXAMPLES(list_examples)},
    {.name = "add", .synopsis = "PATH…", .summary = "Approve host directories beforehand", .min_arguments = 1, .max_arguments = -1, .run = run_add,
     COMMAND_OPTIONS(add_options), COMMAND_EXAMPLES(add_examples)},
};
const struct command command_workspace = {.name = "workspace", .synopsis = "COMMAND", .summary = "List workspaces, approve host directories beforehand",
                                          COMMAND_CHILDREN(children)};
