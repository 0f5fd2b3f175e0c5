// The guest's rules that need no process: patterns, ignore files, blocked paths, order of names, diffs.
#include "api/guest/blocked.h"
#include "api/guest/collate.h"
#include "api/guest/diff.h"
#include "api/guest/glob.h"
#include "api/guest/ignore.h"
#include "controller/base/cleanup.h"
#include "tests/support/support.h"
#include <string.h>

static void patterns_match_as_git_has_them(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *path;
        bool is_match;
    } cases[] = {
        {"*.c", "a.c", true},
        {"*.c", "d/a.c", false},
        {"**/*.c", "a.c", true},
        {"**/*.c", "d/e/a.c", true},
        {"a/**", "a/b/c", true},
        {"a/**", "a", false},
        {"a/**/b", "a/b", true},
        {"a/**/b", "a/x/y/b", true},
        {"a?c", "abc", true},
        {"a?c", "a/c", false},
        {"a?c",
         "a\xE2\x82\xAC"
         "c",
         true},
        {"[a-c]x", "bx", true},
        {"[!a-c]x", "bx", false},
        {"[]]x", "]x", true},
        {"[x", "[x", true},
        {"\\*", "*", true},
        {"\\*", "x", false},
        {"a**b", "a/b", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (glob_match(cases[i].pattern, cases[i].path) != cases[i].is_match)
            fail_msg("%s on %s", cases[i].pattern, cases[i].path);
}

static void an_exponential_pattern_ends(void **state)
{
    (void)state;
    assert_false(glob_match("*a*a*a*a*a*a*a*a*a*a*a*a*b",
                            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
    assert_false(
        glob_match("**/a/**/a/**/a/**/a/**/b", "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a"));
}

static void braces_expand_up_to_a_limit_and_an_exclamation_mark_negates(void **state)
{
    (void)state;
    struct glob glob;
    assert_true(glob_compile("*.{c,h{h,pp}}", &glob));
    assert_true(glob_accepts(&glob, "d/x.hpp") && glob_accepts(&glob, "x.c") && !glob_accepts(&glob, "x.h"));
    glob_free(&glob);
    assert_true(glob_compile("!src/*.c", &glob));
    assert_false(glob_accepts(&glob, "src/x.c"));
    assert_true(glob_accepts(&glob, "x.c"));
    glob_free(&glob);
    assert_false(glob_compile("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", &glob));
}

static void the_last_rule_of_the_deepest_directory_decides(void **state)
{
    (void)state;
    struct ignore_level top = {0}, deep = {.parent = &top, .base_len = strlen("sub/")};
    ignore_parse(&top, "# comment\n*.log\n!keep.log\r\nout/\n/only-here\ndocs/*.txt\n\\!odd\ntrailing  \n");
    ignore_parse(&deep, "!a.log\nkeep.log\n");
    assert_true(ignore_hides(&top, "a.log", false));
    assert_false(ignore_hides(&top, "keep.log", false));
    assert_true(ignore_hides(&top, "x/out", true));
    assert_false(ignore_hides(&top, "x/out", false));
    assert_true(ignore_hides(&top, "only-here", false));
    assert_false(ignore_hides(&top, "x/only-here", false));
    assert_true(ignore_hides(&top, "docs/a.txt", false));
    assert_false(ignore_hides(&top, "x/docs/a.txt", false));
    assert_true(ignore_hides(&top, "!odd", false));
    assert_true(ignore_hides(&top, "trailing", false));
    assert_false(ignore_hides(&deep, "sub/a.log", false));
    assert_true(ignore_hides(&deep, "sub/keep.log", false));
    assert_true(ignore_hides(&deep, "sub/b.log", false));
    ignore_free(&top);
    ignore_free(&deep);
}

static void blocked_paths_are_those_of_the_contract(void **state)
{
    (void)state;
    static const char *const blocked[] = {
        ".git",     "a/.git/x", "node_modules", "a/node_modules/b", ".env",       ".env.local",  "a/.env.x/y",
        "x.pem",    "d/x.key",  "id_rsa",       "d/id_rsa.pub",     "id_ed25519", ".ssh/config", "dist",
        "a/dist/b", "build",    ".next/x",      "coverage",         ".cache/x"};
    static const char *const free_paths[] = {
        ".gitignore", ".github/x",        ".envrc", "x.env",        "x.pem.bak",    "my_id_rsa", "id_dsa",
        "dist.js",    "Dist/x",           ".ENV",   "build.gradle", "coverage.xml", "target/x",  "out/x",
        "vendor/x",   ".aws/credentials", ".npmrc", ".ai-bridge/x", ".ssh",         "."};
    for (size_t i = 0; i < ARRAY_LEN(blocked); i++)
        if (!blocked_path(blocked[i]))
            fail_msg("%s is not blocked", blocked[i]);
    for (size_t i = 0; i < ARRAY_LEN(free_paths); i++)
        if (blocked_path(free_paths[i]))
            fail_msg("%s is blocked", free_paths[i]);
}

static void names_are_ordered_punctuation_digits_letters_without_case(void **state)
{
    (void)state;
    static const char *const names[] = {"_a", "-a", ".a", "1", "a", "A", "ab", "b", "B", "c", "\xC3\xA9"};
    for (size_t i = 0; i + 1 < ARRAY_LEN(names); i++)
        if (collate_names(names[i], names[i + 1]) >= 0)
            fail_msg("%s is not before %s", names[i], names[i + 1]);
}

static void assert_diff(const char *before, const char *after, const char *expected, size_t additions,
                        size_t deletions)
{
    struct diff diff;
    diff_make("f", before, strlen(before), after, strlen(after), &diff);
    assert_string_equal(diff.text, expected);
    assert_int_equal(diff.additions, additions);
    assert_int_equal(diff.deletions, deletions);
    diff_free(&diff);
}

static void a_diff_is_one_hunk_with_three_lines_around(void **state)
{
    (void)state;
    assert_diff("", "hello\n", "--- a/f\n+++ b/f\n@@ -1,1 +1,2 @@\n+hello\n ", 1, 0);
    assert_diff("", "text", "--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n-\n+text", 1, 1);
    assert_diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n",
                "--- a/f\n+++ b/f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8", 1, 1);
    assert_diff("a\n", "a\n", "No changes in f.", 0, 0);
    assert_diff("a\r\nb\r\n", "a\nb\n", "Only line ends changed in f.", 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_match_as_git_has_them),
        cmocka_unit_test(an_exponential_pattern_ends),
        cmocka_unit_test(braces_expand_up_to_a_limit_and_an_exclamation_mark_negates),
        cmocka_unit_test(the_last_rule_of_the_deepest_directory_decides),
        cmocka_unit_test(blocked_paths_are_those_of_the_contract),
        cmocka_unit_test(names_are_ordered_punctuation_digits_letters_without_case),
        cmocka_unit_test(a_diff_is_one_hunk_with_three_lines_around),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
