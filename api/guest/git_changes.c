#include "api/guest/git_changes.h"
#include "api/guest/command.h"
#include "api/guest/git.h"
#include "api/guest/git_quote.h"
#include "api/guest/patch_names.h"
#include "controller/base/memory.h"
#include <ctype.h>
#include <errno.h>
#include <sha2.h>
#include <stdio.h>
#include <string.h>

#define MAX_LIST_BYTES (1024 * 1024)
#define MAX_HASHED_BYTES (16 * 1024 * 1024) // of untracked files; of the rest size and time must do

void git_changes_free(struct git_changes *changes)
{
    for (size_t i = 0; i < changes->count; i++) {
        free(changes->list[i].status);
        free(changes->list[i].path);
        free(changes->list[i].new_path);
    }
    free(changes->list);
    free(changes->status_error);
    free(changes->diff_error);
    free(changes->diff);
    *changes = (struct git_changes){0};
}

static char *trimmed(const struct buffer *text)
{
    size_t len = text->len;
    while (len && isspace((unsigned char)text->data[len - 1]))
        len--;
    return mem_strndup(text->data, len);
}

static void add_change(struct git_changes *changes, const char *status, const char *path,
                       const char *new_path)
{
    if ((changes->count & (changes->count - 1)) == 0)
        changes->list = mem_realloc_array(changes->list, changes->count ? changes->count * 2 : 1,
                                          sizeof(struct git_change));
    changes->list[changes->count++] =
        (struct git_change){mem_strdup(status), mem_strdup(path), mem_strdup_or_null(new_path)};
}

// The next NUL-ended record; NULL at the end, and for a last one that was cut.
static const char *next_record(const char **at, const char *end)
{
    const char *record = *at, *stop = record < end ? memchr(record, '\0', (size_t)(end - record)) : NULL;
    if (!stop)
        return NULL;
    *at = stop + 1;
    return record;
}

static void note_cut(struct git_changes *changes, const struct command_result *result)
{
    if (result->is_cut && !changes->status_error)
        changes->status_error = mem_format(
            "the list of changes is larger than %d bytes: only its beginning is here; ask for a path",
            MAX_LIST_BYTES);
}

static void read_tracked(struct git_changes *changes, const struct buffer *out)
{
    const char *at = out->data, *end = out->data + out->len, *status, *path;
    while ((status = next_record(&at, end)) && (path = next_record(&at, end))) {
        bool has_two = *status == 'R' || *status == 'C';
        const char *new_path = has_two ? next_record(&at, end) : NULL;
        if (!has_two || new_path)
            add_change(changes, status, path, new_path);
    }
}

// 0, 1 if git failed (the error is in changes), -1.
static int ask(struct guest *guest, const struct git_changes_question *question, const char *const *args,
               size_t max_bytes, char **ret_problem, struct command_result *result, struct error *err)
{
    if (git_run_limited(guest, args, max_bytes, question->is_cancelled, result, err) < 0)
        return -1;
    if (result->exit_code == 0)
        return 0;
    *ret_problem = result->errors.len ? trimmed(&result->errors)
                                      : mem_format("git ended with exit code %d", result->exit_code);
    return 1;
}

static int list_tracked(struct guest *guest, const struct git_changes_question *question,
                        struct git_changes *changes, struct error *err)
{
    const char *const args[] = {"diff",
                                "--name-status",
                                "-z",
                                "--relative",
                                "--no-ext-diff",
                                "--ignore-submodules=dirty",
                                question->is_staged ? "--cached" : "--no-color",
                                "--",
                                question->path,
                                NULL};
    CLEANUP(command_result_free) struct command_result result = {0};
    int status = ask(guest, question, args, MAX_LIST_BYTES, &changes->status_error, &result, err);
    if (status == 0) {
        read_tracked(changes, &result.out);
        note_cut(changes, &result);
    }
    return status;
}

static int list_untracked(struct guest *guest, const struct git_changes_question *question,
                          struct git_changes *changes, struct error *err)
{
    const char *const args[] = {"ls-files",     "--others", "--exclude-standard", "-z", "--",
                                question->path, NULL};
    CLEANUP(command_result_free) struct command_result result = {0};
    int status = ask(guest, question, args, MAX_LIST_BYTES, &changes->status_error, &result, err);
    if (status != 0)
        return status;
    const char *at = result.out.data, *end = result.out.data + result.out.len, *path;
    while ((path = next_record(&at, end)))
        add_change(changes, "??", path, NULL);
    note_cut(changes, &result);
    return 0;
}

static size_t number_before(const char *text, const char *word)
{
    const char *at = strstr(text, word);
    while (at && at > text && !isdigit((unsigned char)at[-1]))
        at--;
    while (at && at > text && isdigit((unsigned char)at[-1]))
        at--;
    return at ? strtoul(at, NULL, 10) : 0;
}

// " 2 files changed, 3 insertions(+), 1 deletion(-)"
static int count_lines(struct guest *guest, const struct git_changes_question *question,
                       struct git_changes *changes, struct error *err)
{
    const char *const args[] = {"diff",
                                "--shortstat",
                                "--relative",
                                "--no-ext-diff",
                                "--no-textconv",
                                question->is_staged ? "--cached" : "--no-color",
                                "--",
                                question->path,
                                NULL};
    CLEANUP(command_result_free) struct command_result result = {0};
    CLEANUP_FREE char *problem = NULL;
    if (ask(guest, question, args, 4096, &problem, &result, err) < 0)
        return -1;
    changes->additions = number_before(result.out.data, " insertion");
    changes->deletions = number_before(result.out.data, " deletion");
    return 0;
}

static void take_diff(struct git_changes *changes, struct buffer *out)
{
    patch_names_count(out->data, out->len, &changes->additions, &changes->deletions);
    changes->diff_len = out->len;
    changes->diff = buffer_take_string(out);
}

static int read_diff(struct guest *guest, const struct git_changes_question *question,
                     struct git_changes *changes, struct error *err)
{
    const char *const args[] = {"diff",
                                "--relative",
                                "--no-ext-diff",
                                "--no-textconv",
                                "--submodule=short",
                                "--src-prefix=a/",
                                "--dst-prefix=b/",
                                "-U3",
                                "--inter-hunk-context=0",
                                question->is_staged ? "--cached" : "--no-color",
                                "--",
                                question->path,
                                NULL};
    CLEANUP(command_result_free) struct command_result result = {0};
    int status = ask(guest, question, args, GIT_CHANGES_MAX_DIFF_BYTES, &changes->diff_error, &result, err);
    if (status != 0)
        return status;
    if (!result.is_cut) {
        take_diff(changes, &result.out);
        return 0;
    }
    changes->diff_error =
        mem_format("ENOBUFS: the diff is larger than %d bytes; ask for a path, or use git diff in bash",
                   GIT_CHANGES_MAX_DIFF_BYTES);
    return count_lines(guest, question, changes, err);
}

static int check_repository(struct guest *guest, const struct git_changes_question *question,
                            struct git_changes *changes, struct error *err)
{
    static const char *const args[] = {"rev-parse", "--show-prefix", NULL};
    CLEANUP(command_result_free) struct command_result result = {0};
    int status = ask(guest, question, args, 8192, &changes->status_error, &result, err);
    if (status == 1)
        changes->diff_error = mem_strdup(changes->status_error);
    return status;
}

int git_changes_ask(struct guest *guest, const struct git_changes_question *question, struct git_changes *ret,
                    struct error *err)
{
    CLEANUP(git_changes_free) struct git_changes changes = {0};
    int status = check_repository(guest, question, &changes, err);
    if (status == 0)
        status = list_tracked(guest, question, &changes, err);
    if (status == 0 && !question->is_staged)
        status = list_untracked(guest, question, &changes, err);
    if (status == 0)
        status = question->wants_diff ? read_diff(guest, question, &changes, err)
                                      : count_lines(guest, question, &changes, err);
    if (status < 0)
        return -1;
    *ret = changes;
    changes = (struct git_changes){0};
    return 0;
}

char *git_change_line(const struct git_change *change)
{
    struct buffer line = BUFFER_INIT(SIZE_MAX / 2);
    bool is_untracked = strcmp(change->status, "??") == 0;
    buffer_format(&line, "%s%c", change->status, is_untracked ? ' ' : '\t');
    git_quote(&line, change->path);
    if (change->new_path) {
        buffer_append_char(&line, '\t');
        git_quote(&line, change->new_path);
    }
    return buffer_take_string(&line);
}

// --- the fingerprint

static void hash(SHA2_CTX *context, const void *bytes, size_t len)
{
    uint64_t size = len; // so that no two lists of pieces look the same
    SHA256Update(context, (const uint8_t *)&size, sizeof(size));
    SHA256Update(context, bytes, len);
}

static void hash_untracked(SHA2_CTX *context, const struct workspace *workspace, const char *path,
                           size_t *room)
{
    struct stat meta = {0};
    struct error ignored = ERROR_INIT;
    CLEANUP(buffer_free) struct buffer bytes = BUFFER_INIT(*room);
    CLEANUP_CLOSE int fd = workspace_open_real(workspace, path, O_PATH | O_NOFOLLOW);
    if (fd >= 0)
        fstat(fd, &meta);
    hash(context, &meta.st_mode, sizeof(meta.st_mode));
    if (S_ISREG(meta.st_mode) && (size_t)meta.st_size <= *room) {
        CLEANUP_CLOSE int file = workspace_open_real(workspace, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
        if (file >= 0 && fs_read_all(file, &bytes, &ignored) == 0) {
            *room -= bytes.len;
            hash(context, buffer_text(&bytes), bytes.len);
            return;
        }
    }
    hash(context, &meta.st_size, sizeof(meta.st_size));
    hash(context, &meta.st_mtim, sizeof(meta.st_mtim));
    hash(context, &meta.st_ino, sizeof(meta.st_ino));
}

void git_changes_fingerprint(const struct git_changes *changes, const struct workspace *workspace,
                             char digest[TEXT_SHA256_SIZE])
{
    SHA2_CTX context;
    size_t room = MAX_HASHED_BYTES;
    SHA256Init(&context);
    hash(&context, changes->diff ? changes->diff : "", changes->diff_len);
    for (size_t i = 0; i < changes->count; i++) {
        CLEANUP_FREE char *line = git_change_line(&changes->list[i]);
        hash(&context, line, strlen(line));
        if (strcmp(changes->list[i].status, "??") == 0)
            hash_untracked(&context, workspace, changes->list[i].path, &room);
    }
    SHA256End(&context, digest);
}
