// approval approve, approval reject: of those that are named, or of all that wait and fit. What is decided is what was shown: each
// decision carries the version of the approval that was printed.
#include "cli/approvals.h"
#include "cli/objects.h"
#include "cli/printers/print.h"
#include "cli/several.h"
#include "cli/targets.h"
#include "cli/terminal.h"
#include "controller/base/memory.h"
#include <stdio.h>
#include <string.h>

struct deciding {
    struct invocation *in;
    const struct rest *rest;
    const char *decision; // "approved", "rejected"
    bool is_trial;        // --dry-run
    struct several several;
};

// ---- which ----------------------------------------------------------------------------------------------------------------
static int check_arguments(const struct invocation *in, bool is_all, struct error *err)
{
    CLEANUP_FREE char *name = invocation_name(in);
    if (is_all == (in->argument_count > 0))
        error_set(err, ERROR_USAGE, NULL, is_all ? "--all goes with no names" : "which approvals are meant is missing: give NAMEs, or --all");
    else if (!is_all && approval_filter_is_given(in))
        error_set(err, ERROR_USAGE, NULL, "--mode, --under and --requester choose among all that wait, and --all is missing");
    else if (invocation_option(in, "resource-version") && in->argument_count != 1)
        error_set(err, ERROR_USAGE, NULL, "--resource-version is of one approval: give one NAME");
    else
        return 0;
    return error_hint(err, "%s --help", name);
}

static int list_waiting(struct deciding *deciding, json_t *ret, struct error *err)
{
    CLEANUP(approval_filter_clear) struct approval_filter filter = {0};
    CLEANUP_FREE char *path = target_query(deciding->in, approval_info(), "status.phase=pending", NULL);
    CLEANUP_JSON json_t *list = NULL;
    if (approval_filter_read(deciding->in, &filter, err) < 0 || rest_get(deciding->rest, path, &list, err) < 0)
        return -1;
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(list, "items"), i, item) if (approval_filter_holds(&filter, item)) json_array_append(ret, item);
    return 0;
}

static bool has_uid(const json_t *items, const char *uid)
{
    for (size_t i = 0; i < json_array_size(items); i++)
        if (strcmp(object_uid(json_array_get(items, i)), uid) == 0)
            return true;
    return false;
}

static int get_named(struct deciding *deciding, json_t *ret, struct error *err)
{
    for (int i = 0; i < deciding->in->argument_count; i++) {
        CLEANUP_JSON json_t *approval = NULL;
        struct error why = ERROR_INIT;
        if (object_get(deciding->rest, approval_info(), deciding->in->arguments[i], &approval, &why) == 0) {
            if (!has_uid(ret, object_uid(approval)))
                json_array_append(ret, approval);
        } else if (several_fail(&deciding->several, &why, err) < 0) {
            return -1;
        }
    }
    return 0;
}

// ---- a last look ------------------------------------------------------------------------------------------------------------
static size_t count_direct(const json_t *approvals)
{
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(approvals); i++)
        count += strcmp(approval_spec(json_array_get(approvals, i), "mode"), "direct") == 0;
    return count;
}

static bool approves(const struct deciding *deciding)
{
    return strcmp(deciding->decision, "approved") == 0;
}

// All at once, and some of them give the directories themselves: somebody has to mean it.
static bool needs_consent(const struct deciding *deciding, const json_t *approvals)
{
    return invocation_switch(deciding->in, "all", false) && approves(deciding) && !deciding->is_trial && !invocation_switch(deciding->in, "yes", false) &&
           count_direct(approvals) > 0;
}

static int confirm_direct(const json_t *approvals, struct error *err)
{
    size_t count = count_direct(approvals);
    if (!terminal_can_ask())
        return error_set(err, ERROR_REFUSED, "add --yes, or --mode clone", "nothing was approved: %zu of them give%s a directory itself (mode direct), which --all does only with --yes",
                         count, count == 1 ? "s" : "");
    if (terminal_agrees("Approve them all, %zu in mode direct?", count))
        return 0;
    return error_set(err, ERROR_CANCELLED, "approve them by name: chat2shell approval approve NAME", "nothing was approved");
}

// ---- one ----------------------------------------------------------------------------------------------------------------------
static void print_decided(struct deciding *deciding, const json_t *approval)
{
    const char *workspace = approval_status(approval, "workspaceRef");
    several_add(&deciding->several, approval);
    if (invocation_is_output(deciding->in, "name")) {
        CLEANUP_FREE char *line = mem_format("%s/%s\n", *workspace ? "workspace" : "approval", *workspace ? workspace : object_name(approval));
        print_text(line);
    } else if (!invocation_is_output(deciding->in, "json") && !invocation_is_output(deciding->in, "yaml")) {
        CLEANUP_FREE char *word = deciding->is_trial ? mem_format("%s (dry run)", deciding->decision) : approval_word(approval);
        terminal_confirm("approval/%s %s", object_name(approval), word);
    }
}

static int decide_one(struct deciding *deciding, const json_t *approval, struct error *err)
{
    const struct invocation *in = deciding->in;
    CLEANUP_JSON json_t *decided = NULL;
    bool is_said = strcmp(approval_spec(approval, "decision"), deciding->decision) == 0; // before: the same answer
    if (is_said || deciding->is_trial)
        decided = json_incref((json_t *)approval);
    else if (approval_decide(deciding->rest, approval, invocation_option(in, "resource-version"), deciding->decision, invocation_option(in, "reason"), &decided,
                             err) < 0)
        return -1;
    print_decided(deciding, decided);
    if (deciding->is_trial || strcmp(deciding->decision, "rejected") == 0 || approval_status(decided, "workspaceRef")[0])
        return 0;
    if (approval_is_settled(decided))
        return error_set(err, ERROR_STATE, "ask for the path again", "%s is approved, but it cannot be used: %s", object_name(decided),
                         object_message(decided, CONDITION_VALID));
    return error_set(err, ERROR_TIMEOUT, "look again: chat2shell approval list", "%s is approved, but its workspace is not there yet", object_name(decided));
}

// ---- all --------------------------------------------------------------------------------------------------------------------
static int decide_all(struct deciding *deciding, const json_t *approvals, struct error *err)
{
    for (size_t i = 0; i < json_array_size(approvals); i++) {
        struct error why = ERROR_INIT;
        if (decide_one(deciding, json_array_get(approvals, i), &why) < 0 && several_fail(&deciding->several, &why, err) < 0)
            return -1;
    }
    return several_end(&deciding->several, err);
}

static void say_all(const json_t *approvals)
{
    for (size_t i = 0; i < json_array_size(approvals); i++)
        if (approval_is_pending(json_array_get(approvals, i)))
            approval_say(json_array_get(approvals, i), stderr);
}

static int run(struct deciding *deciding, struct error *err)
{
    bool is_all = invocation_switch(deciding->in, "all", false);
    CLEANUP_JSON json_t *approvals = json_array();
    if ((is_all ? list_waiting(deciding, approvals, err) : get_named(deciding, approvals, err)) < 0)
        return -1;
    if (is_all && !json_array_size(approvals))
        terminal_note("No approvals wait that are meant");
    bool is_asked = needs_consent(deciding, approvals);
    if (approves(deciding) && (is_asked || !terminal_is_quiet()))
        say_all(approvals);
    if (is_asked && confirm_direct(approvals, err) < 0)
        return -1;
    return decide_all(deciding, approvals, err);
}

static int start(struct invocation *in, const char *decision, struct error *err)
{
    bool is_all = invocation_switch(in, "all", false);
    struct deciding deciding = {.in = in, .decision = decision, .is_trial = invocation_switch(in, "dry-run", false)};
    if (check_arguments(in, is_all, err) < 0 || !(deciding.rest = invocation_rest(in, err)))
        return -1;
    several_begin(&deciding.several, in, !is_all && in->argument_count == 1);
    int r = run(&deciding, err);
    several_clear(&deciding.several);
    return r;
}

int approval_run_approve(struct invocation *in, struct error *err)
{
    return start(in, "approved", err);
}

int approval_run_reject(struct invocation *in, struct error *err)
{
    return start(in, "rejected", err);
}
