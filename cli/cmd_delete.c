#include "cli/manifests.h"
#include "cli/objects.h"
#include "controller/base/memory.h"
#include <stdio.h>
#include <string.h>

struct deleting {
    struct invocation *in;
    const struct rest *rest;
    int timeout_s;
};

static int ask_deletion(const struct deleting *deleting, const struct kind_info *info, const json_t *object, struct error *err)
{
    CLEANUP_FREE char *path = rest_path(info, object_uid(object));
    CLEANUP_JSON json_t *body = json_pack("{s:{s:s}}", "preconditions", "uid", object_uid(object));
    return rest_call(deleting->rest, &(struct rest_ask){.method = "DELETE", .path = path, .content_type = "application/json", .body = body}, NULL, NULL, NULL,
                     err);
}

static void say_deleted(const struct invocation *in, const json_t *object)
{
    CLEANUP_FREE char *word = object_word(object);
    printf("%s%s\n", word, invocation_is_output(in, "name") ? "" : " deleted");
}

static int delete_one(const struct deleting *deleting, const struct kind_info *info, const char *name, struct error *err)
{
    CLEANUP_JSON json_t *object = NULL;
    if (object_get(deleting->rest, info, name, &object, err) < 0)
        return -1;
    if (info->kind == KIND_SANDBOX && loss_confirm(deleting->in, deleting->rest, object, err) < 0)
        return -1;
    if (ask_deletion(deleting, info, object, err) < 0)
        return -1;
    if (invocation_switch(deleting->in, "wait", true) && wait_until_gone(deleting->rest, info, object_uid(object), deleting->timeout_s, err) < 0)
        return -1;
    say_deleted(deleting->in, object);
    return 0;
}

static int delete_document(void *arg, const struct manifest *manifest, size_t document, const struct kind_info *info, struct error *err)
{
    CLEANUP_FREE char *where = mem_format("%s:%zu", manifest->file, manifest_line(manifest, document, "metadata.name"));
    const char *name = object_name(manifest->documents[document].value);
    if (!*name)
        return error_set(err, ERROR_INVALID, "name what to delete", "%s: metadata.name: must be specified", where);
    return delete_one(arg, info, name, err) < 0 ? error_context(err, "%s", where) : 0;
}

static int run(struct invocation *in, struct error *err)
{
    struct deleting deleting = {.in = in, .rest = invocation_rest(in, err), .timeout_s = WAIT_DEFAULT_S};
    if (!deleting.rest || (deleting.timeout_s = wait_seconds(in, err)) < 0)
        return -1;
    if (invocation_option(in, "filename"))
        return in->argument_count ? error_set(err, ERROR_USAGE, "chat2shell delete --help", "give either KIND NAME or -f FILE")
                                  : manifests_each(in, true, false, delete_document, &deleting, err); // what refers goes before what it refers to
    if (in->argument_count < 2)
        return error_set(err, ERROR_USAGE, "chat2shell delete --help", "give KIND and NAME, or -f FILE");
    const struct kind_info *info = object_kind(in->arguments[0], err);
    if (!info)
        return -1;
    for (int i = 1; i < in->argument_count; i++)
        if (delete_one(&deleting, info, in->arguments[i], err) < 0)
            return -1;
    return 0;
}

static const char *const outputs[] = {"table", "name", NULL};
static const struct example examples[] = {
    {"chat2shell delete sandbox dev", "end a sandbox; a managed workspace is kept for 30 days"},
    {"chat2shell delete workspace demo", "take a host workspace back, or move a managed one to the trash"},
    {"chat2shell delete -f dev.yaml", "everything that the file names, in reverse order"},
};
static const struct option_row options[] = {
    OPTION_FILENAME, OPTION_YES, {.name = "wait", .doc = "wait until it is gone; --wait=false does not"}, OPTION_TIMEOUT,
    OPTION_OUTPUT(outputs, "how to print what was deleted"),
};
const struct command command_delete = {
    .name = "delete", .synopsis = "KIND NAME… | -f FILE", .summary = "Delete objects", .max_arguments = -1, .run = run,
    .details = "No host file is ever deleted: host workspaces and approvals are taken back, managed workspaces move to the trash.",
    COMMAND_EXAMPLES(examples), COMMAND_OPTIONS(options),
};
