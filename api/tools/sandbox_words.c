// What several tools say about a sandbox: that it is unknown, what state it is in, what it cannot do.
#include "api/tools/tools.h"
#include "controller/base/memory.h"
#include <stdarg.h>
#include <string.h>

static int fail_unknown(struct tool_call *call, const char *uid)
{
    return tool_fail_set(call, ERROR_NOT_FOUND,
                         "call sandbox_list to see the sandboxes, or sandbox_create to make one",
                         "Unknown sandbox: %.64s", uid);
}

struct record *tool_read_sandbox(struct tool_call *call)
{
    const char *uid = tool_text(call, "sandbox_id");
    struct record *record = NULL;
    struct error error = ERROR_INIT;
    if (!id_is_of(KIND_SANDBOX, uid)) {
        fail_unknown(call, uid);
        return NULL;
    }
    if (store_get_uid(call->world->store, KIND_SANDBOX, uid, &record, &error) == 0)
        return record;
    if (error.code == ERROR_NOT_FOUND)
        fail_unknown(call, uid);
    else
        tool_fail(call, &error);
    return NULL;
}

const char *tool_failure_of(const struct record *sandbox)
{
    const struct condition *failed = record_condition(sandbox, "Failed");
    return failed && failed->message && *failed->message ? failed->message : "it stopped working";
}

void tool_fail_lane(struct tool_call *call, const struct error *err)
{
    struct error kept = *err;
    if (err->code != ERROR_NOT_FOUND && err->code != ERROR_STATE && err->code != ERROR_UNAVAILABLE) {
        tool_fail(call, &kept);
        return;
    }
    CLEANUP_RECORD struct record *sandbox = tool_read_sandbox(call);
    if (!sandbox)
        return;
    const char *uid = sandbox->meta.uid;
    if (sandbox->meta.removed_at.ms || sandbox->meta.deletion_at.ms)
        tool_fail_set(call, ERROR_STATE, "make a new one with sandbox_create", "sandbox %s %s destroyed", uid,
                      sandbox->meta.removed_at.ms ? "was" : "is being");
    else if (record_is_true(sandbox, "Failed"))
        tool_fail_set(
            call, ERROR_STATE,
            "call sandbox_destroy on it, then sandbox_create (with its workspace_id to keep the files)",
            "sandbox %s has failed: %s", uid, tool_failure_of(sandbox));
    else if (!record_is_true(sandbox, "Ready"))
        tool_fail_set(call, ERROR_STATE, "call sandbox_get until its status is running, then try again",
                      "sandbox %s is still being created", uid);
    else
        tool_fail(call, &kept);
}

void tool_note(json_t *result, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *text = mem_vformat(format, args);
    va_end(args);
    json_t *notes = json_object_get(result, "notes");
    if (!notes) {
        notes = json_array();
        json_object_set_new(result, "notes", notes);
    }
    json_array_append_new(notes, json_from_text(text));
}

void tool_note_sandbox(json_t *result, const struct record *sandbox, const json_t *rendered)
{
    const struct capability_list *list = &sandbox->status.sandbox.capabilities;
    json_t *capabilities = json_object();
    for (size_t i = 0; i < list->count; i++) {
        const struct capability *one = &list->items[i];
        json_object_set_new(capabilities, one->name, json_boolean(one->is_available));
        if (!one->is_available && one->message)
            tool_note(result, "%s is not available in this sandbox; for the operator: %s", one->name, one->message);
    }
    json_object_set_new(result, "capabilities", capabilities);
    const char *mode = json_get_text(json_object_get(rendered, "workspace"), "mode");
    if (mode && strcmp(mode, "clone") == 0)
        tool_note(result,
                  "this workspace is a private clone: it ends with the sandbox, also when the sandbox "
                  "expires, fails or chat2shell "
                  "restarts; push the commits, or ask the operator to export them before destroying it");
}
