#include "tests/support/support.h"
#include "cli/printers/manifest.h"
#include "controller/base/buffer.h"
#include "controller/base/fs.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include <string.h>

static int load(const char *text, struct manifest *ret, struct error *err)
{
    return manifest_parse("dev.yaml", text, strlen(text), ret, err);
}

static void assert_value(const char *yaml, const char *wanted)
{
    CLEANUP(manifest_free) struct manifest manifest = {0};
    struct error err = ERROR_INIT;
    assert_ok(load(yaml, &manifest, &err));
    assert_int_equal(manifest.count, 1);
    CLEANUP_JSON json_t *expected = NULL;
    assert_ok(json_parse(wanted, strlen(wanted), &expected, &err));
    CLEANUP_FREE char *got = json_to_text(manifest.documents[0].value);
    if (!json_equal(expected, manifest.documents[0].value))
        fail_msg("got %s, wanted %s", got, wanted);
}

static void assert_refused(const char *yaml, const char *message)
{
    CLEANUP(manifest_free) struct manifest manifest = {0};
    struct error err = ERROR_INIT;
    if (load(yaml, &manifest, &err) == 0)
        fail_msg("accepted: %s", yaml);
    if (!strstr(err.message, message))
        fail_msg("got '%s', wanted '%s'", err.message, message);
    assert_null(manifest.documents);
}

static void plain_scalars_follow_the_yaml_1_2_core_schema(void **state)
{
    (void)state;
    assert_value("a: yes\nb: on\nc: No\nd: 1:30\ne: 2026-11-29\nf: 0b1\ng: 1_000\n",
                 "{\"a\":\"yes\",\"b\":\"on\",\"c\":\"No\",\"d\":\"1:30\",\"e\":\"2026-11-29\",\"f\":\"0b1\","
                 "\"g\":\"1_000\"}");
    assert_value("a: true\nb: False\nc: null\nd: ~\ne:\nf: ''\n",
                 "{\"a\":true,\"b\":false,\"c\":null,\"d\":null,\"e\":null,\"f\":\"\"}");
    assert_value("a: 1\nb: -7\nc: 0x1F\nd: 0o17\ne: 007\nf: 1.5\ng: .5\nh: 1e3\ni: '1'\nj: 512Mi\nk: 1.\n",
                 "{\"a\":1,\"b\":-7,\"c\":31,\"d\":15,\"e\":7,\"f\":1.5,\"g\":0.5,\"h\":1000.0,\"i\":\"1\","
                 "\"j\":\"512Mi\",\"k\":1.0}");
    assert_value("a: |\n  x\n  y\nb: >\n  x\n  y\n", "{\"a\":\"x\\ny\\n\",\"b\":\"x y\\n\"}");
    assert_value("yes: 1\n1: 2\nnull: 3\n'<<': 4\n", "{\"yes\":1,\"1\":2,\"null\":3,\"<<\":4}");
    assert_value("a: 9223372036854775807\nb: -9223372036854775808\n",
                 "{\"a\":9223372036854775807,\"b\":-9223372036854775808}");
}

static void scalars_that_json_cannot_hold_are_refused(void **state)
{
    (void)state;
    assert_refused("a: 9223372036854775808", "dev.yaml:1:4: '9223372036854775808': the integer is too large");
    assert_refused("a: .inf", "infinite numbers and NaN are not allowed");
    assert_refused("a: -.INF", "infinite numbers and NaN are not allowed");
    assert_refused("a: .nan", "infinite numbers and NaN are not allowed");
    assert_refused("a: 1e999", "the number is too large");
    assert_refused("a: \"x\\0y\"", "dev.yaml:1:4: NUL characters are not allowed");
    assert_refused("\"x\\0y\": 1", "NUL characters are not allowed");
}

static void what_makes_two_readings_possible_is_refused_with_its_place(void **state)
{
    (void)state;
    assert_refused("a: 1\nb: 2\na: 3\n", "dev.yaml:3:1: key 'a' is given twice, first in line 1");
    assert_refused("s: {x: 1, y: 2,\n  x: 3}\n", "dev.yaml:2:3: key 'x' is given twice, first in line 1");
    assert_refused("a: &x {b: 1}\nc:\n  <<: *x\n", "dev.yaml:3:3: merge keys (<<) are not allowed");
    assert_refused("a: {\"b\": 1, \"b\": 2}", "dev.yaml:1:13: key 'b' is given twice");
    assert_refused("? [1]\n: 2\n", "a key must be a string");
    assert_refused("%TAG ! tag:x,2000:\n---\na: 1\n", "%TAG is not allowed");
}

static void broken_text_names_file_line_and_column(void **state)
{
    (void)state;
    assert_refused("a: 1\n\tb: 2\n", "dev.yaml:2:1: a tab cannot be used here");
    assert_refused("a:\n\t- b\n", "dev.yaml:2:1: a tab cannot be used here");
    assert_refused("a: [1, 2\n", "dev.yaml:2:1: did not find expected ',' or ']'");
    assert_refused("a: 'x\n", "dev.yaml:2:1: found unexpected end of stream");
    assert_refused("a: 1\nb: \xff\n", "dev.yaml:2:4: ");
    assert_refused("a: 1\n b: 2\n", "dev.yaml:2:3: mapping values are not allowed");
    assert_refused("a: \x01\n", "dev.yaml:1:4: control characters are not allowed");
}

static void empty_streams_and_roots_that_are_no_object_are_refused(void **state)
{
    (void)state;
    assert_refused("", "dev.yaml: holds no objects");
    assert_refused("---\n---\n# nothing\n", "dev.yaml: holds no objects");
    assert_refused("a: 1\n---\n- 1\n", "dev.yaml:3:1: must be an object");
    assert_refused("hello\n", "dev.yaml:1:1: must be an object");
}

// Of a field in manifest_place's "dev.yaml:LINE:COLUMN".
static unsigned long line_of(const struct manifest *manifest, size_t document, const char *path)
{
    static const char file[] = "dev.yaml:";
    CLEANUP_FREE char *place = manifest_place(manifest, document, path);
    assert_memory_equal(place, file, sizeof(file) - 1);
    return strtoul(place + sizeof(file) - 1, NULL, 10);
}

static void several_documents_keep_their_order_and_empty_ones_are_skipped(void **state)
{
    (void)state;
    CLEANUP(manifest_free) struct manifest manifest = {0};
    struct error err = ERROR_INIT;
    assert_ok(load("---\na: 1\n---\n---\nb: 2\n...\n---\nc: 3\n", &manifest, &err));
    assert_int_equal(manifest.count, 3);
    assert_int_equal(json_get_int(manifest.documents[1].value, "b", 0), 2);
    assert_int_equal(line_of(&manifest, 2, "c"), 8);
}

static char *repeat(const char *before, const char *piece, size_t times, const char *after)
{
    struct buffer text = BUFFER_INIT(64 << 20);
    buffer_append_text(&text, before);
    for (size_t i = 0; i < times; i++)
        buffer_append_text(&text, piece);
    buffer_append_text(&text, after);
    return buffer_take_string(&text);
}

static void assert_repeated_refused(const char *before, const char *piece, size_t times, const char *message)
{
    CLEANUP_FREE char *text = repeat(before, piece, times, "");
    assert_refused(text, message);
}

static void nesting_bombs_end_early_at_the_depth_limit(void **state)
{
    (void)state;
    assert_repeated_refused("a: ", "[", 200000, "nested deeper than 64 levels");
    assert_repeated_refused("", "[\n", 200000, "nested deeper than 64 levels");
    assert_repeated_refused("", "{a: ", 200000, "nested deeper than 64 levels");
    assert_repeated_refused("", "- ", 200000, "nested deeper than 64 levels");
    assert_repeated_refused("", "? ", 100000, "");
    CLEANUP_FREE char *deep = repeat("a: ", "[", MANIFEST_MAX_DEPTH - 1, "");
    CLEANUP_FREE char *closed = repeat(deep, "]", MANIFEST_MAX_DEPTH - 1, "");
    CLEANUP(manifest_free) struct manifest manifest = {0};
    struct error err = ERROR_INIT;
    assert_ok(load(closed, &manifest, &err));
}

static void size_and_node_limits_hold(void **state)
{
    (void)state;
    assert_repeated_refused("a: [", "1,", 1000001, "more than 1000000 values");
    assert_repeated_refused("", "---\n", 1000001, "more than 1000000 values");
    assert_repeated_refused("a: ", "x", MANIFEST_MAX_BYTES, "larger than 16777216 bytes");
}

// ---- anchors, aliases, tags ----------------------------------------------------------------------------------------------
static void an_alias_stands_for_the_value_before_it(void **state)
{
    (void)state;
    assert_value("a: &x 1\nb: *x\n", "{\"a\":1,\"b\":1}");
    assert_value("a: &x {k: [1, {l: yes}]}\nb: *x\nc: [*x, &y t, *y]\n",
                 "{\"a\":{\"k\":[1,{\"l\":\"yes\"}]},\"b\":{\"k\":[1,{\"l\":\"yes\"}]},\"c\":[{\"k\":[1,{\"l\":\"yes\"}]},\"t\",\"t\"]}");
    assert_value("a: &x 1\nb: &x 2\nc: *x\n", "{\"a\":1,\"b\":2,\"c\":2}");
}

static void an_alias_without_its_anchor_is_refused_with_its_place(void **state)
{
    (void)state;
    assert_refused("a: *x\n", "dev.yaml:1:4: the alias '*x' names no value before it");
    assert_refused("a: &x [*x]\n", "dev.yaml:1:8: the alias '*x' names no value before it");
    assert_refused("a: &x 1\n---\nb: *x\n", "dev.yaml:3:4: the alias '*x' names no value before it");
    assert_refused("a: &x k\n*x : 1\n", "dev.yaml:2:1: a key must be a string, not an alias");
    assert_refused("&a b: 1\n", "a key can have neither an anchor nor a tag");
}

// Each level stands for nine of the one before: a thousand million values in 400 bytes.
static void billion_laughs_are_refused_with_a_sentence(void **state)
{
    (void)state;
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(4096);
    buffer_append_text(&text, "a0: &a0 [l,l,l,l,l,l,l,l,l]\n");
    for (int i = 1; i < 10; i++)
        buffer_format(&text, "a%d: &a%d [*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d]\n", i, i, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
    assert_refused(buffer_text(&text), "more than 1000000 values, what aliases stand for included");
}

static void aliases_of_long_texts_end_at_the_bound_for_bytes(void **state)
{
    (void)state;
    CLEANUP_FREE char *long_text = repeat("a: &x ", "long", 50000, "\nb: [");
    assert_repeated_refused(long_text, "*x,", 1000, "aliases stand for more than 1048576 bytes of text");
}

static void aliases_do_not_nest_beyond_the_depth_limit(void **state)
{
    (void)state;
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(16384);
    buffer_append_text(&text, "a0: &a0 [[[[[[[[1]]]]]]]]\n");
    for (int i = 1; i < 10; i++)
        buffer_format(&text, "a%d: &a%d [[[[[[[*a%d]]]]]]]\n", i, i, i - 1);
    assert_refused(buffer_text(&text), "nested deeper than 64 levels by the alias");
}

static void too_many_anchors_are_refused(void **state)
{
    (void)state;
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(65536);
    for (int i = 0; i <= YAML_MAX_ANCHORS; i++)
        buffer_format(&text, "k%d: &a%d 1\n", i, i);
    assert_refused(buffer_text(&text), "dev.yaml:1001:8: more than 1000 anchors in one document");
}

static void core_tags_mean_what_they_say_and_others_are_refused(void **state)
{
    (void)state;
    assert_value("a: !!str 1\nb: !!int '7'\nc: !!float 1\nd: !!bool true\ne: !!null ''\nf: ! 1\ng: !!seq [1]\nh: !!map {}\n",
                 "{\"a\":\"1\",\"b\":7,\"c\":1.0,\"d\":true,\"e\":null,\"f\":\"1\",\"g\":[1],\"h\":{}}");
    assert_refused("a: !!int x\n", "dev.yaml:1:4: 'x': is tagged !!int and is no whole number");
    assert_refused("a: !!binary aGk=\n", "dev.yaml:1:4: 'aGk=': has a tag that is not allowed");
    assert_refused("a: !x {}\n", "dev.yaml:1:4: the tag '!x' is not allowed for a mapping");
    assert_refused("a: !!set {}\n", "dev.yaml:1:4: the tag 'tag:yaml.org,2002:set' is not allowed for a mapping");
    assert_refused("a: !!map [1]\n", "is not allowed for a list");
}

static void only_utf_8_is_read(void **state)
{
    (void)state;
    CLEANUP(manifest_free) struct manifest manifest = {0};
    struct error err = ERROR_INIT;
    assert_value("\xef\xbb\xbf" "a: 1\n", "{\"a\":1}");
    assert_refused("\xef\xbb\xbf" "a: [\n", "dev.yaml:2:1: ");
    assert_int_equal(manifest_parse("dev.yaml", "\xff\xfe" "a\0", 4, &manifest, &err), -1);
    assert_string_equal(err.message, "dev.yaml:1:1: this is UTF-16 text, and only UTF-8 is read");
    assert_int_equal(manifest_parse("dev.yaml", "\xff\xfe\0\0", 4, &manifest, &err), -1);
    assert_string_equal(err.message, "dev.yaml:1:1: this is UTF-32 text, and only UTF-8 is read");
}

static void columns_count_characters_not_bytes(void **state)
{
    (void)state;
    assert_refused("\xc3\xa4: 1\n\tb: 2\n", "dev.yaml:2:1: a tab cannot be used here");
    assert_refused("\xc3\xa4\xc3\xb6: [1, 2\n", "dev.yaml:2:1: ");
    assert_refused("k: \"\xc3\xa4\xc3\xb6\xc3\xbc\xff\"\n", "dev.yaml:1:8: ");
    assert_refused("x: {\xc3\xa4: 1, \xc3\xa4: 2}\n", "dev.yaml:1:11: key ");
}

static void json_is_read_with_its_integers_escapes_and_tabs(void **state)
{
    (void)state;
    const char *json = "{\n\t\"a\":9007199254740993,\"b\":\"\\ud83d\\ude00 \\u00e9 \\/ "
                       "\\\\ud83d\\\\ude00\",\"c\":[1,-2.5,true,null],\n\t\"d\":{}}";
    assert_value(json, json);
    assert_refused("{\"a\":1,\"a\":2}", "dev.yaml:1:8: key 'a' is given twice");
    assert_refused("{\"a\":\"\\ud83d\"}", "dev.yaml:1:");
}

static void a_field_path_finds_its_line_or_that_of_its_nearest_ancestor(void **state)
{
    (void)state;
    CLEANUP(manifest_free) struct manifest manifest = {0};
    struct error err = ERROR_INIT;
    assert_ok(load("kind: X\nmetadata:\n  labels:\n    a: b\n    a.b/c: d\nspec:\n  items:\n  - name: x\n  - "
                   "name: y\n    port: 3\n",
                   &manifest, &err));
    assert_int_equal(line_of(&manifest, 0, ""), 1);
    assert_int_equal(line_of(&manifest, 0, "metadata.labels.a"), 4);
    assert_int_equal(line_of(&manifest, 0, "metadata.labels.a.b/c"), 5);
    assert_int_equal(line_of(&manifest, 0, "spec.items[1].port"), 10);
    assert_int_equal(line_of(&manifest, 0, "spec.items[1].missing"), 9);
    assert_int_equal(line_of(&manifest, 0, "spec.items[7]"), 7);
    assert_int_equal(line_of(&manifest, 0, "spec.port"), 6);
    assert_int_equal(line_of(&manifest, 0, "[99999999999999999999]"), 1);
    CLEANUP_JSON json_t *cause =
        json_pack("{s:s, s:s}", "field", "spec.items[1].port", "message", "must be even");
    CLEANUP_FREE char *text = manifest_word_cause(&manifest, 0, cause);
    assert_string_equal(text, "dev.yaml:10:5: spec.items[1].port: must be even");
}

static void the_items_of_a_list_are_documents_with_lines_of_their_own(void **state)
{
    (void)state;
    CLEANUP(manifest_free) struct manifest manifest = {0};
    struct error err = ERROR_INIT;
    assert_ok(load("apiVersion: v1\nkind: List\nitems:\n- kind: A\n  spec:\n    x: 1\n- kind: B\n", &manifest,
                   &err));
    assert_int_equal(manifest.count, 2);
    assert_string_equal(json_get_text(manifest.documents[1].value, "kind"), "B");
    assert_int_equal(line_of(&manifest, 0, "spec.x"), 6);
    assert_int_equal(line_of(&manifest, 1, "spec.x"), 7);
    assert_refused("apiVersion: v1\nkind: List\nitems: [1]\n", "dev.yaml:3:9: must be an object");
    assert_refused("apiVersion: v1\nkind: List\nitems: []\n", "holds no objects");
}

static void the_head_of_a_manifest_is_checked_with_all_its_problems(void **state)
{
    (void)state;
    CLEANUP(manifest_free) struct manifest manifest = {0};
    struct error err = ERROR_INIT;
    const struct kind_info *info = NULL;
    assert_ok(load("apiVersion: chat2shell.dev/v1\nkind: Sandbox\nmetadata: {name: a}\n---\napiVersion: "
                   "v1\nkind: sandbx\nspce: {}\n---\na: 1\n",
                   &manifest, &err));
    assert_ok(manifest_check(&manifest, 0, &info, NULL, &err));
    assert_int_equal(info->kind, KIND_SANDBOX);
    CLEANUP_JSON json_t *causes = json_array();
    assert_error(manifest_check(&manifest, 1, &info, causes, &err), ERROR_INVALID);
    assert_int_equal(json_array_size(causes), 3);
    assert_string_equal(err.message, "apiVersion: must be 'chat2shell.dev/v1', not 'v1'; kind: unknown kind "
                                     "'sandbx'; did you mean 'Sandbox'?; "
                                     "spce: unknown field 'spce'; did you mean `spec`?");
    assert_error(manifest_check(&manifest, 2, &info, NULL, &err), ERROR_INVALID);
    assert_non_null(strstr(err.message, "kind: must be specified"));
}

static void files_are_read_and_a_missing_one_is_named(void **state)
{
    (void)state;
    char *dir = support_make_dir();
    CLEANUP_FREE char *path = mem_format("%s/a.yaml", dir);
    struct error err = ERROR_INIT;
    CLEANUP(manifest_free) struct manifest manifest = {0};
    assert_error(manifest_read(path, &manifest, &err), ERROR_NOT_FOUND);
    assert_non_null(strstr(err.message, path));
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_ok(fs_write_all(fd, "a: 1\n", 5, &err));
    assert_ok(manifest_read(path, &manifest, &err));
    assert_string_equal(manifest.file, path);
    support_remove_dir(dir);
}

static void no_cut_of_a_manifest_leaks_or_crashes(void **state)
{
    (void)state;
    static const char text[] = "apiVersion: v1\nkind: List\nitems:\n- {a: [1, \"\\ud83d\\ude00\", {b: 'c'}], "
                               "? d : *e}\n- &f !g |\n  x\n--- {\"\\ud83d\\ude00\": \"\\\n";
    for (size_t start = 0; start < 40; start++)
        for (size_t len = 0; start + len < sizeof(text); len++) {
            CLEANUP(manifest_free) struct manifest manifest = {0};
            struct error err = ERROR_INIT;
            if (manifest_parse("cut", text + start, len, &manifest, &err) < 0)
                assert_true(err.message[0] != '\0');
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_scalars_follow_the_yaml_1_2_core_schema),
        cmocka_unit_test(scalars_that_json_cannot_hold_are_refused),
        cmocka_unit_test(what_makes_two_readings_possible_is_refused_with_its_place),
        cmocka_unit_test(broken_text_names_file_line_and_column),
        cmocka_unit_test(empty_streams_and_roots_that_are_no_object_are_refused),
        cmocka_unit_test(several_documents_keep_their_order_and_empty_ones_are_skipped),
        cmocka_unit_test(nesting_bombs_end_early_at_the_depth_limit),
        cmocka_unit_test(size_and_node_limits_hold),
        cmocka_unit_test(an_alias_stands_for_the_value_before_it),
        cmocka_unit_test(an_alias_without_its_anchor_is_refused_with_its_place),
        cmocka_unit_test(billion_laughs_are_refused_with_a_sentence),
        cmocka_unit_test(aliases_of_long_texts_end_at_the_bound_for_bytes),
        cmocka_unit_test(aliases_do_not_nest_beyond_the_depth_limit),
        cmocka_unit_test(too_many_anchors_are_refused),
        cmocka_unit_test(core_tags_mean_what_they_say_and_others_are_refused),
        cmocka_unit_test(only_utf_8_is_read),
        cmocka_unit_test(columns_count_characters_not_bytes),
        cmocka_unit_test(json_is_read_with_its_integers_escapes_and_tabs),
        cmocka_unit_test(a_field_path_finds_its_line_or_that_of_its_nearest_ancestor),
        cmocka_unit_test(the_items_of_a_list_are_documents_with_lines_of_their_own),
        cmocka_unit_test(the_head_of_a_manifest_is_checked_with_all_its_problems),
        cmocka_unit_test(files_are_read_and_a_missing_one_is_named),
        cmocka_unit_test(no_cut_of_a_manifest_leaks_or_crashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
