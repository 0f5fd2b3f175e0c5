// What apply_patch does without git is what git apply does: random patches, whole and spoilt, given to both.
#include "api/guest/patch_direct.h"
#include "controller/base/memory.h"
#include "tests/support/support.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROUNDS 120
#define MAX_BYTES (1024 * 1024)

struct bench {
    char *dir;
    unsigned seed;
};

static int set_up(void **state)
{
    struct bench *bench = mem_alloc(sizeof(*bench));
    *bench = (struct bench){support_make_dir(), 20240229};
    *state = bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;
    support_remove_dir(bench->dir);
    free(bench);
    return 0;
}

static void empty(struct buffer *text)
{
    text->len = 0;
    buffer_text(text);
}

static unsigned any(struct bench *bench, unsigned below)
{
    bench->seed = bench->seed * 1103515245 + 12345;
    return (bench->seed >> 16) % below;
}

static void put(struct bench *bench, const char *name, const struct buffer *text)
{
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *path = mem_format("%s/%s", bench->dir, name);
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_ok(fs_write_all(fd, text->data, text->len, &err));
}

static void get(struct bench *bench, const char *name, struct buffer *to)
{
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *path = mem_format("%s/%s", bench->dir, name);
    empty(to);
    assert_ok(fs_read_file(path, to, &err));
}

static int in_dir(struct bench *bench, const char *command)
{
    CLEANUP_FREE char *line = mem_format("cd %s && %s", bench->dir, command);
    return system(line);
}

// Few different lines, so that hunks fit in several places.
static void make_text(struct bench *bench, struct buffer *to)
{
    unsigned lines = 1 + any(bench, 30);
    empty(to);
    for (unsigned i = 0; i < lines; i++)
        buffer_format(to, "%s%u%s", any(bench, 4) ? "line " : "", any(bench, 5),
                      i + 1 == lines && any(bench, 5) == 0 ? "" : "\n");
}

static void change_text(struct bench *bench, const struct buffer *from, struct buffer *to)
{
    const char *at = from->data, *end = from->data + from->len;
    empty(to);
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t len = stop ? (size_t)(stop + 1 - at) : (size_t)(end - at);
        unsigned choice = any(bench, 12);
        if (choice == 0)
            buffer_format(to, "new %u\n", any(bench, 3));
        if (choice != 1)
            buffer_append(to, at, len);
        at += len;
    }
}

static void spoil(struct bench *bench, struct buffer *patch)
{
    static const char bytes[] = " +-@\n19,x\\";
    char *hunks = memmem(buffer_text(patch), patch->len, "@@", 2);
    for (unsigned i = any(bench, 3); hunks && i; i--) {
        size_t start = (size_t)(hunks - patch->data);
        patch->data[start + any(bench, (unsigned)(patch->len - start))] =
            bytes[any(bench, sizeof(bytes) - 1)];
    }
}

// A patch from old to new, applied to old or to something near it.
static void make_case(struct bench *bench, struct buffer *text, struct buffer *patch)
{
    struct buffer other = BUFFER_INIT(MAX_BYTES);
    make_text(bench, text);
    change_text(bench, text, &other);
    put(bench, "old", text);
    put(bench, "new", &other);
    CLEANUP_FREE char *diff = mem_format("diff -U%u --label a/f --label b/f old new > patch", any(bench, 4));
    in_dir(bench, diff);
    get(bench, "patch", patch);
    if (any(bench, 2))
        spoil(bench, patch);
    if (any(bench, 3) == 0) {
        change_text(bench, text, &other);
        empty(text);
        buffer_append(text, other.data, other.len);
    }
    buffer_free(&other);
}

// True if the quick way took the whole patch.
static bool change_directly(struct buffer *text, const struct buffer *patch, struct buffer *to)
{
    const char *hunks = memmem(patch->data, patch->len, "@@", 2), *end = patch->data + patch->len;
    empty(to);
    return hunks && !memchr(patch->data, '\r', patch->len) &&
           patch_direct_change(&hunks, end, buffer_text(text), text->len, to) && hunks == end;
}

static void a_patch_that_fits_gives_what_git_gives(void **state)
{
    struct bench *bench = *state;
    struct buffer text = BUFFER_INIT(MAX_BYTES), patch = BUFFER_INIT(MAX_BYTES),
                  ours = BUFFER_INIT(MAX_BYTES), gits = BUFFER_INIT(MAX_BYTES);
    unsigned direct = 0;
    for (int i = 0; i < ROUNDS; i++) {
        make_case(bench, &text, &patch);
        if (!change_directly(&text, &patch, &ours))
            continue; // git's business
        direct++;
        put(bench, "f", &text);
        put(bench, "patch", &patch);
        if (in_dir(bench, "git apply --whitespace=nowarn patch 2> why") != 0)
            fail_msg("case %d: git refuses this, and here it fits:\n%s\non\n%s", i, buffer_text(&patch),
                     buffer_text(&text));
        get(bench, "f", &gits);
        if (ours.len != gits.len || memcmp(ours.data, gits.data, ours.len) != 0)
            fail_msg("case %d:\n%s\non\n%s\ngives\n%s\nand with git\n%s", i, buffer_text(&patch),
                     buffer_text(&text), buffer_text(&ours), buffer_text(&gits));
    }
    assert_true(direct > ROUNDS / 10);
    buffer_free(&text);
    buffer_free(&patch);
    buffer_free(&ours);
    buffer_free(&gits);
}

static bool fits(const char *text, const char *hunks)
{
    struct buffer out = BUFFER_INIT(MAX_BYTES);
    const char *at = hunks, *end = hunks + strlen(hunks);
    bool does = patch_direct_change(&at, end, text, strlen(text), &out);
    buffer_free(&out);
    return does;
}

static void what_does_not_fit_at_once_is_left_to_git(void **state)
{
    (void)state;
    static const struct {
        const char *text, *hunks;
    } cases[] = {
        {"a\nb\nc\n", "@@ -2,2 +2,2 @@\n a\n-b\n+x\n"}, // stands elsewhere
        {"a\nb\nc\n", "@@ -1,2 +1,2 @@\n a\n-b\n+x\n"}, // no context behind, not at the end
        {"a\nb\nc\n", "@@ -1 +1 @@\n a\n"},             // changes nothing
        {"a\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n"}, // ends too early
        {"a\nb\nc", "@@ -2,2 +2,2 @@\n-b\n+x\n c\n"},   // no line end where the patch has one
        {"a\n", "@@ -1 +0,0 @@\n-a\n"},                 // nothing is left
        {"", "@@ -0,0 +1 @@\n+a\n"},
        {"a\nb\nc\nd\n", "@@ -1,2 +1,2 @@\n-a\n+x\n b\n@@ -2,3 +2,3 @@\n b\n-c\n+y\n d\n"}, // overlap
        {"a\nb\n", "@@ -1,2 +1,2 @@\n-a\n+b\n b"}, // no line end in the patch
        {"a\nb\n", "@@ -99999999999999999999,2 +1,2 @@\n-a\n+b\n b\n"},
    };
    assert_true(fits("a\nb\nc\n", "@@ -1,3 +1,3 @@ why\n a\n-b\n+x\n c\n"));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (fits(cases[i].text, cases[i].hunks))
            fail_msg("%s", cases[i].hunks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_patch_that_fits_gives_what_git_gives, set_up, tear_down),
        cmocka_unit_test(what_does_not_fit_at_once_is_left_to_git),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
