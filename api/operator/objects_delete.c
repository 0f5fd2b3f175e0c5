// The handler of DELETE of one object.
#include "api/operator/delete.h"
#include "controller/base/memory.h"

// Still there, with deletionTimestamp, while finalizers are at work; else gone, and said so.
static void on_deleted(void *arg, int result, struct record *record, json_t *unsaved, const struct error *err)
{
    struct call *call = arg;
    json_decref(unsaved);
    if (result < 0)
        operator_fail(call, err);
    else if (record->meta.removed_at.ms)
        operator_answer(call, 200, status_of_success(record));
    else
        operator_answer_record(call, 200, record);
    record_free(record);
}

void objects_delete(struct call *call)
{
    CLEANUP_JSON json_t *causes = json_array();
    struct delete_options options = {0};
    struct error err = ERROR_INIT;
    if (delete_options_read(call, &options, causes, &err) < 0) {
        operator_fail_with(call, &err, causes);
        return;
    }
    CLEANUP_RECORD struct record *record = operator_resolve(call, call->match.kind);
    if (!record)
        return;
    if (delete_check_uid(&options, record, &err) < 0) {
        operator_fail(call, &err);
        return;
    }
    (options.is_dry_run ? request_delete_dry_run : request_delete)(call->world, call->principal, call->manager, record->kind,
                                                                   record->meta.uid, options.resource_version, on_deleted, call);
}
