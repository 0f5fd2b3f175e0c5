#include "cli/printers/manifest.h"
#include "cli/printers/print.h"
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "tests/support/support.h"
#include <stdio.h>
#include <string.h>

static json_t *parse(const char *text)
{
    json_t *value = NULL;
    struct error err = ERROR_INIT;
    assert_ok(json_parse(text, strlen(text), &value, &err));
    return value;
}

static void assert_yaml(const char *json, const char *wanted)
{
    CLEANUP_JSON json_t *value = parse(json);
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(65536);
    yaml_write(&out, value);
    assert_string_equal(buffer_text(&out), wanted);
}

static void yaml_looks_as_people_expect(void **state)
{
    (void)state;
    assert_yaml("{\"kind\":\"Sandbox\",\"spec\":{\"a\":1,\"list\":[{\"x\":\"w\",\"z\":[1,2]},\"t\"],\"e\":{},\"f\":[]},\"nil\":null,\"b\":true}",
                "kind: Sandbox\nspec:\n  a: 1\n  list:\n  - x: w\n    z:\n    - 1\n    - 2\n  - t\n  e: {}\n  f: []\nnil: null\nb: true\n");
    assert_yaml("{\"a\":\"yes\",\"b\":\"1\",\"c\":\"\",\"d\":\"a: b\",\"e\":\"2026-11-29T00:00:00Z\",\"f\":\"x\\ny\",\"g\":\"/a b/c\",\"h\":\"null\"}",
                "a: \"yes\"\nb: \"1\"\nc: \"\"\nd: \"a: b\"\ne: \"2026-11-29T00:00:00Z\"\nf: \"x\\ny\"\ng: /a b/c\nh: \"null\"\n");
}

// Whatever text an object holds, our own reader gets it back.
static void what_is_written_as_yaml_reads_back_as_the_same(void **state)
{
    (void)state;
    static const char *const texts[] = {"", " ", "a ", " a", "-", "- a", "---", "...", "? a", "a:", ":a", "#", "a #b", "!t", "&a", "*a", "%a", "@a", "`a", "|", ">",
                                        "'", "\"", "\\", "{", "}", "[", "]", ",", "a,b", "~", "null", "Null", "true", "False", "yes", "NO", "on", "0x1f", "0o7",
                                        "1e3", ".5", "-7", "+1", "1_000", "1:30", ".inf", ".nan", "<<", "=", "\x1b[31m", "\x7f", "\xc2\x85", "\xe2\x80\xae",
                                        "\xef\xbb\xbf", "\xf0\x9f\x98\x80", "a\tb", "a\r\nb", "\xe2\x80\xa8", "äöü", "a\\u0041"};
    CLEANUP_JSON json_t *object = json_pack("{s:s}", "apiVersion", "chat2shell.dev/v1");
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%zu", i);
        assert_int_equal(json_object_set_new(object, key, json_string(texts[i])), 0);
        if (texts[i][0])
            assert_int_equal(json_object_set_new(object, texts[i], json_pack("[s, {s:s}]", texts[i], "x", texts[i])), 0);
    }
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(65536);
    yaml_write(&out, object);
    CLEANUP(manifest_free) struct manifest manifest = {0};
    struct error err = ERROR_INIT;
    assert_ok(manifest_parse("x.yaml", buffer_text(&out), out.len, &manifest, &err));
    assert_int_equal(manifest.count, 1);
    assert_true(json_equal(manifest.documents[0].value, object));
    for (size_t i = 0; i < out.len; i++)
        assert_true(out.data[i] == '\n' || (unsigned char)out.data[i] >= 0x20);
}

// ---- any value at all ------------------------------------------------------------------------------------------------------
#define VALUES 3000
#define TEXT_MAX_PIECES 12

static const char *const pieces[] = {" ", "  ", "\n", "\r\n", "\t", ":", ": ", " #", "#", "'", "\"", "\\", "-", "- ", "---\n", "...\n", "?", "[", "]", "{", "}", ",", "&a", "*a",
                                     "!t", "%", "@", "`", "|", ">", "~", "null", "true", "no", "on", "0", "0777", "0o7", "0x1f", "1_000", "1e3", ".5", ".inf",
                                     ".nan", "-7", "+1", "1:30", "2026-11-30", "2026-11-30T04:20:00Z", "<<", "=", "a", "word", "Z", "\x01", "\x1b[31m", "\x7f", "\xc2\x85",
                                     "\xc2\xa0", "\xe2\x80\xa8", "\xe2\x80\xae", "\xef\xbb\xbf", "\xef\xbf\xbe", "\xef\xbf\xbf", "\xef\xbf\xbd", "\xed\x9f\xbf", "\xee\x80\x80",
                                     "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf", "\xf0\x90\x80\x80", "\xc3\xa4", "\\u0041", "\\n"};

static char *random_text(void)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(1 << 20);
    int count = rand() % (TEXT_MAX_PIECES + 1), times = rand() % 97 ? 1 : 2000; // some are very long
    for (int i = 0; i < count; i++) {
        const char *piece = pieces[(size_t)rand() % ARRAY_LEN(pieces)];
        for (int n = 0; n < times; n++)
            buffer_append_text(&text, piece);
    }
    return buffer_take_string(&text);
}

static json_t *random_value(int depth)
{
    static const double reals[] = {0.0, -0.5, 1.0, 1e300, 1e-300, 0.1, -1234567.875};
    int what = rand() % (depth > 3 ? 5 : 8);
    if (what == 0)
        return rand() % 3 == 0 ? json_null() : json_boolean(rand() % 2);
    if (what == 1)
        return rand() % 2 ? json_integer((json_int_t)rand() * rand() - rand()) : json_real(reals[(size_t)rand() % ARRAY_LEN(reals)]);
    if (what < 5) {
        CLEANUP_FREE char *text = random_text();
        return json_string(text);
    }
    json_t *all = what == 5 ? json_array() : json_object();
    for (int i = rand() % 5; i > 0; i--) {
        CLEANUP_FREE char *key = random_text();
        if (what == 5)
            json_array_append_new(all, random_value(depth + 1));
        else
            json_object_set_new(all, key, random_value(depth + 1));
    }
    return all;
}

static void any_value_that_is_written_as_yaml_reads_back_as_the_same(void **state)
{
    (void)state;
    srand(20261130);
    for (int i = 0; i < VALUES; i++) {
        CLEANUP_JSON json_t *object = json_pack("{s:o}", "value", random_value(0));
        CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(64 << 20);
        CLEANUP(manifest_free) struct manifest manifest = {0};
        struct error err = ERROR_INIT;
        yaml_write(&out, object);
        if (manifest_parse("x.yaml", buffer_text(&out), out.len, &manifest, &err) < 0)
            fail_msg("value %d: %s in: %.2000s", i, err.message, buffer_text(&out));
        if (!json_equal(manifest.documents[0].value, object))
            fail_msg("value %d differs: %.2000s", i, buffer_text(&out));
    }
}

#define TEXT_BYTES (1u << 20)
#define TEXT_COUNT 300 // more than fits into any buffer of ours

static ssize_t count_bytes(void *count, const char *bytes, size_t len)
{
    (void)bytes;
    *(size_t *)count += len;
    return (ssize_t)len;
}

// The bytes that print_yaml brings to standard output, which is a variable in glibc.
static size_t count_printed(const json_t *value)
{
    size_t count = 0;
    FILE *kept = stdout;
    stdout = fopencookie(&count, "w", (cookie_io_functions_t){.write = count_bytes});
    assert_non_null(stdout);
    print_yaml(value);
    fclose(stdout);
    stdout = kept;
    return count;
}

static void yaml_of_any_size_is_printed_whole(void **state)
{
    (void)state;
    CLEANUP_FREE char *bytes = mem_alloc(TEXT_BYTES);
    memset(bytes, 'a', TEXT_BYTES);
    CLEANUP_JSON json_t *list = json_array(), *text = json_stringn(bytes, TEXT_BYTES);
    for (int i = 0; i < TEXT_COUNT; i++)
        json_array_append(list, text);
    assert_int_equal(count_printed(list), (size_t)TEXT_COUNT * (TEXT_BYTES + strlen("- \n")));
}

static void a_table_is_aligned_and_has_no_trailing_blanks(void **state)
{
    (void)state;
    CLEANUP(text_table_free) struct text_table table = {0};
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(65536);
    text_table_add_row(&table, (const char *[]){"NAME", "STATUS", "AGE"}, 3);
    text_table_add_row(&table, (const char *[]){"äöü", "running", "5s"}, 3);
    text_table_add_row(&table, (const char *[]){"longer-name", "x", ""}, 3);
    text_table_write(&table, true, &out);
    assert_string_equal(buffer_text(&out), "NAME          STATUS    AGE\näöü           running   5s\nlonger-name   x\n");
    buffer_consume(&out, out.len);
    text_table_write(&table, false, &out);
    assert_string_equal(buffer_text(&out), "äöü           running   5s\nlonger-name   x\n");
}

static void untrusted_text_in_a_table_cannot_steer_a_terminal(void **state)
{
    (void)state;
    CLEANUP(text_table_free) struct text_table table = {0};
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(65536);
    text_table_add_row(&table, (const char *[]){"A", "B"}, 2);
    text_table_add_row(&table, (const char *[]){"\x1b[2J\r\n\t\xe2\x80\xae", "\xff"}, 2);
    text_table_write(&table, false, &out);
    assert_string_equal(buffer_text(&out), "\\u001b[2J\\u000d\\u000a\\u0009\\u202e   \xef\xbf\xbd\n");
}

static void the_servers_table_loses_its_wide_columns_unless_asked_for(void **state)
{
    (void)state;
    CLEANUP_JSON json_t *server = parse("{\"columnDefinitions\":[{\"name\":\"Name\",\"priority\":0},{\"name\":\"Root\",\"priority\":1},{\"name\":\"Port\"}],"
                                        "\"rows\":[{\"cells\":[\"a\",\"/r\",80]},{\"cells\":[\"b\",null]}]}");
    for (int is_wide = 0; is_wide < 2; is_wide++) {
        CLEANUP(text_table_free) struct text_table table = {0};
        CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(65536);
        assert_int_equal(text_table_from_server(server, is_wide, &table), 0);
        text_table_write(&table, true, &out);
        assert_string_equal(buffer_text(&out), is_wide ? "NAME   ROOT     PORT\na      /r       80\nb      <none>   <none>\n"
                                                       : "NAME   PORT\na      80\nb      <none>\n");
    }
    CLEANUP_JSON json_t *other = parse("{\"kind\":\"Status\"}");
    struct text_table none = {0};
    assert_int_equal(text_table_from_server(other, false, &none), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(yaml_looks_as_people_expect),
        cmocka_unit_test(what_is_written_as_yaml_reads_back_as_the_same),
        cmocka_unit_test(any_value_that_is_written_as_yaml_reads_back_as_the_same),
        cmocka_unit_test(yaml_of_any_size_is_printed_whole),
        cmocka_unit_test(a_table_is_aligned_and_has_no_trailing_blanks),
        cmocka_unit_test(untrusted_text_in_a_table_cannot_steer_a_terminal),
        cmocka_unit_test(the_servers_table_loses_its_wide_columns_unless_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
