// Records in the words of the MCP contract (product policy): what an untrusted caller may see, nothing more.
#include "controller/base/json.h"
#include "reconcilers/world.h"
#include <string.h>

static void set_time(json_t *object, const char *key, struct wall_time time)
{
    if (time.ms)
        json_object_set_new(object, key, json_integer(time.ms));
}

static const char *workspace_word(const struct record *workspace)
{
    if (record_is_true(workspace, CONDITION_TRASHED) || (workspace->meta.deletion_at.ms && workspace->spec.workspace.mode == WORKSPACE_MANAGED))
        return "trashed";
    return workspace->status.workspace.retained_until.ms ? "retained" : "approved";
}

json_t *render_workspace(const struct record *workspace)
{
    static const char *const modes[] = {[WORKSPACE_MANAGED] = "managed", [WORKSPACE_CLONE] = "clone", [WORKSPACE_DIRECT] = "direct"};
    enum workspace_mode mode = workspace->spec.workspace.mode;
    json_t *object = json_object();
    json_set_text(object, "id", workspace->meta.uid);
    json_set_text(object, "kind", mode == WORKSPACE_MANAGED ? "managed" : "host");
    json_set_text(object, "mode", modes[mode]);
    json_object_set_new(object, "root", json_from_text(workspace->status.workspace.root ? workspace->status.workspace.root : ""));
    json_set_text(object, "status", workspace_word(workspace));
    set_time(object, "createdAt", workspace->meta.created_at);
    set_time(object, "retainedUntil", workspace->status.workspace.retained_until);
    return object;
}

static const char *sandbox_word(const struct record *sandbox)
{
    if (sandbox->meta.removed_at.ms)
        return "destroyed";
    if (sandbox->meta.deletion_at.ms)
        return "destroying";
    if (record_is_true(sandbox, CONDITION_FAILED))
        return "failed";
    return record_is_true(sandbox, CONDITION_READY) ? "running" : "creating";
}

static json_t *workspace_of(struct world *world, const struct record *sandbox)
{
    CLEANUP_RECORD struct record *workspace = NULL;
    const char *uid = sandbox->status.sandbox.workspace_uid;
    if (!uid || store_get_uid(world->store, KIND_WORKSPACE, uid, &workspace, NULL) < 0)
        return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I}", "id", uid ? uid : "", "kind", "managed", "mode", "managed", "root", "", "status",
                         "trashed", "createdAt", (json_int_t)sandbox->meta.created_at.ms);
    json_t *object = render_workspace(workspace);
    // The workspace's own record follows its sandbox's end a moment later; the answer tells what holds from now on.
    if (sandbox->meta.removed_at.ms && workspace->spec.workspace.mode == WORKSPACE_MANAGED && !workspace->meta.deletion_at.ms &&
        workspace->status.workspace.bound_sandbox && strcmp(workspace->status.workspace.bound_sandbox, sandbox->meta.uid) == 0) {
        json_set_text(object, "status", "retained");
        set_time(object, "retainedUntil", (struct wall_time){sandbox->meta.removed_at.ms + WORKSPACE_RETAIN_MS});
    }
    // Inside, a clone is not at the checkout's path: tell the one that tools see.
    if (sandbox->status.sandbox.workspace_root)
        json_object_set_new(object, "root", json_from_text(sandbox->status.sandbox.workspace_root));
    return object;
}

json_t *render_sandbox(struct world *world, const struct record *sandbox)
{
    json_t *object = json_object();
    const struct condition *failed = record_condition(sandbox, CONDITION_FAILED);
    struct wall_time activity = sandbox->status.sandbox.last_activity_at;
    if (!activity.ms)
        activity = sandbox->meta.created_at;
    struct wall_time expires = sandbox->status.sandbox.expires_at;
    if (!expires.ms)
        expires.ms = activity.ms + SANDBOX_IDLE_MS;
    json_set_text(object, "id", sandbox->meta.uid);
    json_set_text(object, "status", sandbox_word(sandbox));
    json_object_set_new(object, "workspace", workspace_of(world, sandbox));
    if (failed && failed->status == CONDITION_TRUE)
        json_set_text(object, "error", failed->message);
    set_time(object, "createdAt", sandbox->meta.created_at);
    set_time(object, "lastActivityAt", activity);
    set_time(object, "expiresAt", expires);
    set_time(object, "destroyedAt", sandbox->meta.removed_at);
    return object;
}

json_t *render_approval(const struct record *approval)
{
    json_t *object = json_object();
    json_set_text(object, "id", approval->meta.uid);
    json_set_text(object, "status", approval_decision_word(approval->spec.approval.decision));
    json_set_text(object, "path", approval->spec.approval.path);
    json_set_text(object, "mode", workspace_mode_word(approval->spec.approval.mode));
    set_time(object, "createdAt", approval->meta.created_at);
    set_time(object, "decidedAt", approval->status.approval.decided_at);
    return object;
}

json_t *render_exposure(const struct record *exposure)
{
    return json_pack("{s:s, s:I, s:I}", "sandboxId", exposure->status.exposure.sandbox_uid ? exposure->status.exposure.sandbox_uid : "", "sandboxPort",
                     (json_int_t)exposure->spec.exposure.port, "hostPort", (json_int_t)exposure->status.exposure.host_port);
}
