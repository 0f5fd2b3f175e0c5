#include "cli/get.h"
#include "cli/objects.h"

static int run(struct invocation *in, struct error *err)
{
    CLEANUP(get_clear) struct get get = {0};
    const char *raw = invocation_option(in, "raw");
    if (raw)
        return get_raw(in, raw, err);
    if (!in->argument_count)
        return error_set(err, ERROR_USAGE, "like chat2shell get sandboxes; the kinds: workspaces, approvals, approvalrules, sandboxes, sessions, exposures, events, all",
                         "which objects is not said: give a KIND");
    if (targets_parse(in, &get.targets, err) < 0 || get_prepare(in, &get, err) < 0)
        return -1;
    return get_run(&get, err);
}

static const struct example examples[] = {
    {"chat2shell get sandboxes", "all sandboxes, one line each"},
    {"chat2shell get sandboxes,workspaces,approvals -o wide", "several kinds, every column"},
    {"chat2shell get sandbox dev -o yaml", "one object, as it can be edited and applied again"},
    {"chat2shell get sbx,ws -w", "and every change, as it comes"},
    {"chat2shell get sbx -o jsonpath='{range .items[*]}{.metadata.name}{\"\\n\"}{end}'", "a form of your own"},
    {"chat2shell get sbx -o custom-columns=NAME:.metadata.name,PHASE:.status.phase --sort-by=.metadata.creationTimestamp", "columns of your own, oldest first"},
};
static const struct option_row options[] = {
    OPTION_OUTPUT(get_outputs, "how to print them"),
    OPTION_WATCH,
    OPTION_WATCH_ONLY,
    OPTION_WATCH_EVENTS,
    OPTION_SELECTOR,
    OPTION_FIELD_SELECTOR,
    OPTION_SORT,
    OPTION_CHUNK_SIZE,
    OPTION_NO_HEADERS,
    OPTION_SHOW_MANAGERS,
    OPTIONS_NAMESPACE,
    {.name = "show-labels", .doc = "a last column with all labels"},
    {.name = "label-columns", .letter = 'L', .value = "LABEL,…", .doc = "a column for each of these labels", .is_repeatable = true},
    {.name = "raw", .value = "PATH", .doc = "a path of the daemon's API instead of objects, like /readyz?verbose"},
    {.name = "ignore-not-found", .doc = "a NAME that is not there is no error"},
};
const struct command command_get = {
    .name = "get", .synopsis = "KIND[,KIND…] [NAME…] | KIND/NAME…", .summary = "List objects, print some, or watch them",
    .max_arguments = -1, .run = run, COMMAND_EXAMPLES(examples), COMMAND_OPTIONS(options),
    .details = "NAME is a name, a uid, or the first 8 or more characters of a uid. KIND is a kind's name in singular or plural or its short name, "
               "`all` (every kind) or `events`. Paths are JSONPath: fields (.a.b, ['a']), [n], [-n], [from:to:step], [1,2], ['a','b'], [*], .., [?(@.a==\"b\")] with == != < <= > >=; "
               "templates have {range PATH}…{end} and texts in quotes too. A field that is not there prints as nothing. "
               "In a file of columns the first line has the headings and the second one the paths.",
};
