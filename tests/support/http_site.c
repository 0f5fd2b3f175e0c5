#include "tests/support/http_site.h"
#include "controller/base/memory.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// ---- saying --------------------------------------------------------------------------------------------------------

void visit_say(struct visit *visit, const char *bytes, size_t len)
{
    while (len && !atomic_load(&visit->site->is_stopping)) {
        ssize_t n = send(visit->fd, bytes, len, MSG_NOSIGNAL);
        if (n <= 0)
            return; // the client gave up: what the test then looks at
        bytes += n;
        len -= (size_t)n;
    }
}

void visit_say_text(struct visit *visit, const char *text)
{
    visit_say(visit, text, strlen(text));
}

bool site_waits(const struct visit *visit, int ms)
{
    for (int waited = 0; waited < ms && !atomic_load(&visit->site->is_stopping); waited += 10)
        usleep(10000);
    return !atomic_load(&visit->site->is_stopping);
}

void visit_answer(struct visit *visit, const char *status, const char *type, const char *fields, const char *body)
{
    CLEANUP_FREE char *head = mem_format("HTTP/1.1 %s\r\n%s%s%s%sContent-Length: %zu\r\n\r\n", status, type ? "Content-Type: " : "",
                                         type ? type : "", type ? "\r\n" : "", fields ? fields : "", strlen(body));
    visit_say_text(visit, head);
    visit_say_text(visit, body);
}

char *visit_result(const struct visit *visit, const char *text)
{
    CLEANUP_JSON json_t *answer = json_pack("{s:s, s:I, s:{s:[{s:s, s:s}]}}", "jsonrpc", "2.0", "id", (json_int_t)visit->id, "result",
                                            "content", "type", "text", "text", text);
    return json_dumps(answer, JSON_COMPACT);
}

void visit_answer_json(struct visit *visit, const char *text)
{
    CLEANUP_FREE char *body = visit_result(visit, text);
    visit_answer(visit, "200 OK", "application/json", NULL, body);
}

void visit_answer_events(struct visit *visit, const char *text)
{
    CLEANUP_FREE char *result = visit_result(visit, text), *body = mem_format("event: message\ndata: %s\n\n", result);
    visit_answer(visit, "200 OK", "text/event-stream", NULL, body);
}

// ---- being as it should ----------------------------------------------------------------------------------------------

static bool has_field(const struct visit *visit, const char *field)
{
    return strcasestr(buffer_text((struct buffer *)&visit->head), field) != NULL;
}

static void be_initialized(struct visit *visit)
{
    struct site *site = visit->site;
    visit_fn fn = atomic_load(&site->initialize);
    int session = atomic_fetch_add(&site->session, 1) + 1;
    atomic_fetch_add(&site->initializes, 1);
    if (fn) {
        fn(visit);
        return;
    }
    CLEANUP_FREE char *field = mem_format("Mcp-Session-Id: session-%d\r\n", session);
    CLEANUP_FREE char *body = mem_format("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":{\"protocolVersion\":\"2025-06-18\","
                                         "\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"CodexPro\",\"version\":\"0.30.0\"}}}\n\n",
                                         (long long)visit->id);
    visit_answer(visit, "200 OK", "text/event-stream", field, body);
}

static bool is_of_session(const struct visit *visit)
{
    CLEANUP_FREE char *field = mem_format("Mcp-Session-Id: session-%d\r\n", atomic_load(&visit->site->session));
    return has_field(visit, field);
}

static void be_called(struct visit *visit)
{
    struct site *site = visit->site;
    visit_fn fn = atomic_load(&site->call);
    pthread_mutex_lock(&site->mutex);
    snprintf(site->last_head, sizeof(site->last_head), "%s", buffer_text(&visit->head));
    pthread_mutex_unlock(&site->mutex);
    atomic_fetch_add(&site->calls, 1);
    if (!is_of_session(visit))
        visit_answer(visit, "404 Not Found", "application/json", NULL,
                     "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32001,\"message\":\"Session not found\"},\"id\":null}");
    else if (fn)
        fn(visit);
    else
        visit_answer_events(visit, "fine");
}

static void be_posted_to(struct visit *visit)
{
    const char *method = json_get_text(visit->message, "method");
    visit->id = json_get_int(visit->message, "id", 0);
    visit->tool = json_get_text(json_object_get(visit->message, "params"), "name");
    if (method && strcmp(method, "initialize") == 0) {
        be_initialized(visit);
    } else if (method && strcmp(method, "tools/call") == 0) {
        be_called(visit);
    } else {
        atomic_fetch_add(&visit->site->initializeds, method && strcmp(method, "notifications/initialized") == 0);
        visit_answer(visit, "202 Accepted", NULL, NULL, "");
    }
}

static void be_asked_for_health(struct visit *visit)
{
    visit_fn fn = atomic_load(&visit->site->health);
    atomic_fetch_add(&visit->site->healths, 1);
    if (fn)
        fn(visit);
    else
        visit_answer(visit, "200 OK", "application/json", NULL, "{\"ok\":true}");
}

static void be_visited(struct visit *visit)
{
    const char *head = buffer_text(&visit->head);
    if (!has_field(visit, "Authorization: Bearer " SITE_TOKEN "\r\n")) {
        atomic_fetch_add(&visit->site->refused, 1);
        visit_answer(visit, "401 Unauthorized", "text/plain", NULL, "Unauthorized");
    } else if (strncmp(head, "GET /healthz ", 13) == 0) {
        be_asked_for_health(visit);
    } else if (strncmp(head, "DELETE /mcp ", 12) == 0) {
        atomic_fetch_add(&visit->site->deletes, is_of_session(visit));
        visit_answer(visit, "200 OK", NULL, NULL, "");
    } else {
        be_posted_to(visit);
    }
}

// ---- connections -----------------------------------------------------------------------------------------------------

static bool fill(int fd, struct buffer *buf)
{
    char *at = buffer_reserve(buf, 65536);
    ssize_t n = at ? recv(fd, at, 65536, 0) : 0;
    buf->len += n > 0 ? (size_t)n : 0;
    return n > 0;
}

static bool read_request(struct visit *visit)
{
    struct buffer all = BUFFER_INIT(64 * 1024 * 1024);
    char *end = NULL;
    while (!end && fill(visit->fd, &all))
        end = memmem(all.data, all.len, "\r\n\r\n", 4);
    if (end) {
        buffer_append(&visit->head, all.data, (size_t)(end - all.data) + 4);
        buffer_append_char(&visit->head, '\0');
        buffer_consume(&all, (size_t)(end - all.data) + 4);
        const char *field = strcasestr(visit->head.data, "\r\nContent-Length: ");
        size_t len = field ? strtoul(field + 18, NULL, 10) : 0;
        while (all.len < len && fill(visit->fd, &all))
            ;
        visit->body = all;
        visit->message = json_loadb(buffer_text(&all), all.len, 0, NULL);
        return true;
    }
    buffer_free(&all);
    return false;
}

static void *run_visit(void *arg)
{
    CLEANUP_FREE struct visit *visit = arg;
    struct site *site = visit->site;
    if (read_request(visit))
        be_visited(visit);
    shutdown(visit->fd, SHUT_WR);
    pthread_mutex_lock(&site->mutex);
    for (size_t i = 0; i < site->visit_count; i++)
        if (site->fds[i] == visit->fd)
            site->fds[i] = -1;
    close(visit->fd);
    pthread_mutex_unlock(&site->mutex);
    buffer_free(&visit->head);
    buffer_free(&visit->body);
    json_decref(visit->message);
    return NULL;
}

static void begin_visit(struct site *site, int fd)
{
    struct visit *visit = mem_alloc(sizeof(*visit));
    *visit = (struct visit){.site = site, .fd = fd, .head = BUFFER_INIT(1024 * 1024)};
    pthread_mutex_lock(&site->mutex);
    size_t n = site->visit_count++;
    site->fds[n] = fd;
    pthread_mutex_unlock(&site->mutex);
    pthread_create(&site->visitors[n], NULL, run_visit, visit);
}

static void *run_site(void *arg)
{
    struct site *site = arg;
    int fd;
    while (site->visit_count < SITE_VISITS_MAX && (fd = accept4(site->listen_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
        begin_visit(site, fd);
    return NULL;
}

static int listen_at(int port, int *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

int site_reserve_port(void)
{
    int port;
    close(listen_at(0, &port));
    return port;
}

struct site *site_new_at(int port)
{
    struct site *site = mem_alloc(sizeof(*site));
    site->listen_fd = listen_at(port, &site->port);
    assert_int_equal(listen(site->listen_fd, 64), 0);
    pthread_mutex_init(&site->mutex, NULL);
    pthread_create(&site->thread, NULL, run_site, site);
    return site;
}

struct site *site_new(void)
{
    return site_new_at(0);
}

void site_free(struct site *site)
{
    atomic_store(&site->is_stopping, true);
    shutdown(site->listen_fd, SHUT_RDWR);
    pthread_join(site->thread, NULL);
    pthread_mutex_lock(&site->mutex);
    for (size_t i = 0; i < site->visit_count; i++)
        if (site->fds[i] >= 0)
            shutdown(site->fds[i], SHUT_RDWR);
    pthread_mutex_unlock(&site->mutex);
    for (size_t i = 0; i < site->visit_count; i++)
        pthread_join(site->visitors[i], NULL);
    close(site->listen_fd);
    pthread_mutex_destroy(&site->mutex);
    free(site);
}

char *site_last_head(struct site *site)
{
    pthread_mutex_lock(&site->mutex);
    char *head = mem_strdup(site->last_head);
    pthread_mutex_unlock(&site->mutex);
    return head;
}
