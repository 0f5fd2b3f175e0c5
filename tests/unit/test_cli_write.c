// Parts of the writing commands by themselves: differences of texts, merge patches, files of manifests, KEY=VALUE pairs, pages for an editor.
#include "cli/edit_patch.h"
#include "cli/edit_text.h"
#include "cli/label.h"
#include "cli/manifest_files.h"
#include "cli/unified_diff.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "tests/support/support.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ROUNDS 2000

// ---- differences --------------------------------------------------------------------------------------------------------------
static char *diff_of(const char *from, const char *to)
{
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(1 << 20);
    unified_diff(from, to, "a", "b", &out);
    return buffer_take_string(&out);
}

static void assert_diff(const char *from, const char *to, const char *wanted)
{
    CLEANUP_FREE char *diff = diff_of(from, to);
    assert_string_equal(diff, wanted);
}

static void a_difference_looks_as_diff_u_writes_it(void **state)
{
    (void)state;
    assert_diff("x\n", "x\n", "");
    assert_diff("", "x\n", "--- a\n+++ b\n@@ -0,0 +1 @@\n+x\n");
    assert_diff("x\ny\n", "", "--- a\n+++ b\n@@ -1,2 +0,0 @@\n-x\n-y\n");
    assert_diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n", "--- a\n+++ b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
    assert_diff("x", "x\n", "--- a\n+++ b\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n");
}

static void changes_that_are_far_apart_are_hunks_of_their_own(void **state)
{
    (void)state;
    assert_diff("a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n",
                "--- a\n+++ b\n@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n");
    assert_diff("a\n1\n2\n3\n4\n5\n6\nb\n", "A\n1\n2\n3\n4\n5\n6\nB\n",
                "--- a\n+++ b\n@@ -1,8 +1,8 @@\n-a\n+A\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n+B\n");
}

// What a hunk-by-hunk reader makes of `from` and the difference.
static char *patched(const char *from, const char *diff)
{
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(1 << 20);
    size_t line = 1;
    diff = strchr(strchr(diff, '\n') + 1, '\n') + 1; // behind the names
    while (*diff) {
        unsigned long first, count = 1;
        assert_true(sscanf(diff, "@@ -%lu,%lu", &first, &count) >= 1);
        if (strcspn(diff, ",") > strcspn(diff + 4, " ") + 4)
            count = 1;
        for (; line < first + (count == 0); line++) {
            size_t len = strcspn(from, "\n") + 1;
            buffer_append(&out, from, len);
            from += len;
        }
        diff = strchr(diff, '\n') + 1;
        for (; *diff && *diff != '@'; diff = strchr(diff, '\n') + 1) {
            size_t len = strcspn(diff, "\n");
            if (*diff != '+') {
                assert_memory_equal(from, diff + 1, len);
                from += len;
                line++;
            }
            if (*diff != '-')
                buffer_append(&out, diff + 1, len);
        }
    }
    buffer_append_text(&out, from);
    return buffer_take_string(&out);
}

static char *random_lines(void)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(1 << 16);
    for (int i = rand() % 40; i > 0; i--)
        buffer_format(&text, "%c\n", 'a' + rand() % 4);
    return buffer_take_string(&text);
}

static void a_difference_makes_the_one_text_from_the_other(void **state)
{
    (void)state;
    srand(1);
    for (int i = 0; i < ROUNDS; i++) {
        CLEANUP_FREE char *from = random_lines(), *to = random_lines();
        CLEANUP_FREE char *diff = diff_of(from, to);
        if (!*diff) {
            assert_string_equal(from, to);
            continue;
        }
        CLEANUP_FREE char *made = patched(from, diff);
        if (strcmp(made, to) != 0)
            fail_msg("round %d: %s", i, diff);
    }
}

// ---- merge patches ------------------------------------------------------------------------------------------------------------
static json_t *random_object(int depth)
{
    json_t *object = json_object();
    for (int i = rand() % 4; i > 0; i--) {
        char key[2] = {(char)('a' + rand() % 4), '\0'};
        int what = rand() % (depth > 3 ? 2 : 4);
        json_object_set_new(object, key, what == 0 ? json_integer(rand() % 3) : what == 1 ? json_pack("[i]", rand() % 3) : random_object(depth + 1));
    }
    return object;
}

// RFC 7386, as it is written there.
static json_t *merged(const json_t *target, const json_t *patch)
{
    if (!json_is_object(patch))
        return json_deep_copy(patch);
    json_t *result = json_is_object(target) ? json_deep_copy(target) : json_object(), *value;
    const char *key;
    json_object_foreach((json_t *)patch, key, value)
    {
        if (json_is_null(value))
            json_object_del(result, key);
        else
            json_object_set_new(result, key, merged(json_object_get(target, key), value));
    }
    return result;
}

static void a_merge_patch_makes_the_one_value_from_the_other(void **state)
{
    (void)state;
    srand(2);
    for (int i = 0; i < ROUNDS; i++) {
        CLEANUP_JSON json_t *before = random_object(0), *after = random_object(0);
        CLEANUP_JSON json_t *patch = merge_patch(before, after);
        CLEANUP_JSON json_t *made = merged(before, patch);
        CLEANUP_JSON json_t *nothing = merge_patch(after, after);
        assert_true(json_equal(made, after));
        assert_int_equal(json_object_size(nothing), 0);
    }
}

static void only_what_can_be_edited_comes_into_an_edits_patch(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    CLEANUP_JSON json_t *before = json_pack("{s:{s:s, s:s, s:{s:s}}, s:{s:s}}", "metadata", "name", "x", "resourceVersion", "1", "labels", "a", "1", "spec", "mode", "managed");
    CLEANUP_JSON json_t *after = json_pack("{s:{s:s, s:s, s:{s:s}}, s:{s:s}}", "metadata", "name", "x", "resourceVersion", "9", "labels", "a", "2", "spec", "mode", "clone");
    CLEANUP_JSON json_t *wanted = json_pack("{s:{s:{s:s}}, s:{s:s}}", "metadata", "labels", "a", "2", "spec", "mode", "clone"), *patch = NULL, *other = NULL;
    assert_ok(edit_patch(before, after, &patch, &err));
    assert_true(json_equal(patch, wanted));
    json_object_set_new(json_object_get(after, "metadata"), "uid", json_string("y"));
    json_object_set_new(after, "kind", json_string("Sandbox"));
    assert_error(edit_patch(before, after, &other, &err), ERROR_INVALID);
    assert_non_null(strstr(err.message, "metadata.uid"));
    assert_non_null(strstr(err.message, "kind"));
    assert_null(other);
}

// ---- files --------------------------------------------------------------------------------------------------------------------
struct files {
    int taken, room, failures;
    enum error_code code;
};

static int take_file(void *arg, struct manifest *manifest)
{
    struct files *files = arg;
    manifest_free(manifest);
    files->taken++;
    return files->room-- > 0 ? 0 : -1;
}

static void fail_file(void *arg, const struct error *err)
{
    struct files *files = arg;
    files->failures++;
    files->code = err->code;
}

static void write_manifest(const char *directory, const char *name)
{
    CLEANUP_FREE char *path = mem_format("%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs("apiVersion: chat2shell.dev/v1\nkind: Workspace\nmetadata:\n  name: a\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void read_files(char *directory, struct files *ret)
{
    struct invocation in = {0};
    struct error err = ERROR_INIT;
    char *words[] = {"apply", "-R", "-f", directory};
    const struct manifest_files files = {take_file, fail_file, ret};
    assert_ok(invocation_parse(&in, ARRAY_LEN(words), words, &err));
    manifest_files_read(&in, &files);
    invocation_clear(&in);
}

static void too_many_files_in_several_directories_are_said_once(void **state)
{
    CLEANUP_FREE char *top = support_make_dir();
    struct files all = {.room = 1024}, some = {.room = 2};
    (void)state;
    for (char name = 'a'; name <= 'd'; name++) {
        CLEANUP_FREE char *directory = mem_format("%s/%c", top, name);
        assert_return_code(mkdir(directory, 0700), 0);
        write_manifest(directory, "one.yaml");
        write_manifest(directory, "two.yaml");
    }
    read_files(top, &all);
    assert_int_equal(all.taken, 8);
    assert_int_equal(all.failures, 0);
    read_files(top, &some);
    assert_int_equal(some.taken, 3);
    assert_int_equal(some.failures, 1);
    assert_int_equal(some.code, ERROR_TOO_LARGE);
    support_remove_dir(TAKE_PTR(top));
}

// ---- pairs --------------------------------------------------------------------------------------------------------------------
static const struct label_words words = {.part = "labels", .one = "label", .done = "labeled"};

static int take(const char *const *arguments, json_t **ret, int *ret_left, struct error *err)
{
    const char *copy[8] = {0};
    struct invocation in = {.arguments = copy};
    for (; arguments[in.argument_count]; in.argument_count++)
        copy[in.argument_count] = arguments[in.argument_count];
    int r = label_take_pairs(&in, &words, ret, err);
    *ret_left = in.argument_count;
    return r;
}

static void pairs_stand_behind_the_names(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    CLEANUP_JSON json_t *pairs = NULL, *wanted = json_pack("{s:s, s:s, s:s, s:n}", "a", "1", "b", "x=y-", "c", "", "gone");
    int left;
    assert_ok(take((const char *const[]){"workspace", "w-1", "a=1", "b=x=y-", "c=", "gone-", NULL}, &pairs, &left, &err));
    assert_int_equal(left, 2);
    assert_true(json_equal(pairs, wanted));
}

static void wrong_pairs_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *arguments[5];
        const char *why;
    } rows[] = {
        {{"workspace", "w", "a=1", "v"}, "stands behind the labels"}, {{"workspace", "w", "a=1", "a-"}, "is both set and removed"},
        {{"workspace", "w", "a-", "a=1"}, "is both set and removed"}, {{"workspace", "w", "a=1", "a=2"}, "is given twice"},
        {{"workspace", "w", "=1"}, "has no key"},                     {{"workspace", "w", "-"}, "has no key"},
        {{"workspace", "w", "a=\xff"}, "is not UTF-8 text"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct error err = ERROR_INIT;
        CLEANUP_JSON json_t *pairs = NULL;
        int left;
        assert_error(take(rows[i].arguments, &pairs, &left, &err), ERROR_USAGE);
        if (!strstr(err.message, rows[i].why))
            fail_msg("row %zu: %s", i, err.message);
    }
}

static void a_value_that_is_there_is_changed_only_when_it_may_be(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    CLEANUP_JSON json_t *now = json_pack("{s:s, s:s}", "a", "1", "b", "2"), *pairs = json_pack("{s:s, s:s, s:n, s:n}", "a", "1", "c", "3", "b", "nix");
    CLEANUP_JSON json_t *wanted = json_pack("{s:s, s:n}", "c", "3", "b"), *changes = NULL, *none = NULL, *over = json_pack("{s:s}", "a", "9"), *forced = NULL;
    assert_ok(label_changes(pairs, now, false, &changes, &err));
    assert_true(json_equal(changes, wanted));
    assert_error(label_changes(over, now, false, &none, &err), ERROR_CONFLICT);
    assert_null(none);
    assert_ok(label_changes(over, now, true, &forced, &err));
    assert_true(json_equal(forced, over));
    assert_false(label_only_removes(changes));
}

// ---- pages --------------------------------------------------------------------------------------------------------------------
static void a_page_without_its_heading_is_the_body_again(void **state)
{
    (void)state;
    static const char body[] = "kind: X\n# a comment of one's own\nspec: {}\n";
    CLEANUP_FREE char *first = edit_page("", body, false), *again = edit_page("x was not valid:\n* spec: no\n", body, false), *json = edit_page("x\n", "{}\n", true);
    assert_string_equal(edit_without_heading(first), body);
    assert_string_equal(edit_without_heading(again), body);
    assert_non_null(strstr(again, "# x was not valid:\n# * spec: no\n#\nkind: X"));
    assert_string_equal(json, "{}\n");
    assert_true(edit_is_blank("# a\n\n  # b\n"));
    assert_true(edit_is_blank(""));
    assert_false(edit_is_blank("# a\nb\n"));
}

static void what_is_too_long_for_an_editor_is_not_cut(void **state)
{
    (void)state;
    CLEANUP_FREE char *long_text = mem_alloc(EDIT_MAX_BYTES + 1);
    memset(long_text, 'a', EDIT_MAX_BYTES);
    CLEANUP_JSON json_t *longest = json_pack("[{s:s}]", "spec", long_text);
    assert_null(edit_body(longest, false));
    assert_null(edit_body(longest, true));
    long_text[EDIT_MAX_BYTES - 100] = '\0';
    CLEANUP_JSON json_t *shorter = json_pack("[{s:s}]", "spec", long_text);
    CLEANUP_FREE char *yaml = edit_body(shorter, false), *json = edit_body(shorter, true);
    assert_int_equal(strlen(yaml), strlen("spec: \n") + EDIT_MAX_BYTES - 100);
    assert_non_null(json);
    assert_non_null(strstr(json, long_text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_difference_looks_as_diff_u_writes_it),
        cmocka_unit_test(changes_that_are_far_apart_are_hunks_of_their_own),
        cmocka_unit_test(a_difference_makes_the_one_text_from_the_other),
        cmocka_unit_test(a_merge_patch_makes_the_one_value_from_the_other),
        cmocka_unit_test(only_what_can_be_edited_comes_into_an_edits_patch),
        cmocka_unit_test(too_many_files_in_several_directories_are_said_once),
        cmocka_unit_test(pairs_stand_behind_the_names),
        cmocka_unit_test(wrong_pairs_are_refused),
        cmocka_unit_test(a_value_that_is_there_is_changed_only_when_it_may_be),
        cmocka_unit_test(a_page_without_its_heading_is_the_body_again),
        cmocka_unit_test(what_is_too_long_for_an_editor_is_not_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
