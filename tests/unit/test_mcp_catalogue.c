// The catalogue and the table of tools must say the same.
#include "api/tools/tools.h"
#include "controller/embedded.h"
#include "tests/support/support.h"
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
        cmocka_unit_test(no_tool_decides_approvals_or_names_the_operator_side),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
