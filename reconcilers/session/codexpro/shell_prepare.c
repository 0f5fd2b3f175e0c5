// The directory in the sandbox that holds the script and all programs' files: made at the first need, and anew if somebody in
// the sandbox removed it.
#include "reconcilers/session/codexpro/shell_state.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include "controller/base/random.h"
#include "controller/embedded.h"
#include <stdlib.h>
#include <string.h>

#define PREPARE_MS 60000
#define SCRIPT "shell/run.bash"
#define DIR_PREFIX "/.chat2shell-"
#define DIR_MAX 200
#define DIR_RANDOM 10
#define HINT_TEMPLATE "use a template with bash, coreutils and util-linux"

static char *make_command(const char *nonce)
{
    CLEANUP_FREE char *script = shell_quote(embedded_find(SCRIPT)->data);
    return mem_format("umask 077\nM=\n"
                      "for T in mktemp mkdir mkfifo rm mv cat dd head tail od tr base64 cksum stat env timeout setsid flock fallocate; do\n"
                      "builtin type -P \"$T\" >/dev/null || M+=\" $T\"\ndone\n"
                      "if [[ $M ]]; then builtin printf '\\nc2s %%s missing%%s\\n' %s \"$M\"; exit; fi\n"
                      "T=${TMPDIR-}\n[[ $T =~ ^/[A-Za-z0-9._/-]{1,150}$ && -w $T ]] || T=/tmp\n"
                      "D=$(mktemp -d \"$T" DIR_PREFIX "XXXXXXXXXX\") && builtin printf %%s %s >\"$D/run\" && builtin printf '\\nc2s %%s dir %%s\\n' %s \"$D\" ||\n"
                      "builtin printf '\\nc2s %%s failed\\n' %s\n",
                      nonce, script, nonce, nonce);
}

// It goes into commands as it is.
static bool is_dir_name(const char *text)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-";
    size_t len = strlen(text), tail = strlen(DIR_PREFIX) + DIR_RANDOM;
    return *text == '/' && len > tail && len < DIR_MAX && strspn(text, letters) == len &&
           strncmp(text + len - tail, DIR_PREFIX, strlen(DIR_PREFIX)) == 0;
}

// The words behind "c2s NONCE " on a line of their own, or NULL. The caller's.
static char *find_line(const char *bytes, size_t len, const char *nonce)
{
    CLEANUP_FREE char *head = mem_format("\nc2s %s ", nonce);
    const char *at = memmem(bytes, len, head, strlen(head));
    if (!at)
        return NULL;
    at += strlen(head);
    const char *end = memchr(at, '\n', len - (size_t)(at - bytes));
    return end && end - at < 1000 ? mem_strndup(at, (size_t)(end - at)) : NULL;
}

static int read_answer(struct shell *shell, const json_t *result, struct error *err)
{
    size_t len;
    const char *bytes = shell_stdout(result, false, &len, err);
    if (!bytes)
        return -1;
    CLEANUP_FREE char *line = find_line(bytes, len, shell->prepare_nonce);
    if (!line)
        return shell_blame(result, err);
    if (strncmp(line, "missing ", 8) == 0)
        return error_set(err, ERROR_UNSUPPORTED, HINT_TEMPLATE, "Bash sessions need programs that this sandbox does not have: %.300s", line + 8);
    if (strncmp(line, "dir ", 4) != 0 || !is_dir_name(line + 4))
        return error_set(err, ERROR_UNAVAILABLE, "look whether its disk is full, and whether /tmp can be written",
                         "no directory for Bash sessions could be made in the sandbox, below TMPDIR or /tmp");
    shell->dir = mem_strdup(line + 4);
    return 0;
}

static void answered(void *arg, json_t *result, const struct error *failure)
{
    struct shell *shell = arg;
    struct error err = ERROR_INIT;
    shell->prepare_call = 0;
    if (failure)
        error_copy(&err, failure);
    else
        read_answer(shell, result, &err);
    shell_prepared(shell, shell->dir ? NULL : &err);
}

static void refused(void *arg)
{
    struct shell *shell = arg;
    shell->prepare_failed = NULL;
    struct error err = shell->prepare_error;
    shell_prepared(shell, &err);
}

void shell_prepare(struct shell *shell)
{
    if (shell->prepare_call > 0 || shell->prepare_failed)
        return;
    random_hex(shell->prepare_nonce, SHELL_NONCE_SIZE - 1);
    CLEANUP_FREE char *command = make_command(shell->prepare_nonce);
    shell->prepare_error = (struct error)ERROR_INIT;
    shell->prepare_call = shell->host.run(shell->host.arg, command, NULL, PREPARE_MS, answered, shell, &shell->prepare_error);
    if (shell->prepare_call < 0)
        shell->prepare_failed = loop_after(shell->host.loop, 0, refused, shell);
}

void shell_prepare_free(struct shell *shell)
{
    if (shell->prepare_call > 0)
        shell->host.abandon(shell->host.arg, shell->prepare_call);
    loop_cancel(shell->prepare_failed);
    free(shell->dir);
}
