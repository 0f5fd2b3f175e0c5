// The handlers of programs in sandboxes: start, write, read, signal, end.
#include "api/operator/exec.h"
#include "controller/base/buffer.h"
#include "controller/base/frames.h"
#include "controller/base/guest_protocol.h"
#include "controller/base/memory.h"
#include "controller/base/random.h"
#include "controller/base/utf8.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define EXEC_READ_WAIT_MAX_MS 30000
#define EXEC_ARGS_MAX 4096

// A request about a program that was started before. On failure the call is answered, params is dropped, and
// NULL returned.
static struct sandbox_ask *ask_about(struct call *call, const char *method, json_t *params,
                                     int64_t deadline_ms)
{
    CLEANUP_RECORD struct record *sandbox = operator_resolve(call, KIND_SANDBOX);
    CLEANUP_JSON json_t *owned = params;
    if (!sandbox)
        return NULL;
    if (!operator_execs_touch(call->server->execs, call->match.id, sandbox->meta.uid, 0)) {
        operator_fail_as(call, 0, ERROR_NOT_FOUND,
                         "start it anew: a program is ended when nobody reads from it for 10 minutes",
                         "there is no exec %.64s in '%s'", call->match.id, sandbox->meta.name);
        return NULL;
    }
    json_set_text(params, "exec_id", call->match.id);
    struct sandbox_ask *ask = sandbox_ask_new(call, sandbox, method, TAKE_PTR(owned), deadline_ms);
    snprintf(ask->id, sizeof(ask->id), "%s", call->match.id);
    return ask;
}

// ---- start
// --------------------------------------------------------------------------------------------------------------------
static int check_argv(const json_t *argv, struct error *err)
{
    size_t i, count = json_array_size(argv);
    json_t *word;
    if (count < 1 || count > EXEC_ARGS_MAX)
        return error_set(err, ERROR_INVALID, "give the program and its arguments",
                         "argv: must be an array of 1 to %d strings", EXEC_ARGS_MAX);
    json_array_foreach((json_t *)argv, i, word) if (!json_is_string(word)) return error_set(
        err, ERROR_INVALID, NULL, "argv[%zu]: must be a string", i);
    if (!json_string_length(json_array_get(argv, 0)))
        return error_set(err, ERROR_INVALID, "give the program first", "argv[0]: must not be empty");
    return 0;
}

static int check_cells(const json_t *tty, const char *name, struct error *err)
{
    const json_t *value = json_object_get(tty, name);
    json_int_t number = json_integer_value(value);
    if (value && (!json_is_integer(value) || number < 0 || number > UINT16_MAX))
        return error_set(err, ERROR_INVALID, NULL, "tty.%s: must be an integer from 0 to %d", name, UINT16_MAX);
    return 0;
}

static int check_terminal(const json_t *tty, struct error *err)
{
    const json_t *term = json_object_get(tty, "term");
    if (!tty || json_is_null(tty))
        return 0;
    if (!json_is_object(tty) || (term && !json_is_string(term)))
        return error_set(err, ERROR_INVALID, NULL, "tty: must be an object {columns, rows, term}");
    return check_cells(tty, "columns", err) < 0 ? -1 : check_cells(tty, "rows", err);
}

static int check_start(const json_t *body, struct error *err)
{
    const json_t *cwd = json_object_get(body, "cwd"), *env = json_object_get(body, "env");
    const char *name;
    json_t *value;
    if (check_argv(json_object_get(body, "argv"), err) < 0)
        return -1;
    if (cwd && !json_is_null(cwd) && !json_is_string(cwd))
        return error_set(err, ERROR_INVALID, NULL, "cwd: must be a string");
    const json_t *label = json_object_get(body, "label");
    if (label && !json_is_string(label))
        return error_set(err, ERROR_INVALID, NULL, "label: must be a string");
    if (env && !json_is_null(env) && !json_is_object(env))
        return error_set(err, ERROR_INVALID, NULL, "env: must be an object of strings");
    json_object_foreach((json_t *)env, name, value) if (!json_is_string(value)) return error_set(
        err, ERROR_INVALID, NULL, "env.%.64s: must be a string", name);
    return check_terminal(json_object_get(body, "tty"), err);
}

static void make_id(char id[EXEC_ID_SIZE])
{
    memcpy(id, "exec_", 5);
    random_hex(id + 5, EXEC_ID_SIZE - 6);
}

// For `chat2shell logs`: the operator's word for what is run, or else that itself.
static void note_start(const struct sandbox_ask *ask)
{
    CLEANUP(buffer_free) struct buffer line = BUFFER_INIT(JOURNAL_TEXT_BYTES);
    json_t *label = json_object_get(ask->call->body, "label"), *word;
    CLEANUP_JSON json_t *words = label ? json_pack("[O]", label) : json_incref(json_object_get(ask->call->body, "argv"));
    size_t i;
    json_array_foreach(words, i, word) {
        size_t len = json_string_length(word);
        if (i && line.len < line.max)
            buffer_append_char(&line, ' ');
        buffer_append(&line, json_string_value(word), len < line.max - line.len ? len : line.max - line.len);
    }
    CLEANUP_FREE char *shown = utf8_to_printable(buffer_text(&line), line.len, false);
    journals_add(lanes_journals(ask->call->world->lanes), ask->sandbox_uid,
                 &(struct journal_line){.source = JOURNAL_CALL, .text = shown, .caller = ask->call->principal, .tool = "exec", .result = "started", .exit_code = -1});
}

static json_t *answer_start(struct sandbox_ask *ask, const json_t *from)
{
    (void)from;
    note_start(ask);
    return json_pack("{s:s}", "execId", ask->id);
}

static json_t *start_params(const json_t *body, const char *id)
{
    json_t *params = json_pack("{s:s, s:O}", "exec_id", id, "argv", json_object_get(body, "argv"));
    if (json_is_string(json_object_get(body, "cwd")))
        json_object_set(params, "cwd", json_object_get(body, "cwd"));
    if (json_is_object(json_object_get(body, "env")))
        json_object_set(params, "env", json_object_get(body, "env"));
    if (json_is_object(json_object_get(body, "tty")))
        json_object_set(params, "tty", json_object_get(body, "tty"));
    return params;
}

void operator_exec_start(struct call *call)
{
    struct error err = ERROR_INIT;
    char id[EXEC_ID_SIZE];
    CLEANUP_RECORD struct record *sandbox = operator_resolve(call, KIND_SANDBOX);
    if (!sandbox)
        return;
    if (check_start(call->body, &err) < 0) {
        operator_fail(call, &err);
        return;
    }
    make_id(id);
    if (!operator_execs_add(call->server->execs, id, sandbox->meta.uid)) {
        operator_fail_as(call, 0, ERROR_LIMIT, "end some first",
                         "%d programs run in sandboxes by exec, the most at once", EXECS_MAX);
        return;
    }
    struct sandbox_ask *ask =
        sandbox_ask_new(call, sandbox, "chat2shell/exec_start", start_params(call->body, id), EXEC_GRACE_MS);
    snprintf(ask->id, sizeof(ask->id), "%s", id);
    ask->answer = answer_start;
    ask->is_start = true;
    ask->then = http_request_wants_upgrade(call->http, STREAM_PROTOCOL) ? operator_exec_join : NULL;
    sandbox_ask_run(ask, true); // not to be given up half way: the caller has no id to end it by
}

// ---- write, read, signal, end
// -----------------------------------------------------------------------------------------------------
void operator_exec_write(struct call *call)
{
    const json_t *data = json_object_get(call->body, "data"), *eof = json_object_get(call->body, "eof");
    CLEANUP_FREE char *bytes = NULL;
    size_t len;
    struct error err = ERROR_INIT;
    if ((data && !json_is_string(data)) || (eof && !json_is_boolean(eof))) {
        operator_fail_as(call, 0, ERROR_INVALID, NULL, "data must be a base64 string, and eof a boolean");
        return;
    }
    if (json_decode_base64(json_string_value(data), &bytes, &len, &err) < 0) {
        error_context(&err, "data");
        operator_fail(call, &err);
        return;
    }
    json_t *params =
        json_pack("{s:s, s:b}", "data", data ? json_string_value(data) : "", "eof", json_is_true(eof));
    struct sandbox_ask *ask = ask_about(call, "chat2shell/exec_write", params, LANE_CALL_DEADLINE_MS);
    if (ask)
        sandbox_ask_run(ask, false);
}

static json_t *take_stream(const json_t *from, const char *name)
{
    const char *text = json_get_text(from, name);
    CLEANUP_FREE char *bytes = NULL;
    size_t len;
    if (!text || json_decode_base64(text, &bytes, &len, NULL) < 0 || len > GUEST_EXEC_CHUNK_BYTES)
        return NULL;
    return json_string(text);
}

static json_t *answer_read(struct sandbox_ask *ask, const json_t *from)
{
    (void)ask;
    const json_t *exited = json_object_get(from, "exited"), *code = json_object_get(from, "exit_code");
    CLEANUP_JSON json_t *out = take_stream(from, "stdout");
    CLEANUP_JSON json_t *err = take_stream(from, "stderr");
    bool is_code = json_is_integer(code) && json_integer_value(code) >= 0 && json_integer_value(code) <= 255;
    if (!out || !err || !json_is_boolean(exited) || (json_is_true(exited) && !is_code))
        return NULL;
    return json_pack("{s:O, s:O, s:b, s:o}", "stdout", out, "stderr", err, "exited", json_is_true(exited),
                     "exitCode", json_is_true(exited) ? json_integer(json_integer_value(code)) : json_null());
}

void operator_exec_read(struct call *call)
{
    const json_t *wait = json_object_get(call->body, "waitMs");
    json_int_t wait_ms = json_integer_value(wait);
    if ((wait && !json_is_integer(wait)) || wait_ms < 0 || wait_ms > EXEC_READ_WAIT_MAX_MS) {
        operator_fail_as(call, 0, ERROR_INVALID, NULL, "waitMs: must be an integer from 0 to %d",
                         EXEC_READ_WAIT_MAX_MS);
        return;
    }
    struct sandbox_ask *ask = ask_about(call, "chat2shell/exec_read", json_pack("{s:I}", "wait_ms", wait_ms),
                                        wait_ms + EXEC_GRACE_MS);
    if (!ask)
        return;
    ask->answer = answer_read;
    ask->is_read = operator_execs_touch(call->server->execs, ask->id, ask->sandbox_uid, 1);
    sandbox_ask_run(ask, false);
}

// A number, or a name with or without SIG.
static int parse_signal(const json_t *value, struct error *err)
{
    const char *name = json_string_value(value);
    if (json_is_integer(value) && json_integer_value(value) >= 1 && json_integer_value(value) <= 64)
        return (int)json_integer_value(value);
    for (int number = 1; name && number < 32; number++) {
        const char *known = sigabbrev_np(number);
        if (known && strcmp(known, strncmp(name, "SIG", 3) == 0 ? name + 3 : name) == 0)
            return number;
    }
    return error_set(err, ERROR_INVALID, "give a number from 1 to 64, or a name like TERM",
                     "signal: this is not a signal");
}

void operator_exec_signal(struct call *call)
{
    struct error err = ERROR_INIT;
    int number = parse_signal(json_object_get(call->body, "signal"), &err);
    if (number < 0) {
        operator_fail(call, &err);
        return;
    }
    struct sandbox_ask *ask =
        ask_about(call, "chat2shell/exec_signal", json_pack("{s:i}", "signal", number), EXEC_GRACE_MS);
    if (ask)
        sandbox_ask_run(ask, true);
}

void operator_exec_end(struct call *call)
{
    struct sandbox_ask *ask = ask_about(call, "chat2shell/exec_end", json_object(), EXEC_GRACE_MS);
    if (!ask)
        return;
    operator_execs_remove(call->server->execs, ask->id);
    sandbox_ask_run(ask, true); // it is forgotten here, so it must end there
}
