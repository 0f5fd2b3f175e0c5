// recreate: a failed sandbox again, under the same name, with the same spec, on the same workspace.
#include "cli/objects.h"
#include "cli/printers/print.h"
#include "cli/terminal.h"
#include "controller/base/memory.h"
#include "controller/record_names.h"
#include <stdio.h>
#include <string.h>

// The server's own annotations are not for callers to set.
static void drop_own_annotations(json_t *annotations)
{
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(annotations, next, key, value)
        if (name_is_own(key))
            json_object_del(annotations, key);
}

static json_t *manifest_of(const json_t *sandbox)
{
    const json_t *metadata = json_object_get(sandbox, "metadata");
    json_t *manifest = json_pack("{s:s, s:s, s:{s:s}, s:O}", "apiVersion", API_GROUP "/" API_VERSION, "kind", "Sandbox", "metadata", "name",
                                 object_name(sandbox), "spec", json_object_get(sandbox, "spec"));
    json_t *to = json_object_get(manifest, "metadata");
    if (json_object_get(metadata, "labels"))
        json_object_set(to, "labels", json_object_get(metadata, "labels"));
    json_t *annotations = json_deep_copy(json_object_get(metadata, "annotations"));
    drop_own_annotations(annotations);
    if (json_object_size(annotations))
        json_object_set_new(to, "annotations", TAKE_PTR(annotations));
    json_decref(annotations);
    return manifest;
}

static int check_failed(const json_t *sandbox, struct error *err)
{
    if (object_is_true(sandbox, CONDITION_FAILED))
        return 0;
    error_set(err, ERROR_STATE, NULL, "sandbox %s has not failed", object_name(sandbox));
    return error_hint(err, "to end it: chat2shell delete sandbox %s", object_name(sandbox));
}

// Who had set what in the old one, so that the next apply of its manifest does not meet a stranger.
static int keep_owners(const struct rest *rest, const json_t *sandbox, const json_t *made, struct error *err)
{
    json_t *owners = json_object_get(json_object_get(sandbox, "metadata"), "managedFields");
    CLEANUP_FREE char *path = rest_path(kind_info(KIND_SANDBOX), object_uid(made));
    CLEANUP_JSON json_t *body = json_pack("{s:{s:O}}", "metadata", "managedFields", owners ? owners : json_null());
    const struct rest_ask ask = {.method = "PATCH", .path = path, .content_type = "application/merge-patch+json", .body = body};
    if (!json_array_size(owners) || rest_call(rest, &ask, NULL, NULL, NULL, err) == 0)
        return 0;
    return error_context(err, "%s is made again, but who owns its fields is not kept", object_name(made));
}

// What goes with the old one and is not made again here: what is published on the host is asked for anew.
static int list_exposures(const struct rest *rest, const json_t *sandbox, json_t **ret, struct error *err)
{
    CLEANUP_FREE char *all = rest_path(kind_info(KIND_EXPOSURE), NULL);
    CLEANUP_FREE char *path = mem_format("%s?fieldSelector=status.sandboxUid%%3D%s", all, object_uid(sandbox));
    return rest_get(rest, path, ret, err);
}

static void tell_exposures(const json_t *list)
{
    size_t i;
    json_t *exposure;
    json_array_foreach(json_object_get(list, "items"), i, exposure)
    {
        CLEANUP_JSON json_t *manifest = json_pack("{s:s, s:s, s:{s:s}, s:O}", "apiVersion", API_GROUP "/" API_VERSION, "kind", "Exposure", "metadata",
                                                  "name", object_name(exposure), "spec", json_object_get(exposure, "spec"));
        CLEANUP_FREE char *text = json_to_text(manifest);
        terminal_note("exposure/%s (port %lld) ended with the failed sandbox; to make it again:\n  echo '%s' | chat2shell apply -f -", object_name(exposure),
                      (long long)json_get_int(json_object_get(exposure, "spec"), "port", 0), text);
    }
}

static int replace(const struct rest *rest, const json_t *sandbox, int timeout_s, json_t **ret, struct error *err)
{
    const struct kind_info *info = kind_info(KIND_SANDBOX);
    CLEANUP_FREE char *path = rest_path(info, object_uid(sandbox)), *all = rest_path(info, NULL);
    CLEANUP_JSON json_t *body = json_pack("{s:{s:s}}", "preconditions", "uid", object_uid(sandbox)), *manifest = manifest_of(sandbox), *made = NULL, *exposures = NULL;
    if (list_exposures(rest, sandbox, &exposures, err) < 0)
        return -1;
    if (rest_call(rest, &(struct rest_ask){.method = "DELETE", .path = path, .body = body}, NULL, NULL, NULL, err) < 0 ||
        wait_until_gone(rest, info, object_uid(sandbox), timeout_s, 0, err) < 0)
        return error_context(err, "cannot remove what is left of %s", object_name(sandbox));
    tell_exposures(exposures);
    if (rest_post(rest, all, manifest, &made, err) < 0) {
        CLEANUP_FREE char *text = json_to_text(manifest);
        fprintf(stderr, "The failed sandbox is gone. Its manifest, for chat2shell apply -f -:\n%s\n", text);
        return error_context(err, "cannot make %s again", object_name(sandbox));
    }
    if (keep_owners(rest, sandbox, made, err) < 0)
        return -1;
    return wait_until_ready(rest, info, object_uid(made), timeout_s, ret, err);
}

static int run(struct invocation *in, struct error *err)
{
    const struct rest *rest = invocation_rest(in, err);
    CLEANUP_JSON json_t *sandbox = NULL, *made = NULL;
    int timeout_s = wait_seconds(in, err);
    if (!rest || timeout_s < 0 || object_get(rest, kind_info(KIND_SANDBOX), in->arguments[0], &sandbox, err) < 0 || check_failed(sandbox, err) < 0 ||
        replace(rest, sandbox, timeout_s, &made, err) < 0)
        return -1;
    if (object_print(in, made))
        return 0;
    terminal_confirm("%s recreated: %s", in->arguments[0], object_uid(made));
    return 0;
}

static const char *const outputs[] = {"table", "name", "json", "yaml", NULL};
static const struct example examples[] = {{"chat2shell recreate dev", "after a restart of the daemon, or when its tool server died"}};
static const struct option_row options[] = {OPTION_TIMEOUT, OPTION_OUTPUT(outputs, "how to print the new one"), OPTION_SHOW_MANAGERS};
const struct command command_recreate = {
    .name = "recreate", .synopsis = "SANDBOX", .summary = "Replace a failed sandbox on the same workspace", .min_arguments = 1, .max_arguments = 1, .run = run,
    .details = "A private clone starts anew from its checkout: it ended with the sandbox that failed, and so do its exposures: each is named, with the command that makes it again.", COMMAND_EXAMPLES(examples), COMMAND_OPTIONS(options),
};
