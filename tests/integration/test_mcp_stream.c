// Calls that wait, over real sockets: progress, keep-alives, cancelling, clients that go away or never read. Lanes are
// scripted and the clock is the tests', so that every moment can be held still.
#include "api/mcp/event_stream.h"
#include "api/mcp/mcp.h"
#include "api/mcp/progress.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include "reconcilers/session/journal.h"
#include "tests/support/http_client.h"
#include "tests/support/support.h"
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SOON_MS SUPPORT_PATIENCE_MS
#define SANDBOX "sbx_aaaaaaaaaaaaaaaaaaaaaaaaaa"
#define BOTH "Accept: application/json, text/event-stream\r\n"
#define JSON_ONLY "Accept: application/json\r\n"
#define EVENTS_ONLY "Accept: text/event-stream\r\n"

static struct {
    struct clock *clock;
    struct loop *loop;
    struct config config;
    struct world world;
    struct journals *journals;
    struct mcp_server *server;
    int port;
    _Atomic int kept, left, stopped;
    json_t *answer;
} f;

// ---- scripted lanes ---------------------------------------------------------------------------------------
struct lane_call {
    lane_answer_fn done;
    lane_news_fn news;
    void *arg;
    bool is_bash;
    struct lane_look look;
    struct lane_call *next;
};
static struct lane_call *kept; // loop thread

static struct lane_call *keep(lane_answer_fn done, void *arg, bool is_bash)
{
    struct lane_call *call = mem_alloc(sizeof(*call));
    *call = (struct lane_call){.done = done, .arg = arg, .is_bash = is_bash, .next = kept};
    call->look = (struct lane_look){.stage = is_bash ? LANE_STAGE_WAITING : LANE_STAGE_RUNNING,
                                    .session_id = is_bash ? "bash_00000000000000000000000000000000" : NULL};
    kept = call;
    f.kept++;
    return call;
}

static bool take_out(struct lane_call *call)
{
    for (struct lane_call **at = &kept; *at; at = &(*at)->next) {
        if (*at != call)
            continue;
        *at = call->next;
        f.kept--;
        free(call);
        return true;
    }
    return false;
}

static void release(void *arg)
{
    (void)arg;
    while (kept) {
        struct lane_call *call = kept;
        lane_answer_fn done = call->done;
        void *done_arg = call->arg;
        take_out(call);
        done(done_arg, 0, f.answer, NULL);
    }
}

bool lane_call_cancel(struct lane_call *call)
{
    bool is_there = take_out(call);
    f.left += is_there;
    return is_there;
}

bool lane_call_stop(struct lane_call *call)
{
    bool is_there = take_out(call);
    f.stopped += is_there;
    return is_there;
}

void lane_call_look(const struct lane_call *call, struct lane_look *ret)
{
    *ret = call->look;
}

void lane_call_set_asker(struct lane_call *call, uint64_t asker)
{
    (void)call, (void)asker;
}

void lane_call_watch(struct lane_call *call, lane_news_fn news)
{
    call->news = news;
}

struct journals *lanes_journals(struct lanes *lanes)
{
    (void)lanes;
    return f.journals;
}

struct lane_call *lane_call_tool(struct lanes *lanes, const char *uid, const char *tool, json_t *arguments, lane_answer_fn done, void *arg)
{
    (void)lanes, (void)uid, (void)tool;
    json_decref(arguments);
    return keep(done, arg, false);
}

struct lane_call *lane_call_waiting_tool(struct lanes *lanes, const char *uid, const char *tool, json_t *arguments, int64_t wait_ms,
                                         lane_answer_fn done, void *arg)
{
    (void)wait_ms;
    return lane_call_tool(lanes, uid, tool, arguments, done, arg);
}

struct lane_call *lane_bash(struct lanes *lanes, const char *uid, const char *command, const char *cwd, int64_t yield_time_ms,
                            int64_t timeout_ms, lane_answer_fn done, void *arg)
{
    (void)lanes, (void)uid, (void)command, (void)cwd, (void)yield_time_ms, (void)timeout_ms;
    return keep(done, arg, true);
}

struct lane_call *lane_bash_poll(struct lanes *lanes, const char *uid, const char *session_id, int64_t yield_time_ms, lane_answer_fn done,
                                 void *arg)
{
    (void)lanes, (void)uid, (void)session_id, (void)yield_time_ms;
    return keep(done, arg, true);
}

struct lane_call *lane_bash_stop(struct lanes *lanes, const char *uid, const char *session_id, lane_answer_fn done, void *arg)
{
    (void)lanes, (void)uid, (void)session_id;
    return keep(done, arg, true);
}

// Not asked for here; they keep the reconcilers out of this program.
void request_sandbox(struct world *world, const struct sandbox_request *request, sandbox_request_fn done, void *arg)
{
    (void)world, (void)request, (void)done, (void)arg;
    abort();
}

void request_destroy(struct world *world, const char *principal, const char *uid, record_request_fn done, void *arg)
{
    (void)world, (void)principal, (void)uid, (void)done, (void)arg;
    abort();
}

void request_expose(struct world *world, const char *principal, const char *uid, int64_t port, record_request_fn done, void *arg)
{
    (void)world, (void)principal, (void)uid, (void)port, (void)done, (void)arg;
    abort();
}

// ---- fixture ----------------------------------------------------------------------------------------------
static int set_up(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    memset(&f, 0, sizeof(f));
    f.clock = clock_new_fake((struct wall_time){1790000000000});
    assert_ok(loop_start(f.clock, &f.loop, &err));
    f.config = (struct config){.host = "127.0.0.1"};
    f.journals = journals_new(f.loop);
    f.world = (struct world){.config = &f.config, .clock = f.clock, .loop = f.loop};
    assert_ok(mcp_server_start(&f.world, &f.server, &err));
    f.port = mcp_server_port(f.server);
    f.answer = json_pack("{s:s, s:s, s:n, s:s, s:b}", "session_id", "bash_00000000000000000000000000000000", "status", "running",
                         "exit_code", "output", "hello", "has_more_output", 0);
    return 0;
}

static void free_journals(void *arg)
{
    (void)arg;
    journals_free(f.journals);
}

static int tear_down(void **state)
{
    (void)state;
    mcp_server_stop(f.server);
    loop_call(f.loop, free_journals, NULL);
    loop_stop(f.loop);
    clock_free(f.clock);
    json_decref(f.answer);
    return 0;
}

static void nothing(void *arg)
{
    (void)arg;
}

static void advance(int64_t ms)
{
    clock_advance(f.clock, ms);
    loop_call(f.loop, nothing, NULL);
}

static void wait_for(_Atomic int *value, int wanted)
{
    for (int i = 0; i < SOON_MS && *value != wanted; i++)
        usleep(1000);
    assert_int_equal(*value, wanted);
    loop_call(f.loop, nothing, NULL);
}

// ---- the client -------------------------------------------------------------------------------------------
struct client {
    int fd;
    struct buffer in;
};

static struct client ask(const char *headers, const char *body)
{
    struct client client = {.fd = http_client_connect(f.port), .in = BUFFER_INIT(64 * 1024 * 1024)};
    CLEANUP_FREE char *text = http_client_post_text("/mcp", headers, body);
    http_client_send_text(client.fd, text);
    return client;
}

static char *call_body(const char *id, const char *token, const char *tool, const char *more)
{
    return mem_format("{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"tools/call\",\"params\":{\"name\":\"%s\",\"arguments\":{\"sandbox_id\":\"" SANDBOX
                      "\"%s}%s%s%s}}",
                      id, tool, more, token ? ",\"_meta\":{\"progressToken\":" : "", token ? token : "", token ? "}" : "");
}

#define POLL_MORE ",\"session_id\":\"bash_00000000000000000000000000000000\""

// A call that is held by the lane by the time this returns.
static struct client start_call(const char *headers, const char *id, const char *token, const char *tool, const char *more)
{
    int before = f.kept;
    CLEANUP_FREE char *body = call_body(id, token, tool, more);
    struct client client = ask(headers, body);
    wait_for(&f.kept, before + 1);
    return client;
}

static struct client start_poll(const char *headers, const char *id, const char *token)
{
    return start_call(headers, id, token, "bash_poll", POLL_MORE);
}

static void end_client(struct client *client)
{
    close(client->fd);
    buffer_free(&client->in);
}

static bool fill(struct client *client, int timeout_ms)
{
    struct pollfd ready = {.fd = client->fd, .events = POLLIN};
    if (poll(&ready, 1, timeout_ms) <= 0)
        return false;
    ssize_t n = recv(client->fd, buffer_reserve(&client->in, 65536), 65536, 0);
    if (n > 0)
        client->in.len += (size_t)n;
    return n > 0;
}

// Reads up to the words and drops everything up to their end.
static void expect(struct client *client, const char *words)
{
    const char *found;
    while (!(found = strstr(buffer_text(&client->in), words)))
        if (!fill(client, SOON_MS))
            fail_msg("\"%s\" did not come; there is: %s", words, buffer_text(&client->in));
    buffer_consume(&client->in, (size_t)(found - client->in.data) + strlen(words));
}

static void expect_nothing(struct client *client)
{
    if (client->in.len || fill(client, 20))
        fail_msg("something came: %s", buffer_text(&client->in));
}

// The rest of the answer holds neither, and ends.
static void expect_end(struct client *client)
{
    while (!strstr(buffer_text(&client->in), "0\r\n\r\n"))
        if (!fill(client, SOON_MS))
            fail_msg("the stream did not end; there is: %s", buffer_text(&client->in));
    assert_null(strstr(client->in.data, "data:"));
}

static void expect_json(struct client *client, const char *words)
{
    expect(client, "HTTP/1.1 200");
    expect(client, "Content-Type: application/json");
    expect(client, words);
}

static void cancel(const char *id)
{
    struct http_answer answer;
    CLEANUP_FREE char *body = mem_format(
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":%s,\"reason\":\"enough\"}}", id);
    http_client_post(f.port, "/mcp", BOTH, body, &answer);
    assert_int_equal(answer.status, 202);
    assert_int_equal(answer.body_len, 0);
    http_answer_clear(&answer);
    loop_call(f.loop, nothing, NULL);
}

// ---- progress ---------------------------------------------------------------------------------------------
static void a_long_call_with_a_token_is_a_stream_of_rising_progress_and_its_answer(void **state)
{
    (void)state;
    struct client client = start_poll(BOTH, "7", "\"p\"");
    advance(999);
    expect_nothing(&client);
    advance(1);
    expect(&client, "HTTP/1.1 200");
    while (!strstr(buffer_text(&client.in), "\r\n\r\n"))
        assert_true(fill(&client, SOON_MS));
    assert_non_null(strstr(client.in.data, "Content-Type: text/event-stream\r\n"));
    assert_non_null(strstr(client.in.data, "Cache-Control: no-cache\r\n"));
    assert_non_null(strstr(client.in.data, "X-Accel-Buffering: no\r\n"));
    expect(&client, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"p\","
                    "\"progress\":1.000,\"total\":10.000,\"message\":\"waiting for bash_00000000000000000000000000000000 for 1 s: 0 bytes "
                    "printed so far\"}}\n\n");
    static const int seconds[] = {2, 4, 8, 16};
    int at = 1;
    for (size_t i = 0; i < ARRAY_LEN(seconds); i++) {
        advance(1000 * (seconds[i] - at) - 1);
        advance(1);
        at = seconds[i];
        CLEANUP_FREE char *words = mem_format("\"progress\":%d.000", at);
        expect(&client, words);
        if (at > 10)
            assert_null(strstr(buffer_text(&client.in), "total")); // it takes longer than it may: nobody knows
    }
    loop_call(f.loop, release, NULL);
    expect(&client, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{");
    expect(&client, "\n\n");
    expect_end(&client);
    end_client(&client);
}

static void a_short_call_is_plain_json_in_spite_of_its_token(void **state)
{
    (void)state;
    struct client client = start_poll(BOTH, "7", "1");
    advance(999);
    loop_call(f.loop, release, NULL);
    expect_json(&client, "\"id\":7,\"result\"");
    end_client(&client);
}

static void without_a_token_or_a_client_that_takes_events_there_is_no_stream(void **state)
{
    (void)state;
    struct client plain = start_poll(BOTH, "1", NULL), json_only = start_poll(JSON_ONLY, "2", "5");
    struct client anything = start_poll("Accept: */*\r\n", "3", "5");
    struct client refusing = start_poll("Accept: application/json, text/event-stream;q=0\r\n", "4", "5");
    for (int i = 0; i < 40; i++)
        advance(1000);
    expect_nothing(&plain);
    loop_call(f.loop, release, NULL);
    expect_json(&plain, "\"id\":1,\"result\"");
    expect_json(&json_only, "\"id\":2,\"result\"");
    expect_json(&anything, "\"id\":3,\"result\"");
    expect_json(&refusing, "\"id\":4,\"result\"");
    end_client(&plain);
    end_client(&json_only);
    end_client(&anything);
    end_client(&refusing);
}

static void tokens_of_every_legal_kind_come_back_as_they_were_sent(void **state)
{
    (void)state;
    static const char *const tokens[] = {"0", "-5", "\"p\"", "\"\"", "1180591620717411303424", "\"1\"", "\"\\u00e9\\n\""};
    for (size_t i = 0; i < ARRAY_LEN(tokens); i++) {
        struct client client = start_poll(BOTH, "1180591620717411303425", tokens[i]);
        advance(1000);
        CLEANUP_FREE char *words = mem_format("\"progressToken\":%s,", tokens[i]);
        expect(&client, words);
        loop_call(f.loop, release, NULL);
        expect(&client, "\"id\":1180591620717411303425,\"result\"");
        end_client(&client);
    }
}

static void say_printed(void *arg)
{
    kept->look.printed_bytes = *(int64_t *)arg;
    kept->news(kept->arg);
}

static void print(int64_t bytes)
{
    loop_call(f.loop, say_printed, &bytes);
}

static void news_are_told_at_once_but_once_a_second(void **state)
{
    (void)state;
    struct client client = start_call(BOTH, "7", "1", "bash", ",\"command\":\"make\",\"yield_time_ms\":60000");
    print(10); // before a second has passed there is no stream
    expect_nothing(&client);
    advance(1000);
    expect(&client, "\"progress\":1.000,\"total\":60.000");
    expect(&client, "10 bytes printed so far");
    advance(7000);
    expect(&client, "\"progress\":8.000");
    expect(&client, "\n\n\r\n");
    advance(1500);
    expect_nothing(&client);
    print(20);
    advance(0);
    expect(&client, "\"progress\":9.500");
    expect(&client, "20 bytes printed so far");
    expect(&client, "\n\n\r\n");
    print(30);
    print(40);
    advance(999);
    expect_nothing(&client);
    advance(1);
    expect(&client, "\"progress\":10.500");
    expect(&client, "40 bytes printed so far");
    loop_call(f.loop, release, NULL);
    expect(&client, "\"id\":7,\"result\"");
    end_client(&client);
}

static void forwarded_tools_say_that_they_still_work(void **state)
{
    (void)state;
    struct client client = start_call(BOTH, "7", "1", "tree", "");
    advance(1000);
    expect(&client, "\"progress\":1.000,\"message\":\"tree is still working, 1 s so far\"");
    end_client(&client);
}

static void the_modern_era_streams_too(void **state)
{
    (void)state;
    const char *body = "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tools/call\",\"params\":{\"name\":\"tree\",\"arguments\":{\"sandbox_id\":\"" SANDBOX
                       "\"},\"_meta\":{\"progressToken\":3,\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
                       "\"io.modelcontextprotocol/clientCapabilities\":{}}}}";
    struct client client =
        ask(BOTH "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: tree\r\n", body);
    wait_for(&f.kept, 1);
    cancel("\"a\""); // here closing the stream is how to cancel
    assert_int_equal(f.kept, 1);
    advance(1000);
    expect(&client, "\"progressToken\":3,\"progress\":1.000");
    loop_call(f.loop, release, NULL);
    expect(&client, "\"id\":\"a\",\"result\"");
    end_client(&client);
}

static void quick_methods_never_stream(void **state)
{
    (void)state;
    static const char *const methods[] = {"ping", "tools/list", "initialize"};
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        CLEANUP_FREE char *body = mem_format("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{\"protocolVersion\":\"2025-11-25\","
                                             "\"_meta\":{\"progressToken\":1}}}",
                                             methods[i]);
        struct client client = ask(BOTH, body);
        expect_json(&client, "\"id\":1,\"result\"");
        end_client(&client);
    }
}

static void a_batch_with_a_token_streams_each_answer_as_an_event(void **state)
{
    (void)state;
    CLEANUP_FREE char *one = call_body("1", "\"t\"", "bash_poll", POLL_MORE), *two = call_body("2", NULL, "tree", "");
    CLEANUP_FREE char *body = mem_format("[%s,{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"},%s]", one, two);
    struct client client = ask(BOTH, body);
    wait_for(&f.kept, 2);
    advance(1000);
    expect(&client, "\"progressToken\":\"t\",\"progress\":1.000");
    loop_call(f.loop, release, NULL);
    expect(&client, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\"");
    expect(&client, "data: {\"jsonrpc\":\"2.0\",\"id\":3,\"result\"");
    expect(&client, "data: {\"jsonrpc\":\"2.0\",\"id\":2,");
    expect(&client, "\n\n");
    expect_end(&client);
    end_client(&client);
}

// ---- keep-alives ------------------------------------------------------------------------------------------
static void a_silent_stream_says_a_comment_every_15_s(void **state)
{
    (void)state;
    struct client client = start_poll(EVENTS_ONLY, "7", NULL);
    advance(EVENT_STREAM_KEEP_ALIVE_MS - 1);
    expect_nothing(&client);
    advance(1);
    expect(&client, "Content-Type: text/event-stream");
    expect(&client, "\r\n\r\n");
    for (int i = 0; i < 3; i++) {
        advance(EVENT_STREAM_KEEP_ALIVE_MS - 1);
        expect_nothing(&client);
        advance(1);
        expect(&client, ":\n\n\r\n");
    }
    loop_call(f.loop, release, NULL);
    expect(&client, "\"id\":7,\"result\"");
    end_client(&client);
}

static void between_rare_messages_there_are_comments(void **state)
{
    (void)state;
    struct client client = start_poll(BOTH, "7", "1");
    for (int i = 0; i < 16; i++)
        advance(1000);
    expect(&client, "\"progress\":16.000");
    expect(&client, "\n\n\r\n");
    for (int i = 0; i < 15; i++)
        advance(1000);
    expect(&client, "3\r\n:\n\n\r\n");
    advance(1000);
    expect(&client, "\"progress\":32.000");
    end_client(&client);
}

// ---- cancelling -------------------------------------------------------------------------------------------
static void a_cancelled_wait_ends_without_an_answer(void **state)
{
    (void)state;
    struct client client = start_poll(BOTH, "7", "1");
    advance(1000);
    expect(&client, "\"progress\":1.000");
    expect(&client, "\n\n");
    cancel("7");
    expect_end(&client);
    assert_int_equal(f.left, 1);
    assert_int_equal(f.stopped, 0);
    end_client(&client);
    client = start_poll(BOTH, "8", NULL); // before the stream began: it is one that ends at once
    cancel("8");
    expect(&client, "HTTP/1.1 200");
    expect(&client, "Content-Type: text/event-stream");
    expect(&client, "\r\n\r\n");
    expect_nothing(&client);
    end_client(&client);
    assert_int_equal(f.left, 2);
}

static void who_takes_no_stream_gets_a_short_error(void **state)
{
    (void)state;
    struct client client = start_poll(JSON_ONLY, "\"x\"", NULL);
    cancel("\"x\"");
    expect_json(&client, "\"id\":\"x\",\"error\":{\"code\":-32800,\"message\":\"the request was cancelled by its client\"}}");
    end_client(&client);
}

static void a_cancelled_tool_is_stopped_and_a_command_is_not(void **state)
{
    (void)state;
    static const struct {
        const char *tool, *more;
        bool must_stop;
    } cases[] = {{"tree", "", true},
                 {"write", ",\"path\":\"a\",\"content\":\"b\"", true},
                 {"wait_for_handoff", "", true},
                 {"bash", ",\"command\":\"make\"", false},
                 {"bash_poll", POLL_MORE, false},
                 {"bash_stop", POLL_MORE, false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        f.left = f.stopped = 0;
        struct client client = start_call(BOTH, "1", NULL, cases[i].tool, cases[i].more);
        if (i % 2) {
            end_client(&client); // hanging up says the same
            wait_for(&f.kept, 0);
        } else {
            cancel("1");
            expect(&client, "text/event-stream");
            end_client(&client);
        }
        assert_int_equal(f.stopped, cases[i].must_stop);
        assert_int_equal(f.left, !cases[i].must_stop);
    }
}

static void what_no_call_has_cancels_nothing(void **state)
{
    (void)state;
    static const char *const others[] = {"\"1\"", "2", "null", "1.0", "{}", "[1]", "true", "-1", "11"};
    struct client client = start_poll(BOTH, "1", NULL);
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        cancel(others[i]);
    assert_int_equal(f.kept, 1);
    loop_call(f.loop, release, NULL);
    expect_json(&client, "\"id\":1,\"result\"");
    cancel("1"); // it has ended
    end_client(&client);
    client = start_poll(BOTH, "\"\\u0061\"", NULL); // another way to write it is the same id
    cancel("\"a\"");
    assert_int_equal(f.kept, 0);
    end_client(&client);
}

static void an_id_that_two_calls_have_cancels_neither_and_each_gets_its_own_answer(void **state)
{
    (void)state;
    struct client one = start_poll(BOTH, "1", NULL), two = start_call(BOTH, "1", NULL, "bash", ",\"command\":\"make\"");
    cancel("1");
    assert_int_equal(f.kept, 2);
    loop_call(f.loop, release, NULL);
    expect_json(&one, "\"id\":1,\"result\"");
    expect_json(&two, "\"id\":1,\"result\"");
    end_client(&one);
    end_client(&two);
}

static void a_cancelled_call_of_a_batch_is_left_out(void **state)
{
    (void)state;
    CLEANUP_FREE char *one = call_body("1", NULL, "bash_poll", POLL_MORE), *two = call_body("2", NULL, "bash", ",\"command\":\"make\"");
    CLEANUP_FREE char *body = mem_format("[%s,%s]", one, two);
    struct client client = ask(BOTH, body);
    wait_for(&f.kept, 2);
    cancel("1");
    assert_int_equal(f.kept, 1);
    loop_call(f.loop, release, NULL);
    expect_json(&client, "\r\n\r\n[{\"jsonrpc\":\"2.0\",\"id\":2,\"result\"");
    end_client(&client);
}

// ---- clients that go away, and the server's end -----------------------------------------------------------
static void a_client_that_closes_its_stream_ends_the_wait(void **state)
{
    (void)state;
    struct client client = start_call(BOTH, "7", "1", "tree", "");
    advance(1000);
    expect(&client, "\"progress\":1.000");
    end_client(&client);
    wait_for(&f.stopped, 1);
    assert_int_equal(f.kept, 0);
}

// The tool server's answer in a size that only a tool of its own can have.
static void fill_answer(size_t len)
{
    char *text = mem_alloc(len + 1);
    memset(text, 'x', len);
    json_decref(f.answer);
    f.answer = json_pack("{s:b, s:[{s:s, s:s}]}", "isError", 1, "content", "type", "text", "text", text);
    free(text);
}

static void a_client_that_never_reads_loses_its_connection_and_nobody_else_waits(void **state)
{
    (void)state;
    struct client deaf = start_call(BOTH, "1", "\"p\"", "tree", "");
    advance(1000);
    fill_answer(16 * 1024 * 1024);
    loop_call(f.loop, release, NULL);
    struct client other = ask(BOTH, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
    expect_json(&other, "\"id\":1,\"result\"");
    end_client(&other);
    for (int i = 0; i < 30; i++)
        advance(5000); // the time for reading an answer, and the sweep
    size_t total = 0;
    while (fill(&deaf, SOON_MS)) { // what was on its way; then the end, long before the answer's
        total += deaf.in.len;
        buffer_consume(&deaf.in, deaf.in.len);
    }
    assert_true(total < 16 * 1024 * 1024);
    end_client(&deaf);
}

static void a_client_that_reads_late_misses_progress_but_not_the_answer(void **state)
{
    (void)state;
    enum { TOKEN_LEN = 60000, MESSAGES = 150 };
    int buffer_bytes = 256 * 1024;
    CLEANUP_FREE char *token = mem_alloc(TOKEN_LEN + 1);
    memset(token, 'p', TOKEN_LEN);
    token[0] = token[TOKEN_LEN - 1] = '"';
    struct client late = start_call(BOTH, "1", token, "tree", "");
    setsockopt(late.fd, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof(buffer_bytes));
    for (int i = 0; i < MESSAGES; i++) { // 9 MB: more than its queue and the sockets' take
        print(i);
        advance(1000);
    }
    loop_call(f.loop, release, NULL);
    double last = 0;
    int count = 0;
    for (const char *at; !strstr(buffer_text(&late.in), "\"id\":1,"); ) {
        while ((at = strstr(buffer_text(&late.in), "\"progress\":")) && strchr(at, ',')) {
            assert_true(strtod(at + 11, NULL) > last);
            last = strtod(at + 11, NULL);
            count++;
            buffer_consume(&late.in, (size_t)(at - late.in.data) + 11);
        }
        assert_true(fill(&late, SOON_MS));
    }
    assert_true(count > 1 && count < MESSAGES);
    end_client(&late);
}

static void a_large_answer_comes_whole_behind_its_progress(void **state)
{
    (void)state;
    struct client client = start_call(BOTH, "1", "\"p\"", "tree", "");
    advance(1000);
    expect(&client, "\"progress\":1.000");
    fill_answer(4 * 1024 * 1024);
    loop_call(f.loop, release, NULL);
    while (!strstr(buffer_text(&client.in) + (client.in.len > 32 ? client.in.len - 32 : 0), "\r\n0\r\n\r\n"))
        assert_true(fill(&client, SOON_MS));
    assert_true(client.in.len > 4 * 1024 * 1024);
    end_client(&client);
}

static void stopping_the_server_ends_streams_and_waits(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct client stream = start_poll(BOTH, "1", "\"p\""), wait = start_poll(BOTH, "2", NULL);
    advance(1000);
    expect(&stream, "\"progress\":1.000");
    mcp_server_stop(f.server);
    loop_call(f.loop, nothing, NULL);
    assert_int_equal(f.kept, 0);
    expect(&wait, "HTTP/1.1 503");
    while (fill(&stream, SOON_MS))
        ;
    assert_null(strstr(buffer_text(&stream.in), "\"result\""));
    end_client(&stream);
    end_client(&wait);
    assert_ok(mcp_server_start(&f.world, &f.server, &err));
}

// ---- races ------------------------------------------------------------------------------------------------
static void *release_again_and_again(void *arg)
{
    _Atomic bool *is_over = arg;
    while (!*is_over)
        loop_call(f.loop, release, NULL);
    return NULL;
}

static void a_cancel_that_meets_the_answer_is_harmless(void **state)
{
    (void)state;
    _Atomic bool is_over = false;
    pthread_t thread;
    pthread_create(&thread, NULL, release_again_and_again, &is_over);
    for (int i = 0; i < 200; i++) {
        CLEANUP_FREE char *body = call_body("1", i % 3 ? "\"p\"" : NULL, i % 2 ? "bash_poll" : "bash", i % 2 ? POLL_MORE : ",\"command\":\"x\"");
        struct client client = ask(i % 5 ? BOTH : JSON_ONLY, body);
        cancel("1");
        clock_advance(f.clock, 1000);
        if (i % 7)
            expect(&client, "HTTP/1.1 200");
        end_client(&client);
    }
    is_over = true;
    pthread_join(thread, NULL);
    assert_int_equal(f.kept, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_long_call_with_a_token_is_a_stream_of_rising_progress_and_its_answer),
        TEST(a_short_call_is_plain_json_in_spite_of_its_token),
        TEST(without_a_token_or_a_client_that_takes_events_there_is_no_stream),
        TEST(tokens_of_every_legal_kind_come_back_as_they_were_sent),
        TEST(news_are_told_at_once_but_once_a_second),
        TEST(forwarded_tools_say_that_they_still_work),
        TEST(the_modern_era_streams_too),
        TEST(quick_methods_never_stream),
        TEST(a_batch_with_a_token_streams_each_answer_as_an_event),
        TEST(a_silent_stream_says_a_comment_every_15_s),
        TEST(between_rare_messages_there_are_comments),
        TEST(a_cancelled_wait_ends_without_an_answer),
        TEST(who_takes_no_stream_gets_a_short_error),
        TEST(a_cancelled_tool_is_stopped_and_a_command_is_not),
        TEST(what_no_call_has_cancels_nothing),
        TEST(an_id_that_two_calls_have_cancels_neither_and_each_gets_its_own_answer),
        TEST(a_cancelled_call_of_a_batch_is_left_out),
        TEST(a_client_that_closes_its_stream_ends_the_wait),
        TEST(a_client_that_never_reads_loses_its_connection_and_nobody_else_waits),
        TEST(a_client_that_reads_late_misses_progress_but_not_the_answer),
        TEST(a_large_answer_comes_whole_behind_its_progress),
        TEST(stopping_the_server_ends_streams_and_waits),
        TEST(a_cancel_that_meets_the_answer_is_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
