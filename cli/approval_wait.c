// approval wait: until one appears that waits for somebody, or a named one is decided; told by a watch.
#include "api/client/watch.h"
#include "cli/approvals.h"
#include "cli/objects.h"
#include "cli/printers/print.h"
#include "cli/terminal.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include <stdio.h>
#include <string.h>

#define EXIT_OTHERWISE 5 // decided, but not so

static void print_found(const struct invocation *in, const json_t *approval)
{
    CLEANUP_FREE char *word = approval_word(approval);
    if (!object_print(in, approval))
        terminal_confirm("approval/%s %s", object_name(approval), word);
}

// ---- one that waits -----------------------------------------------------------------------------------------------------------
struct found {
    struct approval_filter filter;
    json_t *approval;
};

static void found_clear(struct found *found)
{
    approval_filter_clear(&found->filter);
    json_decref(found->approval);
}

static int on_event(void *arg, size_t ask, enum watch_type type, json_t *object, struct error *err)
{
    struct found *found = arg;
    (void)ask, (void)err;
    if (!object || type == WATCH_DELETED || !approval_is_open(object) || !approval_filter_holds(&found->filter, object))
        return 0;
    found->approval = json_incref(object);
    return 1;
}

static int wait_for_any(struct invocation *in, const struct rest *rest, int timeout_s, struct error *err)
{
    CLEANUP(found_clear) struct found found = {0};
    CLEANUP_FREE char *path = rest_path(approval_info(), NULL);
    const struct watch_ask ask = {.path = path};
    if (approval_filter_read(in, &found.filter, err) < 0)
        return -1;
    int r = watch_follow(rest, &ask, 1, boot_time_now().ms + timeout_s * 1000LL, -1, on_event, &found, err);
    if (r == 0)
        return error_set(err, ERROR_TIMEOUT, "wait longer with --timeout", "no approval waits for a decision after %d s", timeout_s);
    if (r > 0)
        print_found(in, found.approval);
    return r < 0 ? -1 : 0;
}

// ---- a named one ----------------------------------------------------------------------------------------------------------------
static int look(const void *arg, const json_t *object, struct error *err)
{
    const char *name = arg;
    if (!object)
        return error_set(err, ERROR_NOT_FOUND, "somebody deleted it", "approval %s is gone", name);
    return !approval_is_settled(object);
}

static bool is_as_wanted(const char *goal, const json_t *approval)
{
    bool is_rejected = strcmp(approval_spec(approval, "decision"), "rejected") == 0;
    return strcmp(goal, "rejected") == 0 ? is_rejected : approval_is_usable(approval);
}

static int wait_for_decision(struct invocation *in, const struct rest *rest, const char *goal, int timeout_s, struct error *err)
{
    CLEANUP_JSON json_t *approval = NULL, *decided = NULL;
    if (object_get(rest, approval_info(), in->arguments[0], &approval, err) < 0)
        return -1;
    const char *name = object_name(approval);
    const struct object_wait wait = {.info = approval_info(), .name = name, .uid = object_uid(approval), .timeout_s = timeout_s, .wanted = "decided",
                                     .look = look, .arg = name};
    if (object_wait(rest, &wait, &decided, err) < 0)
        return -1;
    print_found(in, decided);
    in->exit_code = is_as_wanted(goal, decided) ? 0 : EXIT_OTHERWISE;
    return 0;
}

static int check_goal(const struct invocation *in, const char *goal, struct error *err)
{
    bool is_pending = strcmp(goal, "pending") == 0, has_name = in->argument_count > 0;
    if (is_pending && has_name)
        return error_set(err, ERROR_USAGE, "leave NAME out", "--for=pending is about any approval: one that is named waits already, or did");
    if (!is_pending && !has_name)
        return error_set(err, ERROR_USAGE, "chat2shell approval wait NAME --for=decided", "--for=%s is about one approval, and its NAME is missing", goal);
    if (has_name && approval_filter_is_given(in))
        return error_set(err, ERROR_USAGE, "leave them out", "--mode, --under and --requester choose among those that wait, and a name is given");
    return 0;
}

int approval_run_wait(struct invocation *in, struct error *err)
{
    const char *stated = invocation_option(in, "for"), *goal = stated ? stated : in->argument_count ? "decided" : "pending";
    int timeout_s = wait_seconds(in, err);
    const struct rest *rest = timeout_s < 0 || check_goal(in, goal, err) < 0 ? NULL : invocation_rest(in, err);
    if (!rest)
        return -1;
    return in->argument_count ? wait_for_decision(in, rest, goal, timeout_s, err) : wait_for_any(in, rest, timeout_s, err);
}
