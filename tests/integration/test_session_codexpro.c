// CodexPro sessions over real HTTP, against a scripted server that is as wrong as each test says.
#include "reconcilers/session/codexpro/codexpro.h"
#include "tests/support/http_site.h"
#include "tests/support/lane_rig.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "reconcilers/session/line_channel.h"
#include "reconcilers/session/rpc.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct session { // one CodexPro session: the site answers, the server's pipes are the held process
    struct site *site;
    struct server held;
    struct heard died;
};

static void begin(struct rig *rig, struct session *session, int port, struct heard *ready)
{
    struct driver_session started;
    server_pipes(&session->held, &started);
    started.port = port;
    started.token = mem_strdup(SITE_TOKEN);
    rig_open_session(rig, RIG_SANDBOX, &started, ready, &session->died);
    assert_null(started.token);
}

static void open_session(struct rig *rig, struct session *session)
{
    struct heard ready = {0};
    *session = (struct session){.site = site_new()};
    begin(rig, session, session->site->port, &ready);
    heard_wait(&ready);
    if (ready.result < 0)
        fail_msg("not ready: %s", ready.error.message);
    assert_true(ready.has_sessions);
    assert_string_equal(ready.server_name, "CodexPro 0.30.0");
    heard_clear(&ready);
}

static void close_session(struct rig *rig, struct session *session)
{
    lane_drop(rig->lanes, RIG_SANDBOX);
    site_free(session->site);
    server_close(&session->held);
    heard_clear(&session->died);
}

static const char *text_of(const struct heard *heard)
{
    return json_get_text(json_array_get(json_object_get(heard->answer, "content"), 0), "text");
}

static void expect_text(struct rig *rig, const char *text)
{
    struct heard heard = {0};
    rig_call(rig, RIG_SANDBOX, "read", &heard);
    heard_wait(&heard);
    if (heard.result < 0)
        fail_msg("the call failed: %s", heard.error.message);
    assert_string_equal(text_of(&heard), text);
    heard_clear(&heard);
}

static void expect_failure(struct rig *rig, enum error_code code, const char *words)
{
    struct heard heard = {0};
    rig_call(rig, RIG_SANDBOX, "read", &heard);
    heard_wait(&heard);
    assert_int_equal(heard.result, -1);
    if (!strstr(heard.error.message, words))
        fail_msg("\"%s\" does not say \"%s\"", heard.error.message, words);
    assert_int_equal(heard.error.code, code);
    assert_null(strstr(heard.error.message, SITE_TOKEN));
    heard_clear(&heard);
}

static void expect_death(struct session *session, const char *words)
{
    heard_wait(&session->died);
    if (!strstr(session->died.reason, words))
        fail_msg("\"%s\" does not say \"%s\"", session->died.reason, words);
    assert_null(strstr(session->died.reason, SITE_TOKEN));
}

// The answer to a wrong turn of the next call only.
static visit_fn wrong_once;
static void be_wrong_once(struct visit *visit)
{
    atomic_store(&visit->site->call, NULL);
    wrong_once(visit);
}

// ---- being in order ------------------------------------------------------------------------------------------------

static void be_plain(struct visit *visit)
{
    visit_answer_json(visit, "plain");
}

static void a_call_is_answered_as_an_event_stream_or_as_json(void **state)
{
    struct session session;
    open_session(*state, &session);
    expect_text(*state, "fine");
    atomic_store(&session.site->call, be_plain);
    expect_text(*state, "plain");
    assert_int_equal(atomic_load(&session.site->initializes), 1);
    assert_int_equal(atomic_load(&session.site->initializeds), 1);
    close_session(*state, &session);
}

static void every_request_has_what_codexpro_asks_for(void **state)
{
    static const char *const fields[] = {
        "POST /mcp HTTP/1.1\r\n",          "\r\nHost: 127.0.0.1:",          "\r\nAccept: application/json, text/event-stream\r\n",
        "\r\nAuthorization: Bearer " SITE_TOKEN "\r\n", "\r\nContent-Type: application/json\r\n", "\r\nMcp-Session-Id: session-1\r\n",
        "\r\nMCP-Protocol-Version: 2025-06-18\r\n"};
    struct session session;
    open_session(*state, &session);
    expect_text(*state, "fine");
    CLEANUP_FREE char *head = site_last_head(session.site);
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (!strstr(head, fields[i]))
            fail_msg("no \"%s\" in %s", fields[i], head);
    assert_null(strcasestr(head, "Expect"));
    assert_null(strcasestr(head, "Cookie"));
    close_session(*state, &session);
}

// main() points every proxy variable at a port where nobody listens.
static void the_proxies_of_the_environment_are_not_asked(void **state)
{
    struct session session;
    assert_non_null(getenv("http_proxy"));
    open_session(*state, &session);
    expect_text(*state, "fine");
    close_session(*state, &session);
}

static void set_cookie(struct visit *visit)
{
    CLEANUP_FREE char *body = visit_result(visit, "baked");
    visit_answer(visit, "200 OK", "application/json; charset=utf-8", "Set-Cookie: a=b; Path=/\r\n", body);
}

static void cookies_are_not_kept(void **state)
{
    struct session session;
    open_session(*state, &session);
    atomic_store(&session.site->call, set_cookie);
    expect_text(*state, "baked");
    expect_text(*state, "baked");
    CLEANUP_FREE char *head = site_last_head(session.site);
    assert_null(strcasestr(head, "Cookie"));
    close_session(*state, &session);
}

static void be_slow(struct visit *visit)
{
    site_waits(visit, strcmp(visit->tool, "slow") == 0 ? 300 : 0);
    visit_answer_events(visit, visit->tool);
}

static void calls_beside_the_turn_run_at_once(void **state)
{
    struct rig *rig = *state;
    struct session session;
    struct heard heard[20] = {0};
    open_session(rig, &session);
    atomic_store(&session.site->call, be_slow);
    for (size_t i = 0; i < ARRAY_LEN(heard); i++)
        lane_call_waiting_tool(rig->lanes, RIG_SANDBOX, i % 2 ? "slow" : "fast", json_object(), 60000, heard_answer, &heard[i]);
    for (size_t i = 0; i < ARRAY_LEN(heard); i++) {
        heard_wait(&heard[i]);
        assert_string_equal(text_of(&heard[i]), i % 2 ? "slow" : "fast");
        heard_clear(&heard[i]);
    }
    close_session(rig, &session);
}

static void be_large(struct visit *visit)
{
    struct buffer text = BUFFER_INIT(32 * 1024 * 1024);
    memset(buffer_reserve(&text, 4 * 1024 * 1024), 'x', 4 * 1024 * 1024);
    text.len = 4 * 1024 * 1024;
    text.data[text.len] = '\0';
    visit_answer_events(visit, text.data);
    buffer_free(&text);
}

static void an_answer_of_4_mib_and_a_request_of_4_mib_arrive_whole(void **state)
{
    struct rig *rig = *state;
    struct session session;
    struct heard heard = {0};
    CLEANUP_FREE char *big = mem_alloc(4 * 1024 * 1024 + 1);
    memset(big, 'y', 4 * 1024 * 1024);
    open_session(rig, &session);
    atomic_store(&session.site->call, be_large);
    lane_call_tool(rig->lanes, RIG_SANDBOX, "write", json_pack("{s:s}", "content", big), heard_answer, &heard);
    heard_wait(&heard);
    assert_int_equal(heard.result, 0);
    assert_int_equal(strlen(text_of(&heard)), 4 * 1024 * 1024);
    heard_clear(&heard);
    close_session(rig, &session);
}

static void a_request_over_24_mib_is_refused_here(void **state)
{
    struct rig *rig = *state;
    struct session session;
    struct heard heard = {0};
    CLEANUP_FREE char *big = mem_alloc(25 * 1024 * 1024 + 1);
    memset(big, 'y', 25 * 1024 * 1024);
    open_session(rig, &session);
    lane_call_tool(rig->lanes, RIG_SANDBOX, "write", json_pack("{s:s}", "content", big), heard_answer, &heard);
    heard_wait(&heard);
    assert_int_equal(heard.error.code, ERROR_TOO_LARGE);
    assert_int_equal(atomic_load(&session.site->calls), 0);
    close_session(rig, &session);
}

static void a_session_that_ends_is_deleted_in_codexpro(void **state)
{
    struct rig *rig = *state;
    struct session session;
    open_session(rig, &session);
    lane_drop(rig->lanes, RIG_SANDBOX);
    for (int i = 0; i < 6000 && !atomic_load(&session.site->deletes); i++)
        usleep(10000);
    assert_int_equal(atomic_load(&session.site->deletes), 1);
    close_session(rig, &session);
}

// ---- streams -------------------------------------------------------------------------------------------------------

static void be_chatty(struct visit *visit)
{
    CLEANUP_FREE char *result = visit_result(visit, "chatty");
    CLEANUP_FREE char *body = mem_format("\xef\xbb\xbf: hello\r\n\r\nevent: ping\ndata: {}\n\nid: 1\nretry: 5\n\n"
                                         "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\n"
                                         "data: {\"jsonrpc\":\"2.0\",\"id\":\"s1\",\"method\":\"sampling/createMessage\"}\n\n"
                                         "data: {\"jsonrpc\":\"2.0\",\"id\":99999,\"result\":{}}\n\n"
                                         "event: message\rdata: %.17s\rdata: %s\r\r", // after the first comma
                                         result, result + 17);
    visit_answer(visit, "200 OK", "text/event-stream;charset=utf-8", NULL, body);
}

static void other_events_around_the_answer_are_skipped(void **state)
{
    struct session session;
    open_session(*state, &session);
    atomic_store(&session.site->call, be_chatty);
    expect_text(*state, "chatty");
    close_session(*state, &session);
}

// Chunks of one byte, and a stream that stays open after the answer.
static void be_split(struct visit *visit)
{
    CLEANUP_FREE char *result = visit_result(visit, "split"), *stream = mem_format("data: %s\n\n", result);
    visit_say_text(visit, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (const char *at = stream; *at; at++) {
        char chunk[] = "1\r\n?\r\n";
        chunk[3] = *at;
        visit_say_text(visit, chunk);
    }
    site_waits(visit, 60000);
}

static void the_answer_counts_at_once_even_if_the_stream_stays_open(void **state)
{
    struct session session;
    open_session(*state, &session);
    atomic_store(&session.site->call, be_split);
    expect_text(*state, "split");
    expect_text(*state, "split");
    close_session(*state, &session);
}

// ---- being wrong ---------------------------------------------------------------------------------------------------

static const struct wrong_answer {
    const char *answer; // %ID is the request's id
    enum error_code code;
    const char *words;
} wrong_answers[] = {
    {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\ngarbage", ERROR_UNAVAILABLE, "not a JSON object"},
    {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n", ERROR_UNAVAILABLE, "not a JSON object"},
    {"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n<p/>", ERROR_UNAVAILABLE, "neither JSON nor an event stream"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", ERROR_UNAVAILABLE, "neither JSON nor an event stream"},
    {"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 0\r\n\r\n", ERROR_UNAVAILABLE, "without the result"},
    {"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":1000,\"result\":{}}\n\n",
     ERROR_UNAVAILABLE, "without the result"},
    {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1000,\"result\":{}}", ERROR_UNAVAILABLE,
     "without the result"},
    {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":%ID,\"result\":{},\"error\":{\"code\":1,"
     "\"message\":\"both\"}}", ERROR_UNAVAILABLE, "not one"},
    {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"jsonrpc\":\"1.0\",\"id\":%ID,\"result\":{}}", ERROR_UNAVAILABLE,
     "not JSON-RPC 2.0"},
    {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":%ID,\"error\":{\"code\":-32602,\"message\":"
     "\"no such thing\"}}", ERROR_INVALID, "no such thing"},
    {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"jsonrpc\"", ERROR_UNAVAILABLE, "in the middle"},
    {"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", ERROR_UNAVAILABLE, "gave no answer"},
    {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n{}", ERROR_UNAVAILABLE, "24 MiB"},
    {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: gzip\r\n\r\n\x1f\x8b", ERROR_UNAVAILABLE, "compressed"},
    {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\ntransfer-encoding:\tdeflate, chunked\r\n\r\n0\r\n\r\n", ERROR_UNAVAILABLE, "compressed"},
    {"HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x-gzip\r\n\r\n0\r\n\r\n", ERROR_UNAVAILABLE, "compressed"},
    {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b\x08", ERROR_UNAVAILABLE,
     "not a JSON object"},
    {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n7\r\ngarbage\r\n0\r\n" // trailers are no head
     "HTTP/1.1 401 Unauthorized: x\r\nContent-Type: text/event-stream\r\n\r\n", ERROR_UNAVAILABLE, "not a JSON object"},
    {"SSH-2.0-OpenSSH_9.2\r\n", ERROR_UNAVAILABLE, "HTTP"},
    {"", ERROR_UNAVAILABLE, "without an answer"},
    {"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/mcp\r\nContent-Length: 0\r\n\r\n", ERROR_UNAVAILABLE, "HTTP 302"},
    {"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", ERROR_UNAVAILABLE, "HTTP 202"},
    {"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n\r\n{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32000,\"message\":"
     "\"Bad header\"},\"id\":null}", ERROR_UNAVAILABLE, "Bad header"},
    {"HTTP/1.1 413 Payload Too Large\r\nContent-Length: 0\r\n\r\n", ERROR_TOO_LARGE, "larger than it takes"},
    {"HTTP/1.1 500 Internal Server Error\r\nContent-Type: text/html\r\n\r\n<h1>oops</h1>", ERROR_UNAVAILABLE, "HTTP 500"},
    {"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", ERROR_UNAVAILABLE, "overloaded"},
    {"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n", ERROR_LIMIT, "too many requests"},
};
static const struct wrong_answer *wrong_now;

static void say_wrong(struct visit *visit)
{
    const char *id = strstr(wrong_now->answer, "%ID");
    if (!id) {
        visit_say_text(visit, wrong_now->answer);
        return;
    }
    CLEANUP_FREE char *text = mem_format("%.*s%lld%s", (int)(id - wrong_now->answer), wrong_now->answer, (long long)visit->id, id + 3);
    visit_say_text(visit, text);
}

static void every_wrong_answer_is_a_sentence_and_the_lane_goes_on(void **state)
{
    struct session session;
    for (size_t i = 0; i < ARRAY_LEN(wrong_answers); i++) {
        wrong_now = &wrong_answers[i];
        wrong_once = say_wrong;
        open_session(*state, &session);
        atomic_store(&session.site->call, be_wrong_once);
        expect_failure(*state, wrong_now->code, wrong_now->words);
        expect_text(*state, "fine");
        assert_int_equal(atomic_load(&session.site->calls), 2); // nothing was sent twice
        assert_false(heard_yet(&session.died));
        close_session(*state, &session);
    }
}

static void sixteen_garbled_answers_break_the_session(void **state)
{
    struct session session;
    wrong_now = &wrong_answers[0];
    open_session(*state, &session);
    atomic_store(&session.site->call, say_wrong);
    for (int i = 0; i < RPC_STRIKES_MAX; i++)
        expect_failure(*state, ERROR_UNAVAILABLE, "broke the protocol");
    expect_death(&session, "16 times");
    close_session(*state, &session);
}

static void say_endlessly(struct visit *visit, const char *head, const char *piece)
{
    struct buffer pieces = BUFFER_INIT(1024 * 1024);
    while (pieces.len < 512 * 1024)
        buffer_append_text(&pieces, piece);
    visit_say_text(visit, head);
    for (int i = 0; i < 400; i++)
        visit_say(visit, pieces.data, pieces.len);
    buffer_free(&pieces);
}

static void be_endless_json(struct visit *visit)
{
    say_endlessly(visit, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n\"", "x");
}

static void be_endless_comments(struct visit *visit)
{
    say_endlessly(visit, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", ": go on\n\n");
}

static void be_endless_event(struct visit *visit)
{
    say_endlessly(visit, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", "data: moremoremoremoremoremoremoremoremoremoremoremoremoremoremoremore\n");
}

static void be_endless_events(struct visit *visit)
{
    say_endlessly(visit, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n",
                  "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n");
}

static void be_endless_head(struct visit *visit)
{
    say_endlessly(visit, "HTTP/1.1 200 OK\r\n", "X-More: and more\r\n");
}

static void be_endless_interim(struct visit *visit)
{
    say_endlessly(visit, "", "HTTP/1.1 103 Early Hints\r\n\r\n");
}

static void be_endless_refusal(struct visit *visit)
{
    say_endlessly(visit, "HTTP/1.1 500 Oops\r\nContent-Type: application/json\r\n\r\n", "{");
}

static void be_full_of_values(struct visit *visit)
{
    struct buffer body = BUFFER_INIT(8 * 1024 * 1024);
    buffer_format(&body, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":[{}", (long long)visit->id);
    for (int i = 0; i < 300000; i++)
        buffer_append_text(&body, ",{}");
    buffer_append_text(&body, "]}");
    visit_answer(visit, "200 OK", "application/json", NULL, body.data);
    buffer_free(&body);
}

static void what_never_ends_is_ended_here(void **state)
{
    static const struct {
        visit_fn fn;
        enum error_code code;
        const char *words;
    } endless[] = {
        {be_endless_json, ERROR_TOO_LARGE, "24 MiB"},           {be_endless_comments, ERROR_TOO_LARGE, "flooded"},
        {be_endless_event, ERROR_TOO_LARGE, "24 MiB"},          {be_endless_events, ERROR_TOO_LARGE, "flooded"},
        {be_endless_head, ERROR_UNAVAILABLE, "64 KiB"},         {be_endless_interim, ERROR_UNAVAILABLE, "64 KiB"},
        {be_endless_refusal, ERROR_UNAVAILABLE, "HTTP 500"},    {be_full_of_values, ERROR_TOO_LARGE, "200000 values"},
    };
    struct session session;
    open_session(*state, &session);
    for (size_t i = 0; i < ARRAY_LEN(endless); i++) {
        wrong_once = endless[i].fn;
        atomic_store(&session.site->call, be_wrong_once);
        expect_failure(*state, endless[i].code, endless[i].words);
        expect_text(*state, "fine");
    }
    close_session(*state, &session);
}

// ---- sessions, tokens, rates -----------------------------------------------------------------------------------------

static void a_forgotten_session_is_made_again_once_and_the_call_repeated(void **state)
{
    struct session session;
    open_session(*state, &session);
    atomic_fetch_add(&session.site->session, 100); // CodexPro was restarted, say
    expect_text(*state, "fine");
    assert_int_equal(atomic_load(&session.site->initializes), 2);
    assert_int_equal(atomic_load(&session.site->calls), 2);
    expect_text(*state, "fine");
    assert_int_equal(atomic_load(&session.site->initializes), 2);
    close_session(*state, &session);
}

static void calls_that_find_it_forgotten_together_share_the_new_session(void **state)
{
    struct rig *rig = *state;
    struct session session;
    struct heard heard[10] = {0};
    open_session(rig, &session);
    atomic_fetch_add(&session.site->session, 100);
    for (size_t i = 0; i < ARRAY_LEN(heard); i++)
        lane_call_waiting_tool(rig->lanes, RIG_SANDBOX, "read", json_object(), 60000, heard_answer, &heard[i]);
    for (size_t i = 0; i < ARRAY_LEN(heard); i++) {
        heard_wait(&heard[i]);
        assert_int_equal(heard[i].result, 0);
        heard_clear(&heard[i]);
    }
    assert_int_equal(atomic_load(&session.site->initializes), 2);
    close_session(rig, &session);
}

static void forget(struct visit *visit)
{
    visit_answer(visit, "404 Not Found", NULL, NULL, "");
}

static void a_call_that_is_forgotten_twice_fails(void **state)
{
    struct session session;
    open_session(*state, &session);
    atomic_store(&session.site->call, forget);
    expect_failure(*state, ERROR_UNAVAILABLE, "forgets its sessions");
    assert_int_equal(atomic_load(&session.site->initializes), 2);
    assert_int_equal(atomic_load(&session.site->calls), 2);
    atomic_store(&session.site->call, NULL);
    expect_text(*state, "fine");
    close_session(*state, &session);
}

static void refuse_everything(struct visit *visit)
{
    visit_answer(visit, "401 Unauthorized", NULL, NULL, "your token " SITE_TOKEN " is wrong");
}

static void a_refused_token_breaks_the_session_without_a_word_of_it(void **state)
{
    struct session session;
    open_session(*state, &session);
    atomic_store(&session.site->call, refuse_everything);
    expect_failure(*state, ERROR_UNAVAILABLE, "HTTP 401");
    expect_death(&session, "HTTP 401");
    close_session(*state, &session);
}

static void refuse_new_sessions(struct visit *visit)
{
    visit_answer(visit, "503 Service Unavailable", NULL, NULL, "");
}

static void a_session_that_cannot_be_made_again_is_a_sentence(void **state)
{
    struct session session;
    open_session(*state, &session);
    atomic_fetch_add(&session.site->session, 100);
    atomic_store(&session.site->initialize, refuse_new_sessions);
    expect_failure(*state, ERROR_UNAVAILABLE, "did not give a new one");
    atomic_store(&session.site->initialize, NULL);
    expect_text(*state, "fine");
    close_session(*state, &session);
}

static void be_busy(struct visit *visit)
{
    visit_answer(visit, "429 Too Many Requests", NULL, "Retry-After: 0\r\n", "");
}

static void a_call_that_comes_too_often_waits_and_is_repeated(void **state)
{
    struct session session;
    open_session(*state, &session);
    wrong_once = be_busy;
    atomic_store(&session.site->call, be_wrong_once);
    expect_text(*state, "fine");
    assert_int_equal(atomic_load(&session.site->calls), 2);
    atomic_store(&session.site->call, be_busy);
    expect_failure(*state, ERROR_LIMIT, "too many requests");
    assert_int_equal(atomic_load(&session.site->calls), 2 + 4);
    close_session(*state, &session);
}

// ---- workspace ids ---------------------------------------------------------------------------------------------------

static void name_workspace(struct visit *visit)
{
    CLEANUP_FREE char *body = mem_format("{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"in " RIG_INNER
                                         "\"}],\"structuredContent\":{\"workspace_id\":\"" RIG_INNER "\",\"cache\":{\"key\":\"" RIG_INNER
                                         ":1\"}}}}", (long long)visit->id);
    visit_answer(visit, "200 OK", "application/json", NULL, body);
}

static void mention_workspace(struct visit *visit)
{
    visit_answer_json(visit, "no such file in " RIG_INNER);
}

static void the_inner_workspace_id_is_replaced_wherever_it_stands(void **state)
{
    struct rig *rig = *state;
    struct session session;
    struct heard heard = {0};
    open_session(rig, &session);
    atomic_store(&session.site->call, name_workspace);
    rig_call(rig, RIG_SANDBOX, "search", &heard);
    heard_wait(&heard);
    CLEANUP_FREE char *text = json_to_text(heard.answer);
    assert_null(strstr(text, RIG_INNER));
    assert_non_null(strstr(text, RIG_WORKSPACE ":1"));
    heard_clear(&heard);
    atomic_store(&session.site->call, mention_workspace);
    expect_text(rig, "no such file in " RIG_WORKSPACE);
    close_session(rig, &session);
}

// ---- beginnings ------------------------------------------------------------------------------------------------------

static void a_server_that_listens_late_is_waited_for(void **state)
{
    struct rig *rig = *state;
    struct session session = {0};
    struct heard ready = {0};
    int port = site_reserve_port();
    begin(rig, &session, port, &ready);
    usleep(700000);
    assert_false(heard_yet(&ready));
    session.site = site_new_at(port);
    heard_wait(&ready);
    assert_int_equal(ready.result, 0);
    expect_text(rig, "fine");
    close_session(rig, &session);
    heard_clear(&ready);
}

static void be_ill(struct visit *visit)
{
    visit_answer(visit, "503 Service Unavailable", NULL, NULL, "");
}

static void wait_advancing(struct rig *rig, struct heard *heard, int64_t step_ms)
{
    for (int i = 0; i < 6000 && !heard_yet(heard); i++) {
        rig_advance(rig, step_ms);
        usleep(5000);
    }
    heard_wait(heard);
}

// On the fake clock.
static void a_server_that_never_listens_is_given_up_after_a_minute(void **state)
{
    struct rig *rig = *state;
    struct session session = {0};
    struct heard ready = {0};
    int64_t begun_ms = clock_boot(rig->clock).ms;
    begin(rig, &session, site_reserve_port(), &ready);
    assert_int_equal(write(session.held.error_fd, "EADDRINUSE\n", 11), 11);
    wait_advancing(rig, &ready, 400);
    assert_int_equal(ready.result, -1);
    assert_non_null(strstr(ready.error.message, "60 s: its port does not accept connections"));
    assert_non_null(strstr(ready.error.message, "EADDRINUSE"));
    assert_true(clock_boot(rig->clock).ms - begun_ms >= 60000);
    lane_drop(rig->lanes, RIG_SANDBOX);
    server_close(&session.held);
}

static void a_server_in_bad_health_at_the_start_is_given_up_after_a_minute(void **state)
{
    struct rig *rig = *state;
    struct session session = {.site = site_new()};
    struct heard ready = {0};
    atomic_store(&session.site->health, be_ill);
    begin(rig, &session, session.site->port, &ready);
    wait_advancing(rig, &ready, 400);
    assert_int_equal(ready.result, -1);
    assert_non_null(strstr(ready.error.message, "not in good health"));
    assert_in_range(atomic_load(&session.site->healths), 5, 60000 / CODEXPRO_RETRY_MAX_MS + 10);
    assert_int_equal(atomic_load(&session.site->initializes), 0);
    close_session(rig, &session);
}

static void a_wrong_token_at_the_start_is_said_at_once(void **state)
{
    struct rig *rig = *state;
    struct session session = {.site = site_new()};
    struct heard ready = {0};
    struct driver_session started;
    server_pipes(&session.held, &started);
    started.port = session.site->port;
    started.token = mem_strdup("another-token-than-the-server-has");
    rig_open_session(rig, RIG_SANDBOX, &started, &ready, &session.died);
    heard_wait(&ready);
    assert_non_null(strstr(ready.error.message, "HTTP 401"));
    assert_null(strstr(ready.error.message, "another-token"));
    close_session(rig, &session);
}

static void be_another_version(struct visit *visit)
{
    CLEANUP_FREE char *body = mem_format("{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":{\"protocolVersion\":\"2031-01-01\","
                                         "\"capabilities\":{},\"serverInfo\":{}}}", (long long)visit->id);
    visit_answer(visit, "200 OK", "application/json", NULL, body);
}

static void a_server_of_another_protocol_is_refused(void **state)
{
    struct rig *rig = *state;
    struct session session = {.site = site_new()};
    struct heard ready = {0};
    atomic_store(&session.site->initialize, be_another_version);
    begin(rig, &session, session.site->port, &ready);
    heard_wait(&ready);
    assert_int_equal(ready.result, -1);
    assert_non_null(strstr(ready.error.message, "2031-01-01"));
    close_session(rig, &session);
}

static void a_lane_dropped_during_the_handshake_answers_its_owner(void **state)
{
    struct rig *rig = *state;
    struct session session = {0};
    struct heard ready = {0};
    begin(rig, &session, site_reserve_port(), &ready);
    rig_settle(rig);
    lane_drop(rig->lanes, RIG_SANDBOX);
    heard_wait(&ready);
    assert_int_equal(ready.error.code, ERROR_CANCELLED);
    server_close(&session.held);
}

// ---- health and death ------------------------------------------------------------------------------------------------

static void the_end_of_the_process_is_the_end_with_its_last_lines(void **state)
{
    struct rig *rig = *state;
    struct session session;
    struct heard heard = {0};
    open_session(rig, &session);
    atomic_store(&session.site->call, be_split);
    rig_call(rig, RIG_SANDBOX, "read", &heard);
    heard_wait(&heard);
    heard_clear(&heard);
    assert_int_equal(write(session.held.error_fd, "FATAL ERROR: heap\nlast", 22), 22);
    server_say_text(&session.held, "ERROR: sandbox stopped");
    server_close(&session.held);
    expect_death(&session, "its process ended");
    assert_string_equal(session.died.last_lines, "FATAL ERROR: heap\nlast\nERROR: sandbox stopped\n");
    expect_failure(rig, ERROR_UNAVAILABLE, "its process ended");
    close_session(rig, &session);
}

static void no_line_of_a_server_puts_its_token_into_a_record(void **state)
{
    struct session session;
    open_session(*state, &session);
    CLEANUP_FREE char *lines = mem_format("TOKEN=" SITE_TOKEN "; " SITE_TOKEN SITE_TOKEN ".\n%0*d " SITE_TOKEN "\n", LAST_LINE_CHARS - 21, 0);
    assert_int_equal(write(session.held.error_fd, lines, strlen(lines)), strlen(lines));
    server_say_text(&session.held, "http://127.0.0.1/?token=" SITE_TOKEN "&x=1");
    server_close(&session.held);
    expect_death(&session, "its process ended");
    CLEANUP_FREE char *beginning = mem_strndup(SITE_TOKEN, 16);
    assert_null(strstr(session.died.last_lines, beginning));
    assert_non_null(strstr(session.died.last_lines, "TOKEN=***"));
    assert_non_null(strstr(session.died.last_lines, "***&x=1"));
    close_session(*state, &session);
}

static size_t write_all_that_fits(struct rig *rig, int fd)
{
    static const char lines[4096] = "\n\xff\x1b[2J\r";
    size_t sum = 0;
    for (int refused = 0; refused < 50 && sum < 4 * 1024 * 1024;) {
        ssize_t n = write(fd, lines, sizeof(lines));
        refused = n > 0 ? 0 : refused + 1;
        sum += n > 0 ? (size_t)n : 0;
        rig_advance(rig, 0);
    }
    return sum;
}

static void a_process_that_floods_its_streams_is_made_to_wait(void **state)
{
    struct rig *rig = *state;
    struct session session;
    open_session(rig, &session);
    const int fds[] = {session.held.output_fd, session.held.error_fd};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fs_set_nonblocking(fds[i], true);
        assert_in_range(write_all_that_fits(rig, fds[i]), 64 * 1024, 256 * 1024); // one burst and what the pipe holds
        rig_advance(rig, 200);
        assert_in_range(write_all_that_fits(rig, fds[i]), 16 * 1024, 256 * 1024); // and then the next
    }
    expect_text(rig, "fine");
    server_close(&session.held);
    rig_advance(rig, 200);
    expect_death(&session, "its process ended");
    close_session(rig, &session);
}

static void be_silent(struct visit *visit)
{
    site_waits(visit, 600000);
}

static void a_death_in_the_middle_of_calls_answers_them_all(void **state)
{
    struct rig *rig = *state;
    struct session session;
    struct heard heard[12] = {0};
    open_session(rig, &session);
    atomic_store(&session.site->call, be_silent);
    for (size_t i = 0; i < ARRAY_LEN(heard); i++)
        lane_call_waiting_tool(rig->lanes, RIG_SANDBOX, "wait", json_object(), 60000, heard_answer, &heard[i]);
    while (atomic_load(&session.site->calls) < (int)ARRAY_LEN(heard))
        usleep(1000);
    close(TAKE_FD(session.held.output_fd));
    for (size_t i = 0; i < ARRAY_LEN(heard); i++) {
        heard_wait(&heard[i]);
        assert_int_equal(heard[i].error.code, ERROR_UNAVAILABLE);
    }
    expect_death(&session, "its process ended");
    close_session(rig, &session);
}

static void a_hanging_server_is_given_up_after_three_probes(void **state)
{
    struct session session;
    open_session(*state, &session);
    atomic_store(&session.site->call, be_silent);
    atomic_store(&session.site->health, be_silent);
    int before = atomic_load(&session.site->healths);
    expect_failure(*state, ERROR_UNAVAILABLE, "it hangs");
    expect_death(&session, "it hangs");
    assert_int_equal(atomic_load(&session.site->healths) - before, 3);
    close_session(*state, &session);
}

static void stall_3_s(struct visit *visit)
{
    site_waits(visit, 3000);
    atomic_store(&visit->site->health, NULL);
    if (visit->tool)
        visit_answer_events(visit, "stalled");
    else
        visit_answer(visit, "200 OK", NULL, NULL, "ok");
}

static void a_server_that_stalls_for_3_s_goes_on_living(void **state)
{
    struct session session;
    open_session(*state, &session);
    for (int i = 0; i < 2; i++) {
        atomic_store(&session.site->call, stall_3_s);
        atomic_store(&session.site->health, stall_3_s);
        expect_text(*state, "stalled");
    }
    assert_false(heard_yet(&session.died));
    close_session(*state, &session);
}

static void think(struct visit *visit)
{
    site_waits(visit, 9000);
    visit_answer_events(visit, "thought");
}

static void a_slow_call_of_a_server_in_good_health_is_waited_for(void **state)
{
    struct session session;
    open_session(*state, &session);
    atomic_store(&session.site->call, think);
    expect_text(*state, "thought");
    assert_in_range(atomic_load(&session.site->healths), 2, 8);
    close_session(*state, &session);
}

static void trickle(struct visit *visit)
{
    visit_say_text(visit, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
    for (int i = 0; i < 18 && site_waits(visit, 500); i++)
        visit_say_text(visit, ": wait\n");
    CLEANUP_FREE char *result = visit_result(visit, "trickled"), *event = mem_format("data: %s\n\n", result);
    visit_say_text(visit, event);
}

static void a_call_whose_bytes_trickle_is_not_a_hang_though_healthz_is_silent(void **state)
{
    struct session session;
    open_session(*state, &session);
    atomic_store(&session.site->call, trickle);
    atomic_store(&session.site->health, be_silent);
    expect_text(*state, "trickled");
    assert_false(heard_yet(&session.died));
    close_session(*state, &session);
}

// Only the server in it is gone; the process that holds the session lives.
static void a_server_whose_port_is_closed_is_given_up_without_another_call(void **state)
{
    struct session session;
    open_session(*state, &session);
    site_free(session.site);
    expect_failure(*state, ERROR_UNAVAILABLE, "does not accept connections");
    expect_death(&session, "health probes");
    session.site = site_new();
    close_session(*state, &session);
}

// On the fake clock.
static void a_call_past_its_deadline_gives_the_turn_back_10_s_later(void **state)
{
    struct rig *rig = *state;
    struct session session = {.site = site_new()};
    struct heard ready = {0}, late = {0}, next = {0};
    begin(rig, &session, session.site->port, &ready);
    heard_wait(&ready);
    atomic_store(&session.site->call, be_silent);
    rig_call(rig, RIG_SANDBOX, "read", &late);
    while (!atomic_load(&session.site->calls))
        usleep(1000);
    rig_advance(rig, LANE_CALL_DEADLINE_MS);
    heard_wait(&late);
    assert_int_equal(late.error.code, ERROR_TIMEOUT);
    atomic_store(&session.site->call, NULL);
    rig_call(rig, RIG_SANDBOX, "read", &next);
    rig_settle(rig);
    assert_int_equal(atomic_load(&session.site->calls), 1); // it may still run: serial order
    rig_advance(rig, RPC_CANCEL_MS);
    heard_wait(&next);
    assert_int_equal(next.result, 0);
    assert_false(heard_yet(&session.died));
    heard_clear(&next);
    heard_clear(&ready);
    close_session(rig, &session);
}

int main(void)
{
#define REAL_TEST(test) cmocka_unit_test_setup_teardown(test, rig_setup_real, rig_teardown)
#define FAKE_TEST(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)
    static const char *const proxies[] = {"http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"};
    for (size_t i = 0; i < ARRAY_LEN(proxies); i++)
        setenv(proxies[i], "http://127.0.0.1:9", 1);
    const struct CMUnitTest tests[] = {
        REAL_TEST(a_call_is_answered_as_an_event_stream_or_as_json),
        REAL_TEST(every_request_has_what_codexpro_asks_for),
        REAL_TEST(the_proxies_of_the_environment_are_not_asked),
        REAL_TEST(cookies_are_not_kept),
        REAL_TEST(calls_beside_the_turn_run_at_once),
        REAL_TEST(an_answer_of_4_mib_and_a_request_of_4_mib_arrive_whole),
        REAL_TEST(a_request_over_24_mib_is_refused_here),
        REAL_TEST(a_session_that_ends_is_deleted_in_codexpro),
        REAL_TEST(other_events_around_the_answer_are_skipped),
        REAL_TEST(the_answer_counts_at_once_even_if_the_stream_stays_open),
        REAL_TEST(every_wrong_answer_is_a_sentence_and_the_lane_goes_on),
        REAL_TEST(sixteen_garbled_answers_break_the_session),
        REAL_TEST(what_never_ends_is_ended_here),
        REAL_TEST(a_forgotten_session_is_made_again_once_and_the_call_repeated),
        REAL_TEST(calls_that_find_it_forgotten_together_share_the_new_session),
        REAL_TEST(a_call_that_is_forgotten_twice_fails),
        REAL_TEST(a_refused_token_breaks_the_session_without_a_word_of_it),
        REAL_TEST(a_session_that_cannot_be_made_again_is_a_sentence),
        REAL_TEST(a_call_that_comes_too_often_waits_and_is_repeated),
        REAL_TEST(the_inner_workspace_id_is_replaced_wherever_it_stands),
        REAL_TEST(a_server_that_listens_late_is_waited_for),
        FAKE_TEST(a_server_that_never_listens_is_given_up_after_a_minute),
        FAKE_TEST(a_server_in_bad_health_at_the_start_is_given_up_after_a_minute),
        REAL_TEST(a_wrong_token_at_the_start_is_said_at_once),
        REAL_TEST(a_server_of_another_protocol_is_refused),
        REAL_TEST(a_lane_dropped_during_the_handshake_answers_its_owner),
        REAL_TEST(the_end_of_the_process_is_the_end_with_its_last_lines),
        REAL_TEST(no_line_of_a_server_puts_its_token_into_a_record),
        FAKE_TEST(a_process_that_floods_its_streams_is_made_to_wait),
        REAL_TEST(a_death_in_the_middle_of_calls_answers_them_all),
        REAL_TEST(a_hanging_server_is_given_up_after_three_probes),
        REAL_TEST(a_server_that_stalls_for_3_s_goes_on_living),
        REAL_TEST(a_slow_call_of_a_server_in_good_health_is_waited_for),
        REAL_TEST(a_call_whose_bytes_trickle_is_not_a_hang_though_healthz_is_silent),
        REAL_TEST(a_server_whose_port_is_closed_is_given_up_without_another_call),
        FAKE_TEST(a_call_past_its_deadline_gives_the_turn_back_10_s_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
