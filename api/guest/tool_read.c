// read: text with line numbers.
#include "api/guest/text_file.h"
#include "api/guest/tool.h"
#include "controller/base/buffer.h"

static const struct tool_arg args[] = {
    {"path", ARG_STRING, "File to read: relative to the workspace root, or absolute inside it.",
     .is_required = true},
    {"start_line", ARG_INTEGER, "First line, counted from 1.", .has_default = true, .default_number = 1,
     .min = 1},
    {"end_line", ARG_INTEGER, "Last line; the file's last line if absent or larger.", .min = 1},
    {"max_bytes", ARG_INTEGER, "Largest whole file, or largest numbered range, in bytes; never above 180000.",
     .has_default = true, .default_number = TEXT_MAX_READ_BYTES, .min = 1000, .max = 2000000},
    {NULL},
};

static const struct tool_field fields[] = {
    {"path", FIELD_STRING},     {"text", FIELD_STRING},        {"startLine", FIELD_INTEGER},
    {"endLine", FIELD_INTEGER}, {"totalLines", FIELD_INTEGER}, {"bytes", FIELD_INTEGER},
    {"sha256", FIELD_STRING},   {"truncated", FIELD_BOOLEAN},  {NULL},
};

static void set_result(struct tool_call *call, const char *path, const struct text_file *file,
                       const struct text_lines *lines, size_t start, size_t end, struct buffer *numbered)
{
    json_t *to = call->structured;
    json_set_text(to, "path", path);
    json_object_set_new(to, "text", json_from_bytes(buffer_text(numbered), numbered->len));
    json_object_set_new(to, "startLine", json_integer((json_int_t)start));
    json_object_set_new(to, "endLine", json_integer((json_int_t)end));
    json_object_set_new(to, "totalLines", json_integer((json_int_t)lines->count));
    json_object_set_new(to, "bytes", json_integer((json_int_t)file->bytes));
    json_set_text(to, "sha256", file->sha256);
    json_object_set_new(to, "truncated", json_boolean(start > 1 || end < lines->count));
    struct buffer text = BUFFER_INIT(SIZE_MAX / 2);
    buffer_format(&text, "# Read file\nPath: %s\nLines: %zu-%zu of %zu\nBytes: %zu\nSHA-256: %s\n\n```\n",
                  path, start, end, lines->count, file->bytes, file->sha256);
    buffer_append(&text, numbered->data, numbered->len);
    buffer_append_text(&text, "\n```");
    call->text_len = text.len;
    call->text = buffer_take_string(&text);
}

static int read_numbered(struct tool_call *call, const struct place *place, struct error *err)
{
    size_t max_bytes = (size_t)json_get_int(call->args, "max_bytes", TEXT_MAX_READ_BYTES);
    if (max_bytes > TEXT_MAX_READ_BYTES)
        max_bytes = TEXT_MAX_READ_BYTES;
    size_t start = (size_t)json_get_int(call->args, "start_line", 1);
    json_int_t asked_end = json_get_int(call->args, "end_line", 0);
    bool is_range = start > 1 || asked_end > 0;
    CLEANUP_TEXT_FILE struct text_file file = {0};
    if (text_file_read(place->fd, place->path, is_range ? TEXT_MAX_RANGE_BYTES : max_bytes, &file,
                       err) < 0)
        return -1;
    CLEANUP(text_lines_free) struct text_lines lines;
    text_split(file.text, file.len, &lines);
    size_t end = asked_end > 0 && (size_t)asked_end < lines.count ? (size_t)asked_end : lines.count;
    if (end < start)
        return guest_tool_fail(err, NULL,
                               "end_line (%zu) must be >= start_line (%zu); the file has %zu lines", end,
                               start, lines.count);
    // Without a range the numbers may make the answer larger than the file: at most 10 bytes a line more.
    CLEANUP(buffer_free) struct buffer numbered = BUFFER_INIT(is_range ? max_bytes : SIZE_MAX / 2);
    if (text_number_lines(&lines, start, end, &numbered) < 0)
        return guest_tool_fail(err, "ask for fewer lines",
                               "Selected line range is too large. Limit: %zu bytes.", max_bytes);
    set_result(call, place->path, &file, &lines, start, end, &numbered);
    return 0;
}

static int run(struct tool_call *call, struct error *err)
{
    CLEANUP_PLACE struct place place = PLACE_INIT;
    const json_t *path = json_object_get(call->args, "path");
    if (workspace_open_place(call->workspace, json_string_value(path), json_string_length(path), O_RDONLY,
                             &place, err) < 0)
        return -1;
    return read_numbered(call, &place, err);
}

const struct tool guest_tool_read = {
    .name = "read",
    .title = "Read file",
    .description = "Read a UTF-8 text file of the workspace with line numbers, whole or a range of lines. "
                   "The answer holds "
                   "the SHA-256 that write and edit take as expected_sha256. Binary files are refused; use "
                   "bash for those.",
    .args = args,
    .fields = fields,
    .hints = {.is_read_only = true, .is_idempotent = true},
    .run = run,
};
