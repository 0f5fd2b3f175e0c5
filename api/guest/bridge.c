#include "api/guest/bridge.h"
#include "api/guest/tool.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <errno.h>
#include <linux/openat2.h>
#include <string.h>

#define BENEATH (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS)
#define MAX_LINE_CHARS 120
#define HINT_LINK "remove the link; the planning files are kept in a directory of their own"

// Name and first content.
static const char *const usual_files[][2] = {
    {"README.md",
     "# .ai-bridge\n\nPlanning files that a chat model and a coding agent exchange: the plan "
     "(current-plan.md), what the agent\nreports (agent-status.md, implementation-diff.patch) and "
     "the logs of both. Safe to delete when nobody uses them.\n"},
    {"current-plan.md", "# Current plan\n\nNo plan yet.\n"},
    {"agent-status.md", "# Agent status\n\nNothing reported yet.\n"},
    {"implementation-diff.patch", ""},
    {"codex-status.md", "# Codex status\n\nNothing reported yet.\n"},
    {"decisions.md", "# Decisions\n"},
    {"open-questions.md", "# Open questions\n"},
    {"execution-log.jsonl", ""},
    {"session-log.jsonl", ""},
};

static const char *name_of(const char *path)
{
    return path + strlen(BRIDGE_DIR "/");
}

static int fail_link(struct error *err, const char *path)
{
    return guest_tool_fail(err, HINT_LINK, "Refusing to use a symlink in .ai-bridge: %s", path);
}

int bridge_open(const struct workspace *workspace, bool create, int *ret_fd, struct error *err)
{
    int fd = -1;
    for (int tries = 0; tries < 2; tries++) {
        fd = workspace_open_real(workspace, BRIDGE_DIR, O_RDONLY | O_DIRECTORY);
        if (fd >= 0 || errno != ENOENT || !create)
            break;
        CLEANUP_CLOSE int root = workspace_open_real(workspace, ".", O_RDONLY | O_DIRECTORY);
        if (root < 0 || (mkdirat(root, BRIDGE_DIR, 0777) < 0 && errno != EEXIST))
            return guest_tool_fail_errno(err, errno, "mkdir '%s'", BRIDGE_DIR);
    }
    if (fd < 0 && errno == ELOOP)
        return fail_link(err, BRIDGE_DIR);
    if (fd < 0 && (errno != ENOENT || create))
        return guest_tool_fail_errno(err, errno, "open '%s'", BRIDGE_DIR);
    *ret_fd = fd;
    return 0;
}

static int open_regular(int dir, const char *path, int flags, mode_t mode, int *ret_fd, struct error *err)
{
    struct stat meta;
    int held_off = flags & O_PATH ? 0 : O_NONBLOCK | O_NOCTTY; // no FIFO and no terminal can hold us
    CLEANUP_CLOSE int fd = fs_openat2(dir, name_of(path), flags | held_off, mode, BENEATH);
    if (fd < 0 && errno == ENOENT) {
        *ret_fd = -1;
        return 0;
    }
    if (fd < 0 && errno == ELOOP)
        return fail_link(err, path);
    if (fd < 0 && errno != ENXIO && errno != EISDIR)
        return guest_tool_fail_errno(err, errno, "open '%s'", path);
    if (fd < 0 || fstat(fd, &meta) < 0 || !S_ISREG(meta.st_mode))
        return guest_tool_fail(err, "move it away", "Not a file: %s", path);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int bridge_open_file(int dir, const char *path, int flags, int *ret_fd, struct error *err)
{
    return open_regular(dir, path, flags, 0, ret_fd, err);
}

int bridge_replace(int dir, const char *path, const char *bytes, size_t len, struct error *err)
{
    struct stat meta = {.st_mode = 0644};
    struct error write_error = ERROR_INIT;
    CLEANUP_CLOSE int old = -1;
    if (open_regular(dir, path, O_PATH, 0, &old, err) < 0)
        return -1;
    if (old >= 0)
        fstat(old, &meta);
    if (fs_replace_file(dir, name_of(path), bytes, len, meta.st_mode & 0777, &write_error) < 0)
        return error_set(err, write_error.code, NULL, "Error: %s", write_error.message);
    return 0;
}

int bridge_append(int dir, const char *path, const char *bytes, size_t len, struct error *err)
{
    CLEANUP_CLOSE int fd = -1;
    if (open_regular(dir, path, O_WRONLY | O_APPEND | O_CREAT, 0666, &fd, err) < 0)
        return -1;
    if (fd < 0)
        return guest_tool_fail_errno(err, ENOENT, "open '%s'", path);
    if (fs_write_all(fd, bytes, len, NULL) < 0)
        return guest_tool_fail_errno(err, errno, "write '%s'", path);
    return 0;
}

static int make_file(int dir, const char *name, const char *text, struct error *err)
{
    CLEANUP_FREE char *path = mem_format("%s/%s", BRIDGE_DIR, name);
    CLEANUP_CLOSE int fd = -1;
    if (open_regular(dir, path, O_PATH, 0, &fd, err) < 0)
        return -1;
    return fd >= 0 ? 0 : bridge_append(dir, path, text, strlen(text), err);
}

int bridge_make_files(int dir, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(usual_files); i++)
        if (make_file(dir, usual_files[i][0], usual_files[i][1], err) < 0)
            return -1;
    return 0;
}

char *bridge_fold_line(const char *text)
{
    struct buffer line = BUFFER_INIT(4 * MAX_LINE_CHARS + 8);
    size_t chars = 0;
    while (text && *text && chars < MAX_LINE_CHARS) {
        size_t blanks = strspn(text, " \t\r\n\v\f");
        if (blanks && line.len && text[blanks]) {
            buffer_append_char(&line, ' ');
            chars++;
        }
        text += blanks;
        size_t n = utf8_char_len(text, strnlen(text, 4), NULL);
        if (!*text || !n || chars == MAX_LINE_CHARS)
            break;
        buffer_append(&line, text, n);
        text += n;
        chars++;
    }
    while (line.len && line.data[line.len - 1] == ' ')
        line.len--;
    if (line.len)
        return buffer_take_string(&line);
    buffer_free(&line);
    return NULL;
}
