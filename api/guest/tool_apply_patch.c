// apply_patch: one unified diff, whole or not at all.
#include "api/guest/command.h"
#include "api/guest/patch_direct.h"
#include "api/guest/text_file.h"
#include "controller/base/memory.h"
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define TIME_LIMIT_MS 60000
#define MAX_MESSAGES_BYTES 65536

static const struct tool_arg args[] = {
    {"patch", ARG_STRING,
     "Unified diff as git makes it, paths relative to the workspace root, at most 1000000 bytes.",
     .is_required = true},
    {NULL},
};

static const struct tool_field fields[] = {
    {"paths", FIELD_STRINGS},     {"stdout", FIELD_STRING},
    {"stderr", FIELD_STRING},     {"additions", FIELD_INTEGER},
    {"deletions", FIELD_INTEGER}, {"changed", FIELD_BOOLEAN},
    {"diff", FIELD_STRING},       {NULL},
};

static size_t trimmed_len(const char *text, size_t len)
{
    while (len && isspace((unsigned char)text[len - 1]))
        len--;
    return len;
}

static int check_patch(const char *patch, size_t len, struct patch_names *names, struct error *err)
{
    if (!trimmed_len(patch, len))
        return guest_tool_fail(err, NULL, "patch is required.");
    if (len > TEXT_MAX_WRITE_BYTES)
        return guest_tool_fail(err, "apply it in parts", "Patch is too large (%zu bytes). Limit: %d bytes.",
                               len, TEXT_MAX_WRITE_BYTES);
    if (patch_names_scan(patch, len, names, err) < 0)
        return -1;
    if (names->has_symlink)
        return guest_tool_fail(err, "make the link with bash", "Symlink patches are blocked.");
    if (names->has_submodule)
        return guest_tool_fail(err, "use git in bash", "Submodule patches are blocked.");
    if (!names->has_stated)
        return guest_tool_fail(err, "give a unified diff with --- and +++ lines",
                               "Patch must include at least one file path.");
    return 0;
}

// stdin of git: a file in memory.
static int open_patch(const char *patch, size_t len, struct error *err)
{
    CLEANUP_CLOSE int fd = memfd_create("patch", MFD_CLOEXEC);
    struct error ignored = ERROR_INIT;
    if (fd < 0 || fs_write_all(fd, patch, len, &ignored) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return guest_tool_fail_errno(err, errno, "hold the patch in memory");
    return TAKE_FD(fd);
}

// GIT_DIR is the scratch directory's own empty repository: it must make no difference in which part of what
// repository the workspace is, nor may anybody's settings.
static int run_git(struct tool_call *call, const struct patch_scratch *scratch, int patch_fd,
                   struct command_result *result, struct error *err)
{
    static const char *const argv[] = {
        "git", "-c", "core.attributesFile=/dev/null", "apply", "--whitespace=nowarn", "-", NULL};
    static const char *const env[] = {"GIT_DIR=../" PATCH_GIT_DIR,
                                      "GIT_WORK_TREE=.",
                                      "GIT_CONFIG_NOSYSTEM=1",
                                      "GIT_CONFIG_SYSTEM=/dev/null",
                                      "GIT_CONFIG_GLOBAL=/dev/null",
                                      "GIT_ATTR_NOSYSTEM=1",
                                      "LC_ALL=C",
                                      NULL};
    struct command_spec spec = {.argv = argv,
                                .max_bytes = MAX_MESSAGES_BYTES,
                                .cwd_fd = scratch->fd,
                                .stdin_fd = patch_fd,
                                .env = env,
                                .time_limit_ms = TIME_LIMIT_MS,
                                .is_cancelled = call->is_cancelled};
    if (command_run_spec(call->guest, &spec, result, err) < 0)
        return -1;
    if (result->is_missing)
        return guest_tool_fail(err, "install git, or use edit and write", "%s", result->errors.data);
    if (result->exit_code != 0)
        return guest_tool_fail(err, NULL, "%.*s", (int)trimmed_len(result->errors.data, result->errors.len),
                               result->errors.data);
    return 0;
}

static struct text_file_locks lock_files(const struct patch_scratch *scratch)
{
    CLEANUP_FREE const char **reals = mem_alloc((scratch->count + 1) * sizeof(char *));
    for (size_t i = 0; i < scratch->count; i++)
        reals[i] = scratch->files[i].place.real;
    return text_file_lock_all(reals, scratch->count);
}

static int apply(struct tool_call *call, const struct patch_names *names, const char *patch, size_t len,
                 struct command_result *result, size_t *ret_changed, struct error *err)
{
    CLEANUP(patch_scratch_free) struct patch_scratch scratch = PATCH_SCRATCH_INIT;
    const char *tmp = environment_get(&call->guest->environment, "TMPDIR");
    if (patch_scratch_add_names(&scratch, call->workspace, names, err) < 0)
        return -1;
    CLEANUP_TEXT_FILE_LOCKS struct text_file_locks locks = lock_files(&scratch);
    int direct = patch_direct_apply(&scratch, call->workspace, patch, len, ret_changed, err);
    if (direct)
        return direct < 0 ? -1 : 0;
    CLEANUP_CLOSE int patch_fd = open_patch(patch, len, err);
    if (patch_fd < 0 || patch_scratch_fill(&scratch, call->workspace, tmp ? tmp : "/tmp", err) < 0 ||
        run_git(call, &scratch, patch_fd, result, err) < 0)
        return -1;
    return patch_scratch_install(&scratch, call->workspace, ret_changed, err);
}

static void set_result(struct tool_call *call, const struct patch_names *names, const char *patch, size_t len,
                       const struct command_result *result, bool is_changed)
{
    json_t *to = call->structured, *paths = json_array();
    struct buffer text = BUFFER_INIT(SIZE_MAX / 2);
    buffer_append_text(&text, "# Apply patch\nPaths:");
    for (size_t i = 0; i < names->count; i++) {
        json_array_append_new(paths, json_from_text(names->names[i]));
        buffer_format(&text, "%s %s", i ? "," : "", names->names[i]);
    }
    json_object_set_new(to, "paths", paths);
    // Without data where git was not needed.
    json_object_set_new(to, "stdout", json_from_bytes(result->out.len ? result->out.data : "", result->out.len));
    json_object_set_new(to, "stderr",
                        json_from_bytes(result->errors.len ? result->errors.data : "", result->errors.len));
    json_object_set_new(to, "additions", json_integer((json_int_t)names->additions));
    json_object_set_new(to, "deletions", json_integer((json_int_t)names->deletions));
    json_object_set_new(to, "changed", json_boolean(is_changed));
    json_object_set_new(to, "diff", json_from_bytes(patch, trimmed_len(patch, len)));
    buffer_format(&text, "\nDiff stats: +%zu -%zu\n\n```diff\n", names->additions, names->deletions);
    buffer_append(&text, patch, trimmed_len(patch, len));
    buffer_append_text(&text, "\n```");
    call->text_len = text.len;
    call->text = buffer_take_string(&text);
}

static int run(struct tool_call *call, struct error *err)
{
    const json_t *given = json_object_get(call->args, "patch");
    const char *patch = json_string_value(given);
    size_t len = json_string_length(given), changed = 0;
    CLEANUP_PATCH_NAMES struct patch_names names = {0};
    CLEANUP(command_result_free) struct command_result result = {0};
    if (check_patch(patch, len, &names, err) < 0 ||
        apply(call, &names, patch, len, &result, &changed, err) < 0)
        return -1;
    set_result(call, &names, patch, len, &result, changed > 0);
    return 0;
}

const struct tool guest_tool_apply_patch = {
    .name = "apply_patch",
    .title = "Apply patch",
    .description =
        "Apply a unified diff (as git makes it) to the workspace: change, make, delete and rename several "
        "files at once. Either all of it applies or nothing changes. Contexts must match exactly. Use "
        "edit for one replacement in one file.",
    .args = args,
    .fields = fields,
    .hints = {.is_destructive = true},
    .run = run,
};
