// The stdio bridge's reading of lines: members where they stand, headers, ids of lines that are too long.
#include "cli/mcp_bridge_message.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "tests/support/support.h"
#include <string.h>

static struct mcp_span span(const char *text)
{
    return (struct mcp_span){text, strlen(text)};
}

static void members_are_found_in_the_outermost_object_only(void **state)
{
    (void)state;
    static const struct {
        const char *object, *value; // of "id"; NULL: it has none
    } cases[] = {
        {"{\"id\":1}", "1"},
        {" { \"a\" : [ {\"id\":2} , \"\\\"id\\\":3\" ] , \"id\" : \"x\\\"}\" , \"b\":1 }", "\"x\\\"}\""},
        {"{\"x\":{\"id\":1}}", NULL},
        {"{\"id\":-12345678901234567890123}", "-12345678901234567890123"},
        {"{\"id\":", NULL},
        {"{\"id\"", NULL},
        {"{\"id", NULL},
        {"{", NULL},
        {"", NULL},
        {"[{\"id\":1}]", NULL},
        {"{\"a\":\"unended}", NULL},
        {"{\"a\" 1, \"id\":2}", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct mcp_span found = {0};
        assert_int_equal(mcp_span_member(span(cases[i].object), "id", &found), cases[i].value != NULL);
        if (cases[i].value)
            assert_true(mcp_span_equals(found, cases[i].value));
    }
}

static void every_cut_of_a_message_is_read_without_harm(void **state)
{
    (void)state;
    static const char line[] = "[{\"jsonrpc\":\"2.0\",\"id\":\"\\u0061\",\"method\":\"tools/call\",\"params\":{\"name\":\"x\",\"_meta\":"
                               "{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}}, 5, {}]";
    for (size_t from = 0; from < sizeof(line); from++) {
        for (size_t len = 0; from + len < sizeof(line); len++) {
            CLEANUP_FREE char *copy = mem_alloc(len + 1); // of just that size, for the address sanitizer
            memcpy(copy, line + from, len);
            CLEANUP(mcp_message_clear) struct mcp_message message;
            mcp_message_read(copy, len, &message);
        }
    }
}

static void the_kind_of_a_message_follows_its_method_and_id(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        enum mcp_message_kind kind;
        const char *id;
    } cases[] = {
        {"{\"method\":\"m\",\"id\":0}", MCP_MESSAGE_REQUEST, "0"},
        {"{\"method\":\"m\",\"id\":\"\"}", MCP_MESSAGE_REQUEST, "\"\""},
        {"{\"method\":\"m\"}", MCP_MESSAGE_NOTIFICATION, NULL},
        {"{\"method\":\"m\",\"id\":null}", MCP_MESSAGE_OTHER, NULL},
        {"{\"method\":\"m\",\"id\":1.5}", MCP_MESSAGE_OTHER, NULL},
        {"{\"method\":\"m\",\"id\":[1]}", MCP_MESSAGE_OTHER, NULL},
        {"{\"id\":1,\"result\":{}}", MCP_MESSAGE_OTHER, NULL},
        {"[{\"method\":\"m\",\"id\":7},{\"method\":\"n\"}]", MCP_MESSAGE_BATCH, "7"},
        {"5", MCP_MESSAGE_OTHER, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(mcp_message_clear) struct mcp_message message;
        mcp_message_read(cases[i].line, strlen(cases[i].line), &message);
        assert_int_equal(message.kind, cases[i].kind);
        assert_int_equal(message.id_count, cases[i].id != NULL);
        if (cases[i].id)
            assert_string_equal(message.ids[0], cases[i].id);
    }
}

static void the_id_of_a_long_line_is_found_however_it_is_cut(void **state)
{
    (void)state;
    static const char line[] = "{\"a\":\"x\\\\\\\"id\\\":1\",\"b\":{\"id\":2},\"c\":[\"id\"], \"id\" : \"l\\\"}\" ,\"d\":true}";
    for (size_t cut = 0; cut < sizeof(line); cut++) {
        struct mcp_id_search search = {0};
        mcp_id_search_feed(&search, line, cut);
        mcp_id_search_feed(&search, line + cut, sizeof(line) - 1 - cut);
        assert_true(mcp_span_equals(mcp_id_search_result(&search), "\"l\\\"}\""));
    }
    struct mcp_id_search none = {0};
    mcp_id_search_feed(&none, "{\"ident\":1,\"x\":2}", 17);
    assert_null(mcp_id_search_result(&none).text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_found_in_the_outermost_object_only),
        cmocka_unit_test(every_cut_of_a_message_is_read_without_harm),
        cmocka_unit_test(the_kind_of_a_message_follows_its_method_and_id),
        cmocka_unit_test(the_id_of_a_long_line_is_found_however_it_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
