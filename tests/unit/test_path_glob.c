// Globs of paths, against a matcher that tries everything.
#include "tests/support/support.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/base/path_glob.h"
#include "controller/base/time.h"
#include <stdio.h>
#include <string.h>

struct row {
    const char *glob, *path;
    bool is_match;
};
static const struct row rows[] = {
    {"/r/demo", "/r/demo", true},
    {"/r/demo", "/r/demos", false},
    {"/r/demo", "/r/dem", false},
    {"/r/demo", "/r/demo/x", false},
    {"/r/demo", "/r", false},
    {"/r/*", "/r/demo", true},
    {"/r/*", "/r/.hidden", true},
    {"/r/*", "/r", false},
    {"/r/*", "/r/a/b", false},
    {"/r/de*", "/r/de", true},
    {"/r/*-site", "/r/my-site", true},
    {"/r/*-site", "/r/my-site-site", true},
    {"/r/*-site", "/r/my-sites", false},
    {"/r/a*b*c", "/r/aXbXbc", true},
    {"/r/a*b*c", "/r/ac", false},
    {"/r/?", "/r/a", true},
    {"/r/?", "/r/\xC3\xA9", true}, // one character of two bytes
    {"/r/??", "/r/\xC3\xA9", false},
    {"/r/?", "/r/", false},
    {"/r/*?", "/r/ab", true},
    {"/r/**", "/r/a", true},
    {"/r/**", "/r/a/b/c", true},
    {"/r/**", "/r", false}, // what is below, not itself
    {"/r/**", "/rr/a", false},
    {"/r/**/lib", "/r/lib", true},
    {"/r/**/lib", "/r/a/b/lib", true},
    {"/r/**/lib", "/r/a/library", false},
    {"/r/**/lib", "/r/lib/x", false},
    {"/r/**/a/**/b", "/r/x/a/y/z/b", true},
    {"/r/**/a/**/b", "/r/x/b", false},
    {"/r/**/**", "/r/a", true},
    {"/r/**/**", "/r", false},
    {"/**", "/a", true},
    {"/r/A", "/r/a", false},
};

static void each_glob_matches_exactly_what_its_row_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_null(path_glob_check(rows[i].glob));
        if (path_glob_matches(rows[i].glob, rows[i].path) != rows[i].is_match)
            fail_msg("%s and %s: %s", rows[i].glob, rows[i].path, rows[i].is_match ? "no match" : "a match");
    }
}

static void a_glob_that_means_something_elsewhere_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",       "r/a",    "~/r",     "/",       "/r/",      "/r//a",   "/r/./a",  "/r/../a", "/r/a**",
                                        "/r/**a", "/r/***", "/r/[ab]", "/r/{a,b}", "/r/a\\*b", "/r/a\nb", "/r/\x7f"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        if (!path_glob_check(wrong[i]))
            fail_msg("'%s' is taken", wrong[i]);
    CLEANUP_FREE char *longest = mem_alloc(PATH_GLOB_MAX_BYTES + 2);
    memset(longest, 'a', PATH_GLOB_MAX_BYTES + 1);
    longest[0] = '/';
    assert_non_null(path_glob_check(longest));
    longest[PATH_GLOB_MAX_BYTES] = '\0';
    assert_null(path_glob_check(longest));
}

static void the_fixed_beginning_ends_before_the_first_wildcard(void **state)
{
    (void)state;
    assert_int_equal(path_glob_fixed_len("/home/me/src/*/lib"), strlen("/home/me/src"));
    assert_int_equal(path_glob_fixed_len("/home/me/src/a?"), strlen("/home/me/src"));
    assert_int_equal(path_glob_fixed_len("/home/me"), strlen("/home/me"));
    assert_int_equal(path_glob_fixed_len("/*"), 0);
    assert_int_equal(path_glob_fixed_len("/**"), 0);
}

// ---- the oracle: every way to read the wildcards ------------------------------------------------------------------------
static bool tries_name(const char *glob, const char *glob_end, const char *name, const char *name_end)
{
    if (glob == glob_end)
        return name == name_end;
    if (*glob == '*')
        return tries_name(glob + 1, glob_end, name, name_end) || (name < name_end && tries_name(glob, glob_end, name + 1, name_end));
    return name < name_end && (*glob == '?' || *glob == *name) && tries_name(glob + 1, glob_end, name + 1, name_end);
}

static bool tries_path(const char *glob, const char *path)
{
    if (!*glob)
        return !*path;
    const char *glob_end = glob + 1 + strcspn(glob + 1, "/"), *path_end = *path ? path + 1 + strcspn(path + 1, "/") : path;
    bool is_deep = glob_end - glob == 3 && memcmp(glob + 1, "**", 2) == 0;
    if (!is_deep)
        return *path && tries_name(glob + 1, glob_end, path + 1, path_end) && tries_path(glob_end, path_end);
    if (!*glob_end)
        return *path == '/';
    return tries_path(glob_end, path) || (*path && tries_path(glob, path_end));
}

static unsigned next_random(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    return *seed >> 16;
}

static void put_random(char *to, size_t components, const char *letters, bool is_glob, unsigned *seed)
{
    size_t len = 0, count = 1 + next_random(seed) % components;
    for (size_t i = 0; i < count; i++) {
        to[len++] = '/';
        if (is_glob && next_random(seed) % 4 == 0) {
            len += (size_t)sprintf(to + len, "**");
            continue;
        }
        size_t from = len, characters = 1 + next_random(seed) % 5;
        while (len - from < characters) {
            char letter = letters[next_random(seed) % strlen(letters)];
            if (letter == '*' && len > from && to[len - 1] == '*')
                letter = 'a';
            to[len++] = letter;
        }
    }
    to[len] = '\0';
}

static void random_globs_match_as_trying_every_way_says(void **state)
{
    (void)state;
    unsigned seed = 20261130;
    int matched = 0;
    for (int i = 0; i < 200000; i++) {
        char glob[64], path[64];
        put_random(glob, 4, "ab*?", true, &seed);
        put_random(path, 5, "ab", false, &seed);
        assert_null(path_glob_check(glob));
        bool expected = tries_path(glob, path);
        matched += expected;
        if (path_glob_matches(glob, path) != expected)
            fail_msg("%s and %s: expected %d", glob, path, expected);
    }
    assert_true(matched > 1000); // both answers were asked for
    assert_true(matched < 199000);
}

// Exponential for a matcher that tries every way; here a few million steps, which no run notices.
static void the_worst_globs_end(void **state)
{
    (void)state;
    CLEANUP_FREE char *glob = mem_alloc(PATH_GLOB_MAX_BYTES + 1);
    CLEANUP_FREE char *path = mem_alloc(4096);
    size_t len = 0;
    glob[len++] = '/';
    while (len + 2 < PATH_GLOB_MAX_BYTES)
        len += (size_t)sprintf(glob + len, "*a");
    sprintf(glob + len, "b");
    memset(path, 'a', 4095);
    path[0] = '/';
    assert_null(path_glob_check(glob));
    assert_false(path_glob_matches(glob, path));
    for (len = 0; len + 8 < PATH_GLOB_MAX_BYTES;)
        len += (size_t)sprintf(glob + len, "/**/a");
    sprintf(glob + len, "/b");
    for (len = 0; len + 2 < 4095; len += 2)
        memcpy(path + len, "/a", 3);
    assert_null(path_glob_check(glob));
    assert_false(path_glob_matches(glob, path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_glob_matches_exactly_what_its_row_says),
        cmocka_unit_test(a_glob_that_means_something_elsewhere_is_refused),
        cmocka_unit_test(the_fixed_beginning_ends_before_the_first_wildcard),
        cmocka_unit_test(random_globs_match_as_trying_every_way_says),
        cmocka_unit_test(the_worst_globs_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
