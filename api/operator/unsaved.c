// What a sandbox's repository holds that is nowhere else, for whoever is about to delete it.
#include "api/operator/exec.h"
#include "controller/base/memory.h"

#define UNSAVED_DEADLINE_MS 5000

struct unsaved {
    struct call *call;
    bool is_clone;
};

static json_t *pick(const json_t *from, const char *name, json_type type)
{
    json_t *value = json_object_get(from, name);
    bool fits = type == JSON_TRUE ? json_is_boolean(value) : value && json_typeof(value) == type;
    return fits ? json_incref(value) : json_null();
}

static bool is_clone(struct world *world, const char *workspace_uid)
{
    CLEANUP_RECORD struct record *workspace = NULL;
    return workspace_uid &&
           store_get_uid(world->store, KIND_WORKSPACE, workspace_uid, &workspace, NULL) == 0 &&
           workspace->spec.workspace.mode == WORKSPACE_CLONE;
}

// from NULL: nulls.
static void answer_unsaved(struct unsaved *unsaved, const json_t *from)
{
    struct call *call = unsaved->call;
    json_t *body = json_pack("{s:b, s:o, s:o, s:o}", "isClone", unsaved->is_clone, "isRepository",
                             pick(from, "is_repository", JSON_TRUE), "changedFiles",
                             pick(from, "changed_files", JSON_INTEGER), "unexportedCommits",
                             pick(from, "unexported_commits", JSON_INTEGER));
    free(unsaved);
    operator_answer(call, 200, body);
}

static void on_unsaved(void *arg, int result, json_t *answer, const struct error *err) // loop thread
{
    (void)err; // a sandbox that does not answer has nothing to tell
    answer_unsaved(arg, result == 0 ? answer : NULL);
}

void unsaved_show(struct call *call)
{
    CLEANUP_RECORD struct record *sandbox = operator_resolve(call, KIND_SANDBOX);
    if (!sandbox)
        return;
    struct unsaved *unsaved = mem_alloc(sizeof(*unsaved));
    *unsaved = (struct unsaved){call, is_clone(call->world, sandbox->status.sandbox.workspace_uid)};
    if (!unsaved->is_clone) { // its workspace stays: nothing is lost, and thousands that go at once are not asked
        answer_unsaved(unsaved, NULL);
        return;
    }
    // Looking is not activity: it must not put off the sandbox's expiry.
    lane_request_closed(call->world->lanes, sandbox->meta.uid, "chat2shell/git_unsaved", json_object(),
                        UNSAVED_DEADLINE_MS, on_unsaved, unsaved);
}
