// delete: objects, each by what its kind's end means.
#include "cli/manifests.h"
#include "cli/objects.h"
#include "cli/removal.h"
#include "cli/selection.h"
#include "cli/targets.h"
#include "cli/terminal.h"
#include "controller/base/memory.h"
#include <stdio.h>
#include <string.h>

static const char *const cascades[] = {"background", "foreground", "orphan", NULL};

static const char *propagation_of(const struct invocation *in)
{
    static const char *const policies[] = {"Background", "Foreground", "Orphan"};
    const char *word = invocation_option(in, "cascade");
    for (size_t i = 0; word && cascades[i]; i++)
        if (strcmp(cascades[i], word) == 0)
            return policies[i];
    return NULL;
}

static int run(struct invocation *in, struct error *err)
{
    CLEANUP(selection_clear) struct selection selection = {0};
    struct removal removal = {.in = in, .word = "deleted", .propagation = propagation_of(in), .trial = removal_trial_of(in),
                              .waits = invocation_switch(in, "wait", true), .timeout_s = wait_seconds(in, err)};
    if (removal.timeout_s < 0 || selection_read(in, true, &selection, err) < 0) // what refers goes before what it refers to
        return -1;
    if (!json_array_size(selection.objects) && !selection.is_named)
        terminal_note("No resources found");
    if (removal_run(&removal, selection.objects, err) < 0)
        return -1;
    return selection_conclude(&selection, err);
}

static const char *const outputs[] = {"table", "name", NULL};
static const struct example examples[] = {
    {"chat2shell delete sandbox dev", "end a sandbox; a managed workspace is kept for 30 days"},
    {"chat2shell delete workspace demo", "take a host workspace back, or move a managed one to the trash"},
    {"chat2shell delete -f dev.yaml", "everything that the file names, in reverse order"},
    {"chat2shell delete sandboxes -l team=web --dry-run=server", "what would be deleted"},
    {"chat2shell delete exposures,sandboxes --all --yes", "all of them, unsaved work included"},
};
static const struct option_row options[] = {
    OPTION_FILENAME,
    OPTION_RECURSIVE,
    OPTION_ALL,
    OPTION_SELECTOR,
    OPTION_FIELD_SELECTOR,
    OPTION_YES,
    {.name = "wait", .doc = "wait until it is gone; --wait=false does not, but for a sandbox whose workspace is deleted, too"},
    OPTION_TIMEOUT,
    {.name = "cascade", .value = "HOW", .doc = "background and foreground mean the same here; orphan is refused where something depends on it", .choices = cascades},
    {.name = "ignore-not-found", .doc = "what is not there is no failure"},
    OPTION_DRY_RUN,
    OPTION_OUTPUT(outputs, "how to print what was deleted"),
    OPTIONS_NAMESPACE,
};
const struct command command_delete = {
    .name = "delete", .synopsis = "KIND NAME… | KIND/NAME… | KIND -l SELECTOR | -f FILE", .summary = "Delete objects", .max_arguments = -1, .run = run,
    .details = "No host file is ever deleted: host workspaces and approvals are taken back, managed workspaces move to the trash. Exposures and sandboxes are "
               "deleted before workspaces, whatever their order. What a private clone holds and nobody else is named, and asked for on a terminal; elsewhere it "
               "takes --yes.",
    COMMAND_EXAMPLES(examples), COMMAND_OPTIONS(options),
};
