// One call of the script in the sandbox. What comes back is believed only if its length and CRC fit; else the same operation
// is asked again, the next times with an encoding that looks like nothing. All operations may come twice.
#include "reconcilers/session/codexpro/shell_state.h"
#include "controller/base/memory.h"
#include "controller/base/random.h"
#include "controller/base/utf8.h"
#include <stdlib.h>
#include <string.h>

#define ATTEMPTS_MAX 3
#define GRACE_MS 60000 // for the operation itself: a sandbox under load starts programs slowly
#define STDOUT_MAX_BYTES (2 * CODEXPRO_OUTPUT_BYTES)

struct shell_ask {
    LIST_ENTRY(shell_ask) link;
    struct shell *shell;
    char *operation, *arguments, *cwd;
    int64_t wait_ms;
    bool makes_directory;
    shell_reply_fn fn;
    void *arg;
    int64_t call; // of the host; 0: waits for the directory, or for a timer
    char nonce[SHELL_NONCE_SIZE];
    char *dir; // of this call
    int attempts;
    struct loop_timer *failed, *paused;
    struct error error;
};

// ---- results of the tool -------------------------------------------------------------------------------------------

static char *error_text(const json_t *result)
{
    const json_t *text = json_object_get(json_array_get(json_object_get(result, "content"), 0), "text");
    const char *bytes = json_is_string(text) ? json_string_value(text) : "it did not say why";
    size_t len = strlen(bytes);
    return utf8_to_printable(bytes, utf8_cut(bytes, len < 600 ? len : 600), false);
}

const char *shell_stdout(const json_t *result, bool has_cwd, size_t *ret_len, struct error *err)
{
    const json_t *out = json_object_get(json_object_get(result, "structuredContent"), "stdout");
    if (json_is_true(json_object_get(result, "isError"))) {
        CLEANUP_FREE char *text = error_text(result);
        error_set(err, has_cwd ? ERROR_INVALID : ERROR_UNAVAILABLE, has_cwd ? "give a directory of the workspace as cwd" : NULL,
                  "the tool server did not run it: %s", text);
        return NULL;
    }
    if (!json_is_string(out) || json_string_length(out) > STDOUT_MAX_BYTES) {
        error_set(err, ERROR_UNAVAILABLE, "call it again; if it keeps failing, destroy the sandbox and create a new one",
                  "the tool server answered with something that is not the result of a Bash command");
        return NULL;
    }
    *ret_len = json_string_length(out);
    return json_string_value(out);
}

int shell_blame(const json_t *result, struct error *err)
{
    const json_t *content = json_object_get(result, "structuredContent"), *errors = json_object_get(content, "stderr");
    const char *signal = json_get_text(content, "signal"), *said = json_is_string(errors) ? json_string_value(errors) : "";
    size_t len = strnlen(said, 200);
    while (len && said[len - 1] == '\n')
        len--;
    CLEANUP_FREE char *text = utf8_to_printable(said, utf8_cut(said, len), false);
    if (signal)
        return error_set(err, ERROR_UNAVAILABLE, "try again; look with another command what loads the sandbox",
                         "Bash in the sandbox was ended by %.20s before it answered%s%s", signal, *text ? ": " : "", text);
    return error_set(err, ERROR_UNAVAILABLE, "look whether the login files in the sandbox (/etc/profile, ~/.profile) end the shell or flood its output",
                     "Bash in the sandbox ended with code %lld and without an answer%s%s",
                     (long long)json_get_int(content, "exitCode", -1), *text ? ": " : "", text);
}

// ---- the call --------------------------------------------------------------------------------------------------------

static void ask_free(struct shell_ask *ask)
{
    LIST_REMOVE(ask, link);
    if (ask->call > 0)
        ask->shell->host.abandon(ask->shell->host.arg, ask->call);
    loop_cancel(ask->failed);
    loop_cancel(ask->paused);
    free(ask->operation);
    free(ask->arguments);
    free(ask->cwd);
    free(ask->dir);
    free(ask);
}

static void finish(struct shell_ask *ask, const struct shell_reply *reply, const struct error *err)
{
    shell_reply_fn fn = ask->fn;
    void *arg = ask->arg;
    ask_free(ask);
    fn(arg, reply, err);
}

static void fail_now(void *arg)
{
    struct shell_ask *ask = arg;
    ask->failed = NULL;
    struct error err = ask->error;
    finish(ask, NULL, &err);
}

static bool is_hex(const struct shell_ask *ask)
{
    return ask->attempts > 1; // the first attempt was damaged on its way
}

// The command's own environment comes from /proc: what CodexPro gave, without what this login shell made of it.
static char *make_command(const struct shell_ask *ask)
{
    return mem_format("if [[ -r %s/run ]]; then builtin mapfile -d '' -t E </proc/$$/environ; builtin exec env -i \"${E[@]}\" /bin/bash -p %s/run %s %s %s %s; fi\n"
                      "builtin printf '\\nc2s %%s gone\\n' %s",
                      ask->dir, ask->dir, ask->nonce, ask->operation, is_hex(ask) ? "h" : "b", ask->arguments, ask->nonce);
}

static void answered(void *arg, json_t *result, const struct error *failure);

static void run(struct shell_ask *ask)
{
    struct shell *shell = ask->shell;
    if (!shell->dir) {
        shell_prepare(shell);
        return;
    }
    ask->attempts++;
    random_hex(ask->nonce, SHELL_NONCE_SIZE - 1);
    mem_replace(&ask->dir, shell->dir);
    CLEANUP_FREE char *command = make_command(ask);
    int64_t timeout_ms = ask->wait_ms + GRACE_MS < CODEXPRO_CALL_MAX_MS ? ask->wait_ms + GRACE_MS : CODEXPRO_CALL_MAX_MS;
    ask->call = shell->host.run(shell->host.arg, command, ask->cwd, timeout_ms, answered, ask, &ask->error);
    if (ask->call < 0) {
        ask->call = 0;
        ask->failed = loop_after(shell->host.loop, 0, fail_now, ask);
    }
}

static void go_on(void *arg)
{
    struct shell_ask *ask = arg;
    ask->paused = NULL;
    run(ask);
}

static void lost_directory(struct shell_ask *ask)
{
    struct error err = ERROR_INIT;
    if (ask->shell->dir && strcmp(ask->shell->dir, ask->dir) == 0)
        mem_replace(&ask->shell->dir, NULL);
    if (ask->makes_directory && ask->attempts < ATTEMPTS_MAX) {
        ask->attempts = 0;
        ask->makes_directory = false;
        run(ask);
        return;
    }
    error_set(&err, ERROR_NOT_FOUND, "start the command again",
              "the directory %s in the sandbox was removed, and with it what belonged to its Bash sessions", ask->dir);
    finish(ask, NULL, &err);
}

static void settle(struct shell_ask *ask, const json_t *result)
{
    struct error err = ERROR_INIT;
    struct shell_reply reply = {0};
    size_t len;
    const char *bytes = shell_stdout(result, ask->cwd != NULL, &len, &err);
    enum shell_frame_state state = bytes ? shell_frame_read(bytes, len, ask->nonce, is_hex(ask), &reply) : FRAME_ABSENT;
    if (state == FRAME_GOOD) {
        finish(ask, &reply, NULL);
        shell_reply_free(&reply);
    } else if (state == FRAME_GONE) {
        lost_directory(ask);
    } else if (bytes && ask->attempts < ATTEMPTS_MAX) {
        run(ask);
    } else {
        if (state == FRAME_DAMAGED)
            error_set(&err, ERROR_UNAVAILABLE, "try again; if it keeps failing, destroy the sandbox and create a new one",
                      "what the sandbox said arrived damaged %d times", ATTEMPTS_MAX);
        else if (bytes)
            shell_blame(result, &err);
        finish(ask, NULL, &err);
    }
}

static void answered(void *arg, json_t *result, const struct error *failure)
{
    struct shell_ask *ask = arg;
    ask->call = 0;
    if (failure)
        finish(ask, NULL, failure);
    else
        settle(ask, result);
}

struct shell_ask *shell_ask(struct shell *shell, const struct shell_order *order, shell_reply_fn fn, void *arg)
{
    struct shell_ask *ask = mem_alloc(sizeof(*ask));
    *ask = (struct shell_ask){.shell = shell,
                              .operation = mem_strdup(order->operation),
                              .arguments = mem_strdup(order->arguments),
                              .cwd = mem_strdup_or_null(order->cwd),
                              .wait_ms = order->wait_ms,
                              .makes_directory = order->makes_directory,
                              .fn = fn,
                              .arg = arg};
    LIST_INSERT_HEAD(&shell->asks, ask, link);
    if (order->pause_ms)
        ask->paused = loop_after(shell->host.loop, order->pause_ms, go_on, ask);
    else
        run(ask);
    return ask;
}

void shell_ask_drop(struct shell_ask *ask)
{
    if (ask)
        ask_free(ask);
}

static bool waits_for_directory(const struct shell_ask *ask)
{
    return !ask->call && !ask->failed && !ask->paused;
}

void shell_prepared(struct shell *shell, const struct error *err)
{
    struct shell_ask *ask, *next;
    for (ask = LIST_FIRST(&shell->asks); ask; ask = next) {
        next = LIST_NEXT(ask, link);
        if (!waits_for_directory(ask))
            continue;
        if (err) { // later: whoever hears of it may drop others
            ask->error = *err;
            ask->failed = loop_after(shell->host.loop, 0, fail_now, ask);
        } else {
            run(ask);
        }
    }
}

void shell_asks_free(struct shell *shell)
{
    while (!LIST_EMPTY(&shell->asks))
        ask_free(LIST_FIRST(&shell->asks));
}
