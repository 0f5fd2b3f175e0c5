// One POST to /mcp as the HTTP front hands it over: header lines "Name: value", an empty line, the body. In process: what
// stands below here are an HTTP request of our own and tools that answer at once. Whatever comes: one answer, its body a
// JSON-RPC message (or a batch of them, or events of them), and the id is the request's own, letter for letter.
#include "api/mcp/exchange.h"
#include "api/mcp/mcp.h"
#include "controller/base/memory.h"
#include "tests/fuzz/fuzz.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HEADERS_MAX 16

struct http_request {
    struct {
        char *name, *value;
    } headers[HEADERS_MAX];
    size_t header_count;
    char *body;
    size_t body_len;
    int answers, status;
    char *answer;
    size_t answer_len;
};

// ---- the HTTP front's place -------------------------------------------------------------------------------
const char *http_request_method(const struct http_request *request)
{
    (void)request;
    return "POST";
}

const char *http_request_path(const struct http_request *request)
{
    (void)request;
    return MCP_PATH;
}

char *http_request_header(const struct http_request *request, const char *name)
{
    for (size_t i = 0; i < request->header_count; i++)
        if (strcasecmp(request->headers[i].name, name) == 0)
            return mem_strdup(request->headers[i].value);
    return NULL;
}

size_t http_request_count_header(const struct http_request *request, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < request->header_count; i++)
        count += strcasecmp(request->headers[i].name, name) == 0;
    return count;
}

bool http_request_has_header(const struct http_request *request, const char *name)
{
    return http_request_count_header(request, name) > 0;
}

const char *http_request_body(const struct http_request *request, size_t *ret_len)
{
    *ret_len = request->body_len;
    return request->body;
}

void http_request_drop_body(struct http_request *request)
{
    (void)request; // the oracle looks at it
}

const void *http_request_kept(const struct http_request *request)
{
    (void)request;
    return NULL;
}

void http_request_keep(struct http_request *request, void *value, void (*release)(void *value))
{
    (void)request;
    release(value);
}

uint64_t http_request_connection(const struct http_request *request)
{
    (void)request;
    return 1;
}

void http_request_on_gone(struct http_request *request, http_gone_fn fn, void *arg)
{
    (void)request;
    (void)fn;
    (void)arg;
}

void http_respond(struct http_request *request, const struct http_reply *reply, char *body, size_t len)
{
    request->answers++;
    request->status = reply->status;
    free(request->answer);
    request->answer = body;
    request->answer_len = len;
}

// ---- the tools' place -------------------------------------------------------------------------------------
void mcp_watch_call(struct mcp_call *call)
{
    (void)call;
}

struct event_stream *mcp_watch_end(struct mcp_exchange *exchange)
{
    (void)exchange;
    return NULL;
}

void mcp_exchange_gone(void *exchange)
{
    (void)exchange;
}

void tool_call_start(struct tool_call *call, struct world *world, const struct catalogue *catalogue,
                     struct tool_gate *gate, const struct tool *tool, const char *principal, uint64_t asker,
                     json_t *arguments, tool_finish_fn finish, void *arg)
{
    (void)call, (void)world, (void)gate, (void)principal, (void)asker;
    struct error error = ERROR_INIT;
    bool is_right = catalogue_check(catalogue, tool->name, arguments, &error) == 0;
    json_decref(arguments);
    finish(arg, (struct tool_result){.value = json_pack("{s:[{s:s, s:o}], s:b}", "content", "type", "text", "text",
                                                       json_from_text(is_right ? "fine" : error.message), "isError", !is_right)});
}

// ---- the oracle -------------------------------------------------------------------------------------------
static bool is_known_status(int status)
{
    return status == 200 || status == 202 || status == 400 || status == 404;
}

// The text of the id as the answer has it, or NULL; *ret_len its length. All answers begin alike.
static const char *id_of(const char *answer, size_t len, size_t *ret_len)
{
    static const char begin[] = "{\"jsonrpc\":\"2.0\",\"id\":";
    const char *id = answer + sizeof(begin) - 1, *end = NULL;
    if (len < sizeof(begin) || memcmp(answer, begin, sizeof(begin) - 1) != 0)
        return NULL;
    const char *result = memmem(id, len - sizeof(begin) + 1, ",\"result\":", 10), *error = memmem(id, len - sizeof(begin) + 1, ",\"error\":", 9);
    end = !result ? error : !error || result < error ? result : error;
    fuzz_expect(end != NULL, "an answer has a result or an error behind its id");
    *ret_len = (size_t)(end - id);
    return id;
}

static void check_answer_form(const json_t *answer)
{
    const json_t *error = json_object_get(answer, "error"), *result = json_object_get(answer, "result");
    const char *version = json_string_value(json_object_get(answer, "jsonrpc"));
    fuzz_expect(version && strcmp(version, "2.0") == 0, "every answer says jsonrpc 2.0");
    fuzz_expect(!error != !result, "an answer has either a result or an error");
    fuzz_expect(!result || json_is_object(result), "a result is an object");
    fuzz_expect(!error || (json_is_number(json_object_get(error, "code")) && json_is_string(json_object_get(error, "message"))),
                "an error has a code and a message");
    const char *message = json_string_value(json_object_get(error, "message"));
    fuzz_expect(!error || (message && message[0]), "an error says something");
}

static bool is_whole(const json_t *number)
{
    double value = json_real_value(number);
    return json_is_real(number) && value > -1e15 && value < 1e15 && value == (double)(long long)value;
}

static void check_single(const struct http_request *request, const json_t *asked, const json_t *answer)
{
    size_t len = 0;
    const char *id = id_of(request->answer, request->answer_len, &len);
    check_answer_form(answer);
    if (id)
        fuzz_expect(memmem(request->body, request->body_len, id, len) != NULL, "the id is one that the request has, letter for letter");
    const json_t *method = json_object_get(asked, "method"), *wanted = json_object_get(asked, "id");
    if (json_is_string(method) && (json_is_string(wanted) || is_whole(wanted)) && (id || request->status == 200) && request->body[strspn(request->body, " \t\r\n")] == '{')
        fuzz_expect(json_equal(json_object_get(answer, "id"), wanted), "a request's answer has its id");
}

static void check_batch(const json_t *asked, const json_t *answers)
{
    fuzz_expect(json_is_array(asked), "only a batch is answered by an array");
    size_t i, requests = 0;
    json_t *at;
    json_array_foreach(answers, i, at)
        check_answer_form(at);
    json_array_foreach(asked, i, at)
        requests += json_object_get(at, "id") && json_object_get(at, "method");
    fuzz_expect(json_array_size(answers) >= requests && json_array_size(answers) <= json_array_size(asked),
                "every request of a batch has its answer, and nothing has two");
}

// The one message of an event stream.
static bool unwrap_event(struct http_request *request)
{
    static const char begin[] = "event: message\ndata: ";
    if (request->answer_len < sizeof(begin) + 1 || memcmp(request->answer, begin, sizeof(begin) - 1) != 0)
        return false;
    char *end = memmem(request->answer, request->answer_len, "\n\n", 2);
    bool is_one = end == request->answer + request->answer_len - 2;
    if (is_one) {
        request->answer_len -= sizeof(begin) + 1;
        memmove(request->answer, request->answer + sizeof(begin) - 1, request->answer_len);
    }
    return is_one;
}

static json_t *read_json(const char *bytes, size_t len)
{
    return json_loadb(bytes, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
}

static bool has_endless_number(const char *bytes, size_t len)
{
    size_t run = 0;
    for (size_t i = 0; i < len && run < 300; i++)
        run = bytes[i] >= '0' && bytes[i] <= '9' ? run + 1 : 0;
    return run >= 300;
}

static void check(struct http_request *request)
{
    fuzz_expect(request->answers == 1, "a request is answered once");
    fuzz_expect(is_known_status(request->status), "the status is 200, 202, 400 or 404");
    fuzz_expect((request->status == 202) == !request->answer_len, "a 202 has no body, and nothing else has none");
    if (!request->answer_len)
        return;
    bool is_stream = request->answer[0] == 'e';
    if (is_stream && !unwrap_event(request))
        return; // a batch as events
    CLEANUP_JSON json_t *answer = read_json(request->answer, request->answer_len);
    CLEANUP_JSON json_t *asked = read_json(request->body, request->body_len);
    if (!answer && has_endless_number(request->answer, request->answer_len))
        return; // the oracle's reader does not know it
    fuzz_expect(answer != NULL, "an answer is JSON");
    if (json_is_array(answer))
        check_batch(asked, answer);
    else if (!(is_stream && json_is_array(asked)))
        check_single(request, asked, answer);
}

// ---- one input --------------------------------------------------------------------------------------------
static struct mcp_server *make_server(void)
{
    static struct config config = {.host = "127.0.0.1"};
    static struct world world = {.config = &config};
    struct mcp_server *server = mem_alloc(sizeof(*server));
    server->world = &world;
    server->refs = 1;
    in_flight_init(&server->in_flight);
    tool_gate_init(&server->gate);
    fuzz_expect(catalogue_load(&server->catalogue, NULL) == 0, "the catalogue is right");
    mcp_ready_make(&server->catalogue, &server->ready);
    server->front.own_hosts[0] = config.host;
    return server;
}

static void add_header(struct http_request *request, const char *line, size_t len)
{
    const char *colon = memchr(line, ':', len);
    if (!colon || request->header_count == HEADERS_MAX || memchr(line, '\0', len))
        return;
    const char *value = colon + 1, *end = line + len;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    request->headers[request->header_count].name = mem_strndup(line, (size_t)(colon - line));
    request->headers[request->header_count++].value = mem_strndup(value, (size_t)(end - value));
}

static void read_input(struct http_request *request, const char *bytes, size_t len)
{
    const char *at = bytes, *end = bytes + len, *line_end;
    while ((line_end = memchr(at, '\n', (size_t)(end - at))) && line_end > at && *at != '{' && *at != '[') {
        add_header(request, at, (size_t)(line_end - at));
        at = line_end + 1;
    }
    if (line_end == at)
        at++;
    if (!http_request_has_header(request, "Host"))
        add_header(request, "Host: localhost", 15);
    if (!http_request_has_header(request, "Content-Type"))
        add_header(request, "Content-Type: application/json", 30);
    request->body_len = (size_t)(end - at);
    request->body = mem_realloc(NULL, request->body_len + 1);
    memcpy(request->body, at, request->body_len);
    request->body[request->body_len] = '\0';
}

static void clear(struct http_request *request)
{
    for (size_t i = 0; i < request->header_count; i++) {
        free(request->headers[i].name);
        free(request->headers[i].value);
    }
    free(request->body);
    free(request->answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static struct mcp_server *server;
    if (!server)
        server = make_server();
    struct http_request request = {0};
    struct http_refusal refusal = {0};
    read_input(&request, (const char *)bytes, len);
    if (mcp_check_front(&request, &server->front, &refusal)) {
        mcp_exchange_start(server, &request);
        check(&request);
    } else {
        fuzz_expect(refusal.status >= 400 && refusal.status < 500 && refusal.error.message[0], "a refusal has a status and a sentence");
    }
    fuzz_expect(server->refs == 1, "an exchange ends with its answer");
    clear(&request);
    return 0;
}
