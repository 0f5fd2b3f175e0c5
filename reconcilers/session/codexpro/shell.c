// The extension methods over CodexPro: their table, and a request's life from its coming to its one answer.
#include "reconcilers/session/codexpro/shell_state.h"
#include "controller/base/memory.h"
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    void (*run)(struct shell_request *request);
} methods[] = {
    {"chat2shell/bash_start", shell_bash_start},   {"chat2shell/bash_read", shell_bash_read},
    {"chat2shell/bash_stop", shell_bash_stop},     {"chat2shell/exec_start", shell_exec_start},
    {"chat2shell/exec_write", shell_exec_write},   {"chat2shell/exec_read", shell_exec_read},
    {"chat2shell/exec_signal", shell_exec_signal}, {"chat2shell/exec_end", shell_exec_end},
    {"chat2shell/git_unsaved", shell_git_unsaved},
};

static int find_method(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (strcmp(methods[i].name, name) == 0)
            return (int)i;
    return -1;
}

bool shell_has_method(const char *method)
{
    return find_method(method) >= 0;
}

// ---- a request's end -------------------------------------------------------------------------------------------------

static void request_free(struct shell_request *request)
{
    TAILQ_REMOVE(&request->shell->requests, request, link);
    loop_cancel(request->timer);
    json_decref(request->params);
    json_decref(request->result);
    free(request);
}

static void tell(void *arg)
{
    struct shell_request *request = arg;
    request->timer = NULL;
    request->fn(request->arg, request->result, request->result ? NULL : &request->error);
    request_free(request);
}

// Answers go out from a timer, so never from inside a call of this module.
static void end(struct shell_request *request)
{
    loop_cancel(TAKE_PTR(request->timer));
    shell_ask_drop(TAKE_PTR(request->ask));
    request->cancel = NULL;
    request->has_ended = true;
    request->timer = loop_after(request->shell->host.loop, 0, tell, request);
}

void shell_answer(struct shell_request *request, json_t *result)
{
    request->result = result;
    end(request);
}

void shell_fail(struct shell_request *request, const struct error *err)
{
    request->error = *err;
    end(request);
}

void shell_fail_garbled(struct shell_request *request)
{
    struct error err = ERROR_INIT;
    error_set(&err, ERROR_UNAVAILABLE, "try again; if it keeps failing, destroy the sandbox and create a new one",
              "the sandbox answered with something that is not the state of its programs");
    shell_fail(request, &err);
}

// ---- parameters --------------------------------------------------------------------------------------------------------

int shell_get_text(const json_t *params, const char *name, bool is_required, const char **ret, struct error *err)
{
    const json_t *value = json_object_get(params, name);
    if (!value && !is_required) {
        *ret = NULL;
        return 0;
    }
    if (!json_is_string(value))
        return error_set(err, ERROR_INVALID, NULL, "%s must be a string", name);
    if (strlen(json_string_value(value)) != json_string_length(value))
        return error_set(err, ERROR_INVALID, NULL, "%s must not contain NUL characters", name);
    *ret = json_string_value(value);
    return 0;
}

int shell_get_int(const json_t *params, const char *name, int64_t min, int64_t max, int64_t *ret, struct error *err)
{
    const json_t *value = json_object_get(params, name);
    if (!value)
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < min || json_integer_value(value) > max)
        return error_set(err, ERROR_INVALID, NULL, "%s must be an integer from %lld to %lld", name, (long long)min, (long long)max);
    *ret = json_integer_value(value);
    return 0;
}

bool shell_is_exit_code(int64_t code)
{
    return code >= 0 && code <= 255;
}

// ---- the contract ------------------------------------------------------------------------------------------------------

struct shell *shell_new(const struct shell_host *host)
{
    struct shell *shell = mem_alloc(sizeof(*shell));
    *shell = (struct shell){.host = *host};
    LIST_INIT(&shell->asks);
    TAILQ_INIT(&shell->requests);
    TAILQ_INIT(&shell->sessions);
    TAILQ_INIT(&shell->execs);
    return shell;
}

void shell_free(struct shell *shell)
{
    if (!shell)
        return;
    shell_sessions_free(shell);
    shell_execs_free(shell);
    while (!TAILQ_EMPTY(&shell->requests))
        request_free(TAILQ_FIRST(&shell->requests));
    shell_asks_free(shell);
    shell_prepare_free(shell);
    free(shell);
}

int64_t shell_request(struct shell *shell, const char *method, json_t *params, rpc_answer_fn fn, void *arg, struct error *err)
{
    int at = find_method(method);
    if (at < 0) {
        json_decref(params);
        return error_set(err, ERROR_UNSUPPORTED, NULL, "there is no method %s", method);
    }
    struct shell_request *request = mem_alloc(sizeof(*request));
    *request = (struct shell_request){
        .shell = shell, .id = ++shell->last_id, .params = params ? params : json_object(), .fn = fn, .arg = arg};
    TAILQ_INSERT_TAIL(&shell->requests, request, link);
    int64_t id = request->id;
    methods[at].run(request);
    return id;
}

void shell_cancel(struct shell *shell, int64_t id)
{
    struct shell_request *request;
    TAILQ_FOREACH(request, &shell->requests, link)
        if (request->id == id)
            break;
    if (!request || request->has_ended || !request->cancel)
        return;
    struct error err = ERROR_INIT;
    error_set(&err, ERROR_CANCELLED, NULL, "the caller does not wait any more");
    request->cancel(request);
    shell_fail(request, &err);
}
