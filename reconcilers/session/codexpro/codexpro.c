#include "reconcilers/session/codexpro/codexpro.h"
#include "controller/base/memory.h"
#include <stdlib.h>
#include <string.h>

struct shell_call { // a request that the shell works on
    LIST_ENTRY(shell_call) link;
    struct codexpro *codexpro;
    int64_t rpc_id, shell_id;
};

static struct codexpro *codexpro_of(struct rpc *rpc)
{
    return (struct codexpro *)rpc;
}

// ---- the shell's side: its commands are tool calls of ours ------------------------------------------------------------

static int64_t shell_run(void *arg, const char *command, const char *cwd, int64_t timeout_ms, rpc_answer_fn fn, void *fn_arg,
                         struct error *err)
{
    CLEANUP_JSON json_t *params = json_pack("{s:s, s:{s:I}}", "name", "bash", "arguments", "timeout_ms", (json_int_t)timeout_ms);
    json_object_set_new(json_object_get(params, "arguments"), "command", json_from_text(command));
    json_set_text(json_object_get(params, "arguments"), "cwd", cwd);
    const struct post post = {.kind = POST_CALL, .fn = fn, .arg = fn_arg};
    return post_send(arg, &post, "tools/call", params, timeout_ms + RPC_CANCEL_MS, err);
}

static void shell_abandon(void *arg, int64_t id)
{
    post_drop(arg, id);
}

static void on_shell_answer(void *arg, json_t *result, const struct error *err)
{
    CLEANUP_FREE struct shell_call *call = arg;
    LIST_REMOVE(call, link);
    rpc_settle(&call->codexpro->base, call->rpc_id, result, err);
}

static int shell_send(struct codexpro *codexpro, int64_t id, const char *method, json_t *params, struct error *err)
{
    struct shell_call *call = mem_alloc(sizeof(*call));
    *call = (struct shell_call){.codexpro = codexpro, .rpc_id = id};
    call->shell_id = shell_request(codexpro->shell, method, json_incref(params), on_shell_answer, call, err);
    if (call->shell_id < 0) {
        free(call);
        return -1;
    }
    LIST_INSERT_HEAD(&codexpro->shell_calls, call, link);
    return 0;
}

// ---- requests ------------------------------------------------------------------------------------------------------

static int codexpro_send(struct rpc *rpc, int64_t id, const char *method, json_t *params, struct error *err)
{
    struct codexpro *codexpro = codexpro_of(rpc);
    if (!codexpro->http)
        return error_set(err, ERROR_UNAVAILABLE, NULL, "%s", codexpro->unavailable);
    if (shell_has_method(method))
        return shell_send(codexpro, id, method, params, err);
    if (strcmp(method, "initialize") == 0) {
        handshake_start(codexpro, id, params);
        return 0;
    }
    const struct post post = {.kind = POST_CALL, .rpc_id = id};
    return post_send(codexpro, &post, method, params, CODEXPRO_POST_MS, err) < 0 ? -1 : 0;
}

static void codexpro_notify(struct rpc *rpc, const char *method, json_t *params)
{
    struct codexpro *codexpro = codexpro_of(rpc);
    if (codexpro->http)
        post_send(codexpro, &(struct post){.kind = POST_NOTICE}, method, params, CODEXPRO_NOTICE_MS, NULL);
}

// CodexPro goes on with a tool whatever it is told, and would never answer a call that was cancelled: it is not told, and
// the call keeps its turn until it ends or is overdue.
static void codexpro_cancel(struct rpc *rpc, int64_t id)
{
    struct codexpro *codexpro = codexpro_of(rpc);
    struct shell_call *call;
    LIST_FOREACH(call, &codexpro->shell_calls, link)
        if (call->rpc_id == id) {
            shell_cancel(codexpro->shell, call->shell_id);
            return;
        }
}

// A request of the shell stays there; its late answer finds nobody. A tool's POST is closed; it is no use to tell CodexPro
// more than that.
static void codexpro_overdue(struct rpc *rpc, int64_t id, bool is_tool)
{
    (void)is_tool;
    post_drop_rpc(codexpro_of(rpc), id);
    rpc_give_up(rpc, id);
}

// ---- health --------------------------------------------------------------------------------------------------------

static bool on_probe_body(void *arg, const struct http_answer *head, const char *bytes, size_t len)
{
    (void)arg, (void)head, (void)bytes, (void)len;
    return false;
}

static void on_probed(void *arg, const struct http_answer *answer)
{
    struct codexpro *codexpro = arg;
    codexpro->probe = NULL;
    if (codexpro_ok_status(answer))
        health_note_heard(&codexpro->base);
    else if (answer->status == 401)
        rpc_break(&codexpro->base, CODEXPRO_REFUSED);
}

static void codexpro_probe(struct rpc *rpc)
{
    static const struct http_events events = {on_probe_body, on_probed};
    struct codexpro *codexpro = codexpro_of(rpc);
    const struct http_request request = {.method = "GET", .path = "/healthz", .deadline_ms = HEALTH_INTERVAL_MS};
    http_abandon(TAKE_PTR(codexpro->probe));
    codexpro->probe = http_send(codexpro->http, &request, &events, codexpro);
}

// ---- birth and end -------------------------------------------------------------------------------------------------

static void forget_shell_calls(struct codexpro *codexpro)
{
    while (!LIST_EMPTY(&codexpro->shell_calls)) {
        struct shell_call *call = LIST_FIRST(&codexpro->shell_calls);
        LIST_REMOVE(call, link);
        free(call);
    }
}

// The shell first: it lets go of its commands.
static void codexpro_close(struct rpc *rpc)
{
    struct codexpro *codexpro = codexpro_of(rpc);
    loop_cancel(TAKE_PTR(codexpro->unavailable_timer));
    shell_free(TAKE_PTR(codexpro->shell));
    forget_shell_calls(codexpro);
    handshake_stop(codexpro);
    posts_drop_all(codexpro);
    foreground_close(codexpro->foreground);
    if (codexpro->http && codexpro->session_id && codexpro->farewells)
        farewells_send(codexpro->farewells, TAKE_PTR(codexpro->http), codexpro->session_id);
    if (codexpro->http)
        http_close(codexpro->http); // it may be in an event of it: freed later
}

static void codexpro_free(struct rpc *rpc)
{
    struct codexpro *codexpro = codexpro_of(rpc);
    http_free(codexpro->http);
    foreground_free(codexpro->foreground);
    json_decref(codexpro->hello_params);
    free(codexpro->session_id);
    free(codexpro->unavailable);
    free(codexpro);
}

static const struct text_list *codexpro_last_lines(const struct rpc *rpc)
{
    return foreground_last_lines(((const struct codexpro *)rpc)->foreground);
}

static void on_foreground_ended(void *arg, const char *reason)
{
    rpc_break(arg, reason);
}

static void on_foreground_printed(void *arg, const char *line)
{
    rpc_tell_printed(arg, line);
}

static void on_unavailable(void *arg)
{
    struct codexpro *codexpro = arg;
    codexpro->unavailable_timer = NULL;
    rpc_break(&codexpro->base, codexpro->unavailable);
}

static void connect_to(struct codexpro *codexpro, const struct driver_session *session)
{
    struct error err = ERROR_INIT;
    if (http_new(codexpro->loop, session->port, session->token, &codexpro->http, &err) == 0)
        return;
    codexpro->unavailable = mem_format("%s (%s)", err.message, err.hint);
    codexpro->unavailable_timer = loop_after(codexpro->loop, 0, on_unavailable, codexpro);
}

struct rpc *http_rpc_new(const struct rpc_place *place, struct driver_session *session)
{
    static const struct rpc_ops ops = {
        .send = codexpro_send,
        .notify = codexpro_notify,
        .cancel = codexpro_cancel,
        .overdue = codexpro_overdue,
        .probe = codexpro_probe,
        .close = codexpro_close,
        .free = codexpro_free,
        .last_lines = codexpro_last_lines,
    };
    static const struct foreground_events events = {.ended = on_foreground_ended, .printed = on_foreground_printed};
    struct codexpro *codexpro = mem_alloc(sizeof(*codexpro));
    *codexpro = (struct codexpro){.base.ops = &ops, .loop = place->loop, .farewells = place->farewells};
    const struct shell_host host = {.loop = place->loop, .run = shell_run, .abandon = shell_abandon, .arg = codexpro};
    LIST_INIT(&codexpro->posts);
    LIST_INIT(&codexpro->shell_calls);
    connect_to(codexpro, session);
    codexpro->foreground = foreground_new(place->loop, session, &events, codexpro);
    codexpro->shell = shell_new(&host);
    driver_session_close(session); // the token is wiped here
    return &codexpro->base;
}
