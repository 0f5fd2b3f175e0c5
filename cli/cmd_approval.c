// approval: the operator's word about host paths. What a decision exposes is shown before it is made, and the decision
// carries the version that was shown.
#include "cli/objects.h"
#include "cli/printers/print.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include <stdio.h>
#include <string.h>

static const struct kind_info *info(void)
{
    return kind_info(KIND_APPROVAL);
}

static const char *spec_text(const json_t *approval, const char *key)
{
    const char *text = json_get_text(json_object_get(approval, "spec"), key);
    return text ? text : "";
}

static const char *status_text(const json_t *approval, const char *key)
{
    const char *text = json_get_text(json_object_get(approval, "status"), key);
    return text ? text : "";
}

static bool is_pending(const json_t *approval)
{
    return !spec_text(approval, "decision")[0];
}

// ---- what it exposes ---------------------------------------------------------------------------------------------------------
static void say_exposes(const json_t *approval, FILE *to)
{
    const json_t *exposes = json_object_get(json_object_get(approval, "status"), "exposes");
    bool is_direct = strcmp(spec_text(approval, "mode"), "direct") == 0;
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(256 * 1024);
    buffer_format(&out, "%s asks for %s, %s:\n  %s\n", object_name(approval), spec_text(approval, "path"), spec_text(approval, "mode"),
                  is_direct ? "the sandbox reads and writes this directory itself; programs of yours that run what is in it run the sandbox's changes"
                            : "the sandbox works on a private copy of the repository; the directory itself is only read (with the driver sbx\n"
                              "  by programs inside too, ignored and untracked files included)");
    for (size_t i = 0; i < json_array_size(exposes); i++) {
        const char *path = json_get_text(json_array_get(exposes, i), "path"), *what = json_get_text(json_array_get(exposes, i), "what");
        buffer_format(&out, "  %s: %s\n", path ? path : "?", what ? what : "");
    }
    CLEANUP(text_table_free) struct text_table lines = {0}; // makes each line printable by itself
    for (char *at = out.data, *end; at && (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        text_table_add_row(&lines, (const char *[]){at}, 1);
    }
    for (size_t i = 0; i < lines.row_count; i++)
        fprintf(to, "%s\n", lines.cells[i]);
}

// ---- list ---------------------------------------------------------------------------------------------------------------------
static json_t *pending_first(const json_t *items)
{
    json_t *sorted = json_array();
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < json_array_size(items); i++)
            if (is_pending(json_array_get(items, i)) == (pass == 0))
                json_array_append(sorted, json_array_get(items, i));
    return sorted;
}

static void print_list(const struct invocation *in, const json_t *items)
{
    CLEANUP(text_table_free) struct text_table table = {0};
    text_table_add_row(&table, (const char *[]){"NAME", "STATUS", "MODE", "WORKSPACE", "ASKED", "PATH"}, 6);
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *at = json_array_get(items, i);
        text_table_add_row(&table, (const char *[]){object_name(at), status_text(at, "phase"), spec_text(at, "mode"), status_text(at, "workspaceRef"),
                                                    json_get_text(json_object_get(at, "metadata"), "creationTimestamp"), spec_text(at, "path")}, 6);
    }
    text_table_print(&table, !invocation_switch(in, "no-headers", false));
    for (size_t i = 0; i < json_array_size(items) && is_pending(json_array_get(items, i)); i++) {
        putchar('\n');
        say_exposes(json_array_get(items, i), stdout);
    }
}

static int run_list(struct invocation *in, struct error *err)
{
    const struct rest *rest = invocation_rest(in, err);
    CLEANUP_FREE char *path = rest_path(info(), NULL);
    CLEANUP_JSON json_t *list = NULL;
    if (!rest || rest_get(rest, path, &list, err) < 0)
        return -1;
    json_object_set_new(list, "items", pending_first(json_object_get(list, "items")));
    if (!json_array_size(json_object_get(list, "items")))
        fprintf(stderr, "No approvals found\n");
    if (!object_print(in, list) && json_array_size(json_object_get(list, "items")))
        print_list(in, json_object_get(list, "items"));
    return 0;
}

// ---- decide -------------------------------------------------------------------------------------------------------------------
static json_t *decision_of(const struct invocation *in, const json_t *approval, const char *decision)
{
    const char *shown = invocation_option(in, "resource-version");
    json_t *patch = json_pack("{s:{s:s}, s:{s:s}}", "metadata", "resourceVersion",
                              shown ? shown : json_get_text(json_object_get(approval, "metadata"), "resourceVersion"), "spec", "decision", decision);
    json_set_text(json_object_get(patch, "spec"), "reason", invocation_option(in, "reason"));
    return patch;
}

static int send_decision(const struct invocation *in, const struct rest *rest, const json_t *approval, const char *decision, json_t **ret, struct error *err)
{
    CLEANUP_FREE char *path = rest_path(info(), object_uid(approval));
    CLEANUP_JSON json_t *patch = decision_of(in, approval, decision);
    if (!patch)
        return error_set(err, ERROR_INTERNAL, NULL, "the approval has no resourceVersion");
    if (rest_call(rest, &(struct rest_ask){.method = "PATCH", .path = path, .content_type = "application/merge-patch+json", .body = patch}, ret, NULL, NULL,
                  err) == 0)
        return 0;
    return err->code == ERROR_CONFLICT ? error_hint(err, "it changed since it was shown: look again with chat2shell approval list") : -1;
}

static void print_decided(const struct invocation *in, const json_t *approval)
{
    const char *workspace = status_text(approval, "workspaceRef");
    if (invocation_is_output(in, "json")) {
        print_json(approval);
        return;
    }
    CLEANUP_FREE char *line = invocation_is_output(in, "name")
                                  ? mem_format("%s/%s\n", *workspace ? "workspace" : "approval", *workspace ? workspace : object_name(approval))
                                  : mem_format("approval/%s %s%s%s\n", object_name(approval), spec_text(approval, "decision"),
                                               *workspace ? ", its workspace is " : "", workspace);
    print_text(line);
}

static int decide(struct invocation *in, const char *decision, struct error *err)
{
    const struct rest *rest = invocation_rest(in, err);
    CLEANUP_JSON json_t *approval = NULL, *decided = NULL;
    if (!rest || object_get(rest, info(), in->arguments[0], &approval, err) < 0)
        return -1;
    if (is_pending(approval) && strcmp(decision, "approved") == 0)
        say_exposes(approval, stderr);
    if (strcmp(spec_text(approval, "decision"), decision) == 0)
        decided = json_incref(approval); // said before: the same answer
    else if (send_decision(in, rest, approval, decision, &decided, err) < 0)
        return -1;
    print_decided(in, decided);
    if (strcmp(decision, "approved") == 0 && !status_text(decided, "workspaceRef")[0])
        return error_set(err, ERROR_TIMEOUT, "look again: chat2shell approval list", "%s is approved, but its workspace is not there yet", object_name(decided));
    return 0;
}

static int run_approve(struct invocation *in, struct error *err)
{
    return decide(in, "approved", err);
}

static int run_reject(struct invocation *in, struct error *err)
{
    return decide(in, "rejected", err);
}

// ---- the rows -----------------------------------------------------------------------------------------------------------------
static const char *const list_outputs[] = {"table", "json", "yaml", "name", NULL};
static const char *const decide_outputs[] = {"table", "json", "name", NULL};
#define OPTION_SHOWN                                                                                                                                   \
    {.name = "resource-version", .value = "VERSION", .doc = "decide only if it is still as it was shown in this version"}
#define OPTION_REASON {.name = "reason", .value = "TEXT", .doc = "why, kept with the decision"}
static const struct option_row list_options[] = {OPTION_OUTPUT(list_outputs, "how to print them"), {.name = "no-headers", .doc = "leave the headings out"}};
static const struct option_row decide_options[] = {OPTION_OUTPUT(decide_outputs, "how to print the decision; name is the workspace's"), OPTION_REASON, OPTION_SHOWN};
static const struct example approve_examples[] = {
    {"chat2shell approval approve approval-abc", "say yes; prints the workspace's id"},
};
static const struct command children[] = {
    {.name = "list", .synopsis = "", .summary = "List approvals, those that wait first, with what they expose", .run = run_list, COMMAND_OPTIONS(list_options)},
    {.name = "approve", .synopsis = "NAME", .summary = "Permit a host path in the mode that was asked for", .min_arguments = 1, .max_arguments = 1,
     .run = run_approve, COMMAND_OPTIONS(decide_options), COMMAND_EXAMPLES(approve_examples)},
    {.name = "reject", .synopsis = "NAME", .summary = "Refuse a host path", .min_arguments = 1, .max_arguments = 1, .run = run_reject,
     COMMAND_OPTIONS(decide_options)},
};
const struct command command_approval = {.name = "approval", .synopsis = "COMMAND", .summary = "Decide about host paths", COMMAND_CHILDREN(children)};
