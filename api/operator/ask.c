// One request of a call to a sandbox's tool server, from the loop thread.
#include "api/operator/exec.h"
#include "controller/base/memory.h"

void sandbox_ask_free(struct sandbox_ask *ask)
{
    if (ask->is_read)
        operator_execs_touch(ask->call->server->execs, ask->id, ask->sandbox_uid, -1);
    json_decref(ask->params);
    free(ask->sandbox_uid);
    free(ask);
}

// What a closed lane says is worded for assistants; the record knows better.
void sandbox_ask_explain(struct world *world, const char *sandbox_uid, const struct error *err, struct error *ret)
{
    CLEANUP_RECORD struct record *sandbox = NULL;
    *ret = *err;
    if (err->code != ERROR_NOT_FOUND && err->code != ERROR_STATE && err->code != ERROR_UNAVAILABLE)
        return;
    if (store_get_uid(world->store, KIND_SANDBOX, sandbox_uid, &sandbox, NULL) < 0)
        return;
    const struct condition *failed = record_condition(sandbox, CONDITION_FAILED);
    if (sandbox->meta.removed_at.ms || sandbox->meta.deletion_at.ms)
        error_set(ret, ERROR_STATE, "create another one", "the sandbox '%s' %s destroyed", sandbox->meta.name,
                  sandbox->meta.removed_at.ms ? "was" : "is being");
    else if (failed && failed->status == CONDITION_TRUE)
        error_set(ret, ERROR_STATE, "chat2shell recreate replaces it on the same workspace",
                  "the sandbox '%s' failed: %s", sandbox->meta.name, failed->message);
    else if (!record_is_true(sandbox, CONDITION_READY))
        error_set(ret, ERROR_STATE, "try again when its status is running",
                  "the sandbox '%s' is still being created", sandbox->meta.name);
}

static void on_answer(void *arg, int result, json_t *answer, const struct error *err) // loop thread
{
    struct sandbox_ask *ask = arg;
    struct error why = ERROR_INIT;
    struct call *call = ask->call;
    json_t *body = result == 0 ? ask->answer(ask, answer) : NULL;
    if (result < 0 && ask->is_start)
        operator_execs_remove(call->server->execs, ask->id);
    if (result < 0)
        sandbox_ask_explain(call->world, ask->sandbox_uid, err, &why);
    else if (!body)
        error_set(&why, ERROR_UNAVAILABLE, "delete the sandbox if it goes on",
                  "the sandbox's tool server gave an answer that makes no sense");
    void (*then)(struct call *, const char *, const char *) = body ? ask->then : NULL;
    if (then)
        then(call, ask->sandbox_uid, ask->id);
    sandbox_ask_free(ask);
    if (body && !then)
        operator_answer(call, 200, TAKE_PTR(body));
    else if (!body)
        operator_fail(call, &why);
    json_decref(body);
}

static void cancel_ask(struct call *call)
{
    struct sandbox_ask *ask = call->state;
    if (!ask->lane || !lane_call_cancel(ask->lane))
        return; // not sent yet, or its answer is on its way
    struct error err = ERROR_INIT;
    error_set(&err, ERROR_CANCELLED, NULL, "the client has gone");
    sandbox_ask_free(ask);
    operator_fail(call, &err);
}

static void send_ask(struct call *call)
{
    struct sandbox_ask *ask = call->state;
    ask->lane = lane_request(call->world->lanes, ask->sandbox_uid, ask->method, TAKE_PTR(ask->params),
                             ask->deadline_ms, on_answer, ask);
    if (call->is_gone && call->cancel)
        call->cancel(call);
}

static json_t *answer_nothing(struct sandbox_ask *ask, const json_t *from)
{
    (void)ask, (void)from;
    return json_object();
}

struct sandbox_ask *sandbox_ask_new(struct call *call, const struct record *sandbox, const char *method,
                                    json_t *params, int64_t deadline_ms)
{
    struct sandbox_ask *ask = mem_alloc(sizeof(*ask));
    *ask = (struct sandbox_ask){.call = call,
                                .method = method,
                                .params = params,
                                .deadline_ms = deadline_ms,
                                .sandbox_uid = mem_strdup(sandbox->meta.uid),
                                .answer = answer_nothing};
    call->state = ask;
    return ask;
}

void sandbox_ask_run(struct sandbox_ask *ask, bool is_kept)
{
    operator_wait_on_loop(ask->call, send_ask, is_kept ? NULL : cancel_ask);
}
