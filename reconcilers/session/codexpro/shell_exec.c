// The operator's programs over CodexPro: starting, signalling and forgetting them. argv is never read by a shell: it travels as
// a list in a file.
#include "reconcilers/session/codexpro/shell_exec.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ARGS 4096
#define SPEC_MAX_BYTES (2 * 1024 * 1024) // Linux takes no more for a program

static struct shell_exec *find(struct shell *shell, const char *id)
{
    struct shell_exec *exec;
    TAILQ_FOREACH(exec, &shell->execs, link)
        if (strcmp(exec->id, id) == 0)
            return exec;
    return NULL;
}

struct shell_exec *exec_of_request(struct shell_request *request)
{
    struct error err = ERROR_INIT;
    struct shell_exec *exec = NULL;
    const char *id;
    if (shell_get_text(request->params, "exec_id", true, &id, &err) == 0) {
        exec = find(request->shell, id);
        exec = exec && !exec->starting ? exec : NULL;
        if (!exec)
            error_set(&err, ERROR_NOT_FOUND, NULL, "Unknown exec: %s", id);
    }
    if (!exec)
        shell_fail(request, &err);
    return exec;
}

static void drop(struct shell_exec *exec)
{
    TAILQ_REMOVE(&exec->shell->execs, exec, link);
    exec->shell->exec_count--;
    exec_end_io(exec);
    shell_program_clear(&exec->program);
    free(exec);
}

void shell_execs_free(struct shell *shell)
{
    while (!TAILQ_EMPTY(&shell->execs))
        drop(TAILQ_FIRST(&shell->execs));
}

// ---- what to start: "CWD\0" "NUMBER OF VARIABLES\0" "NAME=VALUE\0"… "ARGUMENT\0"…

static int add_text(struct buffer *spec, const char *prefix, const char *text, struct error *err)
{
    if (buffer_append_text(spec, prefix) < 0 || buffer_append(spec, text, strlen(text) + 1) < 0)
        return error_set(err, ERROR_INVALID, "give long input on stdin", "argv and env together are longer than %d bytes", SPEC_MAX_BYTES);
    return 0;
}

static bool is_plain(const json_t *value)
{
    return json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value);
}

static int add_env(struct buffer *spec, json_t *env, struct error *err)
{
    const char *name;
    json_t *value;
    CLEANUP_FREE char *count = mem_format("%zu", json_object_size(env));
    if (env && !json_is_object(env))
        return error_set(err, ERROR_INVALID, NULL, "env must be an object of strings");
    if (add_text(spec, "", count, err) < 0)
        return -1;
    json_object_foreach(env, name, value)
    {
        CLEANUP_FREE char *prefix = mem_format("%s=", name);
        if (!is_plain(value) || !*name || strchr(name, '='))
            return error_set(err, ERROR_INVALID, NULL, "env.%s must be a string", name);
        if (add_text(spec, prefix, json_string_value(value), err) < 0)
            return -1;
    }
    return 0;
}

static int add_argv(struct buffer *spec, const json_t *argv, struct error *err)
{
    size_t count = json_array_size(argv);
    if (count < 1 || count > MAX_ARGS)
        return error_set(err, ERROR_INVALID, NULL, "argv must be an array of 1 to %d strings", MAX_ARGS);
    for (size_t i = 0; i < count; i++) {
        const json_t *arg = json_array_get(argv, i);
        if (!is_plain(arg))
            return error_set(err, ERROR_INVALID, NULL, "argv[%zu] must be a string without NUL characters", i);
        if (add_text(spec, "", json_string_value(arg), err) < 0)
            return -1;
    }
    return 0;
}

// The operator may start anywhere in the sandbox; a relative cwd is below the workspace.
static int make_spec(const json_t *params, struct buffer *spec, struct error *err)
{
    const char *cwd;
    if (shell_get_text(params, "cwd", false, &cwd, err) < 0)
        return -1;
    cwd = cwd ? cwd : "";
    if (add_text(spec, *cwd && *cwd != '/' ? "./" : "", cwd, err) < 0 || add_env(spec, json_object_get(params, "env"), err) < 0)
        return -1;
    return add_argv(spec, json_object_get(params, "argv"), err);
}

// ---- exec_start ----------------------------------------------------------------------------------------------------

static void word_failure(const struct shell_exec *exec, const struct shell_reply *reply, struct error *err)
{
    static const struct {
        const char *word, *why;
    } table[] = {{"missing", "No such file or directory"}, {"file", "Not a directory"}, {"denied", "Permission denied"}};
    const char *cwd = json_get_text(exec->starting->params, "cwd");
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (shell_reply_is(reply, table[i].word)) {
            error_set(err, ERROR_INVALID, "give a directory", "cannot work in %s: %s", cwd ? cwd : ".", table[i].why);
            return;
        }
    error_set(err, ERROR_UNAVAILABLE, "look whether its disk is full, and whether it may start more processes",
              "the sandbox could not start the program");
}

static void launched(void *arg, const struct shell_reply *reply, const struct error *failure)
{
    struct shell_exec *exec = arg;
    struct shell_request *request = exec->starting;
    struct error err = ERROR_INIT;
    if (!failure && shell_reply_is(reply, "ok")) {
        exec->starting = NULL;
        shell_answer(request, json_object());
        return;
    }
    if (failure)
        error_copy(&err, failure);
    else
        word_failure(exec, reply, &err);
    shell_forget(exec->shell, "end_any", exec->program.id);
    drop(exec);
    shell_fail(request, &err);
}

static void start(struct shell_request *request, const char *id, struct buffer *spec)
{
    struct shell *shell = request->shell;
    struct shell_exec *exec = mem_alloc(sizeof(*exec));
    *exec = (struct shell_exec){.shell = shell, .starting = request};
    memcpy(exec->id, id, strlen(id));
    TAILQ_INIT(&exec->writes);
    exec->program = (struct shell_program){.shell = shell, .kind = "exec", .spec_len = spec->len, .started = launched, .arg = exec};
    exec->program.spec = buffer_take_string(spec);
    snprintf(exec->program.id, sizeof(exec->program.id), "x%lld", (long long)request->id);
    TAILQ_INSERT_TAIL(&shell->execs, exec, link);
    shell->exec_count++;
    shell_program_start(&exec->program);
}

static int check_id(struct shell *shell, const char *id, struct error *err)
{
    if (!*id || strlen(id) > SHELL_ID_MAX || find(shell, id))
        return error_set(err, ERROR_INVALID, NULL, "exec_id must be new and 1 to %d characters", SHELL_ID_MAX);
    if (shell->exec_count >= GUEST_MAX_EXECS)
        return error_set(err, ERROR_LIMIT, "end some first", "%d programs are running", GUEST_MAX_EXECS);
    return 0;
}

// CodexPro runs commands between pipes only: a program that asks for a terminal would not find one.
static int check_terminal(const json_t *params, struct error *err)
{
    if (!json_object_get(params, "tty"))
        return 0;
    return error_set(err, ERROR_UNSUPPORTED, "leave out -t, or create the sandbox with \"session\": \"guest\"",
                     "the tool server of this sandbox (CodexPro) has no terminals");
}

void shell_exec_start(struct shell_request *request)
{
    CLEANUP(buffer_free) struct buffer spec = BUFFER_INIT(SPEC_MAX_BYTES);
    struct error err = ERROR_INIT;
    const char *id;
    if (shell_get_text(request->params, "exec_id", true, &id, &err) == 0 && check_id(request->shell, id, &err) == 0 &&
        check_terminal(request->params, &err) == 0 && make_spec(request->params, &spec, &err) == 0)
        start(request, id, &spec);
    else
        shell_fail(request, &err);
}

// ---- exec_signal, exec_end -----------------------------------------------------------------------------------------

static void ordered(void *arg, const struct shell_reply *reply, const struct error *err)
{
    struct shell_request *request = arg;
    request->ask = NULL;
    if (err)
        shell_fail(request, err);
    else if (shell_reply_is(reply, "ok"))
        shell_answer(request, json_object());
    else
        shell_fail_garbled(request);
}

void shell_exec_signal(struct shell_request *request)
{
    struct error err = ERROR_INIT;
    int64_t signal = 0;
    struct shell_exec *exec = exec_of_request(request);
    if (!exec)
        return;
    if (shell_get_int(request->params, "signal", 1, 64, &signal, &err) < 0 || !signal) {
        if (!err.code)
            error_set(&err, ERROR_INVALID, NULL, "signal must be an integer from 1 to 64");
        shell_fail(request, &err);
        return;
    }
    CLEANUP_FREE char *arguments = mem_format("%s %lld", exec->program.id, (long long)signal);
    request->ask = shell_ask(request->shell, &(struct shell_order){.operation = "signal_exec", .arguments = arguments}, ordered, request);
}

void shell_exec_end(struct shell_request *request)
{
    struct shell_exec *exec = exec_of_request(request);
    if (!exec)
        return;
    request->ask = shell_ask(request->shell, &(struct shell_order){.operation = "end_any", .arguments = exec->program.id}, ordered, request);
    drop(exec);
}
