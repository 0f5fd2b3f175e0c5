// wait: until objects are as they should be, by watches.
#include "cli/goal.h"
#include "cli/printers/print.h"
#include "cli/targets.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include <stdio.h>
#include <string.h>

// ---- waiting ------------------------------------------------------------------------------------------------------------
struct command_wait {
    struct invocation *in;
    const struct rest *rest;
    struct goal goal;
    int timeout_s;
    int64_t deadline_ms;
};

static int wait_one(struct command_wait *command, const struct kind_info *info, const char *name, const char *uid, struct error *err)
{
    struct goal *goal = &command->goal;
    free(goal->word);
    goal->word = mem_format("%s/%s", info->singular, name);
    const struct object_wait wait = {.info = info, .name = name, .uid = uid, .timeout_s = command->timeout_s, .deadline_ms = command->deadline_ms,
                                     .wanted = goal->wanted, .condition = goal->condition, .look = goal->look, .arg = goal};
    if (object_wait(command->rest, &wait, NULL, err) < 0)
        return -1;
    terminal_confirm("%s condition met", goal->word);
    fflush(stdout);
    return 0;
}

static int wait_named(struct command_wait *command, const struct target *target, struct error *err)
{
    CLEANUP_JSON json_t *object = NULL;
    struct error local = ERROR_INIT;
    if (object_get(command->rest, target->info, target->name, &object, &local) < 0) {
        if (local.code != ERROR_NOT_FOUND || !command->goal.may_be_absent)
            return error_copy(err, &local);
        return wait_one(command, target->info, target->name, NULL, err);
    }
    return wait_one(command, target->info, object_name(object), object_uid(object), err);
}

static int wait_selected(struct command_wait *command, const struct kind_info *info, size_t *found, struct error *err)
{
    CLEANUP_JSON json_t *list = NULL;
    CLEANUP_FREE char *path = target_query(command->in, info, NULL, NULL);
    if (rest_get(command->rest, path, &list, err) < 0)
        return -1;
    const json_t *items = json_object_get(list, "items");
    for (size_t i = 0; i < json_array_size(items); i++, ++*found)
        if (wait_one(command, info, object_name(json_array_get(items, i)), object_uid(json_array_get(items, i)), err) < 0)
            return -1;
    return 0;
}

static int check_targets(const struct invocation *in, const struct targets *targets, struct error *err)
{
    bool selects = targets_are_selected(in);
    for (size_t i = 0; i < targets->count; i++)
        if (targets->items[i].info == &events_info)
            return error_set(err, ERROR_USAGE, "chat2shell events -w", "events do not change into something: there is nothing to wait for");
    if (targets->has_names == selects)
        return error_set(err, ERROR_USAGE, "chat2shell wait --help", selects ? "names go with no selector" : "give KIND/NAME, a selector, or --all");
    return 0;
}

static int wait_all(struct command_wait *command, const struct targets *targets, struct error *err)
{
    size_t found = 0;
    for (size_t i = 0; i < targets->count; i++) {
        const struct target *target = &targets->items[i];
        if ((target->name ? wait_named(command, target, err) : wait_selected(command, target->info, &found, err)) < 0)
            return -1;
    }
    if (!targets->has_names && !found && !goal_is_deletion(&command->goal))
        return error_set(err, ERROR_NOT_FOUND, "see what is there: chat2shell get", "nothing is selected");
    return 0;
}

static int run(struct invocation *in, struct error *err)
{
    struct targets targets = {0};
    struct command_wait command = {.in = in};
    int r = -1;
    if (targets_parse(in, &targets, err) == 0 && check_targets(in, &targets, err) == 0 && goal_parse(invocation_option(in, "for"), &command.goal, err) == 0 &&
        (command.timeout_s = wait_seconds(in, err)) >= 0 && (command.rest = invocation_rest(in, err)) != NULL) {
        command.deadline_ms = boot_time_now().ms + command.timeout_s * 1000LL;
        r = wait_all(&command, &targets, err);
    }
    goal_free(&command.goal);
    return r;
}

static const struct example examples[] = {
    {"chat2shell wait sandbox/dev --for=condition=Ready", "until it runs; ends at once with 5 if it failed"},
    {"chat2shell wait sandbox/dev --for=jsonpath='{.status.phase}'=running --timeout=30s", "until a field has that value"},
    {"chat2shell wait sandboxes --all --for=delete --timeout=5m", "until every sandbox of now is gone"},
};
static const struct option_row options[] = {
    {.name = "for", .value = "WHAT", .doc = "condition=NAME[=VALUE] (True by default), jsonpath=PATH[=VALUE], delete or create"},
    OPTION_TIMEOUT, OPTION_SELECTOR, OPTION_FIELD_SELECTOR, {.name = "all", .doc = "all objects of the kind that are there now"},
    OPTIONS_NAMESPACE,
};
const struct command command_wait = {
    .name = "wait", .synopsis = "KIND/NAME… | KIND NAME… | KIND -l SELECTOR", .summary = "Wait until objects are as they should be", .min_arguments = 1,
    .max_arguments = -1, .run = run, COMMAND_EXAMPLES(examples), COMMAND_OPTIONS(options),
    .details = "Exit codes: 0 all of them got there, 3 there is no such object (or it was deleted meanwhile), 5 it failed and cannot become Ready, "
               "6 the time was over, 7 the daemon does not answer.",
};
