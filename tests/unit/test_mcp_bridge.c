// The stdio bridge's reading of lines: members where they stand, headers, ids of lines that are too long. And its output.
#include "cli/mcp_bridge_message.h"
#include "cli/mcp_bridge_stdio.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "tests/support/support.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

static void a_reader_that_is_always_a_little_behind_does_not_make_the_output_grow(void **state)
{
    (void)state;
    static char line[64 * 1024], taken[2 * sizeof(line)];
    int ends[2];
    struct mcp_output output;
    assert_return_code(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), errno);
    mcp_output_init(&output, ends[0]);
    memset(line, 'x', sizeof(line));
    for (size_t total = 0; total < 64u * 1024 * 1024; total += sizeof(line)) {
        mcp_output_put(&output, (struct mcp_span){line, sizeof(line)});
        while (mcp_output_waiting(&output) > 4 * sizeof(line)) {
            mcp_output_write(&output);
            assert_true(recv(ends[1], taken, sizeof(taken), MSG_DONTWAIT) > 0 || errno == EAGAIN);
        }
        assert_in_range(output.bytes.len, 0, MCP_OUTPUT_HIGH_BYTES);
    }
    assert_false(output.is_closed);
    mcp_output_clear(&output);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_found_in_the_outermost_object_only),
        cmocka_unit_test(every_cut_of_a_message_is_read_without_harm),
        cmocka_unit_test(the_kind_of_a_message_follows_its_method_and_id),
        cmocka_unit_test(the_id_of_a_long_line_is_found_however_it_is_cut),
        cmocka_unit_test(a_reader_that_is_always_a_little_behind_does_not_make_the_output_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
