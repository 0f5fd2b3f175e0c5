// What a hostile or odd tool server answers, and what of it a caller gets to see.
#include "api/tools/result.h"
#include "api/tools/schema_check.h"
#include "controller/base/memory.h"
#include "tests/support/support.h"
#include <stdio.h>
#include <string.h>

static struct catalogue catalogue;

static int set_up(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    return catalogue_load(&catalogue, &err);
}

static int tear_down(void **state)
{
    (void)state;
    catalogue_free(&catalogue);
    return 0;
}

static json_t *parse(const char *text)
{
    json_t *value = NULL;
    struct error err = ERROR_INIT;
    assert_ok(json_parse_with_nul(text, strlen(text), &value, &err));
    return value;
}

#define TREE                                                                                                 \
    "\"structuredContent\":{\"codexpro_tool\":\"tree\",\"codexpro_title\":\"T\",\"workspace_id\":\"w\","     \
    "\"root\":\"/r\",\"text\":\".\",\"entries\":0,\"truncated\":false"

// The clean result as text, or "" and the message in `why`.
static char *clean(const char *tool, const char *answer, char why[1024])
{
    struct error err = ERROR_INIT;
    json_t *value = parse(answer), *result = tool_result_clean(&catalogue, tool, value, &err);
    char *text = result ? json_to_text(result) : mem_strdup("");
    snprintf(why, 1024, "%s", err.message);
    json_decref(value);
    json_decref(result);
    return text;
}

static void assert_clean(const char *tool, const char *answer, const char *wanted)
{
    char why[1024];
    CLEANUP_FREE char *text = clean(tool, answer, why);
    assert_string_equal(text, wanted);
}

static void a_fitting_result_passes_as_it_is(void **state)
{
    (void)state;
    static const char answer[] = "{\"content\":[{\"type\":\"text\",\"text\":\".\"}]," TREE "}}";
    assert_clean("tree", answer, answer);
}

static void members_that_nobody_was_promised_are_taken_out(void **state)
{
    (void)state;
    assert_clean("tree",
                 "{\"content\":[{\"type\":\"text\",\"text\":\".\",\"annotations\":{\"priority\":9},\"_meta\":"
                 "{}}]," TREE ",\"token\":\"t\"},\"_meta\":{\"x\":1},\"isError\":false,\"nextCursor\":\"c\"}",
                 "{\"content\":[{\"type\":\"text\",\"text\":\".\"}]," TREE "}}");
}

static void only_text_and_sound_images_pass(void **state)
{
    (void)state;
    assert_clean("tree",
                 "{\"content\":[{\"type\":\"resource_link\",\"uri\":\"file:///etc/"
                 "passwd\",\"name\":\"x\"},{\"type\":\"text\"},{\"type\":\"text\",\"text\":5},"
                 "{\"type\":\"audio\",\"data\":\"AAAA\",\"mimeType\":\"audio/"
                 "wav\"},{\"type\":\"image\",\"data\":\"not base64!\",\"mimeType\":\"image/png\"},"
                 "{\"type\":\"image\",\"data\":\"AAA\",\"mimeType\":\"image/"
                 "png\"},{\"type\":\"image\",\"data\":\"AA=A\",\"mimeType\":\"image/png\"},"
                 "{\"type\":\"image\",\"data\":\"AAAA\",\"mimeType\":\"text/"
                 "html\"},{\"type\":\"image\",\"data\":\"AAA=\",\"mimeType\":\"image/png\",\"x\":1},"
                 "{\"type\":\"text\",\"text\":\"t\"}]," TREE "}}",
                 "{\"content\":[{\"type\":\"image\",\"data\":\"AAA=\",\"mimeType\":\"image/"
                 "png\"},{\"type\":\"text\",\"text\":\"t\"}]," TREE "}}");
}

static void a_result_without_text_gets_its_own_as_text(void **state)
{
    (void)state;
    char why[1024];
    CLEANUP_FREE char *text = clean("tree", "{\"content\":[]," TREE "}}", why);
    json_t *result = parse(text);
    const char *copy = json_get_text(json_array_get(json_object_get(result, "content"), 0), "text");
    json_t *again = parse(copy);
    assert_true(json_equal(again, json_object_get(result, "structuredContent")));
    json_decref(again);
    json_decref(result);
}

static void what_is_no_result_of_the_tool_is_refused_with_the_place_that_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *answer, *why;
    } cases[] = {
        {"{}", "content must be an array"},
        {"{\"content\":\"x\"}", "content must be an array"},
        {"{\"content\":[]}", "structuredContent must be an object"},
        {"{\"content\":[],\"structuredContent\":null}", "structuredContent must be an object"},
        {"{\"content\":[],\"isError\":\"true\"}", "structuredContent must be an object"},
        {"{\"content\":[],\"structuredContent\":{}}", "codexpro_tool is required"},
        {"{\"content\":[],\"structuredContent\":{\"codexpro_tool\":\"tree\",\"codexpro_title\":\"T\","
         "\"workspace_id\":\"w\",\"root\":\"/r\",\"text\":null,\"entries\":0,"
         "\"truncated\":false}}",
         "text must be a string, not null"},
        {"{\"content\":[],\"structuredContent\":{\"codexpro_tool\":\"tree\",\"codexpro_title\":\"T\","
         "\"workspace_id\":\"w\",\"root\":\"/r\",\"text\":\"\",\"entries\":-1,"
         "\"truncated\":false}}",
         "entries must be an integer of at least 0, not -1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char why[1024];
        CLEANUP_FREE char *text = clean("tree", cases[i].answer, why);
        assert_string_equal(text, "");
        assert_non_null(strstr(why, "tree"));
        if (!strstr(why, cases[i].why))
            fail_msg("case %zu: %s", i, why);
    }
}

static void a_failure_has_words_and_no_structured_content(void **state)
{
    (void)state;
    assert_clean(
        "read",
        "{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"CodexProError: something "
        "new.\"}],\"structuredContent\":{\"error\":\"x\"}}",
        "{\"content\":[{\"type\":\"text\",\"text\":\"CodexProError: something new.\"}],\"isError\":true}");
    char why[1024];
    CLEANUP_FREE char *silent =
        clean("read", "{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"\"}]}", why);
    assert_non_null(strstr(silent, "read failed in the sandbox"));
}

static void a_failure_tells_the_next_step_once(void **state)
{
    (void)state;
    assert_clean(
        "read",
        "{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"CodexProError: Path escapes workspace "
        "root: ../x\"}]}",
        "{\"content\":[{\"type\":\"text\",\"text\":\"CodexProError: Path escapes workspace root: ../x. Hint: "
        "give a path relative to the workspace "
        "root; tree shows what is there. For places outside the workspace use bash.\"}],\"isError\":true}");
    static const char has_one[] = "{\"content\":[{\"type\":\"text\",\"text\":\"Path escapes workspace root. "
                                  "Hint: x.\"}],\"isError\":true}";
    assert_clean("read", has_one, has_one);
    static const char has_nul[] = "{\"content\":[{\"type\":\"text\",\"text\":\"Path escapes workspace "
                                  "root\\u0000rest\"}],\"isError\":true}";
    assert_clean("read", has_nul, has_nul);
}

// The contract's sentences are data; each has a next step here.
static void every_failure_of_the_contract_has_a_next_step(void **state)
{
    (void)state;
    json_error_t problem;
    json_t *contract =
               json_load_file(TEST_SOURCE_DIR "/tests/conformance/codexpro_contract.json", 0, &problem),
           *sentence;
    size_t i;
    assert_non_null(contract);
    assert_true(json_array_size(json_object_get(contract, "sentences")) > 40);
    json_array_foreach(json_object_get(contract, "sentences"), i, sentence)
    {
        if (!tool_failure_hint("edit", json_string_value(sentence)))
            fail_msg("no next step for: %s", json_string_value(sentence));
    }
    json_decref(contract);
}

// ---- whatever comes ---------------------------------------------------------------------------------------
static unsigned int dice = 7;

static int roll(int sides)
{
    dice = dice * 1103515245u + 12345u;
    return (int)((dice >> 16) % (unsigned int)sides);
}

static json_t *made(const json_t *schema);

static json_t *made_text(const json_t *schema)
{
    const json_t *words = json_object_get(schema, "enum");
    json_int_t len = json_get_int(schema, "minLength", roll(4));
    if (words && roll(20))
        return json_copy(json_array_get(words, (size_t)roll((int)json_array_size(words))));
    char *text = mem_alloc((size_t)len + 1);
    memset(text, 'a' + roll(6), (size_t)len);
    json_t *value = json_stringn(text, (size_t)len);
    free(text);
    return value;
}

static json_t *made_object(const json_t *schema)
{
    json_t *object = json_object(), *rule;
    const char *name;
    json_object_foreach(json_object_get(schema, "properties"), name, rule)
    {
        if (roll(40))
            json_object_set_new(object, name, made(rule));
    }
    if (!roll(3))
        json_object_set_new(object, "nobody_was_promised_this", json_pack("{s:[i]}", "x", roll(9)));
    return object;
}

static json_t *made_array(const json_t *schema)
{
    json_t *array = json_array();
    for (int left = roll(3); left > 0; left--)
        json_array_append_new(array, made(json_object_get(schema, "items")));
    return array;
}

static json_t *made_other(void)
{
    static const char *const others[] = {"null",
                                         "true",
                                         "-1",
                                         "1.0",
                                         "1e300",
                                         "\"\"",
                                         "\"\\u0000\"",
                                         "[]",
                                         "{}",
                                         "[[1]]",
                                         "{\"a\":{\"b\":[]}}"};
    return parse(others[roll(ARRAY_LEN(others))]);
}

// A value of the schema, or nearly.
static json_t *made(const json_t *schema)
{
    const json_t *type = json_object_get(schema, "type");
    const char *word = json_string_value(
        json_is_array(type) ? json_array_get(type, (size_t)roll((int)json_array_size(type))) : type);
    if (!word || !roll(60))
        return made_other();
    if (strcmp(word, "object") == 0)
        return made_object(schema);
    if (strcmp(word, "array") == 0)
        return made_array(schema);
    if (strcmp(word, "string") == 0)
        return made_text(schema);
    if (strcmp(word, "boolean") == 0)
        return json_boolean(roll(2));
    if (strcmp(word, "null") == 0)
        return json_null();
    return roll(10) ? json_integer(json_get_int(schema, "minimum", -3) + roll(3)) : json_real(roll(3));
}

static bool passes(const char *tool, const json_t *schema, json_t *structured)
{
    struct error err = ERROR_INIT;
    json_t *answer =
        json_pack("{s:[O, O], s:o}", "content", structured, structured, "structuredContent", structured);
    json_t *result = tool_result_clean(&catalogue, tool, answer, &err);
    if (result) { // members that the schema does not know would be an error here
        json_t *copy = json_deep_copy(json_object_get(result, "structuredContent"));
        if (schema_check(schema, copy, SCHEMA_ARGUMENTS, &err) < 0)
            fail_msg("%s: what passed does not fit: %s", tool, err.message);
        assert_true(json_equal(copy, json_object_get(result, "structuredContent")));
        assert_int_equal(json_array_size(json_object_get(result, "content")), 1);
        json_decref(copy);
    }
    json_decref(answer);
    json_decref(result);
    return result != NULL;
}

static void whatever_comes_what_passes_is_what_was_promised(void **state)
{
    (void)state;
    int passed = 0, refused = 0;
    for (size_t i = 0; i < tool_count; i++) {
        const json_t *schema =
            json_object_get(json_object_get(catalogue.entries, tools[i].name), "outputSchema");
        for (int round = 0; round < 200; round++)
            passes(tools[i].name, schema, made_object(schema)) ? passed++ : refused++;
    }
    assert_true(passed > 500 && refused > 500);
}

static void assert_words(enum error_code code, const char *message, const char *hint, const char *wanted)
{
    struct error err = ERROR_INIT;
    error_set(&err, code, hint, "%s", message);
    CLEANUP_FREE char *text = tool_failure_words("bash", &err);
    assert_string_equal(text, wanted);
}

static void every_failure_in_words_has_a_next_step(void **state)
{
    (void)state;
    assert_words(ERROR_STATE, "it is so", "do this", "it is so. Do this.");
    assert_words(ERROR_STATE, "it is so.", "sandbox_list shows them", "it is so. sandbox_list shows them.");
    assert_words(ERROR_INVALID, "Error: ENOENT: no such directory", NULL,
                 "Error: ENOENT: no such directory. Give as cwd a directory that exists (tree shows them), "
                 "or leave it out to run in the workspace root.");
    for (int code = ERROR_NONE; code < ERROR_CODE_COUNT; code++) {
        struct error err = {.code = code, .message = "m"};
        CLEANUP_FREE char *text = tool_failure_words("bash", &err);
        assert_true(strlen(text) > strlen("m. ") + 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fitting_result_passes_as_it_is),
        cmocka_unit_test(members_that_nobody_was_promised_are_taken_out),
        cmocka_unit_test(only_text_and_sound_images_pass),
        cmocka_unit_test(a_result_without_text_gets_its_own_as_text),
        cmocka_unit_test(what_is_no_result_of_the_tool_is_refused_with_the_place_that_is_wrong),
        cmocka_unit_test(a_failure_has_words_and_no_structured_content),
        cmocka_unit_test(a_failure_tells_the_next_step_once),
        cmocka_unit_test(every_failure_of_the_contract_has_a_next_step),
        cmocka_unit_test(every_failure_in_words_has_a_next_step),
        cmocka_unit_test(whatever_comes_what_passes_is_what_was_promised),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
