// The handlers of PUT, PATCH and DELETE.
#include "api/operator/create.h"
#include "api/operator/update.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <string.h>
#include <strings.h>

void objects_replace(struct call *call)
{
    CLEANUP_RECORD struct record *record = operator_resolve(call, call->match.kind);
    if (record)
        update_start(call, record, UPDATE_REPLACE);
}

// Apply makes what is not there, so its name is a name (or a whole uid), never the beginning of one.
static void apply(struct call *call)
{
    CLEANUP_RECORD struct record *record = NULL;
    struct error err = ERROR_INIT, ignored = ERROR_INIT;
    struct store *store = call->world->store;
    if (store_get(store, call->match.kind, call->match.name, &record, &err) < 0 &&
        err.code == ERROR_NOT_FOUND &&
        store_get_uid(store, call->match.kind, call->match.name, &record, &ignored) == 0 &&
        record->meta.removed_at.ms) {
        record_free(record);
        record = NULL;
    }
    if (record)
        update_start(call, record, UPDATE_MERGE);
    else if (err.code == ERROR_NOT_FOUND)
        create_start(call, call->match.name);
    else
        operator_fail(call, &err);
}

void objects_patch(struct call *call)
{
    if (strncasecmp(call->content_type, "application/apply-patch+yaml",
                    strlen("application/apply-patch+yaml")) == 0) {
        apply(call);
        return;
    }
    CLEANUP_RECORD struct record *record = operator_resolve(call, call->match.kind);
    if (record)
        update_start(call, record, UPDATE_MERGE);
}

void objects_create(struct call *call)
{
    create_start(call, NULL);
}

// ---- delete
// ---------------------------------------------------------------------------------------------------------------
static void on_deleted(void *arg, int result, struct record *record, json_t *unsaved, const struct error *err)
{
    struct call *call = arg;
    json_decref(unsaved);
    if (result < 0)
        operator_fail(call, err);
    else
        operator_answer_record(call, 200, record);
    record_free(record);
}

static int read_version(const json_t *preconditions, int64_t *ret, struct error *err)
{
    const char *text = json_get_text(preconditions, "resourceVersion");
    char *end;
    if (!text)
        return 0;
    errno = 0;
    *ret = strtoll(text, &end, 10);
    if (errno || *end || text[0] < '0' || text[0] > '9')
        return error_set(err, ERROR_USAGE, "give the version that the server showed",
                         "preconditions.resourceVersion is not a version");
    return 0;
}

static int check_uid(const json_t *preconditions, const struct record *record, struct error *err)
{
    const char *uid = json_get_text(preconditions, "uid");
    if (!uid || strcmp(uid, record->meta.uid) == 0)
        return 0;
    return error_set(err, ERROR_CONFLICT, "look at what has the name now",
                     "the precondition on the uid does not hold: %s is another object now",
                     record->meta.name);
}

void objects_delete(struct call *call)
{
    const json_t *preconditions = json_object_get(call->body, "preconditions");
    const json_t *dry = json_object_get(call->body, "dryRun");
    CLEANUP_RECORD struct record *record = operator_resolve(call, call->match.kind);
    struct error err = ERROR_INIT;
    int64_t version = 0;
    if (!record)
        return;
    if (read_version(preconditions, &version, &err) < 0 || check_uid(preconditions, record, &err) < 0) {
        operator_fail(call, &err);
        return;
    }
    bool is_dry = call->is_dry_run || json_array_size(dry) > 0;
    (is_dry ? request_delete_dry_run : request_delete)(call->world, call->principal, call->manager,
                                                       record->kind, record->meta.uid, version, on_deleted,
                                                       call);
}
