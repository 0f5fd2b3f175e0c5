// read_handoff: the planning files that a chat and a local agent exchange. Nothing is ever made here.
#include "api/guest/text_file.h"
#include "api/guest/tool.h"
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <string.h>

#define MAX_FILE_BYTES 80000
#define PREVIEW_LINES 40
#define PREVIEW_CHARS 12000

static const char *const names[] = {
    "current-plan.md", "agent-status.md",   "implementation-diff.patch", "codex-status.md",
    "decisions.md",    "open-questions.md", "execution-log.jsonl",
};

static const struct tool_field fields[] = {
    {"files", FIELD_STRINGS}, {"file_count", FIELD_INTEGER}, {"preview", FIELD_STRING}, {NULL}};

// 0: read into text, 1: there is no such file.
static int add_file(const struct tool_call *call, const char *path, struct buffer *text, struct error *err)
{
    CLEANUP_PLACE struct place place = PLACE_INIT;
    CLEANUP_TEXT_FILE struct text_file file = {0};
    CLEANUP(text_lines_free) struct text_lines lines = {0};
    if (workspace_open_place(call->workspace, path, strlen(path), O_RDONLY, &place, err) < 0)
        return err->code == ERROR_NOT_FOUND ? 1 : -1;
    if (text_file_read(place.fd, path, MAX_FILE_BYTES, &file, err) < 0)
        return -1;
    text_split(file.text, file.len, &lines);
    buffer_format(text, "\n--- %s ---\n", path);
    text_number_lines(&lines, 1, lines.count, text);
    buffer_append_char(text, '\n');
    return 0;
}

static size_t end_of_lines(const char *text, size_t len, int max_lines)
{
    size_t end = 0;
    for (int lines = 0; end < len; end++)
        if (text[end] == '\n' && ++lines == max_lines)
            break;
    return end;
}

static size_t end_of_chars(const char *text, size_t len, size_t max_chars)
{
    size_t end = 0;
    for (size_t chars = 0; end < len && chars < max_chars; chars++)
        for (end++; end < len && ((unsigned char)text[end] & 0xC0) == 0x80;)
            end++;
    return end;
}

static int run(struct tool_call *call, struct error *err)
{
    (void)err;
    json_t *files = json_array();
    bool is_any_there = false;
    struct buffer text = BUFFER_INIT(8 * 1024 * 1024);
    buffer_append_text(&text, "# Handoff files\n");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CLEANUP_FREE char *path = mem_format(".ai-bridge/%s", names[i]);
        struct error problem = ERROR_INIT;
        int result = add_file(call, path, &text, &problem);
        is_any_there |= result != 1;
        if (result == 0)
            json_array_append_new(files, json_string(path));
        else if (result < 0)
            buffer_format(&text, "\n--- %s ---\n[unreadable: %s]\n", path, problem.message);
    }
    if (!is_any_there)
        buffer_append_text(&text, "\nThere are no handoff files in .ai-bridge yet.\n");
    json_object_set_new(call->structured, "file_count", json_integer((json_int_t)json_array_size(files)));
    json_object_set_new(call->structured, "files", files);
    const char *all = buffer_text(&text);
    size_t end = end_of_chars(all, end_of_lines(all, text.len, PREVIEW_LINES), PREVIEW_CHARS);
    json_object_set_new(call->structured, "preview", json_from_bytes(all, end));
    call->text_len = text.len;
    call->text = buffer_take_string(&text);
    return 0;
}

const struct tool guest_tool_read_handoff = {
    .name = "read_handoff",
    .title = "Read handoff files",
    .description =
        "Read the planning files in .ai-bridge that a chat and a local agent exchange: the current plan, "
        "the agent's status, decisions, open questions, the log and the diff. Use it to pick up work "
        "that was handed over, or to see how far an agent came. It only reads.",
    .fields = fields,
    .hints = {.is_read_only = true, .is_idempotent = true},
    .run = run,
};
