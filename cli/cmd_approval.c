// approval: the operator's word about host paths. What a decision exposes is shown before it is made, and the decision
// carries the version that was shown.
#include "cli/approvals.h"
#include "cli/objects.h"
#include "cli/printers/print.h"
#include "cli/targets.h"
#include "cli/terminal.h"
#include "controller/base/memory.h"
#include <stdio.h>
#include <string.h>

// ---- list ---------------------------------------------------------------------------------------------------------------------
static json_t *pending_first(const json_t *items, const struct approval_filter *filter)
{
    json_t *sorted = json_array();
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < json_array_size(items); i++)
            if (approval_is_pending(json_array_get(items, i)) == (pass == 0) && approval_filter_holds(filter, json_array_get(items, i)))
                json_array_append(sorted, json_array_get(items, i));
    return sorted;
}

static const char *or_none(const char *text)
{
    return text && *text ? text : "<none>";
}

static void print_table(const struct invocation *in, const json_t *items)
{
    bool is_wide = invocation_is_output(in, "wide");
    size_t count = is_wide ? 9 : 6;
    CLEANUP(text_table_free) struct text_table table = {0};
    text_table_add_row(&table, (const char *[]){"NAME", "STATUS", "MODE", "WORKSPACE", "ASKED", "PATH", "REQUESTER", "DECIDED-BY", "REASON"}, count);
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *at = json_array_get(items, i);
        text_table_add_row(&table,
                           (const char *[]){object_name(at), approval_status(at, "phase"), approval_spec(at, "mode"), or_none(approval_status(at, "workspaceRef")),
                                            json_get_text(json_object_get(at, "metadata"), "creationTimestamp"), approval_spec(at, "path"),
                                            or_none(approval_spec(at, "requester")), or_none(approval_status(at, "decidedBy")), or_none(approval_spec(at, "reason"))},
                           count);
    }
    text_table_print(&table, !invocation_switch(in, "no-headers", false));
}

static void print_list(const struct invocation *in, const json_t *items)
{
    print_table(in, items);
    for (size_t i = 0; i < json_array_size(items) && approval_is_pending(json_array_get(items, i)); i++) {
        putchar('\n');
        approval_say(json_array_get(items, i), stdout);
    }
}

int approval_run_list(struct invocation *in, struct error *err)
{
    CLEANUP(approval_filter_clear) struct approval_filter filter = {0};
    CLEANUP_JSON json_t *list = NULL;
    CLEANUP_FREE char *path = target_query(in, approval_info(), invocation_switch(in, "pending", false) ? "status.phase=pending" : NULL, NULL);
    const struct rest *rest = approval_filter_read(in, &filter, err) < 0 ? NULL : invocation_rest(in, err);
    if (!rest || rest_get(rest, path, &list, err) < 0)
        return -1;
    json_object_set_new(list, "items", pending_first(json_object_get(list, "items"), &filter));
    if (!json_array_size(json_object_get(list, "items")))
        terminal_note("No approvals found");
    if (!object_print(in, list) && json_array_size(json_object_get(list, "items")))
        print_list(in, json_object_get(list, "items"));
    return 0;
}

// ---- the rows -----------------------------------------------------------------------------------------------------------------
static const char *const list_outputs[] = {"table", "wide", "json", "yaml", "name", NULL};
static const char *const decide_outputs[] = {"table", "json", "yaml", "name", NULL};
static const char *const watch_outputs[] = {"table", "json", "name", NULL};
static const char *const modes[] = {"clone", "direct", NULL};
static const char *const goals[] = {"pending", "decided", "approved", "rejected", NULL};
#define OPTION_SHOWN                                                                                                                                   \
    {.name = "resource-version", .value = "VERSION", .doc = "decide only if it is still as it was shown in this version"}
#define OPTION_REASON {.name = "reason", .value = "TEXT", .doc = "why, kept with the decision"}
#define OPTIONS_FILTER                                                                                                                                 \
    {.name = "mode", .value = "MODE", .doc = "only those that ask for this mode", .choices = modes},                                                 \
    {.name = "under", .value = "DIR", .doc = "only directories in DIR, or DIR itself, after all symbolic links"},                                    \
    {.name = "requester", .value = "CALLER", .doc = "only those that this caller asked for; mcp:token:* is all whose name begins so"}
#define OPTIONS_DECIDE                                                                                                                                 \
    {.name = "all", .doc = "all that wait"}, OPTIONS_FILTER, {.name = "dry-run", .doc = "say which they would be, decide nothing"},                  \
        OPTION_OUTPUT(decide_outputs, "how to print the decision; name is the workspace's"), OPTION_REASON, OPTION_SHOWN
static const struct option_row list_options[] = {
    {.name = "pending", .doc = "only those that wait"}, OPTIONS_FILTER, OPTION_SELECTOR, OPTION_OUTPUT(list_outputs, "how to print them"), OPTION_SHOW_MANAGERS,
    {.name = "no-headers", .doc = "leave the headings out"}};
static const struct option_row approve_options[] = {OPTIONS_DECIDE, {.name = "yes", .letter = 'y', .doc = "with --all: those in mode direct too, without asking"}};
static const struct option_row reject_options[] = {OPTIONS_DECIDE};
static const struct option_row wait_options[] = {
    {.name = "for", .value = "STATE", .doc = "pending (the default without NAME), decided (with one), approved or rejected", .choices = goals},
    OPTIONS_FILTER, OPTION_TIMEOUT, OPTION_OUTPUT(decide_outputs, "how to print the approval")};
static const struct option_row watch_options[] = {
    {.name = "pending", .doc = "only lines of those that wait"}, OPTIONS_FILTER,
    OPTION_OUTPUT(watch_outputs, "a line of text, or the name, for each change of its status; or a line of JSON ({\"type\": …, \"object\": …}) for each change"),
    {.name = "exec", .value = "PROGRAM", .doc = "run it for each approval that waits; it decides by what it prints"},
    {.name = "parallel", .value = "N", .doc = "how many of it may run at once, from 1 to 16; 1 by default"},
    {.name = "timeout", .value = "TIME", .doc = "how long each may take, as 60, 60s, 5m or 1h; 120 by default"}};
static const struct example list_examples[] = {{"chat2shell approval list --pending", "who waits, and what each would expose"}};
static const struct example approve_examples[] = {
    {"chat2shell approval approve approval-abc", "say yes; prints the workspace's id"},
    {"chat2shell approval approve --all --mode clone --under ~/repositories/team", "all of those"},
    {"chat2shell approval approve --all --dry-run", "which they would be, and what each exposes"},
};
static const struct example reject_examples[] = {{"chat2shell approval reject --all --mode direct --reason 'ask for a clone'", "no to all of those"}};
static const struct example wait_examples[] = {
    {"chat2shell approval wait -o name --timeout 1h", "until one waits; prints its name"},
    {"chat2shell approval wait approval-abc && echo yes", "0: approved, 5: rejected, 6: nobody decided in time"},
};
static const struct example watch_examples[] = {
    {"chat2shell approval watch -o json | jq -r 'select(.type==\"ADDED\" and .object.status.phase==\"pending\").object.spec.path'", "paths, as they are asked for"},
    {"chat2shell approval watch --exec ./decide", "a program decides"},
};
#define HOOK_DETAILS                                                                                                                                   \
    "--exec runs PROGRAM, with the ARGs, once for each approval that waits: without a shell, in the current directory and in a session of its own, the "  \
    "approval as JSON on its standard input, and CHAT2SHELL_APPROVAL_ID, _NAME, _PATH, _MODE, _REQUESTER and _RESOURCE_VERSION in its environment. It decides by a "  \
    "first line of output that is `approve`, `reject` or `reject REASON`, and by ending with status 0 then. Everything else leaves the approval waiting: a "  \
    "program that fails or crashes never approves. What it approves is what it was shown: if the approval changed meanwhile, it is run again. It may decide by "  \
    "`chat2shell approval approve` too, and print nothing. The watch goes on when the daemon restarts and runs nothing twice; begun anew, it runs "  \
    "PROGRAM again for what still waits. An interrupt ends what runs."
static const struct command children[] = {
    {.name = "list", .synopsis = "", .summary = "List approvals, those that wait first, with what they expose", .run = approval_run_list,
     COMMAND_OPTIONS(list_options), COMMAND_EXAMPLES(list_examples)},
    {.name = "approve", .synopsis = "NAME…", .summary = "Permit host paths in the mode that was asked for", .max_arguments = -1, .run = approval_run_approve,
     COMMAND_OPTIONS(approve_options), COMMAND_EXAMPLES(approve_examples)},
    {.name = "reject", .synopsis = "NAME…", .summary = "Refuse host paths", .max_arguments = -1, .run = approval_run_reject, COMMAND_OPTIONS(reject_options),
     COMMAND_EXAMPLES(reject_examples)},
    {.name = "wait", .synopsis = "[NAME]", .summary = "Wait until an approval waits for a decision, or until one is decided", .max_arguments = 1,
     .run = approval_run_wait, COMMAND_OPTIONS(wait_options), COMMAND_EXAMPLES(wait_examples),
     .details = "Ends with 0 when it is so (decided: approved), with 5 when it was decided otherwise, with 6 after --timeout and with 3 when it was deleted."},
    {.name = "watch", .synopsis = "[ARG…] [-- ARG…]", .summary = "Print each change of an approval, and let a program decide", .max_arguments = -1, .takes_rest = true,
     .run = approval_run_watch, COMMAND_OPTIONS(watch_options), COMMAND_EXAMPLES(watch_examples), .details = HOOK_DETAILS},
};
const struct command command_approval = {.name = "approval", .synopsis = "COMMAND", .summary = "Decide about host paths", COMMAND_CHILDREN(children)};
