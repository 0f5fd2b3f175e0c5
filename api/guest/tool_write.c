// write: create or replace a text file. Content is never judged: no secret-looking text is refused or masked,
// for what a caller writes in its own sandbox is its own affair and masking would break the bytes.
#include "api/guest/change.h"
#include "api/guest/text_file.h"
#include "controller/base/memory.h"

static const struct tool_arg args[] = {
    {"path", ARG_STRING, "File to write: relative to the workspace root, or absolute inside it.",
     .is_required = true},
    {"content", ARG_STRING, "The whole new content, at most 1000000 bytes of UTF-8.", .is_required = true},
    {"create_dirs", ARG_BOOLEAN, "Make missing parent directories.", .has_default = true,
     .default_number = 1},
    {"overwrite", ARG_BOOLEAN, "Permit replacing an existing file.", .has_default = true,
     .default_number = 1},
    {"expected_sha256", ARG_STRING, "Write only if the existing file has this SHA-256 (as read gave it).",
     .is_sha256 = true},
    {NULL},
};

static const struct tool_field fields[] = {
    {"path", FIELD_STRING},       {"existed", FIELD_BOOLEAN},
    {"bytes", FIELD_INTEGER},     {"sha256", FIELD_STRING},
    {"additions", FIELD_INTEGER}, {"deletions", FIELD_INTEGER},
    {"diff", FIELD_STRING},       {NULL},
};

static int create(struct tool_call *call, const struct place *place, const char *content, size_t len,
                  struct error *err)
{
    if (json_get_text(call->args, "expected_sha256"))
        return guest_tool_fail(err, NULL, "File does not exist, so expected_sha256 cannot be verified: %s",
                               place->path);
    return text_file_create(call->workspace, place, json_get_bool(call->args, "create_dirs", true), content,
                            len, err);
}

static int replace(struct tool_call *call, const struct place *place, int fd, const char *content, size_t len,
                   struct text_file *before, struct error *err)
{
    if (!json_get_bool(call->args, "overwrite", true))
        return guest_tool_fail(err, NULL, "File already exists and overwrite=false: %s", place->path);
    if (text_file_read(fd, place->path, TEXT_MAX_WRITE_BYTES, before, err) < 0 ||
        text_file_check_hash(call->args, before, place->path, err) < 0)
        return -1;
    return text_file_rewrite(fd, place->path, before, content, len, err);
}

static int run(struct tool_call *call, struct error *err)
{
    CLEANUP_PLACE struct place place = PLACE_INIT;
    const json_t *path = json_object_get(call->args, "path"),
                 *content = json_object_get(call->args, "content");
    const char *text = json_string_value(content);
    size_t len = json_string_length(content);
    if (workspace_find_target(call->workspace, json_string_value(path), json_string_length(path), &place,
                              err) < 0 ||
        change_check_size(len, "Content", err) < 0)
        return -1;
    CLEANUP_TEXT_FILE_LOCK struct text_file_lock lock = text_file_lock(place.real);
    CLEANUP_TEXT_FILE struct text_file before = {0};
    CLEANUP_CLOSE int fd = -1;
    if (text_file_open_target(call->workspace, &place, &fd, err) < 0)
        return -1;
    int result =
        fd < 0 ? create(call, &place, text, len, err) : replace(call, &place, fd, text, len, &before, err);
    if (result < 0)
        return -1;
    json_object_set_new(call->structured, "existed", json_boolean(fd >= 0));
    struct change change = {"Write file",
                            place.path,
                            "Existed before",
                            fd >= 0 ? "yes" : "no",
                            before.text ? before.text : "",
                            text,
                            before.len,
                            len};
    change_set_result(call, &change);
    return 0;
}

const struct tool guest_tool_write = {
    .name = "write",
    .title = "Write file",
    .description =
        "Create a text file in the workspace or replace its whole content; missing directories are made. An "
        "existing "
        "file keeps its mode, owner and links. Use edit for a small change. The answer shows the diff.",
    .args = args,
    .fields = fields,
    .hints = {.is_destructive = true},
    .run = run,
};
