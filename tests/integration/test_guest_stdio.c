// The real chat2shell-guest, spoken to over its stdio.
#include "tests/support/guest_rig.h"
#include "controller/base/fs.h"
#include "controller/base/guest_protocol.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static json_t *start_bash(struct guest_rig *rig, const char *id, const char *command, int timeout_ms)
{
    json_t *params = json_pack("{s:s s:s}", "session_id", id, "command", command);
    if (timeout_ms)
        json_object_set_new(params, "timeout_ms", json_integer(timeout_ms));
    json_decref(guest_rig_call(rig, "chat2shell/bash_start", params));
    return json_pack("{s:s}", "session_id", id);
}

static json_t *read_params(const char *id, const char *wait, int wait_ms, int max_bytes)
{
    return json_pack("{s:s s:s s:i s:i}", "session_id", id, "wait", wait, "wait_ms", wait_ms, "max_bytes",
                     max_bytes);
}

static json_t *read_bash(struct guest_rig *rig, const char *id, const char *wait, int max_bytes)
{
    return guest_rig_call(rig, "chat2shell/bash_read", read_params(id, wait, 50000, max_bytes));
}

static void assert_exited(const json_t *snapshot, int code)
{
    assert_string_equal(json_get_text(snapshot, "status"), "exited");
    assert_int_equal(json_get_int(snapshot, "exit_code", -1), code);
}

static char *receive_error(struct guest_rig *rig, const char *line, size_t len, int code)
{
    guest_rig_send_text(rig, line, len);
    CLEANUP_JSON json_t *answer = guest_rig_receive(rig);
    assert_int_equal(json_get_int(json_object_get(answer, "error"), "code", 0), code);
    return json_to_text(json_object_get(answer, "id"));
}

// --- the protocol

static void initialize_names_the_session_extension(void **state)
{
    CLEANUP_JSON json_t *result =
        guest_rig_call(*state, "initialize", json_pack("{s:s}", "protocolVersion", "2025-06-18"));
    assert_string_equal(json_get_text(result, "protocolVersion"), "2025-06-18");
    json_t *experimental = json_object_get(json_object_get(result, "capabilities"), "experimental");
    assert_int_equal(json_get_int(json_object_get(experimental, GUEST_SESSIONS_CAPABILITY), "version", 0), 1);
    CLEANUP_JSON json_t *newer =
        guest_rig_call(*state, "initialize", json_pack("{s:s}", "protocolVersion", "2099-01-01"));
    assert_string_equal(json_get_text(newer, "protocolVersion"), "2025-11-25");
}

static void every_tool_is_described_completely(void **state)
{
    CLEANUP_JSON json_t *result = guest_rig_call(*state, "tools/list", NULL);
    json_t *list = json_object_get(result, "tools"), *tool;
    size_t i;
    CLEANUP_JSON json_t *config = guest_rig_tool(*state, "server_config", json_object());
    assert_int_equal(json_array_size(list), 18);
    assert_int_equal(json_array_size(list), json_get_int(config, "registeredToolCount", 0));
    json_array_foreach(list, i, tool)
    {
        json_t *hints = json_object_get(tool, "annotations");
        assert_true(strlen(json_get_text(tool, "title")) > 3 &&
                    strlen(json_get_text(tool, "description")) > 20);
        assert_string_equal(json_get_text(json_object_get(tool, "inputSchema"), "type"), "object");
        assert_string_equal(json_get_text(json_object_get(tool, "outputSchema"), "type"), "object");
        assert_true(json_is_boolean(json_object_get(hints, "readOnlyHint")));
        assert_true(json_is_boolean(json_object_get(hints, "destructiveHint")));
        assert_true(json_is_boolean(json_object_get(hints, "idempotentHint")));
        assert_true(json_is_boolean(json_object_get(hints, "openWorldHint")));
    }
}

static void ids_come_back_exactly_and_bad_ones_are_refused(void **state)
{
    struct guest_rig *rig = *state;
    static const char *const good[] = {"\"a b\"", "\"\"", "0", "-7", "9007199254740993"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        CLEANUP_FREE char *line =
            mem_format("{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"ping\"}\n", good[i]);
        guest_rig_send_text(rig, line, strlen(line));
        CLEANUP_JSON json_t *answer = guest_rig_receive(rig);
        CLEANUP_FREE char *id = json_to_text(json_object_get(answer, "id"));
        assert_string_equal(id, good[i]);
        assert_non_null(json_object_get(answer, "result"));
    }
    static const char *const bad[] = {"null", "1.5", "true", "[]", "{}"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CLEANUP_FREE char *line = mem_format("{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"ping\"}\n", bad[i]);
        CLEANUP_FREE char *id = receive_error(rig, line, strlen(line), -32600);
        assert_string_equal(id, "null");
    }
}

static void hostile_lines_get_errors_and_the_next_request_works(void **state)
{
    static const struct {
        const char *line;
        int code;
    } cases[] = {
        {"nonsense\n", -32700},
        {"\xff\xfe\n", -32700},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}\n", -32700},
        {"[]\n", -32600},
        {"5\n", -32600},
        {"{\"id\":1,\"method\":\"ping\"}\n", -32600},
        {"{\"jsonrpc\":\"2.0\",\"id\":1}\n", -32600},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no/such\"}\n", -32601},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[1]}\n", -32602},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
         "call\",\"params\":{\"name\":\"read\",\"arguments\":null}}\n",
         -32603},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{}}\n", -32603},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        free(receive_error(*state, cases[i].line, strlen(cases[i].line), cases[i].code));
    CLEANUP_FREE char *deep = mem_alloc(100001);
    memset(deep, '[', 100000);
    deep[100000] = '\n';
    free(receive_error(*state, deep, 100001, -32700));
    json_decref(guest_rig_call(*state, "ping", NULL));
}

static void an_endless_line_is_skipped_to_its_end(void **state)
{
    struct guest_rig *rig = *state;
    size_t len = GUEST_MESSAGE_MAX_BYTES + 3 * 1024 * 1024;
    CLEANUP_FREE char *line = mem_alloc(len);
    memset(line, 'x', len);
    line[len - 1] = '\n';
    free(receive_error(rig, line, len, -32600));
    json_decref(guest_rig_call(rig, "ping", NULL));
}

static void requests_beyond_the_limit_are_refused_and_waits_hold_no_worker(void **state)
{
    struct guest_rig *rig = *state;
    json_decref(start_bash(rig, "b", "sleep 1000", 0));
    int64_t first = rig->last_id + 1;
    for (int i = 0; i < GUEST_MAX_IN_FLIGHT - 1; i++)
        guest_rig_send(rig, "chat2shell/bash_read", read_params("b", "exit", 60000, 100));
    guest_rig_put(rig, "f.txt", "x\n", 2);
    json_decref(guest_rig_tool(rig, "read", json_pack("{s:s}", "path", "f.txt")));
    guest_rig_send(rig, "chat2shell/bash_read", read_params("b", "exit", 60000, 100));
    assert_int_equal(guest_rig_call_code(rig, "ping", NULL), GUEST_ERROR_LIMIT);
    CLEANUP_FREE char *cancel = mem_format(
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":%lld}}\n",
        (long long)first);
    guest_rig_send_text(rig, cancel, strlen(cancel));
    CLEANUP_JSON json_t *answer = guest_rig_wait(rig, first);
    assert_int_equal(json_get_int(json_object_get(answer, "error"), "code", 0), GUEST_ERROR_CANCELLED);
    json_decref(guest_rig_call(rig, "ping", NULL));
}

static void argument_errors_name_the_argument_and_have_no_structure(void **state)
{
    static const struct {
        const char *tool, *args, *place;
    } cases[] = {
        {"read", "{}", "at path"},
        {"read", "{\"path\":5}", "at path"},
        {"read", "{\"path\":null}", "at path"},
        {"read", "{\"path\":\"a\",\"start_line\":0}", "at start_line"},
        {"read", "{\"path\":\"a\",\"start_line\":\"1\"}", "at start_line"},
        {"read", "{\"path\":\"a\",\"max_bytes\":999}", "at max_bytes"},
        {"tree", "{\"max_depth\":13}", "at max_depth"},
        {"tree", "{\"include_hidden\":1}", "at include_hidden"},
        {"search", "{\"query\":\"x\",\"intent\":\"other\"}", "at intent"},
        {"write", "{\"path\":\"a\",\"content\":\"\",\"expected_sha256\":\"abc\"}", "at expected_sha256"},
        {"bash", "{\"command\":\"true\",\"timeout_ms\":999}", "at timeout_ms"},
        {"edit", "{\"path\":\"a\",\"old_text\":\"a\",\"unknown\":1}", "at new_text"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_t *args = json_loads(cases[i].args, 0, NULL);
        CLEANUP_FREE char *text = guest_rig_tool_error(*state, cases[i].tool, args);
        assert_ptr_equal(
            strstr(text, "MCP error -32602: Input validation error: Invalid arguments for tool "), text);
        if (!strstr(text, cases[i].place))
            fail_msg("%s: %s", cases[i].args, text);
    }
    CLEANUP_FREE char *unknown = guest_rig_tool_error(*state, "open_workspace", json_object());
    assert_string_equal(unknown, "MCP error -32602: Tool open_workspace not found");
}

// --- file tools

static void a_file_is_written_read_and_edited(void **state)
{
    CLEANUP_JSON json_t *made =
        guest_rig_tool(*state, "write", json_pack("{s:s s:s}", "path", "a/b/c.txt", "content", "hello\n"));
    assert_false(json_get_bool(made, "existed", true));
    assert_string_equal(json_get_text(made, "diff"),
                        "--- a/a/b/c.txt\n+++ b/a/b/c.txt\n@@ -1,1 +1,2 @@\n+hello\n ");
    CLEANUP_JSON json_t *read =
        guest_rig_tool(*state, "read", json_pack("{s:s}", "path", "./a/x/../b/c.txt/"));
    assert_string_equal(json_get_text(read, "text"), "1 | hello\n2 | ");
    assert_string_equal(json_get_text(read, "path"), "a/b/c.txt");
    assert_string_equal(json_get_text(read, "sha256"), json_get_text(made, "sha256"));
    CLEANUP_JSON json_t *edited =
        guest_rig_tool(*state, "edit",
                       json_pack("{s:s s:s s:s s:s}", "path", "a/b/c.txt", "old_text", "hello", "new_text",
                                 "$& $$ $' \\1", "expected_sha256", json_get_text(made, "sha256")));
    assert_int_equal(json_get_int(edited, "replacements", 0), 1);
    CLEANUP_JSON json_t *again = guest_rig_tool(
        *state, "read", json_pack("{s:s s:i s:i}", "path", "a/b/c.txt", "start_line", 1, "end_line", 1));
    assert_string_equal(json_get_text(again, "text"), "1 | $& $$ $' \\1");
    assert_true(json_get_bool(again, "truncated", false));
}

static void an_existing_file_keeps_inode_mode_and_links(void **state)
{
    struct guest_rig *rig = *state;
    struct stat before, after;
    guest_rig_put(rig, "f", "a long first text\n", 18);
    CLEANUP_FREE char *path = mem_format("%s/f", rig->dir);
    CLEANUP_FREE char *other = mem_format("%s/g", rig->dir);
    assert_int_equal(chmod(path, 0751) | link(path, other) | stat(path, &before), 0);
    json_decref(guest_rig_tool(rig, "write", json_pack("{s:s s:s}", "path", "f", "content", "short")));
    assert_int_equal(stat(path, &after), 0);
    assert_true(before.st_ino == after.st_ino && after.st_mode == before.st_mode && after.st_nlink == 2);
    assert_int_equal(after.st_size, 5);
}

static void content_with_nul_and_any_secret_is_written_byte_for_byte(void **state)
{
    json_t *args =
        json_pack("{s:s s:o}", "path", "n", "content", json_stringn("a\0sk-aaaaaaaaaaaaaaaaaaaaaaaa", 28));
    CLEANUP_JSON json_t *made = guest_rig_tool(*state, "write", args);
    assert_int_equal(json_get_int(made, "bytes", 0), 28);
    CLEANUP_FREE char *text = guest_rig_tool_error(*state, "read", json_pack("{s:s}", "path", "n"));
    assert_non_null(strstr(text, "CodexProError: Refusing to read binary file."));
}

static void ten_edits_of_one_file_at_once_all_count(void **state)
{
    struct guest_rig *rig = *state;
    int64_t ids[10];
    guest_rig_put(rig, "list", "0123456789\n", 11);
    for (int i = 0; i < 10; i++) {
        char digit[2] = {(char)('0' + i), '\0'}, letter[2] = {(char)('a' + i), '\0'};
        json_t *args = json_pack("{s:s s:s s:s}", "path", "list", "old_text", digit, "new_text", letter);
        ids[i] = guest_rig_send(rig, "tools/call", json_pack("{s:s s:o}", "name", "edit", "arguments", args));
    }
    for (int i = 0; i < 10; i++) {
        CLEANUP_JSON json_t *answer = guest_rig_wait(rig, ids[i]);
        assert_false(json_get_bool(json_object_get(answer, "result"), "isError", false));
    }
    CLEANUP_JSON json_t *read = guest_rig_tool(rig, "read", json_pack("{s:s}", "path", "list"));
    assert_string_equal(json_get_text(read, "text"), "1 | abcdefghij\n2 | ");
}

static void make_traps(struct guest_rig *rig)
{
    CLEANUP_CLOSE int dir = open(rig->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    guest_rig_put(rig, "real/file.txt", "inside\n", 7);
    guest_rig_put(rig, "latin1.txt", "caf\xe9\n", 5);
    guest_rig_put(rig, "..odd", "dots\n", 5);
    guest_rig_put(rig, "node_modules/m.js", "x\n", 2);
    CLEANUP_FREE char *absolute = mem_format("%s/real", rig->dir);
    assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
    assert_int_equal(symlinkat("/etc/passwd", dir, "outside"), 0);
    assert_int_equal(symlinkat(absolute, dir, "absolute"), 0);
    assert_int_equal(symlinkat("absolute/file.txt", dir, "twice"), 0);
    assert_int_equal(symlinkat("nowhere", dir, "dangling"), 0);
    assert_int_equal(symlinkat("loop", dir, "loop"), 0);
    assert_int_equal(symlinkat("..", dir, "up"), 0);
    assert_int_equal(symlinkat("node_modules", dir, "alias"), 0);
}

static void paths_lead_nowhere_but_into_the_workspace(void **state)
{
    struct guest_rig *rig = *state;
    make_traps(rig);
    static const struct {
        const char *tool, *path, *words;
    } cases[] = {
        {"read", "../x", "CodexProError: Path escapes workspace root"},
        {"read", "a/../../x", "CodexProError: Path escapes workspace root"},
        {"read", "/etc/passwd", "CodexProError: Path escapes workspace root"},
        {"read", "outside", "resolves outside workspace root through a symlink"},
        {"read", "up/x", "resolves outside workspace root through a symlink"},
        {"read", "dangling", "Error: ENOENT: "},
        {"read", "loop", "Error: ELOOP: "},
        {"read", "fifo", "CodexProError: Not a file"},
        {"read", "real", "CodexProError: Not a file"},
        {"read", "node_modules/m.js", "CodexProError: Path is blocked by safety rules: node_modules/m.js"},
        {"read", "alias/m.js", "CodexProError: Path is blocked by safety rules: alias/m.js"},
        {"read", "real/file.txt/x", "Error: ENOTDIR: "},
        {"write", "outside", "CodexProError: Refusing to write through a symlink"},
        {"write", "dangling", "CodexProError: Refusing to write through a symlink"},
        {"write", "twice", "CodexProError: Refusing to write through a symlink"},
        {"write", "up/x", "parent outside the workspace"},
        {"write", ".", "parent outside the workspace"},
        {"write", "fifo", "CodexProError: Not a file"},
        {"write", "real", "CodexProError: Not a file"},
        {"write", "real/file.txt/x", "Error: EEXIST: "},
        {"write", ".env", "CodexProError: Path is blocked by safety rules: .env"},
        {"write", "alias/new.js", "CodexProError: Path is blocked by safety rules: alias/new.js"},
        {"tree", "real/file.txt", "CodexProError: Not a directory"},
        {"search", "fifo", "CodexProError: Not a file or directory"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_t *args = json_pack("{s:s}", "path", cases[i].path);
        if (strcmp(cases[i].tool, "write") == 0)
            json_object_set_new(args, "content", json_string("x"));
        if (strcmp(cases[i].tool, "search") == 0)
            json_object_set_new(args, "query", json_string("x"));
        CLEANUP_FREE char *text = guest_rig_tool_error(rig, cases[i].tool, args);
        if (!strstr(text, cases[i].words))
            fail_msg("%s %s: %s", cases[i].tool, cases[i].path, text);
    }
    static const char *const good[] = {"twice", "absolute/file.txt", "..odd", "real/../twice"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        json_decref(guest_rig_tool(rig, "read", json_pack("{s:s}", "path", good[i])));
    json_decref(
        guest_rig_tool(rig, "write", json_pack("{s:s s:s}", "path", "absolute/new.txt", "content", "x")));
}

static void bad_bytes_are_shown_and_never_written_back(void **state)
{
    guest_rig_put(*state, "latin1.txt", "caf\xe9\nplain\n", 11);
    CLEANUP_JSON json_t *read = guest_rig_tool(*state, "read", json_pack("{s:s}", "path", "latin1.txt"));
    assert_string_equal(json_get_text(read, "text"), "1 | caf\xEF\xBF\xBD\n2 | plain\n3 | ");
    CLEANUP_FREE char *text = guest_rig_tool_error(
        *state, "edit",
        json_pack("{s:s s:s s:s}", "path", "latin1.txt", "old_text", "plain", "new_text", "x"));
    assert_non_null(strstr(text, "not valid UTF-8"));
}

static void write_refusals_change_nothing(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put(rig, "f", "one\n", 4);
    static const struct {
        const char *args, *words;
    } cases[] = {
        {"{\"path\":\"f\",\"content\":\"x\",\"overwrite\":false}",
         "File already exists and overwrite=false: f"},
        {"{\"path\":\"no/f\",\"content\":\"x\",\"create_dirs\":false}", "Error: ENOENT: "},
        {"{\"path\":\"new\",\"content\":\"x\",\"expected_sha256\":"
         "\"0000000000000000000000000000000000000000000000000000000000000000\"}",
         "File does not exist, so expected_sha256 cannot be verified"},
        {"{\"path\":\"f\",\"content\":\"x\",\"expected_sha256\":"
         "\"0000000000000000000000000000000000000000000000000000000000000000\"}",
         "File changed since it was read: f"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP_FREE char *text = guest_rig_tool_error(rig, "write", json_loads(cases[i].args, 0, NULL));
        if (!strstr(text, cases[i].words))
            fail_msg("%s: %s", cases[i].args, text);
    }
    CLEANUP_JSON json_t *tree = guest_rig_tool(rig, "tree", json_object());
    assert_string_equal(json_get_text(tree, "text"), ".\n└── f");
    CLEANUP_JSON json_t *read = guest_rig_tool(rig, "read", json_pack("{s:s}", "path", "f"));
    assert_string_equal(json_get_text(read, "text"), "1 | one\n2 | ");
}

static void edit_counts_and_refuses_what_is_ambiguous(void **state)
{
    guest_rig_put(*state, "f", "aaaa b\n", 7);
    static const struct {
        const char *args, *words;
    } cases[] = {
        {"{\"path\":\"f\",\"old_text\":\"\",\"new_text\":\"x\"}", "old_text must not be empty."},
        {"{\"path\":\"f\",\"old_text\":\"zz\",\"new_text\":\"x\"}", "old_text was not found in f"},
        {"{\"path\":\"f\",\"old_text\":\"aa\",\"new_text\":\"x\"}", "old_text matched 2 times"},
        {"{\"path\":\"f\",\"old_text\":\"aa\",\"new_text\":\"x\",\"replace_all\":true,\"expected_"
         "replacements\":3}",
         "Expected 3 replacements but would perform 2."},
        {"{\"path\":\"gone\",\"old_text\":\"aa\",\"new_text\":\"x\"}", "Error: ENOENT: "},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP_FREE char *text = guest_rig_tool_error(*state, "edit", json_loads(cases[i].args, 0, NULL));
        if (!strstr(text, cases[i].words))
            fail_msg("%s: %s", cases[i].args, text);
    }
    CLEANUP_JSON json_t *same = guest_rig_tool(
        *state, "edit", json_pack("{s:s s:s s:s}", "path", "f", "old_text", "b", "new_text", "b"));
    assert_string_equal(json_get_text(same, "diff"), "No changes in f.");
}

static void search_obeys_ignore_rules_and_says_what_it_skipped(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put(rig, "src/a.c", "int frob(int x)\n{\n    return frob(x);\n}\n", 40);
    guest_rig_put(rig, "b.log", "frob\n", 5);
    guest_rig_put(rig, "keep.log", "frob\n", 5);
    guest_rig_put(rig, "bin", "frob\0", 5);
    guest_rig_put(rig, ".gitignore", "*.log\n!keep.log\n", 16);
    CLEANUP_JSON json_t *all = guest_rig_tool(rig, "search", json_pack("{s:s}", "query", "frob"));
    json_t *matches = json_object_get(all, "matches"), *skipped = json_object_get(all, "skipped");
    assert_int_equal(json_array_size(matches), 3);
    assert_string_equal(json_get_text(json_array_get(matches, 0), "path"), "keep.log");
    assert_int_equal(json_get_int(json_array_get(matches, 2), "line", 0), 3);
    assert_int_equal(json_get_int(skipped, "ignored", 0), 1);
    assert_int_equal(json_get_int(skipped, "binary", 0), 1);
    CLEANUP_JSON json_t *regex = guest_rig_tool(
        rig, "search",
        json_pack("{s:s s:b s:s s:i}", "query", "fr.b\\(", "regex", 1, "glob", "*.{c,h}", "max_results", 1));
    assert_int_equal(json_array_size(json_object_get(regex, "matches")), 1);
    assert_true(json_get_bool(regex, "truncated", false));
    CLEANUP_FREE char *bad =
        guest_rig_tool_error(rig, "search", json_pack("{s:s s:b}", "query", "(", "regex", 1));
    assert_non_null(strstr(bad, "CodexProError: regex parse error"));
}

static void an_evil_regex_ends_with_a_sentence(void **state)
{
    CLEANUP_FREE char *line = mem_alloc(60001);
    memset(line, 'a', 60000);
    guest_rig_put(*state, "f", line, 60000);
    CLEANUP_FREE char *text = guest_rig_tool_error(
        *state, "search", json_pack("{s:s s:b}", "query", "(a+)+b(?=c)|(a|aa)+$x", "regex", 1));
    assert_non_null(strstr(text, "takes too long"));
}

static void analysis_tells_definitions_references_and_tests_apart(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put(rig, "src/frob.c", "int frob(int x)\n{\n    return x;\n}\n", 34);
    guest_rig_put(rig, "src/user.c", "#include \"frob.h\"\nint y = frob(1);\n", 35);
    guest_rig_put(rig, "tests/test_frob.c", "frob(2);\n", 9);
    guest_rig_put(rig, "README.md", "frob\n", 5);
    json_t *args = json_pack("{s:s s:s s:b}", "query", "frob", "intent", "references", "include_tests", 1);
    CLEANUP_JSON json_t *result = guest_rig_tool(rig, "search", args);
    json_t *analysis = json_object_get(result, "analysis"), *groups = json_object_get(analysis, "groups");
    assert_string_equal(json_get_text(analysis, "intent"), "references");
    json_t *definition = json_array_get(json_object_get(groups, "definitions"), 0);
    assert_string_equal(json_get_text(definition, "path"), "src/frob.c");
    assert_int_equal(json_get_int(definition, "score", 0), 190);
    assert_int_equal(json_array_size(json_object_get(groups, "tests")), 1);
    assert_int_equal(json_array_size(json_object_get(groups, "documentation")), 1);
    json_t *importer = json_array_get(json_object_get(groups, "references"),
                                      json_array_size(json_object_get(groups, "references")) - 1);
    assert_string_equal(json_get_text(importer, "path"), "src/user.c");
    assert_int_equal(json_get_int(importer, "score", 0), 165);
    CLEANUP_JSON json_t *plain = guest_rig_tool(rig, "search", json_pack("{s:s}", "query", "frob"));
    assert_null(json_object_get(plain, "analysis"));
}

static void the_first_look_names_agents_skills_and_git(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put(rig, "AGENTS.md", "x\n", 2);
    guest_rig_put(rig, "skills/paint/SKILL.md", "---\nname: \"painting\"\ndescription: Paint things\n---\n",
                  51);
    json_t *args = json_pack("{s:b s:b}", "include_tree", 1, "include_skills", 1);
    CLEANUP_JSON json_t *result = guest_rig_tool(rig, "open_current_workspace", args);
    assert_string_equal(json_get_text(result, "agents_path"), "AGENTS.md");
    json_t *skill = json_array_get(json_object_get(result, "skill_inventory"), 0);
    assert_string_equal(json_get_text(skill, "name"), "painting");
    assert_string_equal(json_get_text(skill, "path"), "$WORKSPACE/skills/paint/SKILL.md");
    assert_int_equal(json_get_int(json_object_get(result, "skill_counts"), "workspace", 0), 1);
    assert_non_null(strstr(json_get_text(result, "tree"), "skills/"));
    assert_true(strlen(json_get_text(result, "git_status")) > 5);
}

// --- bash

static void a_command_gives_streams_code_and_environment(void **state)
{
    const char *command = "echo out; echo err >&2; env; ls /proc/self/fd | wc -l; exit 3";
    CLEANUP_JSON json_t *result = guest_rig_tool(*state, "bash", json_pack("{s:s}", "command", command));
    const char *out = json_get_text(result, "stdout");
    assert_string_equal(json_get_text(result, "stderr"), "err\n");
    assert_int_equal(json_get_int(result, "exitCode", -1), 3);
    assert_true(json_is_null(json_object_get(result, "signal")));
    static const char *const wanted[] = {"out\n",
                                         "TERM=dumb\n",
                                         "NO_COLOR=1\n",
                                         "CI=1\n",
                                         "SHELL=",
                                         "TMPDIR=",
                                         "HOME=",
                                         "http_proxy=http://127.0.0.1:3128\n",
                                         "HTTPS_PROXY=http://127.0.0.1:3128\n",
                                         "\n4\n"};
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        if (!strstr(out, wanted[i]))
            fail_msg("no %s in %s", wanted[i], out);
    assert_null(strstr(out, "CANARY"));
}

static void a_command_over_its_time_is_ended(void **state)
{
    json_t *args = json_pack("{s:s s:i}", "command", "echo a; sleep 1000", "timeout_ms", 5000);
    CLEANUP_JSON json_t *result = guest_rig_tool(*state, "bash", args);
    assert_true(json_is_null(json_object_get(result, "exitCode")));
    assert_string_equal(json_get_text(result, "signal"), "SIGTERM");
    assert_string_equal(json_get_text(result, "stdout"), "a\n");
    assert_string_equal(json_get_text(result, "stderr"), "[codexpro] Command timed out after 5000 ms.");
}

static void much_output_is_cut_and_the_command_still_ends_by_itself(void **state)
{
    const char *command = "head -c 300000 /dev/zero | tr '\\0' x; exit 4";
    CLEANUP_JSON json_t *result = guest_rig_tool(*state, "bash", json_pack("{s:s}", "command", command));
    assert_int_equal(json_get_int(result, "exitCode", -1), 4);
    assert_true(json_get_bool(result, "truncated", false));
    assert_non_null(strstr(json_get_text(result, "stdout"), "\n...[output truncated to 120000 bytes]"));
}

// --- sessions

static void output_comes_once_and_in_order(void **state)
{
    json_decref(
        start_bash(*state, "s", "for i in 1 2 3 4 5 6; do echo line $i; sleep 0.05; done; exit 9", 0));
    struct buffer all = BUFFER_INIT(10000);
    for (bool is_running = true; is_running;) {
        CLEANUP_JSON json_t *snapshot = read_bash(*state, "s", "output", 60000);
        buffer_append_text(&all, json_get_text(snapshot, "output"));
        is_running = strcmp(json_get_text(snapshot, "status"), "running") == 0;
        if (!is_running)
            assert_exited(snapshot, 9);
    }
    assert_string_equal(buffer_text(&all), "line 1\nline 2\nline 3\nline 4\nline 5\nline 6\n");
    buffer_free(&all);
    CLEANUP_JSON json_t *again = read_bash(*state, "s", "output", 60000);
    assert_exited(again, 9);
    assert_string_equal(json_get_text(again, "output"), "");
}

static void characters_are_never_split_and_bad_bytes_are_replaced(void **state)
{
    json_decref(start_bash(*state, "s", "printf 'a\\xe2\\x82\\xacb\\xffc\\xe2\\x82'", 0));
    json_decref(read_bash(*state, "s", "exit", 1)); // waits for the end and takes the first byte
    static const char *const pieces[] = {"\xE2\x82\xAC", "b", "\xEF\xBF\xBD", "c"};
    for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
        CLEANUP_JSON json_t *snapshot = read_bash(*state, "s", "none", 1);
        assert_string_equal(json_get_text(snapshot, "output"), pieces[i]);
        assert_true(json_get_bool(snapshot, "has_more_output", false));
    }
    CLEANUP_JSON json_t *last = read_bash(*state, "s", "none", 10);
    assert_string_equal(json_get_text(last, "output"), "\xEF\xBF\xBD");
    assert_false(json_get_bool(last, "has_more_output", true));
}

static void a_lone_first_byte_is_held_back_while_the_command_runs(void **state)
{
    json_decref(start_bash(*state, "s", "printf '\\xc3'; sleep 1; printf '\\xa9\\0z'; sleep 1000", 0));
    CLEANUP_JSON json_t *snapshot = read_bash(*state, "s", "output", 60000);
    const json_t *output = json_object_get(snapshot, "output");
    assert_int_equal(json_string_length(output), 4);
    assert_memory_equal(json_string_value(output), "\xC3\xA9\0z", 4);
}

static void sixty_thousand_bytes_an_answer_and_more_follows(void **state)
{
    json_decref(start_bash(*state, "s", "head -c 70000 /dev/zero | tr '\\0' y", 0));
    CLEANUP_JSON json_t *first = read_bash(*state, "s", "exit", 60000);
    assert_int_equal(strlen(json_get_text(first, "output")), 60000);
    assert_true(json_get_bool(first, "has_more_output", false));
    CLEANUP_JSON json_t *second = read_bash(*state, "s", "none", 60000);
    assert_int_equal(strlen(json_get_text(second, "output")), 10000);
    assert_false(json_get_bool(second, "has_more_output", true));
}

static void unread_output_beyond_the_log_is_dropped_with_a_count(void **state)
{
    json_decref(start_bash(*state, "s", "head -c 70000000 /dev/zero | tr '\\0' y; echo END", 0));
    CLEANUP_JSON json_t *first = read_bash(*state, "s", "exit", 60000);
    assert_non_null(strstr(json_get_text(first, "output"),
                           "[chat2shell: 2891140 bytes of older output were dropped here"));
    size_t total = 0;
    for (bool has_more = true; has_more;) {
        CLEANUP_JSON json_t *next = read_bash(*state, "s", "none", 60000);
        total += strlen(json_get_text(next, "output"));
        has_more = json_get_bool(next, "has_more_output", false);
        if (!has_more)
            assert_non_null(strstr(json_get_text(next, "output"), "yEND\n"));
    }
    assert_true(total > 64 * 1024 * 1024 - 60000 && total <= 64 * 1024 * 1024);
}

static void exit_codes_say_how_a_command_ended(void **state)
{
    json_decref(start_bash(*state, "timed", "sleep 1000", 1000));
    json_decref(start_bash(*state, "stubborn", "trap '' TERM; echo ready; while :; do sleep 1; done", 0));
    json_decref(start_bash(*state, "signalled", "kill -SEGV $$", 0));
    CLEANUP_JSON json_t *timed = read_bash(*state, "timed", "exit", 60000);
    assert_exited(timed, 124);
    CLEANUP_JSON json_t *ready = read_bash(*state, "stubborn", "output", 60000);
    assert_string_equal(json_get_text(ready, "output"), "ready\n");
    CLEANUP_JSON json_t *killed =
        guest_rig_call(*state, "chat2shell/bash_stop", json_pack("{s:s}", "session_id", "stubborn"));
    assert_exited(killed, 137);
    CLEANUP_JSON json_t *again =
        guest_rig_call(*state, "chat2shell/bash_stop", json_pack("{s:s}", "session_id", "stubborn"));
    assert_exited(again, 137);
    CLEANUP_JSON json_t *signalled = read_bash(*state, "signalled", "exit", 60000);
    assert_exited(signalled, 139);
}

static void stopping_and_reading_go_through_while_another_read_waits(void **state)
{
    struct guest_rig *rig = *state;
    json_decref(start_bash(rig, "s", "sleep 1000", 0));
    int64_t waiting = guest_rig_send(rig, "chat2shell/bash_read", read_params("s", "output", 60000, 100));
    CLEANUP_JSON json_t *look = read_bash(rig, "s", "none", 100);
    assert_string_equal(json_get_text(look, "status"), "running");
    CLEANUP_JSON json_t *stopped =
        guest_rig_call(rig, "chat2shell/bash_stop", json_pack("{s:s}", "session_id", "s"));
    assert_exited(stopped, 143);
    CLEANUP_JSON json_t *answer = guest_rig_wait(rig, waiting);
    assert_exited(json_object_get(answer, "result"), 143);
}

static void a_wait_ends_at_its_own_time(void **state)
{
    json_decref(start_bash(*state, "s", "sleep 1000", 0));
    int64_t before = boot_time_now().ms;
    CLEANUP_JSON json_t *snapshot =
        guest_rig_call(*state, "chat2shell/bash_read", read_params("s", "output", 300, 100));
    assert_string_equal(json_get_text(snapshot, "status"), "running");
    assert_true(boot_time_now().ms - before >= 300);
}

static void bad_session_requests_have_their_codes(void **state)
{
    struct guest_rig *rig = *state;
    assert_int_equal(guest_rig_call_code(rig, "chat2shell/bash_read", read_params("none", "none", 0, 1)),
                     GUEST_ERROR_UNKNOWN_SESSION);
    assert_int_equal(
        guest_rig_call_code(rig, "chat2shell/bash_stop", json_pack("{s:s}", "session_id", "none")),
        GUEST_ERROR_UNKNOWN_SESSION);
    static const char *const bad[] = {
        "{\"session_id\":\"x\"}",
        "{\"session_id\":\"x\",\"command\":\" \"}",
        "{\"session_id\":\"X/\",\"command\":\"true\"}",
        "{\"session_id\":\"x\",\"command\":\"true\",\"cwd\":\"..\"}",
        "{\"session_id\":\"x\",\"command\":\"true\",\"cwd\":\"gone\"}",
        "{\"session_id\":\"x\",\"command\":\"true\",\"timeout_ms\":999}",
        "{\"session_id\":\"x\",\"command\":\"a\\u0000b\"}",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(
            guest_rig_call_code(rig, "chat2shell/bash_start", json_loads(bad[i], JSON_ALLOW_NUL, NULL)),
            -32602);
    CLEANUP_FREE char *huge = mem_alloc(200001);
    memset(huge, 'x', 200000);
    assert_int_equal(guest_rig_call_code(rig, "chat2shell/bash_start",
                                         json_pack("{s:s s:s}", "session_id", "x", "command", huge)),
                     -32602);
}

// --- the operator's programs

static json_t *read_exec(struct guest_rig *rig, const char *id)
{
    return guest_rig_call(rig, "chat2shell/exec_read",
                          json_pack("{s:s s:i}", "exec_id", id, "wait_ms", 50000));
}

// Collects both streams until the end; returns the exit code.
static int drain_exec(struct guest_rig *rig, const char *id, struct buffer streams[2])
{
    static const char *const names[] = {"stdout", "stderr"};
    for (;;) {
        CLEANUP_JSON json_t *answer = read_exec(rig, id);
        for (int i = 0; i < 2; i++) {
            CLEANUP_FREE char *bytes = NULL;
            size_t len = 0;
            struct error err = ERROR_INIT;
            assert_ok(json_decode_base64(json_get_text(answer, names[i]), &bytes, &len, &err));
            buffer_append(&streams[i], bytes, len);
        }
        if (json_get_bool(answer, "exited", false))
            return (int)json_get_int(answer, "exit_code", -1);
    }
}

static void bytes_go_through_a_program_unchanged(void **state)
{
    struct guest_rig *rig = *state;
    enum { BYTES = 3 * 1024 * 1024 };
    CLEANUP_FREE char *bytes = mem_alloc(BYTES);
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (char)(i * 31 ^ i >> 8);
    json_decref(guest_rig_call(rig, "chat2shell/exec_start",
                               json_pack("{s:s s:[s]}", "exec_id", "e", "argv", "cat")));
    json_t *params =
        json_pack("{s:s s:o s:b}", "exec_id", "e", "data", json_encode_base64(bytes, BYTES), "eof", 1);
    int64_t written = guest_rig_send(rig, "chat2shell/exec_write", params);
    struct buffer streams[2] = {BUFFER_INIT(BYTES + 1), BUFFER_INIT(1000)};
    assert_int_equal(drain_exec(rig, "e", streams), 0);
    assert_int_equal(streams[0].len, BYTES);
    assert_memory_equal(streams[0].data, bytes, BYTES);
    json_decref(guest_rig_wait(rig, written));
    buffer_free(&streams[0]);
    buffer_free(&streams[1]);
    json_decref(guest_rig_call(rig, "chat2shell/exec_end", json_pack("{s:s}", "exec_id", "e")));
    assert_int_equal(guest_rig_call_code(rig, "chat2shell/exec_read", json_pack("{s:s}", "exec_id", "e")),
                     GUEST_ERROR_UNKNOWN_SESSION);
}

static void assert_exec(struct guest_rig *rig, const char *id, json_t *params, int code, const char *out,
                        const char *errors)
{
    json_object_set_new(params, "exec_id", json_string(id));
    json_decref(guest_rig_call(rig, "chat2shell/exec_start", params));
    struct buffer streams[2] = {BUFFER_INIT(10000), BUFFER_INIT(10000)};
    assert_int_equal(drain_exec(rig, id, streams), code);
    assert_string_equal(buffer_text(&streams[0]), out);
    assert_non_null(strstr(buffer_text(&streams[1]), errors));
    buffer_free(&streams[0]);
    buffer_free(&streams[1]);
}

static void programs_get_argv_env_and_directory(void **state)
{
    struct guest_rig *rig = *state;
    json_t *params = json_pack("{s:[ssss] s:{s:s} s:s}", "argv", "/bin/sh", "-c",
                               "echo \"$0\" $A; pwd; exit 5", "a  b", "env", "A", "b c", "cwd", "/usr");
    assert_exec(rig, "a", params, 5, "a  b b c\n/usr\n", "");
}

static void failures_to_start_look_as_in_a_shell(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put(rig, "plain", "x", 1);
    assert_exec(rig, "a", json_pack("{s:[s]}", "argv", "no-such-program"), 127, "", "command not found");
    assert_exec(rig, "b", json_pack("{s:[s]}", "argv", "./plain"), 126, "", "ermission denied");
    assert_exec(rig, "c",
                json_pack("{s:[sss] s:s}", "argv", "/bin/sh", "-c", "pwd; kill -9 $$", "cwd", "/usr"), 137,
                "/usr\n", "");
    assert_int_equal(
        guest_rig_call_code(rig, "chat2shell/exec_start", json_pack("{s:s s:[]}", "exec_id", "d", "argv")),
        -32602);
    assert_int_equal(
        guest_rig_call_code(rig, "chat2shell/exec_start",
                            json_pack("{s:s s:[s] s:s}", "exec_id", "d", "argv", "true", "cwd", "/gone")),
        -32602);
}

static void a_signal_reaches_the_program(void **state)
{
    struct guest_rig *rig = *state;
    json_decref(guest_rig_call(rig, "chat2shell/exec_start",
                               json_pack("{s:s s:[ss]}", "exec_id", "e", "argv", "sleep", "1000")));
    json_decref(guest_rig_call(rig, "chat2shell/exec_signal",
                               json_pack("{s:s s:i}", "exec_id", "e", "signal", SIGINT)));
    struct buffer streams[2] = {BUFFER_INIT(100), BUFFER_INIT(100)};
    assert_int_equal(drain_exec(rig, "e", streams), 130);
    buffer_free(&streams[0]);
    buffer_free(&streams[1]);
    assert_int_equal(guest_rig_call_code(rig, "chat2shell/exec_signal",
                                         json_pack("{s:s s:i}", "exec_id", "e", "signal", 99)),
                     -32602);
}

static void unsaved_work_is_counted(void **state)
{
    CLEANUP_JSON json_t *none = guest_rig_call(*state, "chat2shell/git_unsaved", json_object());
    assert_false(json_get_bool(none, "is_repository", true));
    const char *command =
        "git init -q . && git config user.email a@b && git config user.name n && echo x > f && git add f && "
        "git commit -qm one && echo y > g && echo z >> f";
    CLEANUP_JSON json_t *made = guest_rig_tool(*state, "bash", json_pack("{s:s}", "command", command));
    assert_int_equal(json_get_int(made, "exitCode", -1), 0);
    CLEANUP_JSON json_t *some = guest_rig_call(*state, "chat2shell/git_unsaved", json_object());
    assert_true(json_get_bool(some, "is_repository", false));
    assert_int_equal(json_get_int(some, "changed_files", -1), 2);
    assert_int_equal(json_get_int(some, "unexported_commits", -1), 1);
}

// --- the end

static bool is_gone(const char *path)
{
    struct error err = ERROR_INIT;
    struct buffer text = BUFFER_INIT(64);
    if (fs_read_file(path, &text, &err) < 0)
        fail_msg("%s: %s", path, err.message);
    pid_t pid = (pid_t)strtol(buffer_text(&text), NULL, 10);
    buffer_free(&text);
    return kill(pid, 0) < 0 && errno == ESRCH;
}

static void the_end_of_input_ends_every_process(void **state)
{
    struct guest_rig *rig = mem_alloc(sizeof(*rig));
    (void)state;
    guest_rig_start(rig);
    const char *command = "echo $$ > a; (setsid sh -c 'trap \"\" TERM; echo $$ > b; sleep 1000' &) ; while [ "
                          "! -s b ]; do sleep 0.05; done; "
                          "echo ready; sleep 1000";
    json_decref(start_bash(rig, "s", command, 0));
    json_decref(read_bash(rig, "s", "output", 100));
    int64_t waiting = guest_rig_send(rig, "chat2shell/bash_read", read_params("s", "exit", 60000, 100));
    json_decref(guest_rig_call(rig, "ping", NULL));
    close(rig->in);
    rig->in = -1;
    CLEANUP_JSON json_t *answer = guest_rig_wait(rig, waiting);
    assert_int_equal(json_get_int(json_object_get(answer, "error"), "code", 0), GUEST_ERROR_CANCELLED);
    CLEANUP_FREE char *a = mem_format("%s/a", rig->dir);
    CLEANUP_FREE char *b = mem_format("%s/b", rig->dir);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)rig->pid, &info, WEXITED | WNOWAIT), 0);
    assert_true(is_gone(a));
    assert_true(is_gone(b));
    assert_int_equal(guest_rig_stop(rig), 0);
    free(rig);
}

static int run_program(const char *name, const char *const *argv)
{
    CLEANUP_FREE char *program = guest_rig_program();
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        const char *full[16] = {name};
        for (int i = 0; argv[i]; i++)
            full[i + 1] = argv[i];
        execv(program, (char *const *)full);
        _exit(99);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void bad_flags_exit_with_2(void **state)
{
    (void)state;
    assert_int_equal(run_program("guest", (const char *const[]){NULL}), 2);
    assert_int_equal(run_program("guest", (const char *const[]){"--root", NULL}), 2);
    assert_int_equal(run_program("guest", (const char *const[]){"--root", "/tmp", NULL}), 2);
    assert_int_equal(run_program("guest", (const char *const[]){"--root", "/tmp", "--stdio", "--port", NULL}),
                     2);
    assert_int_equal(run_program("guest", (const char *const[]){"--root", "/no/such/dir", "--stdio", NULL}),
                     1);
    assert_int_equal(run_program("guest", (const char *const[]){"--version", NULL}), 0);
    assert_int_equal(run_program("guest", (const char *const[]){"--help", NULL}), 0);
    assert_int_equal(run_program("guest", (const char *const[]){"--root", "/tmp", "--stdio", NULL}),
                     0); // stdin is /dev/null
}

static void as_sudo_it_runs_the_command_as_it_is(void **state)
{
    (void)state;
    static const struct {
        const char *argv[7];
        int status;
    } cases[] = {
        {{"sh", "-c", "exit 7"}, 7},
        {{"-n", "-E", "-H", "--", "sh", "-c", "exit 8"}, 8},
        {{"-nu", "root", "A=b", "sh", "-c", "[ \"$A$USER$SUDO_USER\" ] && [ $A = b ]"}, 0},
        {{"--user=root", "sh", "-c", "[ $USER = root ]"}, 0},
        {{"-u", "no-such-user", "true"}, 1},
        {{"-u"}, 1},
        {{"--no-such-option", "true"}, 1},
        {{"-v"}, 0},
        {{"-k"}, 0},
        {{"-s", "exit", "it's 5"}, 2},
        {{"no-such-program"}, 1},
        {{NULL}, 1},
    };
    if (getuid() != 0)
        skip(); // root's name is not this user's
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *argv[8] = {0};
        memcpy(argv, cases[i].argv, sizeof(cases[i].argv));
        int status = run_program("/x/sudo", argv);
        if (status != cases[i].status && !(i == 9 && status))
            fail_msg("case %zu ended with %d", i, status);
    }
}

#define WITH_GUEST(test) cmocka_unit_test_setup_teardown(test, guest_rig_setup, guest_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_GUEST(initialize_names_the_session_extension),
        WITH_GUEST(every_tool_is_described_completely),
        WITH_GUEST(ids_come_back_exactly_and_bad_ones_are_refused),
        WITH_GUEST(hostile_lines_get_errors_and_the_next_request_works),
        WITH_GUEST(an_endless_line_is_skipped_to_its_end),
        WITH_GUEST(requests_beyond_the_limit_are_refused_and_waits_hold_no_worker),
        WITH_GUEST(argument_errors_name_the_argument_and_have_no_structure),
        WITH_GUEST(a_file_is_written_read_and_edited),
        WITH_GUEST(an_existing_file_keeps_inode_mode_and_links),
        WITH_GUEST(content_with_nul_and_any_secret_is_written_byte_for_byte),
        WITH_GUEST(ten_edits_of_one_file_at_once_all_count),
        WITH_GUEST(paths_lead_nowhere_but_into_the_workspace),
        WITH_GUEST(bad_bytes_are_shown_and_never_written_back),
        WITH_GUEST(write_refusals_change_nothing),
        WITH_GUEST(edit_counts_and_refuses_what_is_ambiguous),
        WITH_GUEST(search_obeys_ignore_rules_and_says_what_it_skipped),
        WITH_GUEST(an_evil_regex_ends_with_a_sentence),
        WITH_GUEST(analysis_tells_definitions_references_and_tests_apart),
        WITH_GUEST(the_first_look_names_agents_skills_and_git),
        WITH_GUEST(a_command_gives_streams_code_and_environment),
        WITH_GUEST(a_command_over_its_time_is_ended),
        WITH_GUEST(much_output_is_cut_and_the_command_still_ends_by_itself),
        WITH_GUEST(output_comes_once_and_in_order),
        WITH_GUEST(characters_are_never_split_and_bad_bytes_are_replaced),
        WITH_GUEST(a_lone_first_byte_is_held_back_while_the_command_runs),
        WITH_GUEST(sixty_thousand_bytes_an_answer_and_more_follows),
        WITH_GUEST(unread_output_beyond_the_log_is_dropped_with_a_count),
        WITH_GUEST(exit_codes_say_how_a_command_ended),
        WITH_GUEST(stopping_and_reading_go_through_while_another_read_waits),
        WITH_GUEST(a_wait_ends_at_its_own_time),
        WITH_GUEST(bad_session_requests_have_their_codes),
        WITH_GUEST(bytes_go_through_a_program_unchanged),
        WITH_GUEST(programs_get_argv_env_and_directory),
        WITH_GUEST(failures_to_start_look_as_in_a_shell),
        WITH_GUEST(a_signal_reaches_the_program),
        WITH_GUEST(unsaved_work_is_counted),
        cmocka_unit_test(the_end_of_input_ends_every_process),
        cmocka_unit_test(bad_flags_exit_with_2),
        cmocka_unit_test(as_sudo_it_runs_the_command_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
