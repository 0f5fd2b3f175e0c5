// show_changes: what changed, for a review. It remembers what it has shown and then shows only news.
#include "api/guest/blocked.h"
#include "api/guest/change_analysis.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <string.h>

static const char *const since_words[] = {"last_shown", "workspace", NULL};

static const struct tool_arg args[] = {
    {"path", ARG_STRING, "File or directory to keep to; absent: the whole workspace."},
    {"staged", ARG_BOOLEAN, "Show what is in the index instead of what is not.", .has_default = true},
    {"include_diff", ARG_BOOLEAN, "Add the diff.", .has_default = true, .default_number = 1},
    {"since", ARG_STRING,
     "last_shown: nothing if it is all as the last call with a diff showed it; workspace: all in any case.",
     .default_text = "last_shown", .choices = since_words},
    {"mark_reviewed", ARG_BOOLEAN, "Remember what this call shows (with include_diff).", .has_default = true,
     .default_number = 1},
    {NULL},
};

static const struct tool_field fields[] = {
    {"path", FIELD_STRING},
    {"status", FIELD_STRING},
    {"status_error", FIELD_STRING, .is_optional = true},
    {"diff_error", FIELD_STRING, .is_optional = true},
    {"changed_files", FIELD_STRINGS},
    {"staged", FIELD_BOOLEAN},
    {"include_diff", FIELD_BOOLEAN},
    {"additions", FIELD_INTEGER},
    {"deletions", FIELD_INTEGER},
    {"changed", FIELD_BOOLEAN},
    {"diff", FIELD_STRING},
    {"review_since", FIELD_STRING},
    {"review_marked", FIELD_BOOLEAN},
    {"review_checkpoint_hit", FIELD_BOOLEAN},
    {"analysis", FIELD_OBJECT, .is_optional = true, .fields = change_analysis_fields},
    {NULL},
};

struct showing {
    struct git_changes changes;
    char *path; // folded, "." for all
    bool is_staged, includes_diff;
    bool is_hit, is_marked;
    json_t *lines, *shown; // of the status: all, and those that are news
};

static void free_showing(struct showing *showing)
{
    git_changes_free(&showing->changes);
    free(showing->path);
    json_decref(showing->lines);
    json_decref(showing->shown);
}

static int fail_to_reach(int number, const char *path, struct error *err)
{
    if (number == EXDEV)
        return guest_tool_fail(err, NULL, "Path resolves outside workspace root through a symlink: %s", path);
    return guest_tool_fail_errno(err, number, "open '%s'", path);
}

// The path may be gone (that is a change too); a linked directory on the way is followed, a link at its end
// is itself what git knows.
static int find_path(struct tool_call *call, char **ret, struct error *err)
{
    const json_t *given = json_object_get(call->args, "path");
    CLEANUP_FREE char *path = NULL, *real = NULL, *parent = NULL, *real_parent = NULL;
    if (!given) {
        *ret = mem_strdup(".");
        return 0;
    }
    if (workspace_fold(call->workspace, json_string_value(given), json_string_length(given), &path, err) < 0)
        return -1;
    if (blocked_path(path))
        return guest_tool_fail(err, NULL, "Path is blocked by safety rules: %s", path);
    int result = workspace_resolve(call->workspace, path, &real);
    if (result && result != ENOENT && result != ENOTDIR)
        return fail_to_reach(result, path, err);
    char *slash = strrchr(path, '/');
    parent = slash ? mem_strndup(path, (size_t)(slash - path)) : mem_strdup(".");
    if (slash && workspace_resolve(call->workspace, parent, &real_parent) == 0)
        *ret = strcmp(real_parent, ".") == 0 ? mem_strdup(slash + 1) : mem_format("%s%s", real_parent, slash);
    else
        *ret = TAKE_PTR(path);
    return 0;
}

static void list_lines(struct showing *showing)
{
    showing->lines = json_array();
    for (size_t i = 0; i < showing->changes.count; i++) {
        CLEANUP_FREE char *line = git_change_line(&showing->changes.list[i]);
        json_array_append_new(showing->lines, json_from_text(line));
    }
}

// What was not shown whole is not remembered.
static void review(struct tool_call *call, struct showing *showing)
{
    char digest[TEXT_SHA256_SIZE];
    struct review *memory = &call->guest->review;
    const struct git_changes *changes = &showing->changes;
    bool is_news_only = strcmp(json_get_text(call->args, "since"), "last_shown") == 0;
    if (!showing->includes_diff || changes->status_error || changes->diff_error)
        return;
    git_changes_fingerprint(changes, call->workspace, digest);
    showing->is_hit = is_news_only && review_is_known(memory, showing->path, showing->is_staged, digest);
    showing->is_marked = json_get_bool(call->args, "mark_reviewed", true);
    if (showing->is_marked)
        review_remember(memory, showing->path, showing->is_staged, digest);
}

static char *joined(const json_t *lines)
{
    struct buffer text = BUFFER_INIT(SIZE_MAX / 2);
    size_t i;
    json_t *line;
    json_array_foreach(lines, i, line)
    {
        buffer_append_text(&text, i ? "\n" : "");
        buffer_append_text(&text, json_string_value(line));
    }
    buffer_text(&text);
    return buffer_take_string(&text);
}

static void set_fields(struct tool_call *call, const struct showing *showing)
{
    json_t *to = call->structured;
    const struct git_changes *changes = &showing->changes;
    bool is_shown = !showing->is_hit && changes->diff;
    CLEANUP_FREE char *status = joined(showing->lines);
    const char *given = json_get_text(call->args, "path");
    json_set_text(to, "path", given ? given : "workspace changes");
    json_set_text(to, "status", status);
    json_set_text(to, "status_error", changes->status_error);
    json_set_text(to, "diff_error", changes->diff_error);
    json_object_set(to, "changed_files", showing->shown);
    json_object_set_new(to, "staged", json_boolean(showing->is_staged));
    json_object_set_new(to, "include_diff", json_boolean(showing->includes_diff));
    json_object_set_new(to, "additions", json_integer(showing->is_hit ? 0 : (json_int_t)changes->additions));
    json_object_set_new(to, "deletions", json_integer(showing->is_hit ? 0 : (json_int_t)changes->deletions));
    json_object_set_new(to, "changed", json_boolean(json_array_size(showing->shown) > 0));
    json_object_set_new(to, "diff",
                        is_shown ? json_from_bytes(changes->diff, changes->diff_len) : json_string(""));
    json_set_text(to, "review_since", json_get_text(call->args, "since"));
    json_object_set_new(to, "review_marked", json_boolean(showing->is_marked));
    json_object_set_new(to, "review_checkpoint_hit", json_boolean(showing->is_hit));
}

static void word_list(struct buffer *text, const char *label, const json_t *list, const char *key)
{
    size_t i;
    json_t *one;
    buffer_format(text, "%s:", label);
    json_array_foreach(list, i, one) if (i < 20)
        buffer_format(text, "%s %s", i ? "," : "", key ? json_get_text(one, key) : json_string_value(one));
    buffer_append_text(text, !json_array_size(list)       ? " none\n"
                             : json_array_size(list) > 20 ? ", ...\n"
                                                          : "\n");
}

static void set_text(struct tool_call *call, const struct showing *showing)
{
    const struct git_changes *changes = &showing->changes;
    const json_t *to = call->structured, *analysis = json_object_get(to, "analysis");
    CLEANUP_FREE char *lines = joined(showing->shown);
    struct buffer text = BUFFER_INIT(SIZE_MAX / 2);
    buffer_format(&text, "# Changes: %s\nRoot: %s\n", json_get_text(to, "path"), call->workspace->root);
    if (changes->status_error)
        buffer_format(&text, "Status: %s\n", changes->status_error);
    if (changes->diff_error &&
        !(changes->status_error && strcmp(changes->status_error, changes->diff_error) == 0))
        buffer_format(&text, "Diff: %s\n", changes->diff_error);
    buffer_format(&text, "Changed:\n%s\nDiff stats: +%lld -%lld\n",
                  *lines            ? lines
                  : showing->is_hit ? "nothing since this was shown last"
                                    : "nothing",
                  (long long)json_get_int(to, "additions", 0), (long long)json_get_int(to, "deletions", 0));
    if (!showing->is_hit && changes->diff_len) {
        buffer_append_text(&text, "\n```diff\n");
        buffer_append(&text, changes->diff, changes->diff_len);
        buffer_append_text(&text, "```\n");
    }
    if (analysis) {
        word_list(&text, "Areas", json_object_get(analysis, "affected_areas"), NULL);
        word_list(&text, "Related tests", json_object_get(analysis, "related_tests"), "path");
        word_list(&text, "Risks", json_object_get(analysis, "risk_signals"), "label");
    }
    call->text_len = text.len;
    call->text = buffer_take_string(&text);
}

static int run(struct tool_call *call, struct error *err)
{
    CLEANUP(free_showing)
    struct showing showing = {.is_staged = json_get_bool(call->args, "staged", false),
                              .includes_diff = json_get_bool(call->args, "include_diff", true)};
    if (find_path(call, &showing.path, err) < 0)
        return -1;
    struct git_changes_question question = {showing.path, showing.is_staged, showing.includes_diff,
                                            call->is_cancelled};
    if (git_changes_ask(call->guest, &question, &showing.changes, err) < 0)
        return -1;
    list_lines(&showing);
    review(call, &showing);
    showing.shown = showing.is_hit ? json_array() : json_incref(showing.lines);
    set_fields(call, &showing);
    json_t *analysis = NULL;
    if (json_array_size(showing.shown)) {
        if (change_analysis_make(call, &showing.changes, &analysis, err) < 0)
            return -1;
        json_object_set_new(call->structured, "analysis", analysis);
    }
    set_text(call, &showing);
    return 0;
}

const struct tool guest_tool_show_changes = {
    .name = "show_changes",
    .title = "Show changes",
    .description =
        "Review what has changed in the workspace's git repository: files, diff, and who may be affected. "
        "Call it once after a round of changes. By default a call shows nothing again that the last one "
        "showed; since=workspace shows all.",
    .args = args,
    .fields = fields,
    .hints = {.is_read_only = true, .is_idempotent = true},
    .run = run,
};
