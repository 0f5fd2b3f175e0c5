// export_pro_context of the real chat2shell-guest.
#include "controller/base/buffer.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "tests/support/guest_rig.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUNDLE ".ai-bridge/pro-context.md"

static json_t *parse(const char *text)
{
    json_t *value = json_loads(text, JSON_ALLOW_NUL, NULL);
    if (!value)
        fail_msg("the test's own JSON is wrong: %s", text);
    return value;
}

static json_t *export(struct guest_rig *rig, const char *args)
{
    return guest_rig_tool(rig, "export_pro_context", parse(args));
}

static char *get(const struct guest_rig *rig, const char *path)
{
    CLEANUP_FREE char *full = mem_format("%s/%s", rig->dir, path);
    struct buffer text = BUFFER_INIT(4 * 1024 * 1024);
    struct error err = ERROR_INIT;
    if (fs_read_file(full, &text, &err) < 0)
        fail_msg("%s", err.message);
    return buffer_take_string(&text);
}

static void run(struct guest_rig *rig, const char *command)
{
    CLEANUP_JSON json_t *result = guest_rig_tool(rig, "bash", json_pack("{s:s}", "command", command));
    assert_int_equal(json_get_int(result, "exitCode", -1), 0);
}

static void assert_texts(const json_t *result, const char *name, const char *wanted)
{
    CLEANUP_FREE char *text = json_dumps(json_object_get(result, name), JSON_COMPACT);
    if (strcmp(text, wanted) != 0)
        fail_msg("%s is %s", name, text);
}

static void assert_has(const char *text, const char *const *wanted, size_t count)
{
    for (size_t i = 0; i < count; i++) // in this order
        if (!(text = strstr(text, wanted[i])))
            fail_msg("\"%s\" is missing", wanted[i]);
}

static void arguments_out_of_bounds_are_refused_by_name(void **state)
{
    static const char *const cases[][2] = {
        {"{\"title\":1}", "at title"},
        {"{\"selected_paths\":\"a\"}", "at selected_paths"},
        {"{\"selected_paths\":[1]}", "at selected_paths"},
        {"{\"extra_globs\":{}}", "at extra_globs"},
        {"{\"include_diff\":1}", "at include_diff"},
        {"{\"max_depth\":0}", "at max_depth"},
        {"{\"max_depth\":7}", "at max_depth"},
        {"{\"max_files\":0}", "at max_files"},
        {"{\"max_files\":81}", "at max_files"},
        {"{\"max_file_bytes\":999}", "at max_file_bytes"},
        {"{\"max_file_bytes\":250001}", "at max_file_bytes"},
        {"{\"max_total_bytes\":19999}", "at max_total_bytes"},
        {"{\"max_total_bytes\":2000001}", "at max_total_bytes"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP_FREE char *text = guest_rig_tool_error(*state, "export_pro_context", parse(cases[i][0]));
        if (!strstr(text, cases[i][1]))
            fail_msg("%s: %s", cases[i][0], text);
    }
}

static void a_bundle_has_its_sections_in_order(void **state)
{
    struct guest_rig *rig = *state;
    run(rig, "git init -q . && git config user.email a@b && git config user.name n && echo old >tracked.txt "
             "&& git add . && "
             "git commit -qm first && echo new >>tracked.txt && echo x >untracked.txt");
    guest_rig_put_text(rig, "README.md", "# Hello\n```c\nfence\n```\n");
    CLEANUP_JSON json_t *result = export(rig, "{\"title\":\" My \\n bundle \"}");
    assert_string_equal(json_get_text(result, "path"), BUNDLE);
    assert_texts(result, "files_included", "[\"README.md\",\"tracked.txt\",\"untracked.txt\"]");
    assert_texts(result, "files_skipped", "[]");
    assert_false(json_get_bool(result, "truncated", true));
    CLEANUP_FREE char *text = get(rig, BUNDLE);
    assert_int_equal(json_get_int(result, "bytes", 0), (int)strlen(text));
    static const char *const wanted[] = {"# My bundle\n",
                                         "Generated: 2",
                                         "Root: /",
                                         "\n## Repository Tree\n",
                                         "README.md",
                                         "\n## Git Status\n",
                                         " M tracked.txt",
                                         "\n## Recent Commits\n",
                                         "first",
                                         "\n## Git Diff\n",
                                         "```diff\n",
                                         "+new\n",
                                         "\n## Existing AI Bridge Context\n",
                                         "### .ai-bridge/current-plan.md",
                                         "\n## Selected Files\n",
                                         "- README.md\n",
                                         "\n## File Contents\n",
                                         "### README.md\n\n````\n1 | # Hello\n2 | ```c\n",
                                         "### tracked.txt\n\n```\n1 | old\n2 | new\n",
                                         "### untracked.txt",
                                         "\n## Skipped Files\n\nNone.\n"};
    assert_has(text, wanted, ARRAY_LEN(wanted));
}

static void parts_are_left_out_on_request_and_without_a_repository(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put_text(rig, "README.md", "x\n");
    CLEANUP_JSON json_t *result =
        export(rig, "{\"include_important_files\":false,\"include_changed_files\":false,"
                    "\"include_diff\":false,\"include_ai_bridge\":false}");
    assert_texts(result, "files_included", "[]");
    CLEANUP_FREE char *text = get(rig, BUNDLE);
    assert_null(strstr(text, "## Git Diff"));
    assert_null(strstr(text, "## Existing AI Bridge Context"));
    CLEANUP_FREE char *plan = mem_format("%s/.ai-bridge/current-plan.md", rig->dir);
    assert_int_equal(access(plan, F_OK), -1);
    CLEANUP_JSON json_t *all = export(rig, "{}");
    assert_texts(all, "files_included", "[\"README.md\"]");
    assert_int_equal(access(plan, F_OK), 0);
}

static void selected_paths_come_first_and_bad_ones_are_skipped_with_a_reason(void **state)
{
    struct guest_rig *rig = *state;
    CLEANUP_CLOSE int dir = open(rig->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    guest_rig_put_text(rig, "z.txt", "z\n");
    guest_rig_put_text(rig, "README.md", "x\n");
    guest_rig_put_text(rig, "a/one.ts", "1\n");
    guest_rig_put_text(rig, "a/.two.ts", "2\n");
    guest_rig_put_text(rig, "a/b.md", "no\n");
    guest_rig_put_text(rig, ".env", "SECRET\n");
    guest_rig_put_text(rig, "big.txt", "0123456789");
    guest_rig_put(rig, "binary", "a\0b", 3);
    CLEANUP_FREE char *big = mem_format("%s/big.txt", rig->dir);
    assert_int_equal(truncate(big, 200000), 0);
    assert_int_equal(symlinkat("/etc/passwd", dir, "out"), 0);
    assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
    CLEANUP_JSON json_t *result =
        export(rig, "{\"selected_paths\":[\"z.txt\",\"./a/../z.txt\",\"gone\",\"a\",\"../"
                    "up\",\"out\",\".env\",\"fifo\",\"binary\","
                    "\"big.txt\"],\"extra_globs\":[\"*.ts\",\".env\",\"{a,b}{c,d}\"]}");
    assert_texts(result, "files_included", "[\"z.txt\",\"README.md\",\"a/.two.ts\",\"a/one.ts\"]");
    CLEANUP_FREE char *skipped = json_dumps(json_object_get(result, "files_skipped"), JSON_COMPACT);
    static const char *const reasons[] = {"../up [CodexProError: Path escapes workspace root",
                                          "gone [missing]",
                                          "a [not a file]",
                                          "out [CodexProError: Path resolves outside",
                                          ".env [CodexProError: Path is blocked",
                                          "fifo [not a file]",
                                          "binary [CodexProError: Refusing to read binary file.",
                                          "big.txt [CodexProError: File is too large"};
    assert_has(skipped, reasons, ARRAY_LEN(reasons));
    assert_int_equal(json_array_size(json_object_get(result, "files_skipped")), ARRAY_LEN(reasons));
    CLEANUP_FREE char *text = get(rig, BUNDLE);
    assert_null(strstr(text, "SECRET"));
    assert_null(strstr(text, "root:x:"));
    assert_non_null(strstr(text, "- gone [missing]\n"));
}

static void a_bundle_never_exceeds_its_maximum_and_says_what_found_no_room(void **state)
{
    struct guest_rig *rig = *state;
    CLEANUP_FREE char *line = mem_alloc(9001);
    memset(line, 'x', 9000);
    for (int i = 0; i < 30; i++) {
        CLEANUP_FREE char *path = mem_format("f%02d.txt", i);
        guest_rig_put_text(rig, path, line);
    }
    CLEANUP_JSON json_t *few = export(rig, "{\"extra_globs\":[\"*.txt\"],\"max_files\":2}");
    assert_int_equal(json_array_size(json_object_get(few, "files_included")), 2);
    assert_int_equal(json_array_size(json_object_get(few, "files_skipped")), 28);
    assert_true(json_get_bool(few, "truncated", false));
    CLEANUP_JSON json_t *small = export(rig, "{\"extra_globs\":[\"*.txt\"],\"max_total_bytes\":20000}");
    assert_true(json_get_int(small, "bytes", 99999) <= 20000);
    assert_int_equal(json_array_size(json_object_get(small, "files_included")), 1);
    assert_true(json_get_bool(small, "truncated", false));
    CLEANUP_FREE char *text = get(rig, BUNDLE);
    assert_non_null(strstr(text, "f29.txt [no room within max_total_bytes]"));
}

static void secrets_and_odd_bytes_go_in_as_they_are(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put(rig, "README.md", "TOKEN=ghp_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\ncaf\xe9\n", 46);
    json_decref(export(rig, "{}"));
    CLEANUP_FREE char *text = get(rig, BUNDLE);
    assert_non_null(strstr(text, "TOKEN=ghp_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
    assert_non_null(strstr(text, "caf\xef\xbf\xbd"));
}

static void it_is_put_in_place_at_once_and_never_through_a_link(void **state)
{
    struct guest_rig *rig = *state;
    CLEANUP_FREE char *bundle = mem_format("%s/%s", rig->dir, BUNDLE);
    CLEANUP_FREE char *bridge = mem_format("%s/.ai-bridge", rig->dir);
    struct stat before, after;
    guest_rig_put_text(rig, BUNDLE, "old");
    assert_int_equal(chmod(bundle, 0600) | stat(bundle, &before), 0);
    json_decref(export(rig, "{}"));
    assert_int_equal(stat(bundle, &after), 0);
    assert_true(before.st_ino != after.st_ino && (after.st_mode & 0777) == 0600);
    guest_rig_put_text(rig, "precious", "precious\n");
    assert_int_equal(unlink(bundle) | symlink("../precious", bundle), 0);
    CLEANUP_FREE char *words = guest_rig_tool_error(rig, "export_pro_context", json_object());
    assert_non_null(strstr(words, "Refusing to use a symlink in .ai-bridge: " BUNDLE));
    CLEANUP_FREE char *text = get(rig, "precious");
    assert_string_equal(text, "precious\n");
    run(rig, "rm -r .ai-bridge && mkdir other && ln -s other .ai-bridge");
    CLEANUP_FREE char *again = guest_rig_tool_error(rig, "export_pro_context", json_object());
    assert_non_null(strstr(again, "Refusing to use a symlink in .ai-bridge: .ai-bridge"));
    assert_int_equal(unlink(bridge), 0);
}

static void too_long_lists_are_refused(void **state)
{
    json_t *args = json_object(), *globs = json_array(), *paths = json_array();
    for (int i = 0; i < 51; i++)
        json_array_append_new(globs, json_string("*.c"));
    json_object_set_new(args, "extra_globs", globs);
    CLEANUP_FREE char *words = guest_rig_tool_error(*state, "export_pro_context", args);
    assert_non_null(strstr(words, "extra_globs has more than 50 patterns."));
    for (int i = 0; i < 501; i++)
        json_array_append_new(paths, json_string("a"));
    CLEANUP_FREE char *others =
        guest_rig_tool_error(*state, "export_pro_context", json_pack("{s:o}", "selected_paths", paths));
    assert_non_null(strstr(others, "selected_paths has more than 500 paths."));
}

#define WITH_GUEST(test) cmocka_unit_test_setup_teardown(test, guest_rig_setup, guest_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_GUEST(arguments_out_of_bounds_are_refused_by_name),
        WITH_GUEST(a_bundle_has_its_sections_in_order),
        WITH_GUEST(parts_are_left_out_on_request_and_without_a_repository),
        WITH_GUEST(selected_paths_come_first_and_bad_ones_are_skipped_with_a_reason),
        WITH_GUEST(a_bundle_never_exceeds_its_maximum_and_says_what_found_no_room),
        WITH_GUEST(secrets_and_odd_bytes_go_in_as_they_are),
        WITH_GUEST(it_is_put_in_place_at_once_and_never_through_a_link),
        WITH_GUEST(too_long_lists_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
