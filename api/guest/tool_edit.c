// edit: replace exact text in a file. new_text goes in literally, whatever it holds.
#include "api/guest/change.h"
#include "api/guest/text_file.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct tool_arg args[] = {
    {"path", ARG_STRING, "File to edit: relative to the workspace root, or absolute inside it.",
     .is_required = true},
    {"old_text", ARG_STRING, "Exact text to replace, line ends as they are in the file.",
     .is_required = true},
    {"new_text", ARG_STRING, "Text to put there, literally.", .is_required = true},
    {"replace_all", ARG_BOOLEAN, "Replace every occurrence; otherwise there must be exactly one.",
     .has_default = true},
    {"expected_replacements", ARG_INTEGER, "Fail unless exactly this many would be replaced.", .min = 1},
    {"expected_sha256", ARG_STRING, "Edit only if the file has this SHA-256 (as read gave it).",
     .is_sha256 = true},
    {NULL},
};

static const struct tool_field fields[] = {
    {"path", FIELD_STRING},       {"replacements", FIELD_INTEGER},
    {"bytes", FIELD_INTEGER},     {"sha256", FIELD_STRING},
    {"additions", FIELD_INTEGER}, {"deletions", FIELD_INTEGER},
    {"diff", FIELD_STRING},       {NULL},
};

struct edit {
    const char *old_text, *new_text;
    size_t old_len, new_len;
};

static size_t count_matches(const struct text_file *file, const struct edit *edit)
{
    size_t count = 0;
    const char *end = file->text + file->len;
    for (const char *at = file->text; (at = memmem(at, (size_t)(end - at), edit->old_text, edit->old_len));
         count++)
        at += edit->old_len;
    return count;
}

static int apply(const struct text_file *file, const struct edit *edit, struct buffer *out)
{
    const char *at = file->text, *end = file->text + file->len;
    for (const char *hit; (hit = memmem(at, (size_t)(end - at), edit->old_text, edit->old_len));
         at = hit + edit->old_len)
        if (buffer_append(out, at, (size_t)(hit - at)) < 0 ||
            buffer_append(out, edit->new_text, edit->new_len) < 0)
            return -1;
    return buffer_append(out, at, (size_t)(end - at));
}

static int check_count(const struct tool_call *call, size_t count, const char *path, struct error *err)
{
    json_int_t expected = json_get_int(call->args, "expected_replacements", 0);
    if (count == 0)
        return guest_tool_fail(err, "read the file and give the text exactly as it stands there",
                               "old_text was not found in %s", path);
    if (count > 1 && !json_get_bool(call->args, "replace_all", false))
        return guest_tool_fail(err, "give more of the text around it, or set replace_all",
                               "old_text matched %zu times in %s", count, path);
    if (expected && (size_t)expected != count)
        return guest_tool_fail(err, NULL, "Expected %lld replacements but would perform %zu.",
                               (long long)expected, count);
    return 0;
}

static int edit_file(struct tool_call *call, const struct place *place, int fd, const struct edit *edit,
                     struct error *err)
{
    CLEANUP_TEXT_FILE struct text_file before = {0};
    if (text_file_read(fd, place->path, TEXT_MAX_WRITE_BYTES, &before, err) < 0 ||
        text_file_check_hash(call->args, &before, place->path, err) < 0)
        return -1;
    // Decoding replaced its bad bytes; writing that back would damage lines that nobody meant.
    if (before.has_bad_bytes)
        return guest_tool_fail(err, "edit it with bash", "Refusing to edit %s: it is not valid UTF-8.",
                               place->path);
    size_t count = count_matches(&before, edit);
    if (check_count(call, count, place->path, err) < 0)
        return -1;
    CLEANUP(buffer_free) struct buffer after = BUFFER_INIT(TEXT_MAX_WRITE_BYTES);
    if (apply(&before, edit, &after) < 0)
        return guest_tool_fail(err, NULL, "Edited file is too large. Limit: %d bytes.", TEXT_MAX_WRITE_BYTES);
    if (text_file_rewrite(fd, place->path, &before, buffer_text(&after), after.len, err) < 0)
        return -1;
    char replacements[24];
    snprintf(replacements, sizeof(replacements), "%zu", count);
    json_object_set_new(call->structured, "replacements", json_integer((json_int_t)count));
    struct change change = {"Edit file", place->path, "Replacements", replacements,
                            before.text, after.data,  before.len,     after.len};
    change_set_result(call, &change);
    return 0;
}

static int run(struct tool_call *call, struct error *err)
{
    CLEANUP_PLACE struct place place = PLACE_INIT;
    const json_t *path = json_object_get(call->args, "path");
    const json_t *old_text = json_object_get(call->args, "old_text"),
                 *new_text = json_object_get(call->args, "new_text");
    struct edit edit = {json_string_value(old_text), json_string_value(new_text),
                        json_string_length(old_text), json_string_length(new_text)};
    if (!edit.old_len)
        return guest_tool_fail(err, "use write for a whole file", "old_text must not be empty.");
    if (workspace_find_target(call->workspace, json_string_value(path), json_string_length(path), &place,
                              err) < 0 ||
        change_check_size(edit.new_len, "new_text", err) < 0)
        return -1;
    CLEANUP_TEXT_FILE_LOCK struct text_file_lock lock = text_file_lock(place.real);
    CLEANUP_CLOSE int fd = -1;
    if (text_file_open_target(call->workspace, &place, &fd, err) < 0)
        return -1;
    if (fd < 0)
        return guest_tool_fail_errno(err, ENOENT, "open '%s'", place.path);
    return edit_file(call, &place, fd, &edit, err);
}

const struct tool guest_tool_edit = {
    .name = "edit",
    .title = "Edit file",
    .description = "Replace exact text in a file of the workspace. old_text must occur exactly once unless "
                   "replace_all is set. "
                   "Nothing in either text has a special meaning. The answer shows the diff.",
    .args = args,
    .fields = fields,
    .hints = {.is_destructive = true},
    .run = run,
};
