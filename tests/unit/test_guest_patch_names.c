// What a patch names, read without git; names as git quotes them; addresses an import may connect to.
#include "api/guest/git_quote.h"
#include "api/guest/import_address.h"
#include "api/guest/media.h"
#include "api/guest/patch_names.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include "tests/support/support.h"
#include <stdlib.h>
#include <string.h>

static void assert_names(const char *patch, const char *expected, size_t additions, size_t deletions)
{
    struct error err = ERROR_INIT;
    CLEANUP_PATCH_NAMES struct patch_names names;
    CLEANUP(buffer_free) struct buffer joined = BUFFER_INIT(10000);
    assert_ok(patch_names_scan(patch, strlen(patch), &names, &err));
    for (size_t i = 0; i < names.count; i++)
        buffer_format(&joined, "%s%s", i ? "|" : "", names.names[i]);
    assert_string_equal(buffer_text(&joined), expected);
    assert_int_equal(names.additions, additions);
    assert_int_equal(names.deletions, deletions);
}

static void names_come_from_headers_and_never_from_content(void **state)
{
    (void)state;
    assert_names("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a/y\n-+++ b/y\n+++ b/z\n+--- a/z\n", "x", 2, 2);
    assert_names("--- a/x\tdate\n+++ b/y\tdate\n@@ -1 +1 @@\n-1\n+2\n", "x|y", 1, 1);
    assert_names("--- a/x\r\n+++ b/x\r\n@@ -1 +1 @@\r\n-1\r\n+2\r\n", "x", 1, 1);
    assert_names("--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+1\n+2\n\\ No newline at end of file\n", "x", 2,
                 0);
    assert_names("--- x\n+++ x\n@@ -1 +1 @@\n-1\n+2\n", "x", 1, 1);
    assert_names("diff --git a/p q b/p q\nold mode 100644\nnew mode 100755\n", "p q", 0, 0);
    assert_names("diff --git \"a/\\303\\251\" \"b/\\303\\251\"\nnew file mode 100644\n", "\xc3\xa9", 0, 0);
    assert_names("diff --git a/x b/y\nrename from x\nrename to y\n", "x|y", 0, 0);
    assert_names("diff --git a/x b/y\ncopy from x\ncopy to \"y\\tz\"\n", "x|y\tz", 0, 0);
    assert_names("--- only half of a header\n@@ -1 +1 @@\n-1\n+2\n", "", 0, 0);
    assert_names("text\n--- a/x\ntext\n+++ b/y\n", "", 0, 0);
    // Behind a broken hunk the headers count again.
    assert_names("--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-1\nbroken\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-1\n+2\n",
                 "x|y", 1, 2);
    assert_names("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n 1\n\n", "x", 0, 0);
    assert_names("", "", 0, 0);
    assert_names("---", "", 0, 0);
    assert_names("--- ", "", 0, 0);
    assert_names("--- a/x\n+++ ", "x", 0, 0);
}

static void symlinks_and_submodules_are_seen_in_headers_only(void **state)
{
    (void)state;
    static const struct {
        const char *patch;
        bool is_symlink, is_submodule;
    } cases[] = {
        {"diff --git a/x b/x\nnew file mode 120000\n", true, false},
        {"diff --git a/x b/x\nold mode 100644\nnew mode 120000\n", true, false},
        {"diff --git a/x b/x\ndeleted file mode 120000\n", true, false},
        {"diff --git a/x b/x\nindex 1..2 120000\n", true, false},
        {"diff --git a/x b/x\nindex 1..2 160000\n", false, true},
        {"diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-new file mode "
         "120000\n+index 120000\n",
         false, false},
        {"new file mode 120000\n", false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct error err = ERROR_INIT;
        CLEANUP_PATCH_NAMES struct patch_names names;
        assert_ok(patch_names_scan(cases[i].patch, strlen(cases[i].patch), &names, &err));
        assert_int_equal(names.has_symlink, cases[i].is_symlink);
        assert_int_equal(names.has_submodule, cases[i].is_submodule);
    }
}

// Bytes are turned at random; the sanitizers say if anything is read past the end.
static void no_bytes_break_the_readers(void **state)
{
    (void)state;
    static const char seed[] =
        "diff --git \"a/\\303x\" b/y\nindex 1..2 100644\nrename from a\nrename to \"b\\t\"\n"
        "--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n 1\n-2\n+3\n+4\n\\ No\n\xff\xd8\xff\xe0";
    static const char spice[] = "\n\"\\-+@ 019/,\t\r\xff\xc0";
    srand(1);
    for (int round = 0; round < 20000; round++) {
        struct error err = ERROR_INIT;
        struct image_info image;
        char *name = NULL;
        size_t len = (size_t)rand() % sizeof(seed);
        CLEANUP_FREE char *bytes = malloc(len + 1); // exactly as long as said, for the sanitizers
        CLEANUP_PATCH_NAMES struct patch_names names = {0};
        memcpy(bytes, seed, len);
        for (int i = 0; len && i < 6; i++)
            bytes[(size_t)rand() % len] = spice[(size_t)rand() % (sizeof(spice) - 1)];
        assert_ok(patch_names_scan(bytes, len, &names, &err));
        media_sniff_image((const unsigned char *)bytes, len, &image);
        media_sniff_type((const unsigned char *)bytes, len);
        if (len && git_unquote(bytes, len, &name))
            free(name);
    }
}

static void a_quoted_name_comes_back_as_it_was(void **state)
{
    (void)state;
    char all[256];
    for (int i = 1; i < 256; i++)
        all[i - 1] = (char)i;
    all[255] = '\0';
    const char *const names[] = {all, "plain name", "tab\t", "\"", "\\", "\xc3\xa9", "\x7f"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CLEANUP(buffer_free) struct buffer quoted = BUFFER_INIT(4096);
        CLEANUP_FREE char *back = NULL;
        git_quote(&quoted, names[i]);
        if (quoted.data[0] != '"') {
            assert_string_equal(buffer_text(&quoted), names[i]);
            continue;
        }
        assert_int_equal(git_unquote(quoted.data, quoted.len, &back), quoted.len);
        assert_string_equal(back, names[i]);
    }
    static const char *const bad[] = {"\"open", "\"\\",      "\"\\q\"", "\"\\000\"",
                                      "\"\\4",  "\"\\400\"", "\"\\18\""};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char *name = NULL;
        assert_int_equal(git_unquote(bad[i], strlen(bad[i]), &name), 0);
        assert_null(name);
    }
}

static void an_address_is_public_only_if_it_is_given_out(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum import_address verdict;
    } cases[] = {
        {"8.8.8.8", IMPORT_ADDRESS_PUBLIC},
        {"172.15.255.255", IMPORT_ADDRESS_PUBLIC},
        {"172.32.0.1", IMPORT_ADDRESS_PUBLIC},
        {"100.63.255.255", IMPORT_ADDRESS_PUBLIC},
        {"100.127.255.255", IMPORT_ADDRESS_BLOCKED},
        {"198.19.255.255", IMPORT_ADDRESS_BLOCKED},
        {"239.1.1.1", IMPORT_ADDRESS_BLOCKED},
        {"127.255.0.1", IMPORT_ADDRESS_LOOPBACK},
        {"::1", IMPORT_ADDRESS_LOOPBACK},
        {"::ffff:127.0.0.1", IMPORT_ADDRESS_LOOPBACK},
        {"::ffff:8.8.8.8", IMPORT_ADDRESS_PUBLIC},
        {"::8.8.8.8", IMPORT_ADDRESS_BLOCKED},
        {"2606:4700::1", IMPORT_ADDRESS_PUBLIC},
        {"2001:200::1", IMPORT_ADDRESS_PUBLIC},
        {"2001:0:1::", IMPORT_ADDRESS_BLOCKED},
        {"fec0::1", IMPORT_ADDRESS_BLOCKED},
        {"4000::1", IMPORT_ADDRESS_BLOCKED},
        {"2002:808:808::", IMPORT_ADDRESS_PUBLIC},
    };
    enum import_address verdict;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_true(import_address_judge(cases[i].text, &verdict));
        if (verdict != cases[i].verdict)
            fail_msg("%s: %d", cases[i].text, verdict);
    }
    static const char *const no[] = {"",           "1.2.3",    "01.2.3.4", "0x7f.0.0.1",
                                     "2130706433", "::1%eth0", "[::1]",    "a"};
    for (size_t i = 0; i < ARRAY_LEN(no); i++)
        assert_false(import_address_judge(no[i], &verdict));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_come_from_headers_and_never_from_content),
        cmocka_unit_test(symlinks_and_submodules_are_seen_in_headers_only),
        cmocka_unit_test(no_bytes_break_the_readers),
        cmocka_unit_test(a_quoted_name_comes_back_as_it_was),
        cmocka_unit_test(an_address_is_public_only_if_it_is_given_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
