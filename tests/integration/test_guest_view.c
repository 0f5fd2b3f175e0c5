// view_image and read_handoff of the real chat2shell-guest.
#include "tests/support/guest_rig.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static json_t *path_args(const char *path)
{
    return json_pack("{s:s}", "path", path);
}

static void assert_fails(struct guest_rig *rig, const char *tool, json_t *args, const char *words)
{
    CLEANUP_FREE char *text = guest_rig_tool_error(rig, tool, args);
    if (!strstr(text, words))
        fail_msg("%s: expected \"%s\" in \"%s\"", tool, words, text);
}

// --- view_image

#define PNG "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\2\x80\0\0\1\xe0\x08\2\0\0\0"
#define JPEG "\xff\xd8\xff\xe0\0\4ab\xff\xff\xc4\0\3x\xff\xc2\0\x0b\x08\1\2\3\4\3\0\0\0"
#define WEBP_X "RIFF\x20\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x0f\1\0\x07\2\0"

struct picture {
    const char *name, *bytes;
    size_t len;
    const char *type;
    int width, height; // 0: null
};

static const struct picture pictures[] = {
    {"a.txt", PNG, sizeof(PNG) - 1, "image/png", 640, 480},
    {"b.gif", "GIF89a\x05\0\x06\x01..", 12, "image/gif", 5, 262},
    {"c", "GIF87a", 6, "image/gif", 0, 0},
    {"d.png", JPEG, sizeof(JPEG) - 1, "image/jpeg", 772, 258},
    {"e.jpg", "\xff\xd8\xff\xda\0\2xx", 8, "image/jpeg", 0, 0},
    {"f.jpg", "\xff\xd8\xff", 3, "image/jpeg", 0, 0},
    {"g.jpg", "\xff\xd8\xff\xe0\0\0\0\0\0\0", 10, "image/jpeg", 0, 0},
    {"h.webp", WEBP_X, sizeof(WEBP_X) - 1, "image/webp", 272, 520},
    {"i.webp", "RIFF\x20\0\0\0WEBPVP8 ....", 20, "image/webp", 0, 0},
};

static void assert_size(const json_t *structured, const char *key, int size)
{
    const json_t *value = json_object_get(structured, key);
    if (size)
        assert_int_equal(json_integer_value(value), size);
    else
        assert_true(json_is_null(value));
}

static void assert_picture(struct guest_rig *rig, const struct picture *picture)
{
    struct error err = ERROR_INIT;
    CLEANUP_JSON json_t *result =
        guest_rig_call(rig, "tools/call",
                       json_pack("{s:s s:o}", "name", "view_image", "arguments", path_args(picture->name)));
    const json_t *structured = json_object_get(result, "structuredContent"),
                 *content = json_object_get(result, "content"), *image = json_array_get(content, 1);
    assert_int_equal(json_array_size(content), 2);
    assert_string_equal(json_get_text(image, "type"), "image");
    assert_string_equal(json_get_text(image, "mimeType"), picture->type);
    CLEANUP_FREE char *bytes = NULL;
    size_t len;
    assert_ok(json_decode_base64(json_get_text(image, "data"), &bytes, &len, &err));
    assert_int_equal(len, picture->len);
    assert_memory_equal(bytes, picture->bytes, len);
    assert_string_equal(json_get_text(structured, "path"), picture->name);
    assert_string_equal(json_get_text(structured, "mime_type"), picture->type);
    assert_int_equal(json_get_int(structured, "bytes", -1), picture->len);
    assert_int_equal(strlen(json_get_text(structured, "sha256")), 64);
    assert_size(structured, "width", picture->width);
    assert_size(structured, "height", picture->height);
}

static void the_bytes_say_what_an_image_is_and_not_its_name(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(pictures); i++) {
        guest_rig_put(*state, pictures[i].name, pictures[i].bytes, pictures[i].len);
        assert_picture(*state, &pictures[i]);
    }
}

static void what_is_no_image_is_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
    } others[] = {
        {"", 0},
        {"\x89PNG\r\n\x1a\n", 8}, // cut before its size
        {PNG, 23},
        {"\xff\xd8", 2},
        {"GIF90a\1\0\1\0", 10},
        {"RIFF....WAVEfmt ", 16},
        {"<svg xmlns=\"http://www.w3.org/2000/svg\"/>", 40},
        {"BM\x10\0\0\0", 6},
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        guest_rig_put(*state, "x.png", others[i].bytes, others[i].len);
        assert_fails(*state, "view_image", path_args("x.png"), "CodexProError: Unsupported image format");
    }
}

static void an_image_is_held_to_its_limit(void **state)
{
    struct guest_rig *rig = *state;
    CLEANUP_FREE char *large = mem_alloc(1000001);
    memcpy(large, PNG, sizeof(PNG) - 1);
    guest_rig_put(rig, "large.png", large, 1000000);
    json_decref(guest_rig_tool(rig, "view_image", path_args("large.png")));
    guest_rig_put(rig, "large.png", large, 1000001);
    assert_fails(rig, "view_image", path_args("large.png"),
                 "Image is too large (1000001 bytes). Limit: 1000000 bytes.");
    json_decref(
        guest_rig_tool(rig, "view_image", json_pack("{s:s s:i}", "path", "large.png", "max_bytes", 2000000)));
    static const int bad[] = {4095, 2000001, 0, -1};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_fails(rig, "view_image", json_pack("{s:s s:i}", "path", "large.png", "max_bytes", bad[i]),
                     "at max_bytes");
    assert_fails(rig, "view_image", json_object(), "at path");
}

static void image_paths_keep_to_the_rules(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put(rig, "in/a.png", PNG, sizeof(PNG) - 1);
    guest_rig_put(rig, "dist/a.png", PNG, sizeof(PNG) - 1);
    CLEANUP_FREE char *link = mem_format("%s/link.png", rig->dir), *out = mem_format("%s/out.png", rig->dir),
                      *fifo = mem_format("%s/fifo.png", rig->dir), *zero = mem_format("%s/zero", rig->dir);
    assert_int_equal(symlink("in/a.png", link), 0);
    assert_int_equal(symlink("/etc/passwd", out), 0);
    assert_int_equal(symlink("/dev/zero", zero), 0);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    CLEANUP_JSON json_t *followed = guest_rig_tool(rig, "view_image", path_args("link.png"));
    assert_string_equal(json_get_text(followed, "path"), "link.png");
    assert_fails(rig, "view_image", path_args("out.png"),
                 "resolves outside workspace root through a symlink");
    assert_fails(rig, "view_image", path_args("zero"), "resolves outside workspace root through a symlink");
    assert_fails(rig, "view_image", path_args("../x.png"), "Path escapes workspace root");
    assert_fails(rig, "view_image", path_args("dist/a.png"), "Path is blocked by safety rules");
    assert_fails(rig, "view_image", path_args("in"), "Not a file");
    assert_fails(rig, "view_image", path_args("fifo.png"), "Not a file");
    assert_fails(rig, "view_image", path_args("none.png"), "Error: ENOENT");
    assert_fails(rig, "view_image", path_args("in/a.png/x"), "Error: ENOTDIR");
}

// --- read_handoff

static void without_a_directory_there_is_one_sentence_and_nothing_is_made(void **state)
{
    struct guest_rig *rig = *state;
    CLEANUP_JSON json_t *answer = guest_rig_tool(rig, "read_handoff", json_object());
    assert_int_equal(json_get_int(answer, "file_count", -1), 0);
    assert_int_equal(json_array_size(json_object_get(answer, "files")), 0);
    assert_non_null(strstr(json_get_text(answer, "preview"), "no handoff files"));
    CLEANUP_FREE char *path = mem_format("%s/.ai-bridge", rig->dir);
    assert_int_equal(access(path, F_OK), -1);
}

static char *text_of(struct guest_rig *rig)
{
    CLEANUP_JSON json_t *result =
        guest_rig_call(rig, "tools/call", json_pack("{s:s s:{}}", "name", "read_handoff", "arguments"));
    return mem_strdup(json_get_text(json_array_get(json_object_get(result, "content"), 0), "text"));
}

static void handoff_files_come_in_their_order_with_numbered_lines(void **state)
{
    struct guest_rig *rig = *state;
    guest_rig_put(rig, ".ai-bridge/execution-log.jsonl", "{}\n", 3);
    guest_rig_put(rig, ".ai-bridge/current-plan.md", "# Plan\nsk-abcdefghijklmnop\n", 27);
    guest_rig_put(rig, ".ai-bridge/decisions.md", "\0", 1);
    guest_rig_put(rig, ".ai-bridge/other.md", "not shown", 9);
    CLEANUP_FREE char *large = mem_alloc(80001);
    memset(large, 'x', 80001);
    guest_rig_put(rig, ".ai-bridge/open-questions.md", large, 80001);
    CLEANUP_FREE char *link = mem_format("%s/.ai-bridge/agent-status.md", rig->dir);
    assert_int_equal(symlink("/etc/hostname", link), 0);
    CLEANUP_FREE char *fifo = mem_format("%s/.ai-bridge/codex-status.md", rig->dir);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    CLEANUP_JSON json_t *answer = guest_rig_tool(rig, "read_handoff", json_object());
    CLEANUP_FREE char *files = json_to_text(json_object_get(answer, "files"));
    assert_string_equal(files, "[\".ai-bridge/current-plan.md\",\".ai-bridge/execution-log.jsonl\"]");
    assert_int_equal(json_get_int(answer, "file_count", -1), 2);
    CLEANUP_FREE char *text = text_of(rig);
    assert_non_null(
        strstr(text, "--- .ai-bridge/current-plan.md ---\n1 | # Plan\n2 | sk-abcdefghijklmnop\n3 | \n"));
    assert_non_null(strstr(text, "--- .ai-bridge/decisions.md ---\n[unreadable: "));
    assert_non_null(
        strstr(text, "--- .ai-bridge/open-questions.md ---\n[unreadable: CodexProError: File is too large"));
    assert_non_null(strstr(text, "--- .ai-bridge/agent-status.md ---\n[unreadable: "));
    assert_non_null(
        strstr(text, "--- .ai-bridge/codex-status.md ---\n[unreadable: CodexProError: Not a file"));
    assert_null(strstr(text, "not shown"));
    assert_null(strstr(text, "implementation-diff"));
}

static void the_preview_is_forty_lines_and_twelve_thousand_characters_at_most(void **state)
{
    struct guest_rig *rig = *state;
    struct buffer plan = BUFFER_INIT(80000);
    for (int i = 0; i < 100; i++)
        buffer_format(&plan, "line %d\n", i);
    guest_rig_put(rig, ".ai-bridge/current-plan.md", plan.data, plan.len);
    CLEANUP_JSON json_t *answer = guest_rig_tool(rig, "read_handoff", json_object());
    int newlines = 0;
    for (const char *c = json_get_text(answer, "preview"); *c; c++)
        newlines += *c == '\n';
    assert_int_equal(newlines, 39);
    plan.len = 0;
    for (int i = 0; i < 26000; i++)
        buffer_append_text(&plan, "\xe2\x82\xac");
    guest_rig_put(rig, ".ai-bridge/current-plan.md", plan.data, plan.len);
    CLEANUP_JSON json_t *wide = guest_rig_tool(rig, "read_handoff", json_object());
    size_t chars = 0;
    for (const char *c = json_get_text(wide, "preview"); *c; c++)
        chars += ((unsigned char)*c & 0xC0) != 0x80;
    assert_int_equal(chars, 12000);
    buffer_free(&plan);
}

#define WITH_GUEST(test) cmocka_unit_test_setup_teardown(test, guest_rig_setup, guest_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_GUEST(the_bytes_say_what_an_image_is_and_not_its_name),
        WITH_GUEST(what_is_no_image_is_refused),
        WITH_GUEST(an_image_is_held_to_its_limit),
        WITH_GUEST(image_paths_keep_to_the_rules),
        WITH_GUEST(without_a_directory_there_is_one_sentence_and_nothing_is_made),
        WITH_GUEST(handoff_files_come_in_their_order_with_numbered_lines),
        WITH_GUEST(the_preview_is_forty_lines_and_twelve_thousand_characters_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
