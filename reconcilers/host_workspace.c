#include "reconcilers/host_workspace.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "reconcilers/exposes.h"
#include "reconcilers/world.h"
#include <string.h>

static bool is_same_place(const struct record *workspace, const struct host_path *path, enum workspace_mode mode)
{
    const struct workspace_spec *spec = &workspace->spec.workspace;
    const struct workspace_status *status = &workspace->status.workspace;
    return !workspace->meta.deletion_at.ms && spec->mode == mode && spec->path && strcmp(spec->path, path->resolved) == 0 &&
           status->device == path->device && status->inode == path->inode;
}

int tx_find_host_workspace(struct store_tx *tx, const struct host_path *path, enum workspace_mode mode, struct record **ret, struct error *err)
{
    struct record_list all = {0};
    if (tx_list_of_path(tx, KIND_WORKSPACE, mode, path->resolved, &all, err) < 0)
        return -1;
    struct record *found = NULL;
    for (size_t i = 0; i < all.count && !found; i++)
        if (is_same_place(all.items[i], path, mode))
            found = record_copy(all.items[i]);
    record_list_free(&all);
    *ret = found;
    return 0;
}

static struct record *new_host_workspace(const struct host_path *path, enum workspace_mode mode, struct wall_time now)
{
    struct record *workspace = record_new(KIND_WORKSPACE);
    workspace->spec.workspace = (struct workspace_spec){mode, mem_strdup(path->resolved)};
    struct workspace_status *status = &workspace->status.workspace;
    status->root = mem_strdup(path->resolved);
    status->device = path->device;
    status->inode = path->inode;
    record_set_condition(workspace, CONDITION_READY, CONDITION_TRUE, now, "DirectoryReady", "the directory is there");
    return workspace;
}

void meta_take_wanted(struct record_meta *to, const struct record_meta *wanted)
{
    mem_replace(&to->name, wanted->name);
    for (size_t i = 0; i < wanted->labels.count; i++)
        text_map_set(&to->labels, wanted->labels.items[i].key, wanted->labels.items[i].value);
    for (size_t i = 0; i < wanted->annotations.count; i++)
        text_map_set(&to->annotations, wanted->annotations.items[i].key, wanted->annotations.items[i].value);
    for (size_t i = 0; i < wanted->finalizers.count; i++)
        text_list_add(&to->finalizers, wanted->finalizers.items[i]);
    owners_copy(&wanted->owners, &to->owners);
    json_decref(to->managed_fields);
    to->managed_fields = json_deep_copy(wanted->managed_fields); // NULL stays NULL
}

int tx_make_host_workspace(struct store_tx *tx, const struct store_actor *actor, const struct host_path *path, enum workspace_mode mode,
                           const struct record_meta *wanted, struct record **ret, struct error *err)
{
    CLEANUP_RECORD struct record *workspace = new_host_workspace(path, mode, tx_now(tx));
    if (wanted)
        meta_take_wanted(&workspace->meta, wanted);
    if (tx_create(tx, actor, workspace, err) < 0)
        return -1;
    *ret = TAKE_PTR(workspace);
    return 0;
}

int tx_take_host_workspace(struct store_tx *tx, const struct store_actor *actor, const struct host_path *path, enum workspace_mode mode,
                           struct record **ret, struct error *err)
{
    CLEANUP_RECORD struct record *workspace = NULL;
    if (tx_find_host_workspace(tx, path, mode, &workspace, err) < 0)
        return -1;
    if (!workspace)
        return tx_make_host_workspace(tx, actor, path, mode, NULL, ret, err);
    *ret = TAKE_PTR(workspace);
    return 0;
}

static bool is_pending(const struct record *approval, const struct host_path *path, enum workspace_mode mode)
{
    const struct approval_spec *spec = &approval->spec.approval;
    return !approval->meta.deletion_at.ms && spec->decision == APPROVAL_PENDING && spec->mode == mode && spec->path &&
           strcmp(spec->path, path->resolved) == 0;
}

int tx_find_pending(struct store_tx *tx, const struct host_path *path, enum workspace_mode mode, struct record **ret, struct error *err)
{
    struct record_list all = {0};
    if (tx_list_of_path(tx, KIND_APPROVAL, mode, path->resolved, &all, err) < 0)
        return -1;
    struct record *found = NULL;
    int r = 0;
    for (size_t i = 0; i < all.count && !found && r == 0; i++) {
        const struct record *approval = all.items[i];
        if (!is_pending(approval, path, mode))
            continue;
        if (approval->status.approval.device == path->device && approval->status.approval.inode == path->inode)
            found = record_copy(approval);
        else
            r = tx_delete(tx, &ACTOR_CONTROLLER, KIND_APPROVAL, approval->meta.uid, err);
    }
    record_list_free(&all);
    if (r == 0)
        *ret = found;
    return r;
}

static int check_identity(const struct record *approval, const struct host_path *now, struct error *err)
{
    if (now->device == approval->status.approval.device && now->inode == approval->status.approval.inode &&
        strcmp(now->resolved, approval->spec.approval.path) == 0)
        return 0;
    return error_set(err, ERROR_CONFLICT, "reject this one; a new request will show the directory as it is now",
                     "%s is not the directory that was asked for: it was replaced", approval->spec.approval.path);
}

int approval_check(const struct config *config, const struct record *approval, struct error *err)
{
    const struct approval_spec *spec = &approval->spec.approval;
    CLEANUP(host_path_clear) struct host_path now = {0};
    CLEANUP_JSON json_t *exposes = NULL;
    if (path_policy_check(config, spec->path, spec->mode, true, &now, err) < 0 || check_identity(approval, &now, err) < 0 ||
        (spec->mode == WORKSPACE_DIRECT && exposes_scan(now.resolved, &exposes, err) < 0))
        return -1;
    return 0;
}

int tx_make_approval(struct store_tx *tx, const struct store_actor *actor, const struct host_path *path, enum workspace_mode mode,
                     enum approval_decision decision, json_t *exposes, struct record **ret, struct error *err)
{
    CLEANUP_RECORD struct record *approval = record_new(KIND_APPROVAL);
    struct approval_spec *spec = &approval->spec.approval;
    spec->path = mem_strdup(path->resolved);
    spec->mode = mode;
    spec->requester = mem_strdup(actor->principal);
    spec->decision = decision;
    approval->status.approval.device = path->device;
    approval->status.approval.inode = path->inode;
    approval->status.approval.exposes = json_incref(exposes);
    record_set_condition(approval, CONDITION_VALID, CONDITION_TRUE, tx_now(tx), "SameDirectory", "the directory is the one that was asked for");
    if (tx_create(tx, actor, approval, err) < 0)
        return -1;
    *ret = TAKE_PTR(approval);
    return 0;
}
