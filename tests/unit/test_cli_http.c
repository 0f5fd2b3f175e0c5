#include "api/client/mcp.h"
#include "api/client/rest.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/base/socket.h"
#include "tests/support/support.h"
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

// ---- the reader ----------------------------------------------------------------------------------------------------------

static int read_in_pieces(const char *bytes, size_t len, size_t piece, bool is_closed, struct answer_reader *reader, struct error *err)
{
    answer_reader_init(reader);
    for (size_t at = 0; at < len; at += piece)
        if (answer_reader_feed(reader, bytes + at, len - at < piece ? len - at : piece, err) < 0)
            return -1;
    return is_closed ? answer_reader_end(reader, err) : 0;
}

static void assert_body(const char *answer, int status, const char *body)
{
    for (size_t piece = 1; piece <= strlen(answer); piece++) {
        CLEANUP(answer_reader_clear) struct answer_reader reader;
        struct error err = ERROR_INIT;
        assert_ok(read_in_pieces(answer, strlen(answer), piece, true, &reader, &err));
        assert_int_equal(reader.state, ANSWER_DONE);
        assert_int_equal(reader.status, status);
        assert_string_equal(buffer_text(&reader.body), body);
    }
}

static void a_body_is_the_same_in_whatever_pieces_it_comes(void **state)
{
    (void)state;
    assert_body("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello");
    assert_body("HTTP/1.1 201 Created\r\ntransfer-encoding: Chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nTrailer: t\r\n\r\n", 201, "hello");
    assert_body("HTTP/1.0 200 OK\r\n\r\nuntil the end", 200, "until the end");
    assert_body("HTTP/1.1 204 No Content\r\n\r\n", 204, "");
    assert_body("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 404, "");
    assert_body("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok");
}

static char told[256];

static void note_warning(const char *text)
{
    size_t len = strlen(told);
    snprintf(told + len, sizeof(told) - len, "<%s>", text);
}

static const char *warnings_of(const char *header)
{
    told[0] = '\0';
    rest_read_warnings(header, note_warning);
    return told;
}

static void warnings_are_read_and_what_is_malformed_is_left_out(void **state)
{
    (void)state;
    assert_string_equal(warnings_of("299 - \"one\""), "<one>");
    assert_string_equal(warnings_of("299 - \"say \\\"x, y\\\"\", 299 - \"two\""), "<say \"x, y\"><two>");
    assert_string_equal(warnings_of("199 - \"old\", 299 host \"two\" \"Mon, 30 Nov 2026\", 299 - \"three\""), "<two><three>");
    const char *const bad[] = {"", "299", "299 -", "299 - one", "299 - \"one", "299 - \"one\\", "299 - \"\"", ", ,", "\""};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_string_equal(warnings_of(bad[i]), "");
    static const char answer[] = "HTTP/1.1 200 OK\r\nwarning: 299 - \"a\"\r\nContent-Length: 0\r\nWarning: 299 - \"b\"\r\n\r\n";
    CLEANUP(answer_reader_clear) struct answer_reader reader;
    struct error err = ERROR_INIT;
    assert_ok(read_in_pieces(answer, strlen(answer), 3, true, &reader, &err));
    assert_string_equal(warnings_of(reader.warnings), "<a><b>");
}

static void assert_refused(const char *answer, enum error_code code)
{
    for (size_t piece = 1; piece <= strlen(answer); piece += 3) {
        CLEANUP(answer_reader_clear) struct answer_reader reader;
        struct error err = ERROR_INIT;
        if (read_in_pieces(answer, strlen(answer), piece, true, &reader, &err) == 0)
            fail_msg("accepted: %s", answer);
        assert_int_equal(err.code, code);
        assert_true(err.message[0]);
    }
}

static void an_answer_that_is_not_http_or_has_two_meanings_is_refused(void **state)
{
    (void)state;
    assert_refused("SSH-2.0-OpenSSH\r\n\r\n", ERROR_INTERNAL);
    assert_refused("HTTP/1.1 2x0 OK\r\n\r\n", ERROR_INTERNAL);
    assert_refused("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", ERROR_INTERNAL);
    assert_refused("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", ERROR_INTERNAL);
    assert_refused("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\na", ERROR_INTERNAL);
    assert_refused("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", ERROR_INTERNAL);
    assert_refused("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", ERROR_INTERNAL);
    assert_refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", ERROR_INTERNAL);
    assert_refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", ERROR_INTERNAL);
    assert_refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", ERROR_INTERNAL);
}

static void an_answer_that_ends_in_the_middle_is_not_taken_for_whole(void **state)
{
    (void)state;
    assert_refused("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", ERROR_UNAVAILABLE);
    assert_refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", ERROR_UNAVAILABLE);
    assert_refused("HTTP/1.1 200 OK\r\nConte", ERROR_UNAVAILABLE);
    assert_refused("", ERROR_UNAVAILABLE);
}

static void an_endless_head_is_refused(void **state)
{
    (void)state;
    CLEANUP(answer_reader_clear) struct answer_reader reader;
    struct error err = ERROR_INIT;
    answer_reader_init(&reader);
    assert_ok(answer_reader_feed(&reader, "HTTP/1.1 200 OK\r\n", 17, &err));
    int r = 0;
    for (int i = 0; r == 0 && i < HTTP_ANSWER_HEAD_MAX_BYTES; i++)
        r = answer_reader_feed(&reader, "a: b\r\n", 6, &err);
    assert_int_equal(r, -1);
    assert_int_equal(err.code, ERROR_INTERNAL);
}

// ---- against a real socket --------------------------------------------------------------------------------------------------

struct server {
    char *dir;
    int fd;
    const char *answer;
    char request[4096];
    pthread_t thread;
};

static void *serve_once(void *arg)
{
    struct server *server = arg;
    int fd = accept(server->fd, NULL, NULL);
    size_t len = 0;
    for (ssize_t n; !strstr(server->request, "\r\n\r\n") && (n = read(fd, server->request + len, sizeof(server->request) - 1 - len)) > 0;)
        len += (size_t)n;
    if (server->answer) {
        ssize_t n = write(fd, server->answer, strlen(server->answer));
        assert_int_equal(n, strlen(server->answer));
    } else {
        char byte;
        while (read(fd, &byte, 1) > 0) // until the client gives up
            ;
    }
    close(fd);
    return NULL;
}

static void server_start(struct server *server, const char *answer)
{
    struct error err = ERROR_INIT;
    *server = (struct server){.dir = support_make_dir(), .answer = answer};
    int dir_fd = open(server->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    server->fd = socket_listen_at(dir_fd, "operator.sock", SOCK_STREAM, &err);
    assert_true(server->fd >= 0);
    close(dir_fd);
    assert_int_equal(pthread_create(&server->thread, NULL, serve_once, server), 0);
}

static void server_stop(struct server *server)
{
    pthread_join(server->thread, NULL);
    close(server->fd);
    support_remove_dir(server->dir);
}

static void a_status_comes_back_as_the_error_it_was(void **state)
{
    (void)state;
    static const char body[] = "{\"kind\":\"Status\",\"message\":\"the workspace is bound\",\"reason\":\"Conflict\",\"code\":409,"
                               "\"details\":{\"code\":\"WrongState\",\"hint\":\"delete the sandbox first\",\"causes\":[{\"field\":\"spec.x\"}]}}";
    CLEANUP_FREE char *answer = mem_format("HTTP/1.1 409 Conflict\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
    struct server server;
    struct error err = ERROR_INIT;
    server_start(&server, answer);
    CLEANUP(rest_clear) struct rest rest = {0};
    rest_init(&rest, server.dir);
    CLEANUP_JSON json_t *causes = NULL;
    const struct rest_ask ask = {.method = "DELETE", .path = "/apis/x"};
    assert_int_equal(rest_call(&rest, &ask, NULL, NULL, &causes, &err), -1);
    server_stop(&server);
    assert_int_equal(err.code, ERROR_STATE);
    assert_string_equal(err.message, "the workspace is bound");
    assert_string_equal(err.hint, "delete the sandbox first");
    assert_int_equal(json_array_size(causes), 1);
    assert_non_null(strstr(server.request, "DELETE /apis/x HTTP/1.1\r\nHost: localhost\r\n"));
    assert_null(strstr(server.request, "Content-Length"));
}

static void a_daemon_that_does_not_answer_is_a_time_out(void **state)
{
    (void)state;
    struct server server;
    struct error err = ERROR_INIT;
    server_start(&server, NULL);
    CLEANUP(rest_clear) struct rest rest = {0};
    rest_init(&rest, server.dir);
    rest.timeout_ms = 50;
    assert_error(rest_get(&rest, "/x", NULL, &err), ERROR_TIMEOUT);
    server_stop(&server);
}

// As many connections as its queue takes, and nobody who takes them out of it.
static size_t fill_queue(const char *socket_path, int *fds, size_t room)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t count = 0;
    assert_true(strlen(socket_path) < sizeof(address.sun_path));
    strcpy(address.sun_path, socket_path);
    while (count < room) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_true(fd >= 0);
        fds[count++] = fd;
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
            return count;
    }
    fail_msg("its queue took %zu connections", room);
    return count;
}

static void a_daemon_that_takes_no_connection_is_a_time_out(void **state)
{
    (void)state;
    static int fds[1000];
    struct error err = ERROR_INIT;
    char *dir = support_make_dir();
    CLEANUP_CLOSE int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), listener = socket_listen_at(dir_fd, "operator.sock", SOCK_STREAM, &err);
    assert_true(listener >= 0);
    CLEANUP(rest_clear) struct rest rest = {0};
    rest_init(&rest, dir);
    rest.timeout_ms = 50;
    CLEANUP_FREE char *socket_path = mem_format("%s/operator.sock", dir);
    size_t count = fill_queue(socket_path, fds, ARRAY_LEN(fds));
    assert_error(rest_get(&rest, "/x", NULL, &err), ERROR_TIMEOUT);
    assert_non_null(strstr(err.message, "did not take the connection within 50 ms"));
    while (count)
        close(fds[--count]);
    support_remove_dir(dir);
}

static void nobody_at_the_socket_is_unreachable_and_says_how_to_start(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    CLEANUP(rest_clear) struct rest rest = {0};
    rest_init(&rest, "/nonexistent/state");
    assert_error(rest_get(&rest, "/x", NULL, &err), ERROR_UNREACHABLE);
    assert_non_null(strstr(err.hint, "chat2shell serve"));
}

static void only_loopback_urls_are_mcp_urls(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "127.0.0.1:1", "https://127.0.0.1/mcp", "http://example.com/mcp", "http://10.0.0.1:80/mcp", "http://127.0.0.1:0/mcp",
                                      "http://127.0.0.1:65536/mcp", "http://127.0.0.1:12x/mcp", "http://127.0.0.1:/mcp", "http://127.0.0.1/m cp"};
    struct error err = ERROR_INIT;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct mcp_client client = {0};
        if (mcp_client_parse_url(bad[i], &client, &err) == 0)
            fail_msg("accepted: %s", bad[i]);
        assert_int_equal(err.code, ERROR_INVALID);
    }
    CLEANUP(mcp_client_clear) struct mcp_client client = {0};
    assert_ok(mcp_client_parse_url("http://localhost:18788", &client, &err));
    assert_string_equal(client.host, "127.0.0.1");
    assert_int_equal(client.port, 18788);
    assert_string_equal(client.path, "/mcp");
}

static void a_name_cannot_leave_its_place_in_a_path(void **state)
{
    (void)state;
    CLEANUP_FREE char *path = rest_path(kind_info(KIND_SANDBOX), "../x?y=z\r\nä");
    assert_string_equal(path, "/apis/chat2shell.dev/v1/sandboxes/..%2Fx%3Fy%3Dz%0D%0A%C3%A4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_is_the_same_in_whatever_pieces_it_comes),
        cmocka_unit_test(warnings_are_read_and_what_is_malformed_is_left_out),
        cmocka_unit_test(an_answer_that_is_not_http_or_has_two_meanings_is_refused),
        cmocka_unit_test(an_answer_that_ends_in_the_middle_is_not_taken_for_whole),
        cmocka_unit_test(an_endless_head_is_refused),
        cmocka_unit_test(a_status_comes_back_as_the_error_it_was),
        cmocka_unit_test(a_daemon_that_does_not_answer_is_a_time_out),
        cmocka_unit_test(a_daemon_that_takes_no_connection_is_a_time_out),
        cmocka_unit_test(nobody_at_the_socket_is_unreachable_and_says_how_to_start),
        cmocka_unit_test(only_loopback_urls_are_mcp_urls),
        cmocka_unit_test(a_name_cannot_leave_its_place_in_a_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
