// Binding: an exposure's spec names its sandbox; which one that is, is settled once, in one transaction. Until then the exposure
// waits, for the sandbox to come or for what is in its way to go.
#include "controller/base/memory.h"
#include "reconcilers/exposure.h"

void exposure_settle_ready(struct record *exposure, struct wall_time now)
{
    const struct condition *published = record_condition(exposure, CONDITION_PUBLISHED), *reachable = record_condition(exposure, CONDITION_REACHABLE);
    bool is_published = published && published->status == CONDITION_TRUE;
    const struct condition *why = is_published ? reachable : published;
    CLEANUP_FREE char *reason = mem_strdup(why ? why->reason : is_published ? "NotLookedAt" : "NotPublished");
    CLEANUP_FREE char *message = mem_strdup(why ? why->message : is_published ? "it is published; whether something listens inside is looked at next" : "it is not published yet");
    bool is_ready = is_published && reachable && reachable->status == CONDITION_TRUE;
    record_set_condition(exposure, CONDITION_READY, is_ready ? CONDITION_TRUE : CONDITION_FALSE, now, reason, "%s", message);
}

void exposure_set_waiting(struct record *exposure, struct wall_time now)
{
    const char *name = exposure->spec.exposure.sandbox_ref;
    record_set_condition(exposure, CONDITION_REF_NOT_FOUND, CONDITION_TRUE, now, "SandboxNotFound",
                         "there is no live sandbox named %s yet; the exposure waits for it", name);
    record_set_condition(exposure, CONDITION_PUBLISHED, CONDITION_FALSE, now, "SandboxNotFound",
                         "there is no live sandbox named %s yet; the exposure waits for it", name);
    exposure_settle_ready(exposure, now);
}

static void set_blocked(struct record *exposure, struct wall_time now, const char *reason, const char *why)
{
    record_drop_condition(exposure, CONDITION_REF_NOT_FOUND);
    record_set_condition(exposure, CONDITION_PUBLISHED, CONDITION_FALSE, now, reason, "%s", why);
    exposure_settle_ready(exposure, now);
}

// Somebody may have exposed the port, or as many as there may be, since this one was made. A port that is being given back counts.
static int check_room(struct store_tx *tx, struct record *exposure, const struct record *sandbox, bool *ret_is_free, struct error *err)
{
    struct record_list all = {0};
    CLEANUP_FREE char *text = NULL;
    if (tx_list_bound(tx, KIND_EXPOSURE, sandbox->meta.uid, &all, err) < 0)
        return -1;
    const char *reason = NULL;
    for (size_t i = 0; i < all.count && !reason; i++)
        if (all.items[i]->spec.exposure.port == exposure->spec.exposure.port) {
            reason = "PortExposed";
            text = mem_format("port %lld of the sandbox %s is exposed already by %s; this one waits until that is gone",
                              (long long)exposure->spec.exposure.port, sandbox->meta.name, all.items[i]->meta.name);
        }
    if (!reason && all.count >= LIMIT_EXPOSURES_A_SANDBOX) {
        reason = "TooManyExposures";
        text = mem_format("the sandbox %s has %d exposed ports already, the most at once; this one waits until one of them is gone",
                          sandbox->meta.name, LIMIT_EXPOSURES_A_SANDBOX);
    }
    record_list_free(&all);
    if (reason)
        set_blocked(exposure, tx_now(tx), reason, text);
    *ret_is_free = !reason;
    return 0;
}

static int bind_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    struct record *exposure = arg;
    CLEANUP_RECORD struct record *sandbox = NULL;
    struct error why = ERROR_INIT;
    bool is_free;
    if (tx_get(tx, KIND_SANDBOX, exposure->spec.exposure.sandbox_ref, &sandbox, &why) < 0 && why.code != ERROR_NOT_FOUND)
        return error_copy(err, &why);
    if (!sandbox || sandbox->meta.deletion_at.ms || record_is_true(sandbox, CONDITION_FAILED)) { // it takes its exposures along
        exposure_set_waiting(exposure, tx_now(tx));
        return tx_write_status(tx, exposure, err);
    }
    if (check_room(tx, exposure, sandbox, &is_free, err) < 0)
        return -1;
    if (is_free) {
        set_blocked(exposure, tx_now(tx), "Bound", "the sandbox is there");
        mem_replace(&exposure->status.exposure.sandbox_uid, sandbox->meta.uid);
    }
    if (tx_write_status(tx, exposure, err) == 0)
        return 0;
    mem_replace(&exposure->status.exposure.sandbox_uid, NULL);
    return -1;
}

enum reconcile_verdict exposure_bind(struct world *world, struct record *exposure, struct error *err)
{
    if (store_transact(world->store, bind_in_tx, exposure, err) < 0)
        return RECONCILE_FAILED;
    if (exposure->status.exposure.sandbox_uid)
        store_event(world->store, exposure, false, "Bound", "bound to the sandbox %s", exposure->spec.exposure.sandbox_ref);
    return RECONCILE_DONE;
}
