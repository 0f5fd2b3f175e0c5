#include "api/operator/body.h"
#include "api/operator/delete.h"
#include "controller/base/memory.h"
#include "controller/fields/fields.h"
#include <errno.h>
#include <string.h>

static int refuse(json_t *causes, const char *field, const char *reason, const char *message, struct error *err)
{
    body_add_cause(causes, field, reason, "%s", message);
    return error_set(err, ERROR_INVALID, NULL, "DeleteOptions.meta.k8s.io \"\" is invalid: %s: %s", field, message);
}

static int read_version(const json_t *preconditions, int64_t *ret, struct error *err)
{
    const char *text = json_get_text(preconditions, "resourceVersion");
    char *end;
    if (!text || !*text)
        return 0;
    errno = 0;
    *ret = strtoll(text, &end, 10);
    if (errno || *end || text[0] < '0' || text[0] > '9')
        return error_set(err, ERROR_USAGE, "give the version that the server showed",
                         "preconditions.resourceVersion is not a version");
    return 0;
}

static int read_dry_run(const struct call *call, bool *ret, json_t *causes, struct error *err)
{
    const json_t *dry = json_object_get(call->body, "dryRun");
    *ret = call->is_dry_run;
    for (size_t i = 0; i < json_array_size(dry); i++) {
        const char *word = json_string_value(json_array_get(dry, i));
        if (!word || strcmp(word, "All") != 0)
            return refuse(causes, "dryRun", CAUSE_WORD, "Unsupported value: supported values: \"All\"", err);
        *ret = true;
    }
    return 0;
}

static bool is_true(const char *text)
{
    return text && (strcmp(text, "true") == 0 || strcmp(text, "1") == 0);
}

// A sandbox's exposures and session cannot be without it, and an approval takes back the workspace that it made: nothing of
// theirs can be left behind. The other kinds have nothing that depends on them, so that every policy means the same.
static int check_orphans(const struct call *call, json_t *causes, struct error *err)
{
    if (call->match.kind != KIND_SANDBOX && call->match.kind != KIND_APPROVAL)
        return 0;
    return refuse(causes, "propagationPolicy", CAUSE_WORD,
                  call->match.kind == KIND_SANDBOX
                      ? "Unsupported value: \"Orphan\": a sandbox takes its exposures and its session along; supported values: \"Background\", \"Foreground\""
                      : "Unsupported value: \"Orphan\": an approval takes the workspace that it made along; supported values: \"Background\", \"Foreground\"",
                  err);
}

static int check_propagation(const struct call *call, json_t *causes, struct error *err)
{
    const char *stated = json_get_text(call->body, "propagationPolicy");
    const char *policy = stated ? stated : call->query[QUERY_PROPAGATION];
    const json_t *orphan = json_object_get(call->body, "orphanDependents");
    bool has_orphan = json_is_boolean(orphan) || call->query[QUERY_ORPHAN];
    bool is_orphan = json_is_true(orphan) || is_true(call->query[QUERY_ORPHAN]);
    if (policy && *policy && has_orphan)
        return refuse(causes, "propagationPolicy", CAUSE_INVALID, "orphanDependents and propagationPolicy cannot be both set", err);
    if (is_orphan || (policy && strcmp(policy, "Orphan") == 0))
        return check_orphans(call, causes, err);
    if (!policy || !*policy || strcmp(policy, "Background") == 0 || strcmp(policy, "Foreground") == 0)
        return 0;
    return refuse(causes, "propagationPolicy", CAUSE_WORD, "Unsupported value: supported values: \"Foreground\", \"Background\", \"Orphan\"", err);
}

int delete_options_read(const struct call *call, struct delete_options *ret, json_t *causes, struct error *err)
{
    const json_t *preconditions = json_object_get(call->body, "preconditions");
    struct delete_options options = {.uid = json_get_text(preconditions, "uid")};
    if (read_version(preconditions, &options.resource_version, err) < 0 ||
        read_dry_run(call, &options.is_dry_run, causes, err) < 0 || check_propagation(call, causes, err) < 0)
        return -1;
    *ret = options;
    return 0;
}

int delete_check_uid(const struct delete_options *options, const struct record *record, struct error *err)
{
    if (!options->uid || !*options->uid || strcmp(options->uid, record->meta.uid) == 0)
        return 0;
    return error_set(err, ERROR_CONFLICT, "look at what has the name now",
                     "Operation cannot be fulfilled on %s." API_GROUP " \"%s\": the UID in the precondition (%.64s) does not match the "
                     "UID in record (%s). The object might have been deleted and then recreated",
                     kind_info(record->kind)->plural, record->meta.name, options->uid, record->meta.uid);
}
