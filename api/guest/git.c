#include "api/guest/git.h"
#include "api/guest/command.h"
#include "controller/base/memory.h"
#include <ctype.h>
#include <string.h>

#define MAX_ARGS 24
#define MAX_OUTPUT_BYTES (1024 * 1024)

// safe.directory: whoever owns the files, this is the sandbox's own workspace and its own git.
// Paths are names, not patterns.
static const char *const prefix[] = {"git",
                                     "--no-pager",
                                     "--no-optional-locks",
                                     "--literal-pathspecs",
                                     "-c",
                                     "safe.directory=*",
                                     "-c",
                                     "core.fsmonitor=false",
                                     "-c",
                                     "core.hooksPath=/dev/null",
                                     "-c",
                                     "core.quotePath=true",
                                     "-c",
                                     "color.ui=false"};

int git_run_limited(struct guest *guest, const char *const *args, size_t max_bytes,
                    const atomic_bool *is_cancelled, struct command_result *ret, struct error *err)
{
    static const char *const env[] = {"LC_ALL=C", "GIT_TERMINAL_PROMPT=0", NULL};
    const char *argv[ARRAY_LEN(prefix) + MAX_ARGS + 1] = {0};
    memcpy(argv, prefix, sizeof(prefix));
    for (size_t i = 0; args[i] && i < MAX_ARGS; i++)
        argv[ARRAY_LEN(prefix) + i] = args[i];
    struct command_spec spec = {.argv = argv,
                                .max_bytes = max_bytes,
                                .cwd_fd = guest->workspace.root_fd,
                                .stdin_fd = -1,
                                .env = env,
                                .is_cancelled = is_cancelled};
    return command_run_spec(guest, &spec, ret, err);
}

int git_run(struct guest *guest, const char *const *args, const atomic_bool *is_cancelled,
            struct command_result *ret, struct error *err)
{
    return git_run_limited(guest, args, MAX_OUTPUT_BYTES, is_cancelled, ret, err);
}

static char *trimmed(const char *text)
{
    size_t len = strlen(text);
    while (len && isspace((unsigned char)text[len - 1]))
        len--;
    return mem_strndup(text, len);
}

char *git_status_text(struct guest *guest, const atomic_bool *is_cancelled)
{
    static const char *const args[] = {"status", "--short", "--branch", NULL};
    CLEANUP(command_result_free) struct command_result result = {0};
    struct error err = ERROR_INIT;
    if (git_run(guest, args, is_cancelled, &result, &err) < 0)
        return mem_strdup(err.message);
    return trimmed(result.exit_code == 0 ? result.out.data : result.errors.data);
}

char *git_recent_commits(struct guest *guest, const atomic_bool *is_cancelled)
{
    static const char *const args[] = {"log", "--oneline", "--no-decorate", "-5", NULL};
    CLEANUP(command_result_free) struct command_result result = {0};
    if (git_run(guest, args, is_cancelled, &result, NULL) < 0 || result.exit_code != 0)
        return mem_strdup("");
    return trimmed(result.out.data);
}

static json_int_t count_lines(const struct buffer *text)
{
    json_int_t count = 0;
    for (size_t i = 0; i < text->len; i++)
        count += text->data[i] == '\n';
    return count;
}

// 0, 1 if it is no repository, -1 on failure.
static int count_changes(struct request *request, json_int_t *ret, struct error *err)
{
    static const char *const args[] = {"status", "--porcelain", NULL};
    CLEANUP(command_result_free) struct command_result result = {0};
    if (git_run(request->guest, args, &request->is_cancelled, &result, err) < 0)
        return -1;
    if (result.exit_code == 127)
        return error_set(err, ERROR_UNSUPPORTED, NULL, "%s", result.errors.data);
    if (result.exit_code != 0 && strstr(result.errors.data, "not a git repository"))
        return 1;
    if (result.exit_code != 0)
        return error_set(err, ERROR_IO, NULL, "git status failed: %.300s", result.errors.data);
    *ret = count_lines(&result.out);
    return 0;
}

// A repository without any commit has none to export; git then knows no branch and prints 0.
static int count_commits(struct request *request, json_int_t *ret, struct error *err)
{
    static const char *const args[] = {"rev-list", "--count", "--branches", "--not", "--remotes", NULL};
    CLEANUP(command_result_free) struct command_result result = {0};
    if (git_run(request->guest, args, &request->is_cancelled, &result, err) < 0)
        return -1;
    if (result.exit_code != 0)
        return error_set(err, ERROR_IO, NULL, "git rev-list failed: %.300s", result.errors.data);
    *ret = strtoll(result.out.data, NULL, 10);
    return 0;
}

static void count_unsaved(struct request *request)
{
    json_int_t changes = 0, commits = 0;
    struct error err = ERROR_INIT;
    int state = count_changes(request, &changes, &err);
    if (state < 0 || (state == 0 && count_commits(request, &commits, &err) < 0)) {
        request->answer = rpc_error_text(request->id, RPC_INTERNAL_ERROR, err.message);
        return;
    }
    json_t *result = json_object();
    json_object_set_new(result, "is_repository", json_boolean(state == 0));
    json_object_set_new(result, "changed_files", json_integer(changes));
    json_object_set_new(result, "unexported_commits", json_integer(commits));
    request->answer = rpc_result_text(request->id, result);
}

void git_unsaved_request(struct request *request)
{
    request_submit(request, count_unsaved);
}
