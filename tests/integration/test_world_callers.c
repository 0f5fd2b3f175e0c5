// Callers of the MCP endpoint that have names: what a token makes of them, and what it does not.
#include "controller/base/memory.h"
#include "tests/support/world_fixture.h"
#include <string.h>

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

static int create(struct world_fixture *fixture, const char *principal, const char *path, enum sandbox_outcome *outcome, struct record **ret,
                  struct error *err)
{
    const struct sandbox_request request = {.principal = principal, .manager = "mcp", .workspace_path = path};
    return world_create(fixture, &request, outcome, ret, err);
}

static void a_sandbox_names_the_token_or_subject_that_made_it(void **state)
{
    static const char *const principals[] = {"mcp", "mcp:token:laptop", "mcp:oauth:ann"};
    for (size_t i = 0; i < ARRAY_LEN(principals); i++) {
        struct error err = ERROR_INIT;
        enum sandbox_outcome outcome;
        CLEANUP_RECORD struct record *sandbox = NULL;
        assert_ok(create(*state, principals[i], NULL, &outcome, &sandbox, &err));
        assert_int_equal(outcome, SANDBOX_CREATED); // nobody joins another caller's create
        assert_string_equal(sandbox->meta.created_by, principals[i]);
    }
}

static void no_token_makes_its_holder_trusted(void **state)
{
    static const struct {
        const char *principal;
        bool is_untrusted;
    } rows[] = {{"mcp", true}, {"mcp:token:laptop", true}, {"mcp:oauth:operator:uid=0", true}, {"mcp:", true}, {"operator:uid=0", false}, {"mcpx", false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(principal_is_untrusted(rows[i].principal), rows[i].is_untrusted);
    struct error err = ERROR_INIT;
    enum sandbox_outcome outcome;
    struct record *sandbox = NULL;
    assert_error(create(*state, "mcp:token:laptop", "/etc", &outcome, &sandbox, &err), ERROR_REFUSED);
    assert_string_equal(err.message, PATH_REFUSED_MESSAGE); // the one sentence for whoever may be asking on a page's behalf
    CLEANUP_FREE char *path = world_make_host_dir(*state, "project");
    assert_ok(world_create(*state, &(struct sandbox_request){.principal = "mcp:oauth:ann", .manager = "mcp", .workspace_path = path, .workspace_mode = "direct"}, &outcome,
                           &sandbox, &err));
    assert_int_equal(outcome, SANDBOX_NEEDS_APPROVAL);
    record_free(sandbox);
}

static void all_callers_together_make_so_many_sandboxes_a_minute(void **state)
{
    struct error err = ERROR_INIT;
    enum sandbox_outcome outcome;
    for (int i = 0; i < LIMIT_CREATES_A_MINUTE; i++) {
        CLEANUP_FREE char *principal = mem_format("mcp:token:t%d", i);
        CLEANUP_RECORD struct record *sandbox = NULL;
        assert_ok(create(*state, principal, NULL, &outcome, &sandbox, &err));
    }
    struct record *sandbox = NULL;
    assert_error(create(*state, "mcp:token:fresh", NULL, &outcome, &sandbox, &err), ERROR_LIMIT);
    assert_ok(create(*state, "operator:uid=0", NULL, &outcome, &sandbox, &err));
    record_free(sandbox);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_sandbox_names_the_token_or_subject_that_made_it),
        TEST(no_token_makes_its_holder_trusted),
        TEST(all_callers_together_make_so_many_sandboxes_a_minute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
