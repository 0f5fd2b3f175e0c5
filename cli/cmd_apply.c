// apply: makes the daemon's objects as the manifests say.
#include "cli/manifests.h"
#include "cli/objects.h"
#include "cli/printers/print.h"
#include "controller/base/memory.h"
#include <stdio.h>
#include <string.h>

struct applying {
    struct invocation *in;
    const struct rest *rest;
    bool is_dry_run;
};

// What the server owns comes along in `get -o yaml`; it is not part of what somebody wants. managedFields stay: by them the server
// knows its own words, and that nobody takes the fields over.
static json_t *wanted_of(const json_t *document)
{
    static const char *const owned[] = {"uid", "generation", "creationTimestamp", "resourceVersion", "selfLink", "deletionTimestamp",
                                        "deletionGracePeriodSeconds", "ownerReferences", "finalizers"};
    json_t *wanted = json_deep_copy(document), *metadata = json_object_get(wanted, "metadata");
    json_object_del(wanted, "status");
    for (size_t i = 0; i < ARRAY_LEN(owned); i++)
        json_object_del(metadata, owned[i]);
    return wanted;
}

static bool is_same(const json_t *before, const json_t *after)
{
    static const char *const parts[] = {"labels", "annotations"};
    const json_t *old = json_object_get(before, "metadata"), *new = json_object_get(after, "metadata");
    bool same = json_equal(json_object_get(before, "spec"), json_object_get(after, "spec"));
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        const json_t *a = json_object_get(old, parts[i]), *b = json_object_get(new, parts[i]);
        same &= (!json_object_size(a) && !json_object_size(b)) || json_equal(a, b);
    }
    return same;
}

static void say(const struct applying *applying, const json_t *object, const char *what)
{
    if (object_print(applying->in, object))
        return;
    CLEANUP_FREE char *word = object_word(object);
    CLEANUP_FREE char *line = mem_format("%s %s%s\n", word, what, applying->is_dry_run ? " (server dry run)" : "");
    print_text(line);
}

// The failure with file and line: one line a cause, or one for the document.
static int word_failure(const struct manifest *manifest, size_t document, const json_t *causes, struct error *err)
{
    if (manifests_complain(manifest, document, causes)) {
        err->message[0] = '\0';
        return -1;
    }
    return error_context(err, "%s:%zu", manifest->file, manifest_line(manifest, document, "metadata.name"));
}

static int send(const struct applying *applying, const struct kind_info *info, const json_t *wanted, json_t **ret, int *ret_status, json_t **ret_causes,
                struct error *err)
{
    const char *name = object_name(wanted);
    CLEANUP_FREE char *path = rest_path(info, *name ? name : NULL);
    CLEANUP_FREE char *whole = mem_format("%s?fieldManager=chat2shell&fieldValidation=Strict%s", path, applying->is_dry_run ? "&dryRun=All" : "");
    const struct rest_ask ask = {.method = *name ? "PATCH" : "POST", .path = whole, .body = wanted,
                                 .content_type = *name ? "application/apply-patch+yaml" : "application/json"};
    return rest_call(applying->rest, &ask, ret, ret_status, ret_causes, err);
}

static int apply_document(void *arg, const struct manifest *manifest, size_t document, const struct kind_info *info, struct error *err)
{
    const struct applying *applying = arg;
    CLEANUP_JSON json_t *wanted = wanted_of(manifest->documents[document].value), *before = NULL, *after = NULL, *causes = NULL;
    const char *name = object_name(wanted);
    struct error absent = ERROR_INIT;
    int status = 0;
    if (*name && object_get(applying->rest, info, name, &before, &absent) < 0 && absent.code != ERROR_NOT_FOUND)
        return error_copy(err, &absent);
    if (before && strcmp(object_name(before), name) != 0) { // found by uid: a new object may not be called so
        json_decref(before);
        before = NULL;
    }
    if (send(applying, info, wanted, &after, &status, &causes, err) < 0)
        return word_failure(manifest, document, causes, err);
    say(applying, after, !before || status == 201 ? "created" : is_same(before, after) ? "unchanged" : "configured");
    return 0;
}

static int run(struct invocation *in, struct error *err)
{
    const char *dry = invocation_option(in, "dry-run");
    struct applying applying = {.in = in, .rest = invocation_rest(in, err), .is_dry_run = dry && strcmp(dry, "server") == 0};
    if (!applying.rest)
        return -1;
    if (!invocation_option(in, "filename"))
        return error_set(err, ERROR_USAGE, "chat2shell apply -f FILE", "what to apply is missing");
    return manifests_each(in, false, true, apply_document, &applying, err);
}

static const char *const dry_runs[] = {"none", "server", NULL};
static const char *const outputs[] = {"name", "json", "yaml", NULL};
static const struct example examples[] = {
    {"chat2shell apply -f dev.yaml", "make or change what the file describes"},
    {"chat2shell get sandbox dev -o yaml | chat2shell apply -f -", "what was got can be applied again"},
};
static const struct option_row options[] = {
    OPTION_FILENAME,
    {.name = "dry-run", .value = "WHERE", .doc = "server: let the daemon check everything and change nothing", .choices = dry_runs},
    OPTION_OUTPUT(outputs, "print the objects instead of what happened to them"),
};
const struct command command_apply = {
    .name = "apply", .synopsis = "-f FILE|DIR|-", .summary = "Create or change objects from YAML or JSON", .run = run,
    .details = "Several documents stand in one file between lines of ---. All are checked first: if one is wrong nothing is changed. What the daemon refuses afterwards does not keep the others from being applied; the command fails then.",
    COMMAND_EXAMPLES(examples), COMMAND_OPTIONS(options),
};
