// The MCP endpoint's protocol over real sockets: heads, JSON-RPC, revisions. No sandbox is needed for any of
// it.
#include "api/mcp/mcp.h"
#include "api/tools/schema_check.h"
#include "api/tools/tools.h"
#include "controller/base/memory.h"
#include "tests/support/http_client.h"
#include "tests/support/support.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SOON_MS SUPPORT_PATIENCE_MS
#define LIST "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\"}"
#define PING "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}"

static struct {
    struct clock *clock;
    struct loop *loop;
    struct config config;
    struct world world;
    struct mcp_server *server;
    int port;
} fixture;

static int set_up(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    fixture.clock = clock_new_real();
    assert_ok(loop_start(fixture.clock, &fixture.loop, &err));
    fixture.config = (struct config){.host = "127.0.0.1", .port = 0};
    fixture.world = (struct world){.config = &fixture.config, .clock = fixture.clock, .loop = fixture.loop};
    assert_ok(mcp_server_start(&fixture.world, &fixture.server, &err));
    fixture.port = mcp_server_port(fixture.server);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mcp_server_stop(fixture.server);
    loop_stop(fixture.loop);
    clock_free(fixture.clock);
    return 0;
}

static int post(const char *headers, const char *body, struct http_answer *answer)
{
    http_client_post(fixture.port, "/mcp", headers, body, answer);
    return answer->status;
}

static int status_of(const char *headers, const char *body)
{
    struct http_answer answer;
    int status = post(headers, body, &answer);
    http_answer_clear(&answer);
    return status;
}

// The error's code of an answer with this status; 0 if it is no error.
static int code_of(const char *headers, const char *body, int status)
{
    struct http_answer answer;
    assert_int_equal(post(headers, body, &answer), status);
    json_t *message = http_answer_json(&answer);
    assert_non_null(message);
    assert_string_equal(json_string_value(json_object_get(message, "jsonrpc")), "2.0");
    json_t *error = json_object_get(message, "error");
    int code = (int)json_integer_value(json_object_get(error, "code"));
    assert_true(!error || json_string_length(json_object_get(error, "message")) > 0);
    json_decref(message);
    http_answer_clear(&answer);
    return code;
}

static int status_of_head(const char *head)
{
    struct http_answer answer;
    http_client_raw(fixture.port, head, strlen(head), &answer);
    int status = answer.status;
    http_answer_clear(&answer);
    return status;
}

static json_t *result_of(const char *headers, const char *body)
{
    struct http_answer answer;
    assert_int_equal(post(headers, body, &answer), 200);
    char *type = http_answer_header(&answer, "Content-Type");
    assert_string_equal(type, "application/json");
    json_t *message = http_answer_json(&answer), *result = json_incref(json_object_get(message, "result"));
    if (!result)
        fail_msg("no result: %s", answer.body);
    json_decref(message);
    free(type);
    http_answer_clear(&answer);
    return result;
}

// ---- heads ------------------------------------------------------------------------------------------------
static void only_loopback_is_listened_on(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct config config = {.host = "0.0.0.0"};
    struct world world = fixture.world;
    struct mcp_server *server = NULL;
    world.config = &config;
    assert_error(mcp_server_start(&world, &server, &err), ERROR_REFUSED);
    config.host = "127.0.0.1";
    config.port = fixture.port;
    assert_error(mcp_server_start(&world, &server, &err), ERROR_UNAVAILABLE);
}

static void foreign_origins_are_refused_and_local_or_absent_ones_served(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "http://evil.example", "null", "https://127.0.0.1.evil.example", "http://localhost:80:80", "file://",
        "localhost",           ""};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char *header = mem_format("Origin: %s\r\n", bad[i]);
        if (status_of(header, LIST) != 403)
            fail_msg("wrong status for %s", header);
        free(header);
    }
    assert_int_equal(status_of("", LIST), 200);
    assert_int_equal(status_of("Origin: http://localhost:3000\r\n", LIST), 200);
    assert_int_equal(status_of("Origin: HTTPS://[::1]\r\n", LIST), 200);
}

static void hosts_that_are_not_this_machine_are_refused(void **state)
{
    (void)state;
    static const char *const good[] = {"localhost",       "LOCALHOST:1", "127.0.0.1",
                                       "127.0.0.1:18788", "[::1]",       "[::1]:80"};
    static const char *const bad[] = {"evil.example", "127.0.0.1.evil.example",
                                      "localhost:",   "localhost:x",
                                      "127.0.0.2",    "localhost.",
                                      "[::1",         "a@localhost"};
    for (size_t i = 0; i < ARRAY_LEN(good) + ARRAY_LEN(bad); i++) {
        bool is_good = i < ARRAY_LEN(good);
        char *header = mem_format("Host: %s\r\n", is_good ? good[i] : bad[i - ARRAY_LEN(good)]);
        assert_int_equal(status_of(header, LIST), is_good ? 200 : 403);
        free(header);
    }
}

static void doubled_or_missing_hosts_and_mixed_framing_are_refused(void **state)
{
    (void)state;
    assert_int_equal(
        status_of_head("POST /mcp HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\nContent-Type: "
                       "application/json\r\nContent-Length: 2\r\n\r\n{}"),
        400);
    assert_int_equal(
        status_of_head("POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"),
        400);
    assert_int_equal(status_of("Transfer-Encoding: chunked\r\n", LIST), 400);
}

static void bodies_that_are_not_json_by_type_are_refused_415(void **state)
{
    (void)state;
    assert_int_equal(status_of("Content-Type: Application/JSON; charset=UTF-8\r\n", LIST), 200);
    assert_int_equal(status_of("Content-Type: text/plain\r\n", LIST), 415);
    assert_int_equal(status_of("Content-Type: application/jsonx\r\n", LIST), 415);
    assert_int_equal(status_of("Content-Encoding: gzip\r\n", LIST), 415);
    assert_int_equal(status_of_head("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"),
                     415);
}

static void accept_is_read_leniently(void **state)
{
    (void)state;
    static const char *const good[] = {"*/*",
                                       "application/*",
                                       "application/json",
                                       "text/html, application/json;q=0.1",
                                       "application/json;q=1.0",
                                       ""};
    static const char *const bad[] = {"text/html", "application/json;q=0", "application/json; q=0.000, */*",
                                      "*/*;q=0"};
    for (size_t i = 0; i < ARRAY_LEN(good) + ARRAY_LEN(bad); i++) {
        bool is_good = i < ARRAY_LEN(good);
        char *header = mem_format("Accept: %s\r\n", is_good ? good[i] : bad[i - ARRAY_LEN(good)]);
        if (status_of(header, LIST) != (is_good ? 200 : 406))
            fail_msg("wrong status for %s", header);
        free(header);
    }
    assert_int_equal(status_of_head("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                                    "application/json\r\nContent-Length: 2\r\n\r\n{}"),
                     400);
}

static void whoever_takes_event_streams_only_gets_one_event(void **state)
{
    (void)state;
    struct http_answer answer;
    assert_int_equal(post("Accept: text/event-stream\r\n", PING, &answer), 200);
    char *type = http_answer_header(&answer, "Content-Type");
    assert_string_equal(type, "text/event-stream");
    assert_string_equal(answer.body, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n");
    free(type);
    http_answer_clear(&answer);
    assert_int_equal(status_of("Accept: text/event-stream;q=0\r\n", PING), 406);
}

static void messages_of_very_many_values_are_refused_before_they_are_parsed(void **state)
{
    (void)state;
    size_t len = 2 * 1000 * 1000;
    char *text = mem_alloc(len + 2);
    for (size_t i = 0; i < len; i++)
        text[i] = i % 2 ? ',' : '1';
    text[0] = '[';
    text[1] = ' ';
    text[len - 1] = ']';
    assert_int_equal(code_of("", text, 400), -32600);
    free(text);
}

static void other_methods_get_405_with_allow_at_once(void **state)
{
    (void)state;
    static const char *const methods[] = {"GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"};
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        char *head = mem_format(
            "%s /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: x\r\n\r\n",
            methods[i]);
        struct http_answer answer;
        int fd = http_client_connect(fixture.port);
        http_client_send_text(fd, head);
        http_client_read(fd, &answer, strcmp(methods[i], "HEAD") == 0 ? 200 : SOON_MS); // HEAD: no body comes
        char *allow = http_answer_header(&answer, "Allow");
        assert_int_equal(answer.status, 405);
        assert_string_equal(allow, "POST");
        free(allow);
        free(head);
        http_answer_clear(&answer);
        close(fd);
    }
}

static void other_paths_get_404_in_json(void **state)
{
    (void)state;
    static const char *const paths[] = {"/",
                                        "/mcp/x",
                                        "/MCP",
                                        "/.well-known/oauth-protected-resource",
                                        "/.well-known/oauth-protected-resource/mcp",
                                        "/approvals",
                                        "/apis"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        char *head = mem_format("GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", paths[i]);
        struct http_answer answer;
        http_client_raw(fixture.port, head, strlen(head), &answer);
        json_t *body = http_answer_json(&answer);
        assert_int_equal(answer.status, 404);
        assert_non_null(body);
        json_decref(body);
        free(head);
        http_answer_clear(&answer);
    }
}

static void healthz_says_ok(void **state)
{
    (void)state;
    struct http_answer answer;
    const char *head = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    http_client_raw(fixture.port, head, strlen(head), &answer);
    json_t *body = http_answer_json(&answer);
    assert_int_equal(answer.status, 200);
    assert_true(json_is_true(json_object_get(body, "ok")));
    json_decref(body);
    http_answer_clear(&answer);
    assert_int_equal(status_of_head("POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"),
                     405);
    assert_int_equal(status_of_head("GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 403);
}

static void a_100_mb_body_is_answered_413(void **state)
{
    (void)state;
    int fd = http_client_connect(fixture.port);
    http_client_send_text(fd, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                              "application/json\r\nContent-Length: 104857600\r\n\r\n");
    char *bytes = mem_alloc(1024 * 1024);
    for (int i = 0; i < 100; i++)
        http_client_send(fd, bytes, 1024 * 1024);
    struct http_answer answer;
    http_client_read(fd, &answer, SOON_MS);
    assert_int_equal(answer.status, 413);
    http_answer_clear(&answer);
    free(bytes);
    close(fd);
}

// ---- JSON-RPC ---------------------------------------------------------------------------------------------
static void notifications_get_202_without_a_body(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"foo\",\"params\":{}}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":9}}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{\"name\":\"sandbox_create\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"};
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        struct http_answer answer;
        assert_int_equal(post("", bodies[i], &answer), 202);
        char *type = http_answer_header(&answer, "Content-Type"),
             *length = http_answer_header(&answer, "Content-Length");
        assert_null(type);
        assert_string_equal(length, "0");
        free(length);
        http_answer_clear(&answer);
    }
}

static void ids_are_echoed_as_they_came(void **state)
{
    (void)state;
    static const char *const ids[] = {"0",
                                      "-1",
                                      "1",
                                      "\"\"",
                                      "\"a\"",
                                      "\"1\"",
                                      "9007199254740993",
                                      "9223372036854775807",
                                      "9223372036854775808",
                                      "-0",
                                      "-123456789012345678901234567890",
                                      "\"\\u00e9 \\u2028\"",
                                      "\"a\\u0000b\""};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        char *body = mem_format("{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"ping\"}", ids[i]);
        char *unknown = mem_format("{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"x\"}", ids[i]);
        char *expected = mem_format("\"id\":%s,", ids[i]);
        struct http_answer answer;
        assert_int_equal(post("", body, &answer), 200);
        if (!strcasestr(answer.body, expected))
            fail_msg("%s became %s", ids[i], answer.body);
        http_answer_clear(&answer);
        assert_int_equal(post("", unknown, &answer), 200);
        assert_non_null(strcasestr(answer.body, expected));
        http_answer_clear(&answer);
        free(body);
        free(unknown);
        free(expected);
    }
}

static void illegal_ids_are_invalid_requests(void **state)
{
    (void)state;
    static const char *const ids[] = {"null", "true", "1.5", "1.0", "[]", "{}"};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        char *body = mem_format("{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"ping\"}", ids[i]);
        assert_int_equal(code_of("", body, 400), -32600);
        free(body);
    }
}

static void texts_that_are_no_json_are_parse_errors_and_other_json_invalid(void **state)
{
    (void)state;
    static const char *const broken[] = {"",
                                         "{",
                                         "{}x",
                                         "{\"a\":\"\xff\"}",
                                         "\xEF\xBB\xBF{}",
                                         "{'a':1}"};
    static const char *const others[] = {"5",
                                         "{\"a\":1,\"a\":1}",
                                         "{\"a\":\"\\ud800\"}",
                                         "\"x\"",
                                         "null",
                                         "true",
                                         "{}",
                                         "[]",
                                         "{\"jsonrpc\":\"2.0\",\"id\":1}",
                                         "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}"};
    for (size_t i = 0; i < ARRAY_LEN(broken); i++)
        assert_int_equal(code_of("", broken[i], 400), -32700);
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_int_equal(code_of("", others[i], 400), -32600);
    char *deep = mem_alloc(100001);
    memset(deep, '[', 100000);
    assert_int_equal(code_of("", deep, 400), -32700);
    free(deep);
}

static void params_of_a_wrong_type_are_an_error(void **state)
{
    (void)state;
    static const char *const params[] = {"[]", "\"x\"", "5", "true"};
    for (size_t i = 0; i < ARRAY_LEN(params); i++) {
        char *body =
            mem_format("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\",\"params\":%s}", params[i]);
        assert_int_equal(code_of("", body, 400), -32600);
        free(body);
    }
    assert_int_equal(
        status_of("", "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\",\"params\":null}"), 200);
}

static void the_jsonrpc_version_must_be_2(void **state)
{
    (void)state;
    assert_int_equal(code_of("", "{\"jsonrpc\":\"1.0\",\"id\":7,\"method\":\"ping\"}", 400), -32600);
    assert_int_equal(code_of("", "{\"jsonrpc\":2.0,\"id\":7,\"method\":\"ping\"}", 400), -32600);
    assert_int_equal(code_of("", "{\"id\":7,\"method\":\"ping\"}", 400), -32600);
}

static void refusals_of_requests_keep_their_id(void **state)
{
    (void)state;
    static const struct {
        const char *headers, *body;
    } cases[] = {
        {"", "{\"jsonrpc\":\"1.0\",\"id\":7,\"method\":\"ping\"}"},
        {"", "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\",\"params\":[]}"},
        {"MCP-Protocol-Version: 1999-01-01\r\n", LIST},
        {"MCP-Protocol-Version: 2026-07-28\r\n", LIST},
        {"", "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"foo\",\"params\":{\"_meta\":{\"io."
             "modelcontextprotocol/protocolVersion\":\"x\"}}}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct http_answer answer;
        post(cases[i].headers, cases[i].body, &answer);
        assert_int_equal(answer.status, 400);
        assert_non_null(strstr(answer.body, "\"id\":7"));
        assert_true(answer.body_len < 100 * 1024);
        http_answer_clear(&answer);
    }
}

// ---- up to 2025-11-25 -------------------------------------------------------------------------------------
static void initialize_answers_the_revision_it_speaks(void **state)
{
    (void)state;
    static const struct {
        const char *asked, *answered;
    } cases[] = {{"2025-03-26", "2025-03-26"}, {"2025-06-18", "2025-06-18"}, {"2025-11-25", "2025-11-25"},
                 {"2024-11-05", "2025-11-25"}, {"1999-01-01", "2025-11-25"}, {"2026-07-28", "2025-11-25"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *body = mem_format("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
                                "\"protocolVersion\":\"%s\",\"capabilities\":{},"
                                "\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}",
                                cases[i].asked);
        json_t *result = result_of(i % 2 ? "MCP-Protocol-Version: 2025-11-25\r\n" : "", body);
        assert_string_equal(json_string_value(json_object_get(result, "protocolVersion")), cases[i].answered);
        assert_true(json_is_object(json_object_get(json_object_get(result, "capabilities"), "tools")));
        assert_string_equal(json_string_value(json_object_get(json_object_get(result, "serverInfo"), "name")),
                            "chat2shell");
        assert_true(json_string_length(json_object_get(result, "instructions")) <= 1000);
        json_decref(result);
        assert_int_equal(code_of("MCP-Protocol-Version: 2026-07-28\r\n", body, 400), -32020);
        free(body);
    }
    assert_int_equal(status_of("MCP-Protocol-Version: 1999-01-01\r\n",
                               "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
                               "\"protocolVersion\":\"x\"}}"),
                     200);
}

static void unknown_version_headers_are_refused_and_absent_ones_served(void **state)
{
    (void)state;
    assert_int_equal(code_of("MCP-Protocol-Version: 1999-01-01\r\n", LIST, 400), -32600);
    assert_int_equal(status_of("MCP-Protocol-Version: 2025-06-18 \r\n", LIST), 200);
    assert_int_equal(status_of("Mcp-Session-Id: whatever\r\n", LIST), 200);
    assert_int_equal(status_of("", LIST), 200);
}

static void ping_answers_an_empty_object(void **state)
{
    (void)state;
    json_t *result = result_of("", PING);
    assert_true(json_is_object(result));
    assert_int_equal(json_object_size(result), 0);
    json_decref(result);
}

static void batches_are_taken_in_the_oldest_revision_only(void **state)
{
    (void)state;
    const char *batch = "[" PING ",{\"jsonrpc\":\"2.0\",\"method\":\"n\"}," PING "]";
    struct http_answer answer;
    assert_int_equal(post("", batch, &answer), 200);
    json_t *answers = http_answer_json(&answer);
    assert_int_equal(json_array_size(answers), 2);
    json_decref(answers);
    http_answer_clear(&answer);
    assert_int_equal(status_of("MCP-Protocol-Version: 2025-03-26\r\n", batch), 200);
    assert_int_equal(code_of("MCP-Protocol-Version: 2025-06-18\r\n", batch, 400), -32600);
    assert_int_equal(code_of("", "[]", 400), -32600);
    assert_int_equal(status_of("", "[{\"jsonrpc\":\"2.0\",\"method\":\"n\"}]"), 202);
    assert_int_equal(code_of("", "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}]", 400), -32600);
    assert_int_equal(code_of("",
                             "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"_meta\":{\"io."
                             "modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}}]",
                             400),
                     -32600);
    char *many = mem_alloc(51 * 3 + 2);
    strcpy(many, "[");
    for (int i = 0; i < 51; i++)
        strcat(many, i ? ",{}" : "{}");
    strcat(many, "]");
    assert_int_equal(code_of("", many, 400), -32600);
    free(many);
}

static void unknown_methods_are_200_with_method_not_found(void **state)
{
    (void)state;
    assert_int_equal(code_of("", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"foo/bar\"}", 200), -32601);
    assert_int_equal(code_of("", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\"}", 200),
                     -32601);
    assert_int_equal(code_of("", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"logging/setLevel\"}", 200),
                     -32601);
    assert_int_equal(code_of("", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\\u0000\"}", 400), -32600);
}

static void tools_list_is_one_page_in_stable_order(void **state)
{
    (void)state;
    struct http_answer first, second;
    post("", LIST, &first);
    post("MCP-Protocol-Version: 2025-11-25\r\n", LIST, &second);
    assert_string_equal(first.body, second.body);
    http_answer_clear(&first);
    http_answer_clear(&second);
    json_t *result = result_of("", LIST);
    assert_null(json_object_get(result, "nextCursor"));
    assert_int_equal(json_array_size(json_object_get(result, "tools")), tool_count);
    json_decref(result);
    assert_int_equal(
        code_of("",
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"cursor\":\"zzz\"}}",
                200),
        -32602);
}

static bool is_tool_name(const char *name)
{
    size_t len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-");
    return len > 0 && len <= 64 && !name[len];
}

static void every_tool_is_described_for_clients(void **state)
{
    (void)state;
    static const char *const hints[] = {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"};
    json_t *result = result_of("", LIST), *tool;
    size_t i;
    json_array_foreach(json_object_get(result, "tools"), i, tool)
    {
        struct error err = ERROR_INIT;
        assert_true(is_tool_name(json_string_value(json_object_get(tool, "name"))));
        assert_true(json_string_length(json_object_get(tool, "title")) > 0);
        assert_true(json_string_length(json_object_get(tool, "description")) > 20);
        for (size_t k = 0; k < ARRAY_LEN(hints); k++)
            assert_true(json_is_boolean(json_object_get(json_object_get(tool, "annotations"), hints[k])));
        static const char *const schemas[] = {"inputSchema", "outputSchema"};
        for (size_t k = 0; k < ARRAY_LEN(schemas); k++) {
            json_t *schema = json_object_get(tool, schemas[k]);
            assert_string_equal(json_string_value(json_object_get(schema, "type")), "object");
            assert_ok(schema_check_keywords(schema, &err));
        }
        assert_true(
            json_is_false(json_object_get(json_object_get(tool, "inputSchema"), "additionalProperties")));
    }
    json_decref(result);
}

static void unknown_tools_are_protocol_errors(void **state)
{
    (void)state;
    static const char *const params[] = {"{\"name\":\"nope\"}",
                                         "{\"name\":5}",
                                         "{}",
                                         "{\"name\":\"codexpro\"}",
                                         "{\"name\":\"codexpro_self_test\"}",
                                         "{\"name\":\"open_workspace\"}",
                                         "{\"name\":\"bash\\u0000\"}",
                                         "{\"name\":\"sandbox_list\",\"arguments\":[]}"};
    for (size_t i = 0; i < ARRAY_LEN(params); i++) {
        char *body =
            mem_format("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":%s}", params[i]);
        assert_int_equal(code_of("", body, 200), -32602);
        free(body);
    }
}

// ---- 2026-07-28 -------------------------------------------------------------------------------------------
#define META(version)                                                                                        \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"" version                                      \
    "\",\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define MODERN(method)                                                                                       \
    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"" method "\",\"params\":{" META("2026-07-28") "}}"
#define HEADERS(method) "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: " method "\r\n"

static void discover_and_list_are_complete_modern_results(void **state)
{
    (void)state;
    json_t *results[] = {result_of(HEADERS("server/discover"), MODERN("server/discover")),
                         result_of(HEADERS("tools/list"), MODERN("tools/list"))};
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(json_string_value(json_object_get(results[i], "resultType")), "complete");
        assert_true(json_is_integer(json_object_get(results[i], "ttlMs")));
        assert_string_equal(json_string_value(json_object_get(results[i], "cacheScope")), "private");
        assert_non_null(
            json_object_get(json_object_get(results[i], "_meta"), "io.modelcontextprotocol/serverInfo"));
    }
    assert_string_equal(
        json_string_value(json_array_get(json_object_get(results[0], "supportedVersions"), 0)), "2026-07-28");
    assert_true(json_is_array(json_object_get(results[1], "tools")));
    json_decref(results[0]);
    json_decref(results[1]);
}

static void the_modern_envelope_and_headers_are_demanded(void **state)
{
    (void)state;
    static const struct {
        const char *headers, *body;
        int code;
    } cases[] = {
        {HEADERS("tools/list"), "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\"}", -32602},
        {HEADERS("tools/list"),
         "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/"
         "list\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}}",
         -32602},
        {HEADERS("tools/list"),
         "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/"
         "list\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":5}}}",
         -32602},
        {"", MODERN("tools/list"), -32020},
        {"MCP-Protocol-Version: 2025-11-25\r\nMcp-Method: tools/list\r\n", MODERN("tools/list"), -32020},
        {"MCP-Protocol-Version: 2026-07-28\r\n", MODERN("tools/list"), -32020},
        {HEADERS("Tools/list"), MODERN("tools/list"), -32020},
        {"MCP-Protocol-Version: 2099-01-01\r\nMcp-Method: tools/list\r\n",
         "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\",\"params\":{" META("2099-01-01") "}}",
         -32022},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(code_of(cases[i].headers, cases[i].body, 400), cases[i].code);
    struct http_answer answer;
    post(cases[7].headers, cases[7].body, &answer);
    json_t *message = http_answer_json(&answer),
           *data = json_object_get(json_object_get(message, "error"), "data");
    assert_string_equal(json_string_value(json_array_get(json_object_get(data, "supported"), 0)),
                        "2026-07-28");
    assert_string_equal(json_string_value(json_object_get(data, "requested")), "2099-01-01");
    json_decref(message);
    http_answer_clear(&answer);
}

static void the_name_header_must_name_the_tool(void **state)
{
    (void)state;
    const char *body =
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"nope\"," META(
            "2026-07-28") "}}";
    assert_int_equal(code_of(HEADERS("tools/call"), body, 400), -32020);
    assert_int_equal(code_of(HEADERS("tools/call") "Mcp-Name: other\r\n", body, 400), -32020);
    assert_int_equal(code_of(HEADERS("tools/call") "Mcp-Name: Nope\r\n", body, 400), -32020);
    assert_int_equal(code_of(HEADERS("tools/call") "Mcp-Name: =?base64?b3RoZXI=?=\r\n", body, 400), -32020);
    assert_int_equal(code_of(HEADERS("tools/call") "Mcp-Name: =?base64?!?=\r\n", body, 400), -32020);
    assert_int_equal(code_of(HEADERS("tools/call") "Mcp-Name: \xC3\xA9\r\n", body, 400), -32020);
    assert_int_equal(code_of(HEADERS("tools/call") "Mcp-Name: \t nope \t\r\n", body, 200), -32602);
    assert_int_equal(code_of(HEADERS("tools/call") "Mcp-Name: =?base64?bm9wZQ==?=\r\n", body, 200), -32602);
}

static void removed_methods_are_404_in_the_modern_revision(void **state)
{
    (void)state;
    assert_int_equal(code_of(HEADERS("ping"), MODERN("ping"), 404), -32601);
    assert_int_equal(code_of(HEADERS("initialize"), MODERN("initialize"), 404), -32601);
    assert_int_equal(code_of(HEADERS("prompts/list"), MODERN("prompts/list"), 404), -32601);
    assert_int_equal(
        status_of(HEADERS("notifications/x"), "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}"), 202);
    assert_int_equal(
        code_of("MCP-Protocol-Version: 2026-07-28\r\n", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", 400),
        -32600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_loopback_is_listened_on),
        cmocka_unit_test(foreign_origins_are_refused_and_local_or_absent_ones_served),
        cmocka_unit_test(hosts_that_are_not_this_machine_are_refused),
        cmocka_unit_test(doubled_or_missing_hosts_and_mixed_framing_are_refused),
        cmocka_unit_test(bodies_that_are_not_json_by_type_are_refused_415),
        cmocka_unit_test(accept_is_read_leniently),
        cmocka_unit_test(whoever_takes_event_streams_only_gets_one_event),
        cmocka_unit_test(messages_of_very_many_values_are_refused_before_they_are_parsed),
        cmocka_unit_test(other_methods_get_405_with_allow_at_once),
        cmocka_unit_test(other_paths_get_404_in_json),
        cmocka_unit_test(healthz_says_ok),
        cmocka_unit_test(a_100_mb_body_is_answered_413),
        cmocka_unit_test(notifications_get_202_without_a_body),
        cmocka_unit_test(ids_are_echoed_as_they_came),
        cmocka_unit_test(illegal_ids_are_invalid_requests),
        cmocka_unit_test(texts_that_are_no_json_are_parse_errors_and_other_json_invalid),
        cmocka_unit_test(params_of_a_wrong_type_are_an_error),
        cmocka_unit_test(the_jsonrpc_version_must_be_2),
        cmocka_unit_test(refusals_of_requests_keep_their_id),
        cmocka_unit_test(initialize_answers_the_revision_it_speaks),
        cmocka_unit_test(unknown_version_headers_are_refused_and_absent_ones_served),
        cmocka_unit_test(ping_answers_an_empty_object),
        cmocka_unit_test(batches_are_taken_in_the_oldest_revision_only),
        cmocka_unit_test(unknown_methods_are_200_with_method_not_found),
        cmocka_unit_test(tools_list_is_one_page_in_stable_order),
        cmocka_unit_test(every_tool_is_described_for_clients),
        cmocka_unit_test(unknown_tools_are_protocol_errors),
        cmocka_unit_test(discover_and_list_are_complete_modern_results),
        cmocka_unit_test(the_modern_envelope_and_headers_are_demanded),
        cmocka_unit_test(the_name_header_must_name_the_tool),
        cmocka_unit_test(removed_methods_are_404_in_the_modern_revision),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
