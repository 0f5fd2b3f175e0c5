// apply: makes the daemon's objects as the manifests say.
#include "cli/apply.h"
#include "cli/goal.h"
#include "cli/objects.h"
#include "cli/printers/print.h"
#include "cli/prune.h"
#include "cli/removal.h"
#include "cli/targets.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include <stdio.h>
#include <string.h>

#define WAIT_FOR_READY "ready"

struct command_apply {
    struct apply apply;
    enum removal_trial trial;
    bool prunes;
    const char *wait; // what for; NULL: not at all
    int timeout_s;
};

static bool is_told(const struct command_apply *command, const struct apply_item *item)
{
    return item->result != APPLY_FAILED && (command->trial != REMOVAL_REAL || item->is_settled || item->is_made);
}

// ---- printing -----------------------------------------------------------------------------------------------------------------
static void print_objects(const struct command_apply *command)
{
    const struct apply *apply = &command->apply;
    CLEANUP_JSON json_t *all = json_pack("{s:s, s:s, s:[]}", "apiVersion", "v1", "kind", "List", "items");
    for (size_t i = 0; i < apply->count; i++)
        if (is_told(command, &apply->items[i]))
            json_array_append(json_object_get(all, "items"), apply->items[i].after);
    const json_t *items = json_object_get(all, "items");
    object_print(apply->in, apply->count == 1 && json_array_size(items) ? json_array_get(items, 0) : all);
}

static void print_results(const struct command_apply *command)
{
    static const char *const words[] = {[APPLY_CREATED] = "created", [APPLY_CONFIGURED] = "configured", [APPLY_UNCHANGED] = "unchanged"};
    const struct apply *apply = &command->apply;
    if (invocation_option(apply->in, "output")) {
        print_objects(command);
        return;
    }
    for (size_t i = 0; i < apply->count; i++) {
        const struct apply_item *item = &apply->items[i];
        CLEANUP_FREE char *word = object_word(item->after);
        if (is_told(command, item))
            terminal_confirm("%s %s%s", word, words[item->result], removal_mark(command->trial));
    }
    fflush(stdout);
}

// ---- waiting ------------------------------------------------------------------------------------------------------------------
// What "ready" means for the kind; NULL: there is nothing to wait for.
static const char *goal_of(const struct command_apply *command, enum kind kind)
{
    static const char *const ready[KIND_COUNT] = {[KIND_WORKSPACE] = "condition=Ready", [KIND_SANDBOX] = "condition=Ready", [KIND_SESSION] = "condition=Ready",
                                                  [KIND_EXPOSURE] = "condition=Published", [KIND_APPROVAL_RULE] = "condition=Ready"};
    return strcmp(command->wait, WAIT_FOR_READY) == 0 ? ready[kind] : command->wait;
}

static int wait_for_item(const struct command_apply *command, const struct apply_item *item, int64_t deadline_ms, struct error *err)
{
    const struct kind_info *info = item->from->info;
    const char *text = goal_of(command, info->kind);
    struct goal goal = {0};
    if (!text || item->result == APPLY_FAILED)
        return 0;
    goal.word = object_word(item->after);
    int r = goal_parse(text, &goal, err);
    const struct object_wait wait = {.info = info, .name = object_name(item->after), .uid = object_uid(item->after), .timeout_s = command->timeout_s,
                                     .deadline_ms = deadline_ms, .wanted = goal.wanted, .condition = goal.condition, .look = goal.look, .arg = &goal};
    if (r == 0 && (r = object_wait(command->apply.rest, &wait, NULL, err)) == 0)
        terminal_confirm("%s condition met", goal.word);
    fflush(stdout);
    goal_free(&goal);
    return r;
}

static int wait_for_all(const struct command_apply *command, struct error *err)
{
    int64_t deadline_ms = boot_time_now().ms + command->timeout_s * 1000LL;
    for (size_t i = 0; command->wait && i < command->apply.count; i++)
        if (wait_for_item(command, &command->apply.items[i], deadline_ms, err) < 0)
            return -1;
    return 0;
}

// ---- the steps ----------------------------------------------------------------------------------------------------------------
static int prune(const struct command_apply *command, struct error *err)
{
    CLEANUP_JSON json_t *objects = NULL;
    const struct removal removal = {.in = command->apply.in, .word = "pruned", .trial = command->trial, .waits = true, .timeout_s = command->timeout_s};
    if (!command->prunes)
        return 0;
    if (prune_find(&command->apply, &objects, err) < 0)
        return -1;
    return removal_run(&removal, objects, err);
}

static int run_steps(struct command_apply *command, struct error *err)
{
    struct apply *apply = &command->apply;
    if ((command->trial == REMOVAL_TRIED_HERE ? apply_look(apply, err) : apply_try(apply, command->trial == REMOVAL_TRIED_BY_SERVER, err)) < 0)
        return -1;
    int r = command->trial == REMOVAL_REAL ? apply_do(apply, err) : 0;
    print_results(command);
    if (r < 0 || prune(command, err) < 0)
        return -1;
    return command->trial == REMOVAL_REAL ? wait_for_all(command, err) : 0;
}

static int check_wait(struct command_apply *command, const struct invocation *in, struct error *err)
{
    const char *text = invocation_option(in, "wait");
    struct goal goal = {0};
    if (!text || strcmp(text, "false") == 0)
        return 0;
    command->wait = strcmp(text, "true") == 0 ? WAIT_FOR_READY : text;
    if (strcmp(command->wait, WAIT_FOR_READY) == 0)
        return 0;
    int r = goal_parse(text, &goal, err);
    if (r == 0 && goal.may_be_absent)
        r = error_set(err, ERROR_USAGE, "one of: ready, condition=NAME[=VALUE], jsonpath=PATH[=VALUE]", "--wait cannot be '%.100s'", text);
    goal_free(&goal);
    return r;
}

static int run(struct invocation *in, struct error *err)
{
    CLEANUP(manifests_clear) struct manifests manifests = {0};
    struct command_apply command = {.trial = removal_trial_of(in), .timeout_s = wait_seconds(in, err)};
    if (command.timeout_s < 0 || prune_check(in, &command.prunes, err) < 0 || check_wait(&command, in, err) < 0)
        return -1;
    if (!invocation_option(in, "filename"))
        return error_set(err, ERROR_USAGE, "chat2shell apply -f FILE", "what to apply is missing");
    if (manifests_read(in, MANIFESTS_OBJECTS, &manifests, err) < 0)
        return -1;
    int r = apply_prepare(&command.apply, in, &manifests, err) < 0 ? -1 : run_steps(&command, err);
    apply_clear(&command.apply);
    return r;
}

static const char *const outputs[] = {"name", "json", "yaml", NULL};
static const struct example examples[] = {
    {"chat2shell apply -f dev.yaml", "make or change what the file describes"},
    {"chat2shell apply -f dev.yaml --wait --timeout=2m", "and wait until it can be used"},
    {"chat2shell apply -R -f deploy/ -l app=web --prune --dry-run=server", "what would be changed and deleted"},
    {"chat2shell get sandbox dev -o yaml | chat2shell apply -f -", "what was got can be applied again"},
};
static const struct option_row options[] = {
    OPTION_FILENAME,
    OPTION_RECURSIVE,
    OPTION_APPLY_SELECTOR,
    OPTION_DRY_RUN,
    {.name = "wait", .value = "FOR", .bare = "ready", .doc = "until all can be used (ready), or condition=NAME[=VALUE], or jsonpath=PATH[=VALUE]"},
    OPTION_TIMEOUT,
    OPTION_PRUNE,
    OPTION_PRUNE_ALL,
    OPTION_PRUNE_ALLOWLIST,
    OPTION_FORCE_CONFLICTS,
    OPTION_FIELD_MANAGER,
    OPTION_YES,
    OPTION_OUTPUT(outputs, "print the objects instead of what happened to them"),
    OPTION_SHOW_MANAGERS,
    OPTIONS_NAMESPACE,
};
const struct command command_apply = {
    .name = "apply", .synopsis = "-f FILE|DIR|-", .summary = "Create or change objects from YAML or JSON", .run = run,
    .details = "Several documents stand in one file between lines of ---. All are checked first, here and by the daemon: if one is wrong or refused, nothing is "
               "changed. Workspaces are made before sandboxes and those before exposures, whatever their order. What a manifest names belongs to the field "
               "manager; what a later one leaves out is taken away unless another manager owns it too; what another manager set differently is a conflict. "
               "--prune deletes what was made by an operator, applied by this field manager and no other, fits the selector, and is named no more; never "
               "approvals and sessions.",
    COMMAND_EXAMPLES(examples), COMMAND_OPTIONS(options),
};
