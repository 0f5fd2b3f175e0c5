#include "api/guest/handoff_state.h"
#include "api/guest/blocked.h"
#include "api/guest/bridge.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <string.h>

#define MAX_STATE_BYTES (64 * 1024)
#define MAX_STATUS_CHARS 6000
#define MAX_DIFF_CHARS 12000
#define MAX_LOG_CHARS 6000
#define MAX_LOG_LINES 20
#define MAX_TESTS_CHARS 4000

const struct tool_field handoff_fields[] = {
    {"state", FIELD_STRING},
    {"awaited_completed", FIELD_BOOLEAN},
    {"awaited_terminal", FIELD_BOOLEAN},
    {"succeeded", FIELD_BOOLEAN},
    {"state_file", FIELD_STRING},
    {"run_state", FIELD_STRING, .is_optional = true},
    {"iteration", FIELD_INTEGER, .is_optional = true},
    {"plan_hash", FIELD_STRING, .is_optional = true},
    {"expected_plan_hash", FIELD_STRING, .is_optional = true},
    {"plan_hash_mismatch", FIELD_BOOLEAN, .is_optional = true},
    {"exit_code", FIELD_ANY, .is_optional = true},
    {"timed_out", FIELD_ANY, .is_optional = true},
    {"started_at", FIELD_ANY, .is_optional = true},
    {"finished_at", FIELD_ANY, .is_optional = true},
    {"executor", FIELD_ANY, .is_optional = true},
    {"model", FIELD_ANY, .is_optional = true},
    {"next_poll_after_seconds", FIELD_INTEGER, .is_optional = true},
    {"status_file", FIELD_STRING, .is_optional = true},
    {"diff_file", FIELD_STRING, .is_optional = true},
    {"log_file", FIELD_STRING, .is_optional = true},
    {"tests_file", FIELD_STRING, .is_optional = true},
    {"status_excerpt", FIELD_STRING, .is_optional = true},
    {"diff_excerpt", FIELD_STRING, .is_optional = true},
    {"log_excerpt", FIELD_STRING, .is_optional = true},
    {"tests_excerpt", FIELD_STRING, .is_optional = true},
    {NULL},
};

struct look {
    const struct workspace *workspace;
    const struct handoff_question *question;
    const json_t *file; // the state; NULL if there is none
    const char *state;  // its word, or NULL
    bool is_terminal, is_mismatch, is_awaited;
    json_t *to;
    struct buffer text;
};

void handoff_question_read(const json_t *args, struct handoff_question *ret)
{
    const char *hash = json_get_text(args, "plan_hash");
    *ret = (struct handoff_question){
        .plan_hash = hash && *hash ? hash : NULL,
        .since_iteration = json_get_int(args, "since_iteration", -1),
        .poll_ms = json_get_int(args, "poll_ms", 1000),
        .include_diff = json_get_bool(args, "include_diff", true),
        .include_log = json_get_bool(args, "include_log_excerpt", true),
        .include_tests = json_get_bool(args, "include_tests", true),
    };
}

static json_t *read_state(const struct workspace *workspace)
{
    CLEANUP_CLOSE int dir = -1;
    CLEANUP_CLOSE int fd = -1;
    CLEANUP(buffer_free) struct buffer bytes = BUFFER_INIT(MAX_STATE_BYTES);
    CLEANUP_JSON json_t *file = NULL;
    if (bridge_open(workspace, false, &dir, NULL) < 0 || dir < 0 ||
        bridge_open_file(dir, BRIDGE_RUN_STATE, O_RDONLY, &fd, NULL) < 0 || fd < 0 ||
        fs_read_all(fd, &bytes, NULL) < 0 || json_parse(bytes.data, bytes.len, &file, NULL) < 0)
        return NULL;
    return json_is_object(file) ? TAKE_PTR(file) : NULL;
}

static void judge(struct look *look)
{
    static const char *const terminal[] = {"completed", "failed", "timed_out"};
    const struct handoff_question *question = look->question;
    const char *hash = json_get_text(look->file, "plan_hash");
    look->state = json_get_text(look->file, "state");
    for (size_t i = 0; look->state && i < ARRAY_LEN(terminal); i++)
        look->is_terminal |= strcmp(look->state, terminal[i]) == 0;
    look->is_mismatch =
        question->plan_hash && look->file && (!hash || strcmp(hash, question->plan_hash) != 0);
    look->is_awaited = look->is_terminal && !look->is_mismatch &&
                       (question->since_iteration < 0 ||
                        json_get_int(look->file, "iteration", -1) > question->since_iteration);
}

// The word of the answer: an end that is not the awaited one means that the awaited run is still to come.
static const char *shown_state(const struct look *look)
{
    if (!look->state)
        return "unknown";
    return look->is_terminal && !look->is_awaited ? "running" : look->state;
}

static void set_bool(json_t *to, const char *name, bool value)
{
    json_object_set_new(to, name, json_boolean(value));
}

static void copy_members(struct look *look)
{
    static const char *const any[] = {"exit_code",   "timed_out", "started_at",
                                      "finished_at", "executor",  "model"};
    json_t *iteration = json_object_get(look->file, "iteration");
    json_set_text(look->to, "run_state", look->state);
    json_set_text(look->to, "plan_hash", json_get_text(look->file, "plan_hash"));
    if (json_is_integer(iteration))
        json_object_set(look->to, "iteration", iteration);
    for (size_t i = 0; i < ARRAY_LEN(any); i++)
        json_object_set(look->to, any[i], json_object_get(look->file, any[i])); // NULL sets nothing
}

static void set_judgement(struct look *look)
{
    bool is_completed = look->is_awaited && strcmp(look->state, "completed") == 0;
    const json_t *code = json_object_get(look->file, "exit_code");
    bool has_failed =
        (code && !json_is_null(code) && !(json_is_integer(code) && json_integer_value(code) == 0)) ||
        json_is_true(json_object_get(look->file, "timed_out"));
    json_set_text(look->to, "state", shown_state(look));
    set_bool(look->to, "awaited_completed", is_completed);
    set_bool(look->to, "awaited_terminal", look->is_awaited);
    set_bool(look->to, "succeeded", is_completed && !has_failed);
    json_set_text(look->to, "state_file", BRIDGE_RUN_STATE);
    copy_members(look);
    if (look->question->plan_hash) {
        json_set_text(look->to, "expected_plan_hash", look->question->plan_hash);
        set_bool(look->to, "plan_hash_mismatch", look->is_mismatch);
    }
    buffer_format(&look->text, "# Handoff\nState: %s\nState file: %s\n", shown_state(look), BRIDGE_RUN_STATE);
    if (look->state && strcmp(look->state, shown_state(look)) != 0)
        buffer_format(&look->text, "The last run ended as %.100s, but %s.\n", look->state,
                      look->is_mismatch ? "it was for another plan" : "it is not newer than since_iteration");
    if (!look->is_awaited) {
        json_object_set_new(look->to, "next_poll_after_seconds",
                            json_integer((look->question->poll_ms + 999) / 1000));
        buffer_append_text(&look->text, "The awaited run has not ended: call again.\n");
    }
}

// ---- files that the state names
// ------------------------------------------------------------------------------------

static char *fold_inside(const struct workspace *workspace, const char *name)
{
    CLEANUP_FREE char *path = NULL;
    if (workspace_fold(workspace, name, strlen(name), &path, NULL) < 0 ||
        strncmp(path, BRIDGE_DIR "/", strlen(BRIDGE_DIR "/")) != 0 || blocked_path(path))
        return NULL;
    return TAKE_PTR(path);
}

// A name of the state, if it leads nowhere but below .ai-bridge/; else the usual one (a copy, or NULL).
static char *file_path(const struct look *look, const char *member, const char *usual)
{
    const char *name = json_get_text(look->file, member);
    char *path = name && *name ? fold_inside(look->workspace, name) : NULL;
    if (!path && name && *name && *name != '/' && *name != '~') {
        CLEANUP_FREE char *below = mem_format("%s/%s", BRIDGE_DIR, name);
        path = fold_inside(look->workspace, below);
    }
    return path ? path : mem_strdup_or_null(usual);
}

// At most max bytes of the file, from its start or from its end. NULL if it cannot be read.
static char *read_part(const struct workspace *workspace, const char *path, size_t max, bool is_end,
                       size_t *ret_len)
{
    CLEANUP_CLOSE int fd = workspace_open_real(workspace, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    struct stat meta;
    if (fd < 0 || fstat(fd, &meta) < 0 || !S_ISREG(meta.st_mode))
        return NULL;
    CLEANUP_FREE char *bytes = mem_alloc(max);
    off_t start = is_end && (size_t)meta.st_size > max ? meta.st_size - (off_t)max : 0;
    ssize_t n = pread(fd, bytes, max, start);
    return n < 0 ? NULL : utf8_to_valid(bytes, (size_t)n, ret_len);
}

static const char *after_chars(const char *text, size_t len, size_t chars)
{
    const char *at = text, *end = text + len;
    while (at < end && chars--)
        at += utf8_char_len(at, (size_t)(end - at), NULL);
    return at;
}

static size_t count_chars(const char *text, size_t len)
{
    size_t count = 0;
    for (size_t i = 0; i < len; i++)
        count += ((unsigned char)text[i] & 0xC0) != 0x80;
    return count;
}

static json_t *start_of(const struct workspace *workspace, const char *path, size_t max_chars)
{
    size_t len;
    CLEANUP_FREE char *text = read_part(workspace, path, 4 * max_chars, false, &len);
    return text ? json_stringn(text, (size_t)(after_chars(text, len, max_chars) - text)) : NULL;
}

static const char *last_lines(const char *text, size_t len, int lines)
{
    const char *at = text + len;
    if (at > text && at[-1] == '\n')
        at--; // the end of the last line begins no other
    for (const char *stop; (stop = memrchr(text, '\n', (size_t)(at - text))); at = stop)
        if (--lines == 0)
            return stop + 1;
    return text;
}

static json_t *end_of(const struct workspace *workspace, const char *path, size_t max_chars)
{
    size_t len;
    CLEANUP_FREE char *text = read_part(workspace, path, 4 * max_chars, true, &len);
    if (!text)
        return NULL;
    const char *at = last_lines(text, len, MAX_LOG_LINES);
    size_t rest = len - (size_t)(at - text), chars = count_chars(at, rest);
    if (chars > max_chars)
        at = after_chars(at, rest, chars - max_chars);
    return json_stringn(at, len - (size_t)(at - text));
}

struct report {
    const char *member, *usual, *excerpt;
    size_t max_chars;
    bool is_end;
};

static void add_report(struct look *look, const struct report *report, bool is_wanted)
{
    CLEANUP_FREE char *path = file_path(look, report->member, report->usual);
    if (!path)
        return;
    json_set_text(look->to, report->member, path);
    json_t *excerpt = !is_wanted       ? NULL
                      : report->is_end ? end_of(look->workspace, path, report->max_chars)
                                       : start_of(look->workspace, path, report->max_chars);
    if (!excerpt)
        return;
    buffer_format(&look->text, "\n--- %s ---\n", path);
    buffer_append(&look->text, json_string_value(excerpt), json_string_length(excerpt));
    buffer_append_char(&look->text, '\n');
    json_object_set_new(look->to, report->excerpt, excerpt);
}

static void add_reports(struct look *look)
{
    static const struct report reports[] = {
        {"status_file", BRIDGE_STATUS, "status_excerpt", MAX_STATUS_CHARS, false},
        {"diff_file", BRIDGE_DIFF, "diff_excerpt", MAX_DIFF_CHARS, false},
        {"log_file", BRIDGE_EXECUTION_LOG, "log_excerpt", MAX_LOG_CHARS, true},
        {"tests_file", NULL, "tests_excerpt", MAX_TESTS_CHARS, false},
    };
    const bool wanted[] = {true, look->question->include_diff, look->question->include_log,
                           look->question->include_tests};
    for (size_t i = 0; i < ARRAY_LEN(reports); i++)
        add_report(look, &reports[i], wanted[i]);
}

json_t *handoff_look(const struct workspace *workspace, const struct handoff_question *question, bool is_last,
                     json_t *structured, char **ret_text, size_t *ret_len)
{
    CLEANUP_JSON json_t *to = structured;
    CLEANUP_JSON json_t *file = read_state(workspace);
    struct look look = {.workspace = workspace,
                        .question = question,
                        .file = file,
                        .to = to,
                        .text = BUFFER_INIT(1024 * 1024)};
    judge(&look);
    if (!look.is_awaited && !is_last)
        return NULL;
    set_judgement(&look);
    if (look.is_awaited)
        add_reports(&look);
    *ret_len = look.text.len;
    *ret_text = buffer_take_string(&look.text);
    return TAKE_PTR(to);
}
