// show_changes of the real chat2shell-guest, with the real git.
#include "tests/support/guest_rig.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void shell(struct guest_rig *rig, const char *command)
{
    CLEANUP_FREE char *line =
        mem_format("cd '%s' && export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a "
                   "GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; %s",
                   rig->dir, command);
    assert_int_equal(system(line), 0);
}

static void commit_all(struct guest_rig *rig)
{
    shell(rig, "{ git rev-parse --git-dir >/dev/null 2>&1 || git init -q -b main .; } && git add -A . && git "
               "commit -qm x");
}

static json_t *show(struct guest_rig *rig, json_t *args)
{
    return guest_rig_tool(rig, "show_changes", args);
}

static json_t *show_all(struct guest_rig *rig)
{
    return show(rig, json_pack("{s:s}", "since", "workspace"));
}

static void assert_list(const json_t *answer, const char *key, const char *expected)
{
    CLEANUP_FREE char *text = json_to_text(json_object_get(answer, key));
    assert_string_equal(text, expected);
}

static void changes_are_listed_with_their_diff(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put_text(rig, "a.txt", "one\n-- two\nthree\n");
    guest_rig_put_text(rig, "gone", "x\n");
    guest_rig_put_text(rig, ".gitignore", "*.log\n");
    commit_all(rig);
    guest_rig_put_text(rig, "a.txt", "one\nthree\nfour\n");
    guest_rig_put_text(rig, "new/b", "untracked\n");
    guest_rig_put_text(rig, "c.log", "ignored\n");
    shell(rig, "rm gone");
    CLEANUP_JSON json_t *answer = show(rig, json_object());
    assert_list(answer, "changed_files", "[\"M\\ta.txt\",\"D\\tgone\",\"?? new/b\"]");
    assert_string_equal(json_get_text(answer, "status"), "M\ta.txt\nD\tgone\n?? new/b");
    assert_string_equal(json_get_text(answer, "path"), "workspace changes");
    assert_non_null(strstr(json_get_text(answer, "diff"), "--- two\n"));
    assert_null(strstr(json_get_text(answer, "diff"), "untracked"));
    assert_int_equal(json_get_int(answer, "additions", -1), 1);
    assert_int_equal(json_get_int(answer, "deletions", -1), 2);
    assert_true(json_get_bool(answer, "changed", false));
    assert_true(json_get_bool(answer, "review_marked", false));
    assert_false(json_get_bool(answer, "review_checkpoint_hit", true));
    assert_string_equal(json_get_text(answer, "review_since"), "last_shown");
    assert_null(json_object_get(answer, "status_error"));
    assert_null(json_object_get(answer, "diff_error"));
}

static void the_index_is_shown_by_itself(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put_text(rig, "old", "1\n2\n3\n4\n");
    guest_rig_put_text(rig, "b", "1\n");
    commit_all(rig);
    shell(rig, "git mv old renamed");
    guest_rig_put_text(rig, "b", "2\n");
    guest_rig_put_text(rig, "c", "untracked");
    CLEANUP_JSON json_t *staged = show(rig, json_pack("{s:b}", "staged", 1));
    assert_list(staged, "changed_files", "[\"R100\\told\\trenamed\"]");
    assert_true(json_get_bool(staged, "staged", false));
    CLEANUP_JSON json_t *unstaged = show(rig, json_object());
    assert_list(unstaged, "changed_files", "[\"M\\tb\",\"?? c\"]");
}

static void a_repository_without_a_commit_is_shown(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put_text(rig, "a", "1\n");
    shell(rig, "git init -q . && git add a");
    CLEANUP_JSON json_t *staged = show(rig, json_pack("{s:b}", "staged", 1));
    assert_list(staged, "changed_files", "[\"A\\ta\"]");
    assert_int_equal(json_get_int(staged, "additions", -1), 1);
}

static void odd_names_are_quoted_as_git_does_and_hide_nothing(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put_text(rig, "fatal: not a git repository", "1\n");
    commit_all(rig);
    guest_rig_put_text(rig, "fatal: not a git repository", "2\n");
    guest_rig_put_text(rig, "not a git repository", "x");
    guest_rig_put_text(rig, "new\nline\ttab\"q\\", "x");
    guest_rig_put_text(rig, "caf\xc3\xa9", "x");
    guest_rig_put_text(rig, "bad\xff", "x");
    guest_rig_put_text(rig, ":(exclude)a*", "x");
    CLEANUP_JSON json_t *answer = show(rig, json_object());
    assert_null(json_object_get(answer, "status_error"));
    assert_list(answer, "changed_files",
                "[\"M\\tfatal: not a git repository\",\"?? :(exclude)a*\",\"?? \\\"bad\\\\377\\\"\",\"?? "
                "\\\"caf\\\\303\\\\251\\\"\",\"?? \\\"new\\\\nline\\\\ttab\\\\\\\"q\\\\\\\\\\\"\",\"?? not a "
                "git repository\"]");
    CLEANUP_JSON json_t *one = show(rig, json_pack("{s:s}", "path", ":(exclude)a*"));
    assert_list(one, "changed_files", "[\"?? :(exclude)a*\"]");
}

static void in_a_subdirectory_all_paths_are_the_workspaces(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put_text(rig, "a", "1\n");
    guest_rig_put_text(rig, "../outside", "1\n");
    commit_all(rig);
    shell(rig, "cd .. && git add -A && GIT_AUTHOR_NAME=a git commit -qm y");
    guest_rig_put_text(rig, "a", "2\n");
    guest_rig_put_text(rig, "new", "x");
    guest_rig_put_text(rig, "../outside", "2\n");
    CLEANUP_JSON json_t *answer = show(rig, json_object());
    assert_list(answer, "changed_files", "[\"M\\ta\",\"?? new\"]");
    assert_non_null(strstr(json_get_text(answer, "diff"), "--- a/a\n"));
    assert_null(strstr(json_get_text(answer, "diff"), "outside"));
}

static void without_a_repository_git_says_so(void **state)
{
    CLEANUP_JSON json_t *answer = show(*state, json_object());
    assert_non_null(strstr(json_get_text(answer, "status_error"), "not a git repository"));
    assert_non_null(strstr(json_get_text(answer, "diff_error"), "not a git repository"));
    assert_string_equal(json_get_text(answer, "status"), "");
    assert_string_equal(json_get_text(answer, "diff"), "");
    assert_false(json_get_bool(answer, "changed", true));
    assert_false(json_get_bool(answer, "review_marked", true));
    assert_null(json_object_get(answer, "analysis"));
}

static void assert_hit(struct guest_rig *rig, json_t *args, bool is_hit)
{
    CLEANUP_JSON json_t *answer = show(rig, args);
    assert_int_equal(json_get_bool(answer, "review_checkpoint_hit", !is_hit), is_hit);
    if (!is_hit)
        return;
    assert_list(answer, "changed_files", "[]");
    assert_false(json_get_bool(answer, "changed", true));
    assert_string_equal(json_get_text(answer, "diff"), "");
    assert_int_equal(json_get_int(answer, "additions", -1), 0);
    assert_int_equal(json_get_int(answer, "deletions", -1), 0);
    assert_null(json_object_get(answer, "analysis"));
    assert_true(strlen(json_get_text(answer, "status")) > 0);
}

static void what_was_shown_is_not_shown_again(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put_text(rig, "a", "1\n");
    guest_rig_put_text(rig, "b", "1\n");
    commit_all(rig);
    guest_rig_put_text(rig, "a", "2\n");
    guest_rig_put_text(rig, "u", "untracked");
    assert_hit(rig, json_pack("{s:b}", "include_diff", 0), false); // neither marks nor hits
    assert_hit(rig, json_pack("{s:b}", "mark_reviewed", 0), false);
    assert_hit(rig, json_object(), false);
    assert_hit(rig, json_object(), true);
    assert_hit(rig, json_pack("{s:b}", "include_diff", 0), false);
    assert_hit(rig, json_pack("{s:s}", "since", "workspace"), false);
    assert_hit(rig, json_pack("{s:s}", "path", "a"), false); // a memory of its own
    assert_hit(rig, json_pack("{s:s}", "path", "./a"), true);
    assert_hit(rig, json_pack("{s:b}", "staged", 1), false);
    guest_rig_put_text(rig, "u", "Untracked"); // same size
    assert_hit(rig, json_object(), false);
    assert_hit(rig, json_object(), true);
    guest_rig_put_text(rig, "b", "2\n");
    assert_hit(rig, json_object(), false);
    assert_hit(rig, json_pack("{s:s}", "path", "a"), true);
    json_decref(guest_rig_call(rig, "initialize", json_pack("{s:s}", "protocolVersion", "2025-06-18")));
    assert_hit(rig, json_object(), false);
}

static void a_diff_over_the_limit_is_an_error_and_is_not_remembered(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put_text(rig, "a", "1\n");
    commit_all(rig);
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(1000000);
    for (int i = 0; i < 20000; i++)
        buffer_format(&text, "line %d\n", i);
    guest_rig_put(rig, "a", text.data, text.len);
    for (int i = 0; i < 2; i++) {
        CLEANUP_JSON json_t *answer = show(rig, json_object());
        assert_non_null(strstr(json_get_text(answer, "diff_error"), "ENOBUFS"));
        assert_string_equal(json_get_text(answer, "diff"), "");
        assert_list(answer, "changed_files", "[\"M\\ta\"]");
        assert_int_equal(json_get_int(answer, "additions", -1), 20000);
        assert_int_equal(json_get_int(answer, "deletions", -1), 1);
        assert_false(json_get_bool(answer, "review_marked", true));
    }
}

static void a_path_keeps_to_its_part(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put_text(rig, "d/a", "1\n");
    guest_rig_put_text(rig, "b", "1\n");
    commit_all(rig);
    guest_rig_put_text(rig, "d/new", "x");
    guest_rig_put_text(rig, "b", "2\n");
    shell(rig, "rm -r d/a && ln -s d link && ln -s /etc out && ln -s /etc/passwd passwd");
    CLEANUP_JSON json_t *dir = show(rig, json_pack("{s:s}", "path", "d"));
    assert_list(dir, "changed_files", "[\"D\\td/a\",\"?? d/new\"]");
    assert_string_equal(json_get_text(dir, "path"), "d");
    CLEANUP_JSON json_t *gone = show(rig, json_pack("{s:s}", "path", "d/a"));
    assert_list(gone, "changed_files", "[\"D\\td/a\"]");
    CLEANUP_JSON json_t *linked = show(rig, json_pack("{s:s}", "path", "link/new"));
    assert_list(linked, "changed_files", "[\"?? d/new\"]");
    static const char *const bad[][2] = {{"../x", "Path escapes workspace root"},
                                         {"/etc", "Path escapes workspace root"},
                                         {"out/passwd", "through a symlink"},
                                         {"passwd", "through a symlink"},
                                         {".git/config", "blocked by safety rules"}};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CLEANUP_FREE char *text =
            guest_rig_tool_error(rig, "show_changes", json_pack("{s:s}", "path", bad[i][0]));
        if (!strstr(text, bad[i][1]))
            fail_msg("%s: %s", bad[i][0], text);
    }
    CLEANUP_FREE char *word =
        guest_rig_tool_error(rig, "show_changes", json_pack("{s:s}", "since", "yesterday"));
    assert_non_null(strstr(word, "at since"));
}

// Settings of the repository that would run programs or change the format do neither.
static void settings_of_the_repository_do_not_change_the_answer(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put_text(rig, "a.txt", "1\n");
    guest_rig_put_text(rig, ".gitattributes", "*.txt diff=mine\n");
    commit_all(rig);
    shell(rig, "git config diff.external 'touch ran;' && git config diff.mine.textconv 'touch ran; cat' && "
               "git config core.fsmonitor 'touch ran' && git config diff.noprefix true && git config "
               "color.diff always "
               "&& git config diff.mnemonicPrefix true && git config core.quotePath false && git config "
               "core.pager 'touch ran'");
    guest_rig_put_text(rig, "a.txt", "2\n");
    CLEANUP_JSON json_t *answer = show(rig, json_object());
    assert_list(answer, "changed_files", "[\"M\\ta.txt\"]");
    assert_non_null(strstr(json_get_text(answer, "diff"), "\n--- a/a.txt\n+++ b/a.txt\n"));
}

static void odd_files_in_the_tree_hold_nobody_up(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put_text(rig, "a", "1\n");
    commit_all(rig);
    CLEANUP_FREE char *fifo = mem_format("%s/fifo", rig->dir);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    shell(rig, "ln -s /dev/zero zero; ln -s loop loop; printf '\\000\\001' > binary; head -c 20000000 "
               "/dev/zero > large");
    guest_rig_put(rig, "a", "\xff\xfe\0\n", 4);
    CLEANUP_JSON json_t *answer = show(rig, json_object());
    assert_non_null(strstr(json_get_text(answer, "status"), "M\ta"));
    assert_non_null(strstr(json_get_text(answer, "status"), "?? large"));
    assert_hit(rig, json_object(), true);
}

// --- the analysis

static const json_t *find_path(const json_t *list, const char *path)
{
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one) if (strcmp(json_get_text(one, "path"), path) == 0) return one;
    return NULL;
}

static const json_t *find_id(const json_t *list, const char *id)
{
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one) if (strcmp(json_get_text(one, "id"), id) == 0) return one;
    return NULL;
}

static void the_analysis_names_importers_tests_risks_and_commands(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put_text(rig, "src/login.ts", "export const a = 1;\n");
    guest_rig_put_text(rig, "src/app.ts", "import { a } from './login';\n");
    guest_rig_put_text(rig, "src/other.ts", "// says login in passing\n");
    guest_rig_put_text(rig, "lib/util.c", "int u;\n");
    guest_rig_put_text(rig, "lib/util.h", "extern int u;\n");
    guest_rig_put_text(rig, "lib/main.c", "#include \"lib/util.h\"\n");
    guest_rig_put_text(rig, "tests/login.test.ts", "test();\n");
    guest_rig_put_text(rig, "tests/flow.test.ts", "import x from '../src/login';\n");
    guest_rig_put_text(rig, "package.json", "{\"scripts\":{\"test\":\"t\",\"lint\":\"l\",\"other\":\"o\"}}");
    guest_rig_put_text(rig, "yarn.lock", "");
    guest_rig_put_text(rig, "go.mod", "module x\n");
    guest_rig_put_text(rig, "dist/x.js", "1\n");
    commit_all(rig);
    guest_rig_put_text(rig, "src/login.ts", "export const a = 2;\n");
    guest_rig_put_text(rig, "lib/util.c", "int v;\n");
    guest_rig_put_text(rig, "dist/x.js", "2\n");
    CLEANUP_JSON json_t *answer = show_all(rig);
    const json_t *analysis = json_object_get(answer, "analysis");
    assert_int_equal(json_get_int(analysis, "schema_version", 0), 1);
    assert_list(analysis, "changed_paths", "[\"lib/util.c\",\"src/login.ts\"]");
    assert_list(analysis, "affected_areas", "[\"lib\",\"src\"]");
    const json_t *dependents = json_object_get(analysis, "dependent_files"),
                 *tests = json_object_get(analysis, "related_tests");
    assert_int_equal(json_array_size(dependents), 2);
    assert_string_equal(json_get_text(find_path(dependents, "src/app.ts"), "confidence"), "strong");
    assert_string_equal(json_get_text(find_path(dependents, "lib/main.c"), "confidence"), "medium");
    assert_int_equal(json_array_size(tests), 2);
    assert_non_null(find_path(tests, "tests/login.test.ts"));
    assert_string_equal(json_get_text(find_path(tests, "tests/flow.test.ts"), "confidence"), "strong");
    const json_t *risks = json_object_get(analysis, "risk_signals");
    assert_int_equal(json_array_size(risks), 1);
    assert_list(find_id(risks, "authentication"), "paths", "[\"src/login.ts\"]");
    CLEANUP_FREE char *commands = json_to_text(json_object_get(analysis, "recommended_commands"));
    assert_non_null(strstr(commands, "yarn run test"));
    assert_non_null(strstr(commands, "yarn run lint"));
    assert_non_null(strstr(commands, "go test ./..."));
    assert_null(strstr(commands, "other"));
    assert_int_equal(json_array_size(json_object_get(analysis, "warnings")), 1);
    assert_true(json_get_int(json_object_get(analysis, "coverage"), "inventoryFiles", 0) > 5);
    assert_non_null(json_object_get(json_object_get(analysis, "cache"), "key"));
}

#define WITH_GUEST(test) cmocka_unit_test_setup_teardown(test, guest_rig_setup, guest_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_GUEST(changes_are_listed_with_their_diff),
        WITH_GUEST(the_index_is_shown_by_itself),
        WITH_GUEST(a_repository_without_a_commit_is_shown),
        WITH_GUEST(odd_names_are_quoted_as_git_does_and_hide_nothing),
        cmocka_unit_test_setup_teardown(in_a_subdirectory_all_paths_are_the_workspaces, guest_rig_setup_in_repository,
                                        guest_rig_teardown),
        WITH_GUEST(without_a_repository_git_says_so),
        WITH_GUEST(what_was_shown_is_not_shown_again),
        WITH_GUEST(a_diff_over_the_limit_is_an_error_and_is_not_remembered),
        WITH_GUEST(a_path_keeps_to_its_part),
        WITH_GUEST(settings_of_the_repository_do_not_change_the_answer),
        WITH_GUEST(odd_files_in_the_tree_hold_nobody_up),
        WITH_GUEST(the_analysis_names_importers_tests_risks_and_commands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
