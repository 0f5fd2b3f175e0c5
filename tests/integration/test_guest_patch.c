// apply_patch of the real chat2shell-guest.
#include "tests/support/guest_rig.h"
#include "controller/base/buffer.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static json_t *apply(struct guest_rig *rig, const char *patch)
{
    return guest_rig_tool(rig, "apply_patch", json_pack("{s:s}", "patch", patch));
}

static void apply_and_forget(struct guest_rig *rig, const char *patch)
{
    json_decref(apply(rig, patch));
}

static void refuse(struct guest_rig *rig, const char *patch, const char *words)
{
    CLEANUP_FREE char *text = guest_rig_tool_error(rig, "apply_patch", json_pack("{s:s}", "patch", patch));
    if (!strstr(text, words))
        fail_msg("expected \"%s\" in \"%s\"", words, text);
}

static char *path_of(struct guest_rig *rig, const char *path)
{
    return mem_format("%s/%s", rig->dir, path);
}

static char *get(struct guest_rig *rig, const char *path) // NULL: there is none
{
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *full = path_of(rig, path);
    struct buffer text = BUFFER_INIT(8 * 1024 * 1024);
    if (access(full, F_OK) < 0)
        return NULL;
    assert_ok(fs_read_file(full, &text, &err));
    buffer_text(&text);
    return buffer_take_string(&text);
}

static void assert_file(struct guest_rig *rig, const char *path, const char *expected)
{
    CLEANUP_FREE char *text = get(rig, path);
    if (!expected)
        assert_null(text);
    else
        assert_string_equal(text ? text : "(no such file)", expected);
}

static mode_t mode_of(struct guest_rig *rig, const char *path)
{
    struct stat meta;
    CLEANUP_FREE char *full = path_of(rig, path);
    assert_int_equal(lstat(full, &meta), 0);
    return meta.st_mode & 07777;
}

static int count_names(const char *dir, const char *prefix)
{
    int count = 0;
    DIR *stream = opendir(dir);
    assert_non_null(stream);
    for (struct dirent *entry; (entry = readdir(stream));)
        count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    closedir(stream);
    return count;
}

static void assert_no_leftovers(struct guest_rig *rig)
{
    assert_int_equal(count_names(rig->dir, ".chat2shell-"), 0);
}

// --- what is applied

static void one_patch_changes_makes_deletes_and_renames(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put_text(rig, "a.txt", "one\ntwo\nthree\n");
    guest_rig_put_text(rig, "gone/deep/b.txt", "bye\n");
    guest_rig_put_text(rig, "old.txt", "1\n2\n3\n4\n5\n");
    CLEANUP_JSON json_t *answer =
        apply(rig, "some words before\n"
                   "--- a/a.txt\t2020-01-01\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"
                   "diff --git a/gone/deep/b.txt b/gone/deep/b.txt\ndeleted file mode 100644\n"
                   "--- a/gone/deep/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n"
                   "diff --git a/old.txt b/sub/new.txt\nsimilarity index 80%\nrename from old.txt\nrename to "
                   "sub/new.txt\n"
                   "--- a/old.txt\n+++ b/sub/new.txt\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n"
                   "diff --git a/made/x/run.sh b/made/x/run.sh\nnew file mode 100755\n"
                   "--- /dev/null\n+++ b/made/x/run.sh\n@@ -0,0 +1,2 @@\n+#!/bin/sh\n+true\n"
                   "-- \n2.39.2\n\n");
    CLEANUP_FREE char *paths = json_to_text(json_object_get(answer, "paths"));
    assert_string_equal(paths,
                        "[\"a.txt\",\"gone/deep/b.txt\",\"old.txt\",\"sub/new.txt\",\"made/x/run.sh\"]");
    assert_int_equal(json_get_int(answer, "additions", -1), 4);
    assert_int_equal(json_get_int(answer, "deletions", -1), 3);
    assert_true(json_get_bool(answer, "changed", false));
    assert_string_equal(json_get_text(answer, "stdout"), "");
    assert_non_null(strstr(json_get_text(answer, "diff"), "2.39.2"));
    assert_file(rig, "a.txt", "one\nTWO\nthree\n");
    assert_file(rig, "gone", NULL);
    assert_file(rig, "old.txt", NULL);
    assert_file(rig, "sub/new.txt", "1\ntwo\n3\n4\n5\n");
    assert_file(rig, "made/x/run.sh", "#!/bin/sh\ntrue\n");
    assert_true(mode_of(rig, "made/x/run.sh") & 0100);
    assert_no_leftovers(rig);
}

static void a_removed_line_of_dashes_is_content(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put_text(rig, "q.sql", "-- /etc/x\n-- note\nselect 1;\n++ odd\n");
    CLEANUP_JSON json_t *answer =
        apply(rig, "--- a/q.sql\n+++ b/q.sql\n@@ -1,4 +1,3 @@\n--- /etc/x\n--- note\n+++ b/z\n"
                   " select 1;\n-++ odd\n+++ even\n");
    CLEANUP_FREE char *paths = json_to_text(json_object_get(answer, "paths"));
    assert_string_equal(paths, "[\"q.sql\"]");
    assert_int_equal(json_get_int(answer, "deletions", -1), 3);
    assert_int_equal(json_get_int(answer, "additions", -1), 2);
    assert_file(rig, "q.sql", "++ b/z\nselect 1;\n++ even\n");
}

static void a_patch_applies_in_a_subdirectory_of_a_repository(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put_text(rig, "a.txt", "1\n");
    CLEANUP_JSON json_t *answer =
        apply(rig, "diff --git a/a.txt b/a.txt\nindex 000..111 100644\n--- a/a.txt\n+++ b/a.txt\n"
                   "@@ -1 +1 @@\n-1\n+2\n");
    assert_true(json_get_bool(answer, "changed", false));
    assert_file(rig, "a.txt", "2\n");
}

static void names_and_bytes_may_be_odd(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put_text(rig, "sp ace.txt", "a\n");
    guest_rig_put_text(rig, "caf\xc3\xa9 \"q\"", "b\n");
    guest_rig_put_text(rig, "latin", "caf\xe9\nx\r\n");
    apply_and_forget(
        rig, "--- a/sp ace.txt\n+++ b/sp ace.txt\n@@ -1 +1 @@\n-a\n+A\n"
             "--- \"a/caf\\303\\251 \\\"q\\\"\"\n+++ \"b/caf\\303\\251 \\\"q\\\"\"\n@@ -1 +1 @@\n-b\n+B\n"
             "--- a/latin\n+++ b/latin\n@@ -2 +2 @@\n-x\r\n+y\r\n");
    assert_file(rig, "sp ace.txt", "A\n");
    assert_file(rig, "caf\xc3\xa9 \"q\"", "B\n");
    assert_file(rig, "latin", "caf\xe9\ny\r\n");
    guest_rig_put_text(rig, "last", "1");
    apply_and_forget(rig, "--- a/last\n+++ b/last\n@@ -1 +1 @@\n-1\n\\ No newline at end of file\n+2\n");
    assert_file(rig, "last", "2\n");
}

static void headers_without_a_prefix_lose_their_first_directory(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put_text(rig, "x", "1\n");
    guest_rig_put_text(rig, "d/x", "1\n");
    apply_and_forget(rig, "--- d/x\n+++ d/x\n@@ -1 +1 @@\n-1\n+2\n");
    assert_file(rig, "x", "2\n");
    assert_file(rig, "d/x", "1\n");
}

static void a_changed_file_keeps_its_mode_and_leaves_its_links(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put_text(rig, "a", "1\n");
    CLEANUP_FREE char *a = path_of(rig, "a"), *link_path = path_of(rig, "linked");
    assert_int_equal(chmod(a, 0640), 0);
    assert_int_equal(link(a, link_path), 0);
    apply_and_forget(rig, "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n");
    assert_int_equal(mode_of(rig, "a"), 0640);
    assert_file(rig, "linked", "1\n");
    apply_and_forget(
        rig, "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-2\n+3\n");
    assert_int_equal(mode_of(rig, "a"), 0750);
    apply_and_forget(
        rig, "diff --git a/a b/a\nold mode 100755\nnew mode 100644\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-3\n+4\n");
    assert_int_equal(mode_of(rig, "a"), 0640);
    assert_file(rig, "a", "4\n");
}

static void git_attributes_of_the_workspace_count(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put_text(rig, ".gitattributes", "*.txt text eol=crlf\n");
    guest_rig_put_text(rig, "a.txt", "one\r\ntwo\r\n");
    apply_and_forget(rig, "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n");
    assert_file(rig, "a.txt", "one\r\n2\r\n");
    assert_file(rig, ".gitattributes", "*.txt text eol=crlf\n");
}

static void a_linked_directory_inside_may_be_written_through(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put_text(rig, "real/a", "1\n");
    CLEANUP_FREE char *link_path = path_of(rig, "link");
    assert_int_equal(symlink("real", link_path), 0);
    apply_and_forget(rig, "--- a/link/a\n+++ b/link/a\n@@ -1 +1 @@\n-1\n+2\n");
    assert_file(rig, "real/a", "2\n");
}

// --- all or nothing

static void a_patch_that_fails_in_its_last_file_changes_nothing(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put_text(rig, "a", "1\n");
    guest_rig_put_text(rig, "b", "1\n");
    guest_rig_put_text(rig, "c", "here\n");
#define CHANGE_A "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n--- /dev/null\n+++ b/new/dir/f\n@@ -0,0 +1 @@\n+x\n"
    refuse(rig, CHANGE_A "--- a/b\n+++ b/b\n@@ -1 +1 @@\n-other\n+2\n", "error: patch failed: b:1");
    refuse(rig, CHANGE_A "--- a/b\n+++ b/b\n@@ -1 +1 @@\n-other\n+2\n", "patch does not apply");
    refuse(rig, CHANGE_A "--- /dev/null\n+++ b/c\n@@ -0,0 +1 @@\n+x\n",
           "already exists in working directory");
    refuse(rig, CHANGE_A "--- a/none\n+++ b/none\n@@ -1 +1 @@\n-1\n+2\n", "No such file or directory");
    refuse(rig, CHANGE_A "--- a/b\n+++ b/b\n@@ -1 +1 @@\n-1\n+2", "corrupt patch at line");
    assert_file(rig, "a", "1\n");
    assert_file(rig, "b", "1\n");
    assert_file(rig, "new", NULL);
    assert_no_leftovers(rig);
}

static void what_is_no_patch_is_refused_with_its_reason(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put_text(rig, "a", "1\n");
    refuse(rig, "", "patch is required.");
    refuse(rig, " \n\t\n", "patch is required.");
    refuse(rig, "hello\n", "Patch must include at least one file path.");
    refuse(rig, "*** Begin Patch\n*** Update File: a\n@@\n-1\n+2\n*** End Patch\n", "at least one file path");
    refuse(rig, "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n", "at least one file path");
    refuse(rig, "--- a/a\n+++ b/a\n", "o valid patches in input");
    refuse(rig,
           "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc/passwd\n"
           "\\ No newline at end of file\n",
           "Symlink patches are blocked");
    refuse(rig, "diff --git a/l b/l\nindex 111..222 120000\n--- a/l\n+++ b/l\n@@ -1 +1 @@\n-a\n+b\n",
           "Symlink patches are blocked");
    refuse(rig,
           "diff --git a/m b/m\nnew file mode 160000\n--- /dev/null\n+++ b/m\n@@ -0,0 +1 @@\n+Subproject "
           "commit 1\n",
           "Submodule patches are blocked");
    CLEANUP_FREE char *large = mem_alloc(1000002);
    memset(large, 'x', 1000001);
    refuse(rig, large, "Patch is too large (1000001 bytes)");
    CLEANUP_FREE char *missing = guest_rig_tool_error(rig, "apply_patch", json_object());
    assert_non_null(strstr(missing, "at patch"));
}

static void a_patch_of_too_many_files_is_refused(void **state)
{
    CLEANUP(buffer_free) struct buffer patch = BUFFER_INIT(1000000);
    for (int i = 0; i <= 2000; i++)
        buffer_format(&patch, "--- /dev/null\n+++ b/f%d\n@@ -0,0 +1 @@\n+x\n", i);
    refuse(*state, patch.data, "Patch names more than 2000 files.");
}

// --- paths

static void every_named_path_is_checked(void **state)
{
    struct guest_rig *rig = *state;
    static const struct {
        const char *name, *words;
    } cases[] = {
        {"../x", "Path escapes workspace root"},
        {"/etc/x", "Path escapes workspace root"},
        {"sub/../../x", "Path escapes workspace root"},
        {".git/hooks/post-checkout", "Path is blocked by safety rules"},
        {"sub/.git/config", "Path is blocked by safety rules"},
        {"node_modules/x", "Path is blocked by safety rules"},
        {".env", "Path is blocked by safety rules"},
        {"out/x", "parent outside the workspace"},
        {"link", "Refusing to write through a symlink"},
        {"dangling", "Refusing to write through a symlink"},
    };
    guest_rig_put_text(rig, "a", "1\n");
    const char *const links[][2] = {{"/tmp", "out"}, {"a", "link"}, {"nowhere", "dangling"}};
    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        CLEANUP_FREE char *at = path_of(rig, links[i][1]);
        assert_int_equal(symlink(links[i][0], at), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *name = cases[i].name;
        CLEANUP_FREE char *made = mem_format("--- /dev/null\n+++ b/%s\n@@ -0,0 +1 @@\n+x\n", name);
        CLEANUP_FREE char *changed = mem_format("--- a/%s\n+++ b/%s\n@@ -1 +1 @@\n-1\n+x\n", name, name);
        CLEANUP_FREE char *renamed =
            mem_format("diff --git a/a b/z\nsimilarity index 100%%\nrename from a\nrename to %s\n", name);
        CLEANUP_FREE char *copied =
            mem_format("diff --git a/a b/z\nsimilarity index 100%%\ncopy from %s\ncopy to z\n", name);
        CLEANUP_FREE char *empty = mem_format("diff --git a/%s b/%s\nnew file mode 100644\nindex 000..e69\n"
                                              "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+x\n",
                                              name, name);
        refuse(rig, made, cases[i].words);
        refuse(rig, changed, cases[i].words);
        refuse(rig, renamed, cases[i].words);
        refuse(rig, copied, cases[i].words);
        refuse(rig, empty, cases[i].words);
    }
    assert_file(rig, "a", "1\n");
    assert_int_equal(access("/tmp/x", F_OK), -1);
}

static void what_is_no_regular_file_is_left_alone(void **state)
{
    struct guest_rig *rig = *state;
    CLEANUP_FREE char *fifo = path_of(rig, "fifo"), *dir = path_of(rig, "dir");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(mkdir(dir, 0755), 0);
    refuse(rig, "--- a/fifo\n+++ b/fifo\n@@ -1 +1 @@\n-1\n+x\n", "Not a file: fifo");
    refuse(rig, "--- /dev/null\n+++ b/fifo\n@@ -0,0 +1 @@\n+x\n", "Not a file: fifo");
    refuse(rig, "--- /dev/null\n+++ b/dir\n@@ -0,0 +1 @@\n+x\n", "dir");
    refuse(rig, "--- /dev/null\n+++ b/fifo/x\n@@ -0,0 +1 @@\n+x\n", "EEXIST");
    struct stat meta;
    assert_int_equal(lstat(fifo, &meta), 0);
    assert_true(S_ISFIFO(meta.st_mode));
}

// A name that git reads otherwise than we do (a date behind blanks) still meets every check.
static void names_that_only_git_sees_are_checked_too(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put_text(rig, "there", "mine\n");
    apply_and_forget(rig, "--- /dev/null 2020-01-01 10:00:00.000000000 +0000\n"
                          "+++ b/dated 2020-01-01 10:00:00.000000000 +0000\n@@ -0,0 +1 @@\n+x\n");
    assert_file(rig, "dated", "x\n");
    refuse(rig,
           "--- /dev/null 2020-01-01 10:00:00.000000000 +0000\n"
           "+++ b/.env 2020-01-01 10:00:00.000000000 +0000\n@@ -0,0 +1 @@\n+x\n",
           "Path is blocked by safety rules");
    refuse(rig,
           "--- /dev/null 2020-01-01 10:00:00.000000000 +0000\n"
           "+++ b/there 2020-01-01 10:00:00.000000000 +0000\n@@ -0,0 +1 @@\n+x\n",
           "there");
    assert_file(rig, "there", "mine\n");
    assert_no_leftovers(rig);
}

static char *lines_of_eight(const char *middle)
{
    struct buffer text = BUFFER_INIT(4096);
    for (int i = 0; i < 8; i++)
        buffer_format(&text, "before %d\n%s %d\nafter %d\n", i, middle, i, i);
    return buffer_take_string(&text);
}

static void patches_at_once_to_one_file_all_count(void **state)
{
    struct guest_rig *rig = *state;
    int64_t ids[8];
    CLEANUP_FREE char *old_text = lines_of_eight("old"), *new_text = lines_of_eight("new");
    guest_rig_put_text(rig, "f", old_text);
    for (int i = 0; i < 8; i++) {
        CLEANUP_FREE char *patch =
            mem_format("--- a/f\n+++ b/f\n@@ -%d,3 +%d,3 @@\n before %d\n-old %d\n+new %d\n after %d\n",
                       3 * i + 1, 3 * i + 1, i, i, i, i);
        ids[i] =
            guest_rig_send(rig, "tools/call",
                           json_pack("{s:s s:{s:s}}", "name", "apply_patch", "arguments", "patch", patch));
    }
    for (int i = 0; i < 8; i++) {
        CLEANUP_JSON json_t *answer = guest_rig_wait(rig, ids[i]);
        assert_false(json_get_bool(json_object_get(answer, "result"), "isError", false));
    }
    assert_file(rig, "f", new_text);
}

#define WITH_GUEST(test) cmocka_unit_test_setup_teardown(test, guest_rig_setup, guest_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_GUEST(one_patch_changes_makes_deletes_and_renames),
        WITH_GUEST(a_removed_line_of_dashes_is_content),
        cmocka_unit_test_setup_teardown(a_patch_applies_in_a_subdirectory_of_a_repository,
                                        guest_rig_setup_in_repository, guest_rig_teardown),
        WITH_GUEST(names_and_bytes_may_be_odd),
        WITH_GUEST(headers_without_a_prefix_lose_their_first_directory),
        WITH_GUEST(a_changed_file_keeps_its_mode_and_leaves_its_links),
        WITH_GUEST(git_attributes_of_the_workspace_count),
        WITH_GUEST(a_linked_directory_inside_may_be_written_through),
        WITH_GUEST(a_patch_that_fails_in_its_last_file_changes_nothing),
        WITH_GUEST(what_is_no_patch_is_refused_with_its_reason),
        WITH_GUEST(a_patch_of_too_many_files_is_refused),
        WITH_GUEST(every_named_path_is_checked),
        WITH_GUEST(what_is_no_regular_file_is_left_alone),
        WITH_GUEST(names_that_only_git_sees_are_checked_too),
        WITH_GUEST(patches_at_once_to_one_file_all_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
