// Which era a message belongs to, by body and headers (the classification's order matters).
#include "api/mcp/revision.h"
#include "controller/base/memory.h"
#include "tests/support/support.h"
#include <stdlib.h>
#include <string.h>

#define MODERN_META                                                                                          \
    "{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/"      \
    "clientCapabilities\":{}}}"
enum { REFUSED = -1 };

struct outcome {
    int era; // or REFUSED
    int code;
};

static struct outcome find(const char *method, const char *params, const char *version_header,
                           bool is_notification)
{
    char *text = mem_format("{\"jsonrpc\":\"2.0\",%s\"method\":\"%s\",\"params\":%s}",
                            is_notification ? "" : "\"id\":1,", method, params);
    struct jsonrpc_text read;
    struct jsonrpc_refusal refusal;
    assert_int_equal(jsonrpc_text_read(text, strlen(text), &read, &refusal), 0);
    struct jsonrpc_message message;
    jsonrpc_classify(read.value, &read.raws[0], &message);
    struct mcp_headers headers = {.version = mem_strdup_or_null(version_header),
                                  .method = mem_strdup(method)};
    struct mcp_problem problem = {0};
    enum mcp_era era = MCP_LEGACY;
    struct outcome outcome = {.era =
                                  mcp_find_era(&message, &headers, &era, &problem) < 0 ? REFUSED : (int)era};
    if (outcome.era == MCP_MODERN && !is_notification && mcp_check_modern(&message, &headers, &problem) < 0)
        outcome.era = REFUSED;
    if (outcome.era == REFUSED) {
        assert_int_equal(problem.http_status, 400);
        assert_true(problem.message[0] != '\0');
        outcome.code = problem.code;
        json_decref(problem.data);
    }
    mcp_headers_clear(&headers);
    jsonrpc_text_clear(&read);
    free(text);
    return outcome;
}

static void the_body_decides_first(void **state)
{
    (void)state;
    static const struct {
        const char *method, *params, *header;
        int era, code;
    } cases[] = {
        {"initialize", "{}", NULL, MCP_LEGACY, 0},
        {"initialize", "{}", "2025-11-25", MCP_LEGACY, 0},
        {"initialize", "{}", "1999-01-01", MCP_LEGACY, 0},
        {"initialize", "{}", "2026-07-28", REFUSED, MCP_HEADER_MISMATCH},
        {"initialize", MODERN_META, "2026-07-28", MCP_MODERN, 0},
        {"tools/list", MODERN_META, "2026-07-28", MCP_MODERN, 0},
        {"tools/list", MODERN_META, "2025-11-25", REFUSED, MCP_HEADER_MISMATCH},
        {"tools/list", MODERN_META, NULL, REFUSED, MCP_HEADER_MISMATCH},
        {"tools/list", "{}", "2026-07-28", REFUSED, JSONRPC_INVALID_PARAMS},
        {"tools/list", "{}", NULL, MCP_LEGACY, 0},
        {"tools/list", "{}", "2025-03-26", MCP_LEGACY, 0},
        {"tools/list", "{}", "2025-06-18", MCP_LEGACY, 0},
        {"tools/list", "{}", "1999-01-01", REFUSED, JSONRPC_INVALID_REQUEST},
        {"tools/list", "{\"_meta\":5}", NULL, MCP_LEGACY, 0},
        {"server/discover", "{}", NULL, MCP_LEGACY, 0},
        {"tools/list", "{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":null}}", "2026-07-28",
         REFUSED, JSONRPC_INVALID_PARAMS},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct outcome outcome = find(cases[i].method, cases[i].params, cases[i].header, false);
        if (outcome.era != cases[i].era || outcome.code != cases[i].code)
            fail_msg("case %zu: era %d, code %d", i, outcome.era, outcome.code);
    }
}

static void notifications_go_by_the_header(void **state)
{
    (void)state;
    assert_int_equal(find("notifications/x", "{}", "2026-07-28", true).era, MCP_MODERN);
    assert_int_equal(find("notifications/x", "{}", NULL, true).era, MCP_LEGACY);
    assert_int_equal(find("notifications/x", "{}", "1999-01-01", true).era, REFUSED);
}

static int code_of_headers(const char *params, bool is_modern, const struct mcp_headers *headers)
{
    char *text = mem_format("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":%s}", params);
    struct jsonrpc_text read;
    struct jsonrpc_refusal refusal;
    assert_int_equal(jsonrpc_text_read(text, strlen(text), &read, &refusal), 0);
    struct jsonrpc_message message;
    jsonrpc_classify(read.value, &read.raws[0], &message);
    struct mcp_problem problem = {0};
    enum mcp_era era;
    int result = mcp_find_era(&message, headers, &era, &problem);
    if (result == 0 && is_modern)
        result = mcp_check_modern(&message, headers, &problem);
    assert_true(result == 0 || problem.message[0] != '\0');
    json_decref(problem.data);
    jsonrpc_text_clear(&read);
    free(text);
    return result == 0 ? 0 : problem.code;
}

static void a_header_that_comes_twice_is_refused_where_it_counts(void **state)
{
    (void)state;
    const char *call =
        "{\"name\":\"a\",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
        "\"io.modelcontextprotocol/clientCapabilities\":{}}}";
    const struct mcp_headers once = {.version = "2026-07-28", .method = "tools/call", .name = "a"};
    struct mcp_headers twice = once;
    assert_int_equal(code_of_headers(call, true, &once), 0);
    twice.is_version_doubled = true;
    assert_int_equal(code_of_headers(call, true, &twice), MCP_HEADER_MISMATCH);
    twice = once, twice.is_method_doubled = true;
    assert_int_equal(code_of_headers(call, true, &twice), MCP_HEADER_MISMATCH);
    twice = once, twice.is_name_doubled = true;
    assert_int_equal(code_of_headers(call, true, &twice), MCP_HEADER_MISMATCH);
    const struct mcp_headers older = {.version = "2025-06-18",
                                      .is_method_doubled = true,
                                      .is_name_doubled = true},
                             both = {.version = "2025-06-18", .is_version_doubled = true};
    assert_int_equal(code_of_headers("{}", false, &older), 0);
    assert_int_equal(code_of_headers("{}", false, &both), MCP_HEADER_MISMATCH);
    struct mcp_problem problem = {0};
    assert_int_equal(mcp_check_response(&older, &problem), 0);
    assert_int_equal(mcp_check_response(&both, &problem), -1);
    assert_int_equal(mcp_check_response(&once, &problem), -1);
}

static void words_with_a_nul_are_not_the_words_before_it(void **state)
{
    (void)state;
    const struct mcp_headers headers = {.version = "2026-07-28", .method = "tools/call", .name = "a"};
    assert_int_equal(
        code_of_headers("{\"name\":\"a\\u0000\",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
                        "\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}}}",
                        true, &headers),
        MCP_HEADER_MISMATCH);
    assert_int_equal(
        code_of_headers("{\"name\":\"a\",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
                        "\"2026-07-28\\u0000\",\"io.modelcontextprotocol/clientCapabilities\":{}}}",
                        true, &headers),
        MCP_UNSUPPORTED_VERSION);
}

static void every_revision_of_the_matrix_is_known(void **state)
{
    (void)state;
    assert_int_equal(mcp_revision_find("2026-07-28")->era, MCP_MODERN);
    assert_true(mcp_revision_find("2025-03-26")->has_batches);
    assert_false(mcp_revision_find(MCP_NEWEST_LEGACY)->has_batches);
    assert_null(mcp_revision_find("2024-11-05"));
    assert_null(mcp_revision_find(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_body_decides_first),
        cmocka_unit_test(notifications_go_by_the_header),
        cmocka_unit_test(a_header_that_comes_twice_is_refused_where_it_counts),
        cmocka_unit_test(words_with_a_nul_are_not_the_words_before_it),
        cmocka_unit_test(every_revision_of_the_matrix_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
