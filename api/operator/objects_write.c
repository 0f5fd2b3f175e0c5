// The handlers of PUT, PATCH and POST.
#include "api/operator/apply.h"
#include "api/operator/create.h"
#include "api/operator/update.h"
#include "controller/base/memory.h"
#include <string.h>

#define APPLY_AGAIN_MAX 4

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
        (call->applies ? update_start_late : update_start)(call, record, UPDATE_APPLY);
    else if (err.code == ERROR_NOT_FOUND)
        create_start(call, call->match.name);
    else
        operator_fail(call, &err);
}

static void look_again(void *arg)
{
    apply(arg);
}

bool apply_again(struct call *call)
{
    bool is_apply = call->match.route->body == BODY_PATCH && call->patch == PATCH_APPLY;
    if (!is_apply || call->applies >= APPLY_AGAIN_MAX)
        return false;
    call->applies++;
    loop_post(call->world->loop, look_again, call);
    return true;
}

void objects_patch(struct call *call)
{
    CLEANUP_JSON json_t *causes = json_array();
    struct error err = ERROR_INIT;
    if (apply_check_options(call, causes, &err) < 0) {
        operator_fail_with(call, &err, causes);
        return;
    }
    if (call->patch == PATCH_APPLY) {
        apply(call);
        return;
    }
    CLEANUP_RECORD struct record *record = operator_resolve(call, call->match.kind);
    if (record)
        update_start(call, record, call->patch == PATCH_JSON ? UPDATE_JSON_PATCH : UPDATE_MERGE);
}

void objects_create(struct call *call)
{
    create_start(call, NULL);
}
