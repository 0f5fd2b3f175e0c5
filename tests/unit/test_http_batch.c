// Many requests over a few kept connections, against a server that ends connections when it likes.
#include "api/client/http_batch.h"
#include "controller/base/memory.h"
#include "tests/support/support.h"
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define COUNT 300
#define VISITORS_MAX 1024

struct server {
    int fd, port;
    pthread_t thread, visitors[VISITORS_MAX];
    size_t visitor_count;
    int answers_each; // of a connection; it ends without a word then. 0: never
    bool says_close;  // with a word
    bool is_cutting;  // in the middle of an answer
    bool is_silent;
    int requests_max; // then nobody listens any more; 0: never
    atomic_int requests;
};
struct visitor {
    struct server *server;
    int fd;
};

// One request's path; false at the connection's end.
static bool read_request(int fd, char *path, size_t size)
{
    char head[4096];
    size_t len = 0;
    while (len < sizeof(head) - 1) {
        if (recv(fd, head + len, 1, 0) != 1)
            return false;
        head[++len] = '\0';
        if (len > 4 && strcmp(head + len - 4, "\r\n\r\n") == 0)
            break;
    }
    const char *length = strstr(head, "Content-Length: ");
    char byte;
    for (long left = length ? strtol(length + 16, NULL, 10) : 0; left > 0; left--)
        if (recv(fd, &byte, 1, 0) != 1)
            return false;
    const char *begin = strchr(head, ' ') + 1;
    snprintf(path, size, "%.*s", (int)strcspn(begin, " "), begin);
    return true;
}

static void answer(const struct server *server, int fd, const char *path)
{
    CLEANUP_FREE char *text = mem_format("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n%s\r\n%s", strlen(path),
                                         server->says_close ? "Connection: close\r\n" : "", path);
    (void)!send(fd, text, server->is_cutting ? strlen(text) - 1 : strlen(text), MSG_NOSIGNAL);
}

static void *visit(void *arg)
{
    struct visitor *visitor = arg;
    struct server *server = visitor->server;
    char path[256];
    for (int n = 1; read_request(visitor->fd, path, sizeof(path)); n++) {
        if (server->is_silent)
            continue;
        if (atomic_fetch_add(&server->requests, 1) + 1 == server->requests_max)
            shutdown(server->fd, SHUT_RDWR);
        answer(server, visitor->fd, path);
        if (server->says_close || server->is_cutting || n == server->answers_each)
            break;
    }
    close(visitor->fd);
    free(visitor);
    return NULL;
}

static void *serve(void *arg)
{
    struct server *server = arg;
    int fd;
    while ((fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        struct visitor *visitor = mem_alloc(sizeof(*visitor));
        *visitor = (struct visitor){server, fd};
        assert_true(server->visitor_count < VISITORS_MAX);
        assert_int_equal(pthread_create(&server->visitors[server->visitor_count++], NULL, visit, visitor), 0);
    }
    return NULL;
}

static void start(struct server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server->fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(server->fd, 64), 0);
    assert_int_equal(getsockname(server->fd, (struct sockaddr *)&address, &len), 0);
    server->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

static void stop(struct server *server)
{
    shutdown(server->fd, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    for (size_t i = 0; i < server->visitor_count; i++)
        pthread_join(server->visitors[i], NULL);
    close(server->fd);
}

// ---- the client's side --------------------------------------------------------------------------------------------------------
struct asked {
    const char *method;
    char paths[COUNT][32];
    int answers[COUNT], failures[COUNT];
    enum error_code codes[COUNT]; // of those that failed
    int timeout_ms;
};

static void ask(void *arg, size_t i, struct http_ask *ret)
{
    struct asked *asked = arg;
    snprintf(asked->paths[i], sizeof(asked->paths[i]), "/%zu", i);
    *ret = (struct http_ask){.method = asked->method, .path = asked->paths[i], .timeout_ms = asked->timeout_ms};
    if (strcmp(asked->method, "GET") != 0) {
        ret->content_type = "text/plain";
        ret->body = "body";
        ret->body_len = 4;
    }
}

static void answered(void *arg, size_t i, struct http_answered *answer, const struct error *failure)
{
    struct asked *asked = arg;
    if (!answer) {
        asked->failures[i]++;
        asked->codes[i] = failure->code;
        return;
    }
    assert_int_equal(answer->status, 200);
    assert_string_equal(answer->body, asked->paths[i]);
    asked->answers[i]++;
}

static int run(struct server *server, struct asked *asked)
{
    struct error err = ERROR_INIT;
    start(server);
    const struct http_target target = {.host = "127.0.0.1", .port = server->port};
    const struct http_batch batch = {.target = &target, .count = COUNT, .ask = ask, .answered = answered, .arg = asked};
    if (!asked->timeout_ms)
        asked->timeout_ms = 60000;
    int r = http_batch_run(&batch, &err);
    stop(server);
    return r;
}

static size_t total(const int *counts)
{
    size_t sum = 0;
    for (size_t i = 0; i < COUNT; i++)
        sum += (size_t)counts[i];
    return sum;
}

static int count_failures(const struct asked *asked, enum error_code code)
{
    int count = 0;
    for (size_t i = 0; i < COUNT; i++)
        count += asked->failures[i] && asked->codes[i] == code;
    return count;
}

static void assert_all_answered_once(const struct asked *asked)
{
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(asked->answers[i], 1);
    assert_int_equal(total(asked->failures), 0);
}

// ---- tests --------------------------------------------------------------------------------------------------------------------
static void all_are_answered_over_a_few_connections(void **state)
{
    (void)state;
    struct server server = {0};
    struct asked asked = {.method = "PATCH"};
    assert_int_equal(run(&server, &asked), 0);
    assert_all_answered_once(&asked);
    assert_true(server.visitor_count <= HTTP_BATCH_CONNECTIONS);
    assert_int_equal(server.requests, COUNT);
}

static void a_connection_that_says_it_ends_is_replaced(void **state)
{
    (void)state;
    struct server server = {.says_close = true};
    struct asked asked = {.method = "POST"};
    assert_int_equal(run(&server, &asked), 0);
    assert_all_answered_once(&asked);
    assert_int_equal(server.visitor_count, COUNT);
}

static void a_connection_that_ends_between_two_requests_is_replaced(void **state)
{
    (void)state;
    struct server server = {.answers_each = 7};
    struct asked asked = {.method = "PATCH"};
    assert_int_equal(run(&server, &asked), 0);
    assert_all_answered_once(&asked);
}

static void what_would_be_done_twice_is_not_asked_again(void **state)
{
    (void)state;
    struct server server = {.answers_each = 7};
    struct asked asked = {.method = "POST"};
    assert_int_equal(run(&server, &asked), 0);
    assert_int_equal(total(asked.answers) + total(asked.failures), COUNT);
    assert_int_equal(server.requests, total(asked.answers));
    assert_int_equal(count_failures(&asked, ERROR_UNAVAILABLE), total(asked.failures));
}

static void an_answer_that_is_cut_off_is_a_failure_of_that_request_alone(void **state)
{
    (void)state;
    struct server server = {.is_cutting = true};
    struct asked asked = {.method = "GET"};
    assert_int_equal(run(&server, &asked), 0);
    assert_int_equal(count_failures(&asked, ERROR_UNAVAILABLE), COUNT);
}

static void who_does_not_answer_is_given_up_at_the_deadline(void **state)
{
    (void)state;
    struct server server = {.is_silent = true};
    struct asked asked = {.method = "GET", .timeout_ms = 1};
    assert_int_equal(run(&server, &asked), 0);
    assert_int_equal(count_failures(&asked, ERROR_TIMEOUT), COUNT);
}

#define GOES_AWAY_AFTER (2 * HTTP_BATCH_CONNECTIONS)

static void what_is_left_when_the_server_goes_away_fails_each_by_itself(void **state)
{
    (void)state;
    struct server server = {.says_close = true, .requests_max = GOES_AWAY_AFTER};
    struct asked asked = {.method = "GET"};
    assert_int_equal(run(&server, &asked), 0);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(asked.answers[i] + asked.failures[i], 1);
    assert_in_range(total(asked.answers), GOES_AWAY_AFTER - HTTP_BATCH_CONNECTIONS, GOES_AWAY_AFTER + HTTP_BATCH_CONNECTIONS - 1);
    // Those under way are cut off, of the others nobody takes the connection.
    int cut_off = count_failures(&asked, ERROR_UNAVAILABLE);
    assert_true(cut_off <= HTTP_BATCH_CONNECTIONS);
    assert_int_equal(count_failures(&asked, ERROR_UNREACHABLE), total(asked.failures) - cut_off);
}

static void nobody_there_is_said_once(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct asked asked = {.method = "GET", .timeout_ms = 1000};
    const struct http_target target = {.socket_path = "/nonexistent/operator.sock"};
    const struct http_batch batch = {.target = &target, .count = COUNT, .ask = ask, .answered = answered, .arg = &asked};
    assert_error(http_batch_run(&batch, &err), ERROR_UNREACHABLE);
    assert_int_equal(total(asked.answers) + total(asked.failures), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_answered_over_a_few_connections),
        cmocka_unit_test(a_connection_that_says_it_ends_is_replaced),
        cmocka_unit_test(a_connection_that_ends_between_two_requests_is_replaced),
        cmocka_unit_test(what_would_be_done_twice_is_not_asked_again),
        cmocka_unit_test(an_answer_that_is_cut_off_is_a_failure_of_that_request_alone),
        cmocka_unit_test(who_does_not_answer_is_given_up_at_the_deadline),
        cmocka_unit_test(what_is_left_when_the_server_goes_away_fails_each_by_itself),
        cmocka_unit_test(nobody_there_is_said_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
