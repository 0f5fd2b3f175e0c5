// The catalogue and the table of tools must say the same.
#include "api/tools/tools.h"
#include "controller/embedded.h"
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

static void every_catalogue_file_is_a_tool_and_every_tool_has_one(void **state)
{
    (void)state;
    size_t files = 0;
    for (size_t i = 0; i < embedded_file_count; i++)
        files += strncmp(embedded_files[i].name, "tools/", 6) == 0;
    assert_int_equal(files, tool_count);
    assert_int_equal(json_object_size(catalogue.entries), tool_count);
}

static void there_are_exactly_26_tools(void **state)
{
    (void)state;
    assert_int_equal(tool_count, 26);
}

static void every_tool_that_works_in_a_sandbox_demands_its_id(void **state)
{
    (void)state;
    static const char *const others[] = {"sandbox_create", "sandbox_list", "workspace_list"};
    for (size_t i = 0; i < tool_count; i++) {
        struct error err = ERROR_INIT;
        json_t *nothing = json_object();
        bool is_other = false;
        for (size_t k = 0; k < ARRAY_LEN(others); k++)
            is_other |= strcmp(others[k], tools[i].name) == 0;
        int result = catalogue_check(&catalogue, tools[i].name, nothing, &err);
        assert_int_equal(result, is_other ? 0 : -1);
        if (!is_other)
            assert_string_equal(err.message, "sandbox_id is required");
        json_decref(nothing);
    }
}

static void no_tool_takes_an_argument_that_it_does_not_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < tool_count; i++) {
        const json_t *schema =
            json_object_get(json_object_get(catalogue.entries, tools[i].name), "inputSchema");
        assert_true(json_is_false(json_object_get(schema, "additionalProperties")));
    }
}

static json_t *entry_of(size_t i)
{
    return json_object_get(catalogue.entries, tools[i].name);
}

static void every_tool_says_what_it_is_and_how_dangerous(void **state)
{
    (void)state;
    static const char *const hints[] = {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"};
    for (size_t i = 0; i < tool_count; i++) {
        const json_t *told = json_object_get(entry_of(i), "annotations");
        const char *title = json_get_text(entry_of(i), "title");
        assert_non_null(title);
        assert_string_equal(json_get_text(told, "title"), title);
        assert_true(strlen(json_get_text(entry_of(i), "description")) > 100);
        for (size_t k = 0; k < ARRAY_LEN(hints); k++)
            assert_true(json_is_boolean(json_object_get(told, hints[k])));
        if (json_get_bool(told, "readOnlyHint", false))
            assert_false(json_get_bool(told, "destructiveHint", true));
    }
}

// Every object says whether it may have more members; a result that is checked against it is then what was promised.
static void assert_closed(const char *tool, const json_t *schema)
{
    const json_t *properties = json_object_get(schema, "properties"), *type = json_object_get(schema, "type");
    const char *name;
    json_t *inner;
    if (json_is_string(type) && strcmp(json_string_value(type), "object") == 0 && !json_object_get(schema, "additionalProperties"))
        fail_msg("%s: an object says nothing about other members", tool);
    json_object_foreach((json_t *)properties, name, inner)
        assert_closed(tool, inner);
    if ((inner = json_object_get(schema, "items")))
        assert_closed(tool, inner);
}

static void every_result_is_described_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < tool_count; i++) {
        const json_t *schema = json_object_get(entry_of(i), "outputSchema");
        assert_string_equal(json_get_text(schema, "type"), "object");
        assert_true(json_array_size(json_object_get(schema, "required")) > 0);
        assert_closed(tools[i].name, schema);
    }
}

static void an_attachment_has_the_shape_that_a_chat_fills_in(void **state)
{
    (void)state;
    static const char *const members[] = {"download_url", "file_id", "mime_type", "file_name"};
    const json_t *entry = json_object_get(catalogue.entries, "import_file");
    const json_t *named = json_object_get(json_object_get(entry, "_meta"), "openai/fileParams");
    const json_t *file = json_object_get(json_object_get(json_object_get(entry, "inputSchema"), "properties"), "file");
    assert_int_equal(json_array_size(named), 1);
    assert_string_equal(json_string_value(json_array_get(named, 0)), "file");
    assert_int_equal(json_object_size(json_object_get(file, "properties")), ARRAY_LEN(members));
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        assert_string_equal(json_get_text(json_object_get(json_object_get(file, "properties"), members[i]), "type"), "string");
    assert_int_equal(json_array_size(json_object_get(file, "required")), 2);
}

// Clients keep a snapshot of the tools: a change of what they see must be meant. tests/lint/catalogue --write accepts it.
static void what_clients_see_of_the_tools_is_what_was_committed(void **state)
{
    (void)state;
    char committed[66] = "";
    FILE *file = fopen(TEST_SOURCE_DIR "/schemas/tools.sha256", "r");
    assert_non_null(file);
    assert_non_null(fgets(committed, sizeof(committed), file));
    fclose(file);
    committed[strcspn(committed, "\n")] = '\0';
    assert_string_equal(catalogue.hash, committed);
}

static void loading_it_again_gives_the_same_text(void **state)
{
    (void)state;
    struct catalogue again;
    struct error err = ERROR_INIT;
    assert_ok(catalogue_load(&again, &err));
    char *one = json_to_text(catalogue.list), *other = json_to_text(again.list);
    assert_string_equal(one, other);
    assert_string_equal(catalogue.hash, again.hash);
    free(one);
    free(other);
    catalogue_free(&again);
}

static void no_tool_decides_approvals_or_names_the_operator_side(void **state)
{
    (void)state;
    static const char *const words[] = {"approve", "approval", "decision",      "driver",
                                        "exec",    "codexpro", "open_workspace"};
    for (size_t i = 0; i < tool_count; i++)
        for (size_t k = 0; k < ARRAY_LEN(words); k++)
            assert_null(strstr(tools[i].name, words[k]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_catalogue_file_is_a_tool_and_every_tool_has_one),
        cmocka_unit_test(there_are_exactly_26_tools),
        cmocka_unit_test(every_tool_that_works_in_a_sandbox_demands_its_id),
        cmocka_unit_test(no_tool_takes_an_argument_that_it_does_not_name),
        cmocka_unit_test(every_tool_says_what_it_is_and_how_dangerous),
        cmocka_unit_test(every_result_is_described_whole),
        cmocka_unit_test(an_attachment_has_the_shape_that_a_chat_fills_in),
        cmocka_unit_test(what_clients_see_of_the_tools_is_what_was_committed),
        cmocka_unit_test(loading_it_again_gives_the_same_text),
        cmocka_unit_test(no_tool_decides_approvals_or_names_the_operator_side),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
