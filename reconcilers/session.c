// The Session reconciler: starts the tool server in a created sandbox, opens its lane, and tells when it is gone. No
// restart: a session that ended makes its sandbox fail (product policy).
#include "controller/base/memory.h"
#include "controller/fault.h"
#include "reconcilers/sandbox.h"
#include <string.h>

struct hello { // payload of EFFECT_SESSION
    char *server_name, *server_version;
};

static void hello_free(void *at)
{
    struct hello *hello = at;
    free(hello->server_name);
    free(hello->server_version);
    free(hello);
}

static void on_ready(void *arg, int result, const struct lane_hello *from, const struct error *err)
{
    struct anchor *anchor = arg;
    struct hello *hello = NULL;
    if (result == 0) {
        hello = mem_alloc(sizeof(*hello));
        *hello = (struct hello){mem_strdup_or_null(from->server_name), mem_strdup_or_null(from->server_version)};
    }
    effect_end(TAKE_PTR(anchor->effect), result, err, hello, hello_free);
}

// The last lines travel with the reason as JSON; the reconcile takes them apart (effects keep text only).
static void on_died(void *arg, const char *sandbox_uid, const char *reason, const struct text_list *last_lines)
{
    struct world *world = ((struct anchor *)arg)->world;
    CLEANUP_RECORD struct record *session = NULL;
    if (sandbox_find_session(world, sandbox_uid, &session, NULL) < 0 || !session)
        return; // deleted: its sandbox goes anyway
    CLEANUP_JSON json_t *death = json_object();
    json_t *lines = json_array();
    json_set_text(death, "reason", reason);
    for (size_t i = 0; i < last_lines->count; i++)
        json_array_append_new(lines, json_from_text(last_lines->items[i]));
    json_object_set_new(death, "lines", lines);
    CLEANUP_FREE char *text = json_to_text(death);
    effects_set_death(world->reconcilers->effects, session->meta.uid, KIND_SESSION, text);
}

static void on_started(void *arg, int result, const struct driver_session *session, const struct error *err)
{
    struct anchor *anchor = arg;
    if (result < 0) {
        effect_end(TAKE_PTR(anchor->effect), result, err, NULL, NULL);
        return;
    }
    struct driver_session mine = *session;
    lane_open(anchor->world->lanes, anchor->sandbox_uid, anchor->workspace_uid, &mine, on_ready, on_died, anchor);
}

static enum reconcile_verdict begin_start(struct world *world, const struct record *session, const struct record *sandbox)
{
    struct effect *effect = effects_begin(world->reconcilers->effects, EFFECT_SESSION, KIND_SESSION, session->meta.uid);
    if (!effect)
        return RECONCILE_DONE;
    if (FAULT("session.start.before")) {
        struct error err = ERROR_INIT;
        error_set(&err, ERROR_IO, NULL, "fault point");
        effect_end(effect, -1, &err, NULL, NULL);
        return RECONCILE_DONE;
    }
    journals_begin(lanes_journals(world->lanes), sandbox->meta.uid, sandbox->meta.name);
    world->driver->ops->start_session(world->driver, sandbox->status.sandbox.runtime_name, on_started, anchor_new(world, sandbox, effect));
    return RECONCILE_DONE;
}

static enum reconcile_verdict fail(struct world *world, struct record *session, const char *reason, const char *message, struct error *err)
{
    struct wall_time now = clock_wall(world->clock);
    record_set_condition(session, CONDITION_FAILED, CONDITION_TRUE, now, reason, "%s", message);
    record_set_condition(session, CONDITION_READY, CONDITION_FALSE, now, reason, "%s", message);
    if (store_write_status(world->store, session, err) < 0)
        return RECONCILE_FAILED;
    store_event(world->store, session, true, reason, "%s", message);
    return RECONCILE_DONE;
}

static enum reconcile_verdict note_death(struct world *world, struct record *session, const char *text, struct error *err)
{
    CLEANUP_JSON json_t *death = NULL;
    if (json_parse(text, strlen(text), &death, err) < 0)
        return RECONCILE_FAILED;
    size_t i;
    json_t *line;
    text_list_clear(&session->status.session.last_lines);
    json_array_foreach(json_object_get(death, "lines"), i, line)
        text_list_add(&session->status.session.last_lines, json_string_value(line));
    CLEANUP_FREE char *message = mem_format("the tool server failed: %s", json_get_text(death, "reason"));
    return fail(world, session, "ToolServerDied", message, err);
}

static enum reconcile_verdict note_ready(struct world *world, struct record *session, const struct hello *hello, struct error *err)
{
    mem_replace(&session->status.session.server_name, hello->server_name);
    mem_replace(&session->status.session.server_version, hello->server_version);
    record_set_condition(session, CONDITION_READY, CONDITION_TRUE, clock_wall(world->clock), "ToolServerReady", "the tool server answers");
    return store_write_status(world->store, session, err) < 0 ? RECONCILE_FAILED : RECONCILE_DONE;
}

static enum reconcile_verdict step_start(struct world *world, struct record *session, const struct record *sandbox, struct error *err)
{
    struct error why = ERROR_INIT;
    void *hello = NULL;
    switch (effects_look(world->reconcilers->effects, EFFECT_SESSION, session->meta.uid, &hello, &why)) {
    case EFFECT_RUNNING:
        return RECONCILE_DONE;
    case EFFECT_DONE:
        return note_ready(world, session, hello, err);
    case EFFECT_FAILED:
        return fail(world, session, "ToolServerNotStarted", why.message, err);
    case EFFECT_NONE:
        break;
    }
    return record_is_true(sandbox, CONDITION_RUNTIME_CREATED) ? begin_start(world, session, sandbox) : RECONCILE_DONE;
}

static int delete_in_tx(struct store_tx *tx, void *arg, struct error *err)
{
    return tx_delete(tx, &ACTOR_CONTROLLER, KIND_SESSION, arg, err);
}

static enum reconcile_verdict reconcile_one(struct world *world, const char *uid, struct reconcile_outcome *outcome, struct error *err)
{
    (void)outcome;
    CLEANUP_RECORD struct record *session = NULL, *sandbox = NULL;
    if (world_get(world, KIND_SESSION, uid, &session, err) < 0)
        return RECONCILE_FAILED;
    if (!session || session->meta.removed_at.ms) {
        effects_clear_all(world->reconcilers->effects, uid);
        return RECONCILE_DONE;
    }
    const char *sandbox_uid = session->status.session.sandbox_uid;
    if (sandbox_uid && world_get(world, KIND_SANDBOX, sandbox_uid, &sandbox, err) < 0)
        return RECONCILE_FAILED;
    if (!sandbox || sandbox->meta.removed_at.ms) // nobody's: only the sandbox reconciler makes them
        return store_transact(world->store, delete_in_tx, (void *)uid, err) < 0 ? RECONCILE_FAILED : RECONCILE_DONE;
    if (record_is_true(session, CONDITION_FAILED) || sandbox->meta.deletion_at.ms)
        return RECONCILE_DONE;
    if (record_is_true(sandbox, CONDITION_FAILED))
        return fail(world, session, "SandboxFailed", "its sandbox failed", err);
    CLEANUP_FREE char *death = effects_death(world->reconcilers->effects, uid);
    if (death)
        return note_death(world, session, death, err);
    return record_is_true(session, CONDITION_READY) ? RECONCILE_DONE : step_start(world, session, sandbox, err);
}

static enum reconcile_verdict reconcile(void *arg, const char *uid, struct reconcile_outcome *outcome, struct error *err)
{
    return world_take_turn(arg, reconcile_one, uid, outcome, err);
}

static void map_change(void *arg, struct manager *manager, const struct store_change *change)
{
    struct world *world = arg;
    if (change->kind != KIND_SANDBOX || change->type == STORE_ADDED)
        return;
    world_enqueue_bound(world, manager, KIND_SESSION, change->uid);
}

void session_register(struct world *world)
{
    manager_add(world->manager, &(struct reconciler){.name = "session", .kind = KIND_SESSION, .reconcile = reconcile,
                                                    .map_change = map_change, .arg = world});
}
