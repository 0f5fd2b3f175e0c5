// Making a sandbox's runtime: the driver call and what it told.
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include "controller/fault.h"
#include "controller/log.h"
#include "reconcilers/exposes.h"
#include "reconcilers/sandbox.h"
#include <string.h>

static void facts_free(void *at)
{
    struct sandbox_facts *facts = at;
    record_free(facts->holder);
    text_list_clear(&facts->missing_limits);
    text_list_clear(&facts->warnings);
    text_list_clear(&facts->broken_rules);
    free(facts);
}

static void copy_list(struct text_list *to, const struct text_list *from)
{
    for (size_t i = 0; i < from->count; i++)
        text_list_add(to, from->items[i]);
}

static void copy_capabilities(struct capability_list *to, const struct capability_list *from)
{
    to->items = mem_alloc(from->count * sizeof(*to->items));
    to->count = from->count;
    for (size_t i = 0; i < from->count; i++)
        to->items[i] = (struct capability){mem_strdup(from->items[i].name), from->items[i].is_available,
                                           mem_strdup_or_null(from->items[i].message)};
}

static struct sandbox_facts *facts_copy(const struct driver_facts *from)
{
    struct sandbox_facts *facts = mem_alloc(sizeof(*facts));
    facts->holder = record_new(KIND_SANDBOX);
    struct sandbox_status *status = &facts->holder->status.sandbox;
    status->isolation = mem_strdup_or_null(from->isolation);
    status->template_name = mem_strdup_or_null(from->template_name);
    status->workspace_root = mem_strdup_or_null(from->workspace_root);
    copy_capabilities(&status->capabilities, &from->capabilities);
    copy_list(&status->limits, &from->limits);
    copy_list(&facts->missing_limits, &from->missing_limits);
    copy_list(&facts->warnings, &from->warnings);
    copy_list(&facts->broken_rules, &from->broken_rules);
    return facts;
}

static void on_created(void *arg, int result, const struct driver_facts *facts, const struct error *err)
{
    struct anchor *anchor = arg;
    effect_end(TAKE_PTR(anchor->effect), result, err, result == 0 ? facts_copy(facts) : NULL, facts_free);
}

static void on_died(void *arg, const char *runtime_name, const char *reason)
{
    (void)runtime_name; // never shown: the record is found by uid
    struct anchor *anchor = arg;
    effects_set_death(anchor->world->reconcilers->effects, anchor->sandbox_uid, KIND_SANDBOX, reason);
}

static int check_driver(const struct world *world, const struct record *sandbox, struct error *err)
{
    const char *wanted = sandbox->spec.sandbox.driver, *ours = world->driver->ops->name;
    if (!wanted || strcmp(wanted, ours) == 0)
        return 0;
    return error_set(err, ERROR_UNSUPPORTED, "leave out spec.driver, or set CHAT2SHELL_DRIVER and restart",
                     "this daemon runs the %s driver, not %s", ours, wanted);
}

// The approval was for a place as it was then: allowed roots may have changed since, and so may what lies in it.
static int check_host_place(const struct world *world, const struct record *workspace, struct error *err)
{
    const struct workspace_spec *spec = &workspace->spec.workspace;
    CLEANUP(host_path_clear) struct host_path now = {0};
    CLEANUP_JSON json_t *exposes = NULL;
    if (spec->mode == WORKSPACE_MANAGED)
        return 0;
    struct error why = ERROR_INIT;
    if (path_policy_check(world->config, spec->path, spec->mode, true, &now, &why) < 0 || strcmp(now.resolved, spec->path) != 0) {
        // The reason is the operator's: a caller could plant links below a direct workspace to look around the host with it.
        log_warning("%s is not mounted: %s", spec->path, why.message[0] ? why.message : "it leads to another directory now");
        return error_set(err, ERROR_REFUSED, "ask for approval of the path again",
                         "%s cannot be mounted any more: it was replaced or is not allowed now", spec->path);
    }
    return spec->mode == WORKSPACE_DIRECT ? exposes_scan(spec->path, &exposes, err) : 0;
}

void sandbox_start_create(struct world *world, const struct record *sandbox, const struct record *workspace, struct effect *effect)
{
    const struct sandbox_spec *spec = &sandbox->spec.sandbox;
    const struct workspace_status *place = &workspace->status.workspace;
    bool is_clone = workspace->spec.workspace.mode == WORKSPACE_CLONE;
    struct error wrong = ERROR_INIT;
    if (check_driver(world, sandbox, &wrong) < 0 || check_host_place(world, workspace, &wrong) < 0) {
        effect_end(effect, -1, &wrong, NULL, NULL);
        return;
    }
    struct driver_spec call = {
        .runtime_name = sandbox->status.sandbox.runtime_name,
        .sandbox_uid = sandbox->meta.uid,
        .workspace_root = sandbox->status.sandbox.workspace_root,
        .device = is_clone ? 0 : place->device,
        .inode = is_clone ? 0 : place->inode,
        .mode = workspace->spec.workspace.mode,
        .clone_source = is_clone ? workspace->spec.workspace.path : NULL,
        .source_device = is_clone ? place->device : 0,
        .source_inode = is_clone ? place->inode : 0,
        .template_name = spec->template_name,
        .memory_bytes = spec->memory_bytes,
        .cpus_milli = spec->cpus_milli,
        .has_network = true,
        .session = spec->session,
    };
    world->driver->ops->create(world->driver, &call, on_created, on_died, anchor_new(world, sandbox, effect));
    (void)FAULT("sandbox.create.started");
}

static void join_list(struct buffer *text, const struct text_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        buffer_format(text, "%s%s", i ? "; " : "", list->items[i]);
}

static void set_limits_condition(struct record *sandbox, const struct sandbox_facts *facts, struct wall_time now)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(1000);
    join_list(&text, &facts->missing_limits);
    if (facts->missing_limits.count)
        record_set_condition(sandbox, CONDITION_LIMITS_ENFORCED, CONDITION_FALSE, now, "SomeMissing", "not enforced: %s", buffer_text(&text));
    else
        record_set_condition(sandbox, CONDITION_LIMITS_ENFORCED, CONDITION_TRUE, now, "AllEnforced", "every limit holds");
}

static void set_isolated_condition(struct record *sandbox, const struct sandbox_facts *facts, struct wall_time now)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(1000);
    bool is_microvm = sandbox->status.sandbox.isolation && strcmp(sandbox->status.sandbox.isolation, "microvm") == 0;
    join_list(&text, facts->broken_rules.count ? &facts->broken_rules : &facts->warnings);
    if (facts->broken_rules.count)
        record_set_condition(sandbox, CONDITION_ISOLATED, CONDITION_FALSE, now, "RuleBroken", "%s", buffer_text(&text));
    else
        record_set_condition(sandbox, CONDITION_ISOLATED, CONDITION_TRUE, now, facts->warnings.count ? "HoldsWithWarnings" : "Holds",
                             "%s%s%s", is_microvm ? "a virtual machine with a kernel of its own" : "every rule holds", facts->warnings.count ? "; " : "", buffer_text(&text));
}

void sandbox_take_facts(struct record *sandbox, const struct sandbox_facts *facts, struct wall_time now)
{
    struct sandbox_status *to = &sandbox->status.sandbox;
    const struct sandbox_status *from = &facts->holder->status.sandbox;
    mem_replace(&to->isolation, from->isolation);
    mem_replace(&to->template_name, from->template_name);
    if (from->workspace_root)
        mem_replace(&to->workspace_root, from->workspace_root);
    if (!to->capabilities.count)
        copy_capabilities(&to->capabilities, &from->capabilities);
    copy_list(&to->limits, &from->limits);
    set_limits_condition(sandbox, facts, now);
    set_isolated_condition(sandbox, facts, now);
}

int sandbox_create_session(struct store_tx *tx, void *arg, struct error *err)
{
    struct record *sandbox = arg;
    struct record_list sessions = {0};
    if (tx_write_status(tx, sandbox, err) < 0 || tx_list_bound(tx, KIND_SESSION, sandbox->meta.uid, &sessions, err) < 0)
        return -1;
    bool has_session = sessions.count > 0;
    record_list_free(&sessions);
    if (has_session)
        return 0;
    CLEANUP_RECORD struct record *session = record_new(KIND_SESSION);
    session->spec.session.sandbox_ref = mem_strdup(sandbox->meta.name);
    session->status.session.sandbox_uid = mem_strdup(sandbox->meta.uid);
    return tx_create(tx, &ACTOR_CONTROLLER, session, err);
}

int sandbox_find_session(struct world *world, const char *sandbox_uid, struct record **ret, struct error *err)
{
    struct record_list sessions = {0};
    if (store_list_bound(world->store, KIND_SESSION, sandbox_uid, &sessions, err) < 0)
        return -1;
    *ret = sessions.count ? TAKE_PTR(sessions.items[0]) : NULL;
    record_list_free(&sessions);
    return 0;
}
