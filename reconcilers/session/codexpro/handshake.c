#include "reconcilers/session/codexpro/codexpro.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <string.h>

#define PATH_HEALTH "/healthz"

bool codexpro_ok_status(const struct http_answer *answer)
{
    return !answer->failure && answer->status / 100 == 2;
}

// ---- initialize ----------------------------------------------------------------------------------------------------

// What the lane sees: CodexPro's answer, with the extension that the shell adds to it.
static json_t *add_capability(json_t *result)
{
    json_t *hello = json_copy(result), *capabilities = json_object_get(result, "capabilities");
    json_t *mine = json_is_object(capabilities) ? json_copy(capabilities) : json_object();
    json_object_set_new(mine, "experimental", json_pack("{s:{s:i}}", GUEST_SESSIONS_CAPABILITY, "version", 1));
    json_object_set_new(hello, "capabilities", mine);
    return hello;
}

static int check_hello(const json_t *result, struct error *err)
{
    const char *version = json_get_text(result, "protocolVersion");
    if (version && strcmp(version, CODEXPRO_VERSION_ASKED) == 0)
        return 0;
    const char *bytes = version ? version : "no protocolVersion";
    CLEANUP_FREE char *said = utf8_to_printable(bytes, utf8_cut(bytes, strnlen(bytes, 40)), false);
    return error_set(err, ERROR_UNSUPPORTED, NULL, "it was asked for MCP %s and answered %s", CODEXPRO_VERSION_ASKED, said);
}

// The session is there, or it is not: everything that waits for it hears so.
static void finish(struct codexpro *codexpro, json_t *result, const struct error *err)
{
    int64_t rpc_id = codexpro->hello_id;
    codexpro->is_greeting = false;
    codexpro->hello_id = 0;
    loop_cancel(TAKE_PTR(codexpro->start_deadline));
    if (!rpc_id && !err) // the first time, the lane sends it
        post_send(codexpro, &(struct post){.kind = POST_NOTICE}, "notifications/initialized", NULL, CODEXPRO_NOTICE_MS, NULL);
    if (err)
        posts_fail_waiting(codexpro, err);
    else
        posts_go(codexpro);
    CLEANUP_JSON json_t *hello = err ? NULL : add_capability(result);
    if (rpc_id)
        rpc_settle(&codexpro->base, rpc_id, hello, err);
}

static void on_hello(void *arg, json_t *result, const struct error *err)
{
    struct codexpro *codexpro = arg;
    struct error why = ERROR_INIT;
    if (!err && check_hello(result, &why) < 0)
        err = &why;
    if (!err)
        codexpro->generation++;
    struct error forgot = ERROR_INIT;
    if (err && !codexpro->hello_id) {
        error_set(&forgot, err->code, err->hint, "the tool server forgot its session and did not give a new one: %s", err->message);
        err = &forgot;
    }
    finish(codexpro, result, err);
}

static void greet(struct codexpro *codexpro, int64_t deadline_ms)
{
    struct error err = ERROR_INIT;
    const struct post post = {.kind = POST_HELLO, .fn = on_hello, .arg = codexpro};
    if (post_send(codexpro, &post, "initialize", codexpro->hello_params, deadline_ms, &err) < 0)
        finish(codexpro, NULL, &err);
}

void handshake_again(struct codexpro *codexpro)
{
    codexpro->is_greeting = true;
    greet(codexpro, CODEXPRO_START_MS);
}

// ---- waiting for the server ----------------------------------------------------------------------------------------

static void look(struct codexpro *codexpro);

static void on_retry(void *arg)
{
    struct codexpro *codexpro = arg;
    codexpro->start_retry = NULL;
    look(codexpro);
}

static bool on_body(void *arg, const struct http_answer *head, const char *bytes, size_t len)
{
    (void)arg, (void)head, (void)bytes, (void)len;
    return false; // the status says it all
}

static void on_looked(void *arg, const struct http_answer *answer)
{
    struct codexpro *codexpro = arg;
    codexpro->look = NULL;
    if (codexpro_ok_status(answer)) {
        greet(codexpro, CODEXPRO_START_MS); // start_deadline comes before
    } else if (answer->status == 401) {
        rpc_break(&codexpro->base, CODEXPRO_REFUSED);
    } else {
        codexpro->start_trouble = answer->failure ? answer->failure : "it is not in good health";
        codexpro->start_retry = loop_after(codexpro->loop, codexpro->start_retry_ms, on_retry, codexpro);
        codexpro->start_retry_ms *= 2;
        if (codexpro->start_retry_ms > CODEXPRO_RETRY_MAX_MS)
            codexpro->start_retry_ms = CODEXPRO_RETRY_MAX_MS;
    }
}

static void look(struct codexpro *codexpro)
{
    static const struct http_events events = {on_body, on_looked};
    const struct http_request request = {.method = "GET", .path = PATH_HEALTH, .deadline_ms = CODEXPRO_TRY_MS};
    codexpro->look = http_send(codexpro->http, &request, &events, codexpro);
}

static void on_start_late(void *arg)
{
    struct codexpro *codexpro = arg;
    codexpro->start_deadline = NULL;
    CLEANUP_FREE char *reason =
        mem_format("it did not answer the handshake within %d s%s%s", CODEXPRO_START_MS / 1000, codexpro->start_trouble ? ": " : "",
                   codexpro->start_trouble ? codexpro->start_trouble : "");
    rpc_break(&codexpro->base, reason);
}

void handshake_start(struct codexpro *codexpro, int64_t rpc_id, json_t *params)
{
    codexpro->hello_params = params ? json_copy(params) : json_object();
    json_object_set_new(codexpro->hello_params, "protocolVersion", json_string(CODEXPRO_VERSION_ASKED));
    codexpro->hello_id = rpc_id;
    codexpro->is_greeting = true;
    codexpro->start_retry_ms = CODEXPRO_RETRY_MIN_MS;
    codexpro->start_deadline = loop_after(codexpro->loop, CODEXPRO_START_MS, on_start_late, codexpro);
    look(codexpro);
}

void handshake_stop(struct codexpro *codexpro)
{
    loop_cancel(TAKE_PTR(codexpro->start_deadline));
    loop_cancel(TAKE_PTR(codexpro->start_retry));
    http_abandon(TAKE_PTR(codexpro->look));
    http_abandon(TAKE_PTR(codexpro->probe));
}
