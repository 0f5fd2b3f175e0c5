// git_unsaved: what destroying the sandbox would lose. The flags of git are in the script.
#include "reconcilers/session/codexpro/shell_state.h"
#include "controller/base/utf8.h"
#include "controller/base/memory.h"

#define GIT_MS 60000

static void fail(struct shell_request *request, const struct shell_reply *reply)
{
    struct error err = ERROR_INIT;
    if (shell_reply_is(reply, "none")) {
        error_set(&err, ERROR_UNAVAILABLE, NULL, "git: command not found");
    } else if (shell_reply_is(reply, "failed") && reply->block_count == 1) {
        CLEANUP_FREE char *text = utf8_to_printable(reply->blocks[0].bytes, reply->blocks[0].len, false);
        error_set(&err, ERROR_UNAVAILABLE, NULL, "git failed: %.300s", text);
    } else {
        shell_fail_garbled(request);
        return;
    }
    shell_fail(request, &err);
}

static void counted(void *arg, const struct shell_reply *reply, const struct error *err)
{
    struct shell_request *request = arg;
    request->ask = NULL;
    if (err) {
        shell_fail(request, err);
        return;
    }
    int64_t is_repository = shell_reply_number(reply, 1), changes = shell_reply_number(reply, 2), commits = shell_reply_number(reply, 3);
    if (!shell_reply_is(reply, "ok") || is_repository < 0 || changes < 0 || commits < 0)
        fail(request, reply);
    else
        shell_answer(request, json_pack("{s:b, s:I, s:I}", "is_repository", is_repository > 0, "changed_files", (json_int_t)changes,
                                        "unexported_commits", (json_int_t)commits));
}

static void cancel(struct shell_request *request)
{
    (void)request; // its ask is dropped with it
}

void shell_git_unsaved(struct shell_request *request)
{
    request->cancel = cancel;
    request->ask = shell_ask(request->shell, &(struct shell_order){.operation = "unsaved", .arguments = "", .wait_ms = GIT_MS, .makes_directory = true},
                             counted, request);
}
