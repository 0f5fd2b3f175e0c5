#include "reconcilers/session/codexpro/http.h"
#include "reconcilers/session/codexpro/http_socket.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define MCP_VERSION "2025-06-18"

struct http_exchange {
    LIST_ENTRY(http_exchange) link;
    struct http *http;
    CURL *easy;
    struct curl_slist *fields;
    char *url;
    const struct http_events *events;
    void *arg;
    struct loop_timer *deadline;
    int64_t deadline_ms;
    size_t head_bytes;
    bool is_head_done; // what comes behind the body is no head: trailers change nothing
    bool is_enough, is_head_over, is_coded, is_late;
    struct http_answer answer;
};

struct http {
    const struct curl_library *curl;
    struct loop *loop;
    CURLM *multi; // NULL = closed
    struct http_sockets sockets;
    struct loop_timer *timer; // libcurl's
    int port;
    char *authorization; // the whole header field; secret
    LIST_HEAD(, http_exchange) exchanges;
};

// ---- the end of an exchange ---------------------------------------------------------------------------------------

static void wipe_fields(const struct curl_library *curl, struct curl_slist *fields)
{
    for (struct curl_slist *at = fields; at; at = at->next)
        explicit_bzero(at->data, strlen(at->data));
    curl->slist_free_all(fields);
}

static void exchange_free(struct http_exchange *exchange)
{
    struct http *http = exchange->http;
    LIST_REMOVE(exchange, link);
    loop_cancel(TAKE_PTR(exchange->deadline));
    http->curl->multi_remove_handle(http->multi, exchange->easy);
    http->curl->easy_cleanup(exchange->easy);
    wipe_fields(http->curl, exchange->fields);
    free(exchange->url);
    free(exchange);
}

void http_abandon(struct http_exchange *exchange)
{
    if (exchange)
        exchange_free(exchange);
}

static const char *word_failure(const struct http *http, const struct http_exchange *exchange, CURLcode code)
{
    static const struct {
        CURLcode code;
        const char *words;
    } table[] = {
        {CURLE_COULDNT_CONNECT, "its port does not accept connections"},
        {CURLE_GOT_NOTHING, "it closed the connection without an answer"},
        {CURLE_RECV_ERROR, "the connection broke before its answer was complete"},
        {CURLE_SEND_ERROR, "it closed the connection before it had the whole request"},
        {CURLE_PARTIAL_FILE, "it ended its answer in the middle"},
        {CURLE_UNSUPPORTED_PROTOCOL, "it does not answer in HTTP/1.1"},
        {CURLE_WEIRD_SERVER_REPLY, "it does not answer in HTTP"},
        {CURLE_FILESIZE_EXCEEDED, "its answer is over the limit of 24 MiB"},
    };
    if (exchange->is_late)
        return "it did not answer in time";
    if (exchange->is_head_over)
        return "the head of its answer is over the limit of 64 KiB";
    if (exchange->is_coded)
        return "it compressed its answer, which nobody asked for";
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].code == code)
            return table[i].words;
    return http->curl->easy_strerror(code);
}

static void finish(struct http_exchange *exchange, CURLcode code)
{
    struct http *http = exchange->http;
    const struct http_events *events = exchange->events;
    void *arg = exchange->arg;
    struct http_answer answer = exchange->answer;
    if (code != CURLE_OK && !exchange->is_enough)
        answer.failure = word_failure(http, exchange, code);
    answer.is_late = exchange->is_late;
    exchange_free(exchange);
    events->done(arg, &answer);
}

static void on_deadline(void *arg)
{
    struct http_exchange *exchange = arg;
    exchange->deadline = NULL;
    exchange->is_late = true;
    finish(exchange, CURLE_OPERATION_TIMEDOUT);
}

// Any event may close the http, which stays until http_free.
static void drain(struct http *http)
{
    const CURLMsg *message;
    int left;
    while (http->multi && (message = http->curl->multi_info_read(http->multi, &left))) {
        struct http_exchange *exchange = NULL;
        CURLcode code = message->data.result;
        http->curl->easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &exchange);
        finish(exchange, code);
    }
}

// ---- libcurl's sockets and time ------------------------------------------------------------------------------------

static void act(struct http *http, curl_socket_t fd, int events)
{
    int running;
    if (http->multi)
        http->curl->multi_socket_action(http->multi, fd, events, &running);
    drain(http);
}

static void on_socket(void *arg, int fd, int events)
{
    act(arg, fd, events);
}

static void on_timer(void *arg)
{
    struct http *http = arg;
    http->timer = NULL;
    act(http, CURL_SOCKET_TIMEOUT, 0);
}

static int set_timer(CURLM *multi, long ms, void *arg)
{
    struct http *http = arg;
    (void)multi;
    loop_cancel(TAKE_PTR(http->timer));
    if (ms >= 0)
        http->timer = loop_after(http->loop, ms, on_timer, http);
    return 0;
}

static int set_interest(CURL *easy, curl_socket_t fd, int what, void *arg, void *ignored)
{
    struct http *http = arg;
    (void)easy, (void)ignored;
    http_sockets_set(&http->sockets, fd, what);
    return 0;
}

// ---- what comes ----------------------------------------------------------------------------------------------------

// The blank line behind a head that is not an interim one.
static bool is_last_line(const struct http_answer *answer, const char *bytes, size_t len)
{
    return answer->status / 100 != 1 && len && (bytes[0] == '\r' || bytes[0] == '\n');
}

static size_t on_head(char *bytes, size_t size, size_t count, void *arg)
{
    struct http_exchange *exchange = arg;
    size_t len = size * count;
    exchange->head_bytes += len;
    exchange->is_head_over = exchange->head_bytes > HTTP_HEAD_MAX_BYTES;
    exchange->is_coded = http_field_is_coding(bytes, len); // libcurl would decompress it, asked for or not
    if (exchange->is_head_over || exchange->is_coded)
        return 0;
    if (!exchange->is_head_done)
        http_answer_field(&exchange->answer, bytes, len);
    exchange->is_head_done |= is_last_line(&exchange->answer, bytes, len);
    return len;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *arg)
{
    struct http_exchange *exchange = arg;
    size_t len = size * count;
    exchange->is_enough = !exchange->events->body(exchange->arg, &exchange->answer, bytes, len);
    return exchange->is_enough ? CURL_WRITEFUNC_ERROR : len;
}

// ---- sending -------------------------------------------------------------------------------------------------------

static struct curl_slist *make_fields(const struct http *http, const struct http_request *request)
{
    const struct curl_library *curl = http->curl;
    struct curl_slist *fields = curl->slist_append(NULL, http->authorization);
    fields = curl->slist_append(fields, "Accept: application/json, text/event-stream");
    fields = curl->slist_append(fields, "Expect:"); // no waiting for 100 Continue
    if (request->body)
        fields = curl->slist_append(fields, "Content-Type: application/json");
    if (!request->session_id)
        return fields;
    CLEANUP_FREE char *session = mem_format("Mcp-Session-Id: %s", request->session_id);
    fields = curl->slist_append(fields, session);
    return curl->slist_append(fields, "MCP-Protocol-Version: " MCP_VERSION);
}

static void set_bounds(struct http_exchange *exchange)
{
    const struct curl_library *curl = exchange->http->curl;
    CURL *easy = exchange->easy;
    curl->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http");
    curl->easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl->easy_setopt(easy, CURLOPT_PROXY, "");
    curl->easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl->easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    curl->easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    curl->easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)HTTP_BODY_MAX_BYTES);
    http_sockets_bind(&exchange->http->sockets, curl, easy);
}

static void set_request(struct http_exchange *exchange, const struct http_request *request)
{
    const struct curl_library *curl = exchange->http->curl;
    CURL *easy = exchange->easy;
    curl->easy_setopt(easy, CURLOPT_URL, exchange->url);
    curl->easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
    curl->easy_setopt(easy, CURLOPT_HTTPHEADER, exchange->fields);
    if (request->body) {
        curl->easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_len);
        curl->easy_setopt(easy, CURLOPT_POSTFIELDS, request->body);
    }
    curl->easy_setopt(easy, CURLOPT_PRIVATE, exchange);
    curl->easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_head);
    curl->easy_setopt(easy, CURLOPT_HEADERDATA, exchange);
    curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl->easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
}

struct http_exchange *http_send(struct http *http, const struct http_request *request, const struct http_events *events, void *arg)
{
    if (!http->multi)
        return NULL;
    struct http_exchange *exchange = mem_alloc(sizeof(*exchange));
    *exchange = (struct http_exchange){.http = http,
                                       .easy = http->curl->easy_init(),
                                       .fields = make_fields(http, request),
                                       .url = mem_format("http://127.0.0.1:%d%s", http->port, request->path),
                                       .events = events,
                                       .arg = arg,
                                       .answer.retry_after_s = -1};
    if (!exchange->easy)
        abort(); // out of memory
    set_bounds(exchange);
    set_request(exchange, request);
    LIST_INSERT_HEAD(&http->exchanges, exchange, link);
    exchange->deadline = loop_after(http->loop, request->deadline_ms, on_deadline, exchange);
    http->curl->multi_add_handle(http->multi, exchange->easy); // starts from libcurl's timer, not here
    return exchange;
}

// ---- birth and end -------------------------------------------------------------------------------------------------

int http_new(struct loop *loop, int port, const char *token, struct http **ret, struct error *err)
{
    const struct curl_library *curl = curl_library_get(err);
    if (!curl)
        return -1;
    CURLM *multi = curl->multi_init();
    if (!multi)
        return error_set(err, ERROR_IO, "raise the limit on open files (ulimit -n)", "cannot make an HTTP client");
    struct http *http = mem_alloc(sizeof(*http));
    *http = (struct http){.curl = curl, .loop = loop, .multi = multi, .port = port};
    http->authorization = mem_format("Authorization: Bearer %s", token ? token : "");
    LIST_INIT(&http->exchanges);
    http_sockets_init(&http->sockets, loop, port, on_socket, http);
    curl->multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, set_interest);
    curl->multi_setopt(multi, CURLMOPT_SOCKETDATA, http);
    curl->multi_setopt(multi, CURLMOPT_TIMERFUNCTION, set_timer);
    curl->multi_setopt(multi, CURLMOPT_TIMERDATA, http);
    *ret = http;
    return 0;
}

void http_close(struct http *http)
{
    if (!http->multi)
        return;
    while (!LIST_EMPTY(&http->exchanges))
        exchange_free(LIST_FIRST(&http->exchanges));
    http->curl->multi_cleanup(TAKE_PTR(http->multi));
    http_sockets_close(&http->sockets);
    loop_cancel(TAKE_PTR(http->timer));
    explicit_bzero(http->authorization, strlen(http->authorization));
}

void http_free(struct http *http)
{
    if (!http)
        return;
    http_close(http);
    free(http->authorization);
    free(http);
}
