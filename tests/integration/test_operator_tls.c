// The Kubernetes listener: off until asked for, TLS and a token for everything, on again after a restart, off at once.
#include "api/auth/token.h"
#include "api/operator/certificate.h"
#include "api/operator/listener.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "tests/support/http_client.h"
#include "tests/support/operator_rig.h"
#include "tests/support/tls_client.h"
#include "api/http/http.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define KUBECONFIG "/chat2shell/v1/kubeconfig"
#define JSON "Content-Type: application/json\r\n"
#define WAIT_MS SUPPORT_PATIENCE_MS
#define SWEEP_MS 5000
#define DAY_MS (24 * 3600 * 1000LL)

// ---- asking for it --------------------------------------------------------------------------------------------------------
static json_t *turn_on(const struct operator_rig *rig, const char *body)
{
    json_t *listener = operator_rig_call(rig, "POST", KUBECONFIG, JSON, body, 200);
    assert_true(json_get_bool(listener, "isListening", false));
    return listener;
}

static void turn_off(const struct operator_rig *rig)
{
    json_decref(operator_rig_call(rig, "DELETE", KUBECONFIG, "", "", 200));
}

static int port_of(const json_t *listener)
{
    return atoi(strrchr(json_get_text(listener, "server"), ':') + 1);
}

static char *token_of(const json_t *listener)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(1024);
    struct error err = ERROR_INIT;
    assert_ok(fs_read_file(json_get_text(listener, "tokenFile"), &text, &err));
    return buffer_take_string(&text);
}

static struct tls_client *connect_to(const json_t *listener)
{
    return tls_client_open(port_of(listener), json_get_text(listener, "certificate"));
}

static void restart(struct operator_rig *rig)
{
    struct error err = ERROR_INIT;
    operator_server_stop(rig->server);
    world_restart(rig->fixture);
    assert_ok(operator_server_start(&rig->fixture->world, &rig->server, &err));
}

static bool is_refused(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CLEANUP_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 && errno == ECONNREFUSED;
}

// ---- requests over it -------------------------------------------------------------------------------------------------------
static void send_text(struct tls_client *client, const char *method, const char *path, const char *headers, const char *body)
{
    CLEANUP_FREE char *text = mem_format("%s %s HTTP/1.1\r\n%sContent-Length: %zu\r\n\r\n%s", method, path, headers, strlen(body), body);
    http_client_send_text(tls_client_fd(client), text);
}

static int status_on(struct tls_client *client, const char *path, const char *headers)
{
    struct http_answer answer;
    send_text(client, "GET", path, headers, "");
    http_client_read(tls_client_fd(client), &answer, WAIT_MS);
    int status = answer.status;
    http_answer_clear(&answer);
    return status;
}

static int status_of(const json_t *listener, const char *path, const char *headers)
{
    struct tls_client *client = connect_to(listener);
    int status = status_on(client, path, headers);
    tls_client_close(client);
    return status;
}

static char *headers_with(const char *token)
{
    return mem_format("Host: 127.0.0.1\r\nAuthorization: Bearer %s\r\n", token);
}

static char *headers_for(const json_t *listener)
{
    CLEANUP_FREE char *token = token_of(listener);
    return headers_with(token);
}

static struct watch_client *watch_workspaces(const struct tls_client *client, const char *headers)
{
    return watch_client_on(dup(tls_client_fd(client)), OPERATOR_KINDS "/workspaces?watch=true", headers + strlen("Host: 127.0.0.1\r\n"));
}

static bool has_watches(const struct operator_rig *rig, int count)
{
    CLEANUP_FREE char *metrics = operator_rig_text(rig, "/metrics", 200), *line = mem_format("\nchat2shell_watches %d\n", count);
    return strstr(metrics, line) != NULL;
}

static void wait_for_watches(const struct operator_rig *rig, int count)
{
    for (int i = 0; !has_watches(rig, count); i++) {
        assert_true(i < SUPPORT_PATIENCE_MS / 10);
        usleep(10000);
    }
}

// ---- off and on ---------------------------------------------------------------------------------------------------------------
static void nothing_listens_and_nothing_is_written_until_it_is_asked_for(void **state)
{
    const struct operator_rig *rig = *state;
    CLEANUP_JSON json_t *listener = operator_rig_call(rig, "GET", KUBECONFIG, "", "", 200);
    CLEANUP_FREE char *dir = mem_format("%s/kubernetes", rig->fixture->config.state_dir);
    assert_false(json_get_bool(listener, "isOn", true));
    assert_null(json_object_get(listener, "server"));
    assert_int_equal(access(dir, F_OK), -1);
    turn_off(rig); // nothing to do, and that is no failure
    assert_int_equal(access(dir, F_OK), -1);
}

static void expect_private(const char *dir, const char *name, mode_t mode)
{
    struct stat st;
    CLEANUP_FREE char *path = mem_format("%s/%s", dir, name);
    assert_int_equal(lstat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, mode);
}

static void what_it_keeps_only_its_owner_can_read(void **state)
{
    const struct operator_rig *rig = *state;
    CLEANUP_JSON json_t *listener = turn_on(rig, "");
    CLEANUP_FREE char *dir = mem_format("%s/kubernetes", rig->fixture->config.state_dir), *text = json_to_text(listener), *token = token_of(listener);
    expect_private(dir, "", 0700);
    expect_private(dir, "token", 0600);
    expect_private(dir, "tls.pem", 0600);
    expect_private(dir, "listener.json", 0600);
    assert_true(token_is_formed(token));
    assert_null(strstr(text, token));
    assert_null(strstr(text, "PRIVATE"));
}

static void whoever_has_the_token_is_an_operator_and_recorded_as_one(void **state)
{
    const struct operator_rig *rig = *state;
    CLEANUP_JSON json_t *listener = turn_on(rig, "");
    CLEANUP_FREE char *headers = headers_for(listener), *typed = mem_format("%s" JSON, headers);
    struct tls_client *client = connect_to(listener);
    struct http_answer answer;
    assert_int_equal(status_on(client, "/apis/chat2shell.dev/v1", headers), 200);
    send_text(client, "POST", OPERATOR_KINDS "/workspaces", typed, "{\"metadata\": {\"name\": \"mine\"}}");
    http_client_read(tls_client_fd(client), &answer, WAIT_MS);
    assert_int_equal(answer.status, 201);
    assert_non_null(strstr(answer.body, "\"chat2shell.dev/created-by\":\"operator:kubeconfig\""));
    http_answer_clear(&answer);
    tls_client_close(client);
}

static void asking_again_changes_nothing(void **state)
{
    const struct operator_rig *rig = *state;
    CLEANUP_JSON json_t *first = turn_on(rig, "");
    CLEANUP_FREE char *headers = headers_for(first);
    struct tls_client *client = connect_to(first);
    assert_int_equal(status_on(client, "/livez", headers), 200);
    CLEANUP_JSON json_t *again = turn_on(rig, "{\"rotate\": false}");
    assert_true(json_equal(first, again));
    assert_int_equal(status_on(client, "/livez", headers), 200); // on the connection that was there
    tls_client_close(client);
}

// ---- who is refused -------------------------------------------------------------------------------------------------------------
static void nothing_is_answered_without_the_token(void **state)
{
    const struct operator_rig *rig = *state;
    CLEANUP_JSON json_t *listener = turn_on(rig, "");
    CLEANUP_FREE char *good = token_of(listener);
    char other[TOKEN_LEN + 1];
    token_make(other);
    CLEANUP_FREE char *twice = mem_format("Authorization: Bearer %s\r\nAuthorization: Bearer %s\r\n", good, good);
    CLEANUP_FREE char *longer = mem_format("Authorization: Bearer %sx\r\n", good), *basic = mem_format("Authorization: Basic %s\r\n", good);
    CLEANUP_FREE char *unknown = mem_format("Authorization: Bearer %s\r\n", other), *cookie = mem_format("Cookie: token=%s\r\n", good);
    const char *const lines[] = {"", "Authorization: Bearer \r\n", "Authorization: Bearer\r\n", twice, longer, basic, unknown, cookie};
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        CLEANUP_FREE char *headers = mem_format("Host: 127.0.0.1\r\n%s", lines[i]), *path = mem_format("/version?token=%s", good);
        int status = status_of(listener, i % 2 ? "/livez" : path, headers);
        if (status != 401 && !(i == 3 && status == 400))
            fail_msg("'%s' was answered %d", lines[i], status);
    }
}

static void a_refusal_says_how_to_come_in(void **state)
{
    CLEANUP_JSON json_t *listener = turn_on(*state, "");
    struct tls_client *client = connect_to(listener);
    struct http_answer answer;
    send_text(client, "GET", "/apis", "Host: localhost\r\n", "");
    http_client_read(tls_client_fd(client), &answer, WAIT_MS);
    CLEANUP_JSON json_t *status = http_answer_json(&answer);
    CLEANUP_FREE char *challenge = http_answer_header(&answer, "WWW-Authenticate");
    assert_string_equal(json_get_text(status, "reason"), "Unauthorized");
    assert_int_equal(json_get_int(status, "code", 0), 401);
    assert_string_equal(challenge, "Bearer realm=\"chat2shell\"");
    http_answer_clear(&answer);
    tls_client_close(client);
}

static void web_pages_and_names_that_point_here_are_refused(void **state)
{
    static const struct {
        const char *lines;
        int status;
    } rows[] = {
        {"Host: 127.0.0.1:18789\r\n", 200}, {"Host: LOCALHOST:1\r\n", 200}, {"Host: evil.example\r\n", 403}, {"Host: localhost.evil.example\r\n", 403},
        {"Host: 127.0.0.1.evil.example\r\n", 403}, {"Host: 127.0.0.1:123456\r\n", 403}, {"Host: localhost:\r\n", 403}, {"Host: 10.0.0.1\r\n", 403},
        {"Host: localhost\r\nOrigin: https://localhost\r\n", 403}, {"Host: localhost\r\nOrigin: null\r\n", 403},
    };
    CLEANUP_JSON json_t *listener = turn_on(*state, "");
    CLEANUP_FREE char *token = token_of(listener);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP_FREE char *headers = mem_format("%sAuthorization: Bearer %s\r\n", rows[i].lines, token);
        int status = status_of(listener, "/livez", headers);
        if (status != rows[i].status)
            fail_msg("'%s' was answered %d", rows[i].lines, status);
    }
}

static void chat2shells_own_paths_are_on_the_socket_only(void **state)
{
    static const char *const paths[] = {"/chat2shell/v1/status", "/chat2shell/v1/tokens", "/chat2shell/v1/kubeconfig", "/chat2shell/v1/doctor"};
    CLEANUP_JSON json_t *listener = turn_on(*state, "");
    CLEANUP_FREE char *headers = headers_for(listener);
    struct tls_client *client = connect_to(listener);
    struct http_answer answer;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        assert_int_equal(status_on(client, paths[i], headers), 404);
    send_text(client, "POST", "/chat2shell/v1/stop", headers, "");
    http_client_read(tls_client_fd(client), &answer, WAIT_MS);
    assert_int_equal(answer.status, 404);
    http_answer_clear(&answer);
    tls_client_close(client);
}

static void heads_are_as_strict_as_on_the_socket(void **state)
{
    static const char *const heads[] = {
        "GET /livez HTTP/1.1\nHost: 127.0.0.1\r\n%s\r\n", "GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: 127.0.0.1\r\n%s\r\n",
        "GET /livez HTTP/1.1\r\nHost : 127.0.0.1\r\n%s\r\n", "GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n%s\r\n"};
    CLEANUP_JSON json_t *listener = turn_on(*state, "");
    CLEANUP_FREE char *token = token_of(listener), *line = mem_format("Authorization: Bearer %s\r\n", token);
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        CLEANUP_FREE char *text = mem_format(heads[i], line);
        struct tls_client *client = connect_to(listener);
        struct http_answer answer;
        http_client_send_text(tls_client_fd(client), text);
        http_client_read(tls_client_fd(client), &answer, WAIT_MS);
        assert_int_equal(answer.status, 400);
        http_answer_clear(&answer);
        tls_client_close(client);
    }
}

static void only_tls_of_the_newest_version_is_spoken(void **state)
{
    CLEANUP_JSON json_t *listener = turn_on(*state, "");
    struct http_answer answer;
    const char plain[] = "GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    http_client_raw(port_of(listener), plain, sizeof(plain) - 1, &answer);
    assert_int_equal(answer.status, 0);
    http_answer_clear(&answer);
    assert_true(tls_client_can_connect(port_of(listener), "NORMAL"));
    assert_false(tls_client_can_connect(port_of(listener), "NORMAL:-VERS-ALL:+VERS-TLS1.2"));
}

// ---- watches --------------------------------------------------------------------------------------------------------------------
static void watches_come_through_and_hang_ups_are_noticed(void **state)
{
    const struct operator_rig *rig = *state;
    CLEANUP_JSON json_t *listener = turn_on(rig, "");
    CLEANUP_FREE char *headers = headers_for(listener);
    struct tls_client *client = connect_to(listener);
    struct watch_client *watch = watch_workspaces(client, headers);
    for (int i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof(name), "w%d", i);
        operator_rig_make_workspace(rig, name, "{}");
        json_decref(watch_client_expect(watch, "ADDED", name));
    }
    wait_for_watches(rig, 1);
    watch_client_close(watch);
    tls_client_close(client);
    wait_for_watches(rig, 0);
}

static void a_reader_that_takes_nothing_is_ended_and_others_go_on(void **state)
{
    const struct operator_rig *rig = *state;
    CLEANUP_JSON json_t *listener = turn_on(rig, "");
    CLEANUP_FREE char *headers = headers_for(listener), *big = mem_alloc(200001);
    struct tls_client *client = connect_to(listener);
    send_text(client, "GET", OPERATOR_KINDS "/workspaces?watch=true", headers, "");
    wait_for_watches(rig, 1);
    memset(big, 'x', 200000);
    for (int i = 0; i < 60; i++) { // 12 MB, more than all buffers on the way
        CLEANUP_FREE char *body = mem_format("{\"metadata\": {\"name\": \"b%d\", \"annotations\": {\"a\": \"%s\"}}}", i, big);
        json_decref(operator_rig_call(rig, "POST", OPERATOR_KINDS "/workspaces", JSON, body, 201));
    }
    for (int i = 0; !has_watches(rig, 0); i++) {
        assert_true(i < SUPPORT_PATIENCE_MS / 5);
        clock_advance(rig->fixture->world.clock, SWEEP_MS);
        usleep(5000);
    }
    assert_int_equal(status_of(listener, "/livez", headers), 200);
    tls_client_close(client);
}

// ---- the end of a token -----------------------------------------------------------------------------------------------------------
static void rotating_ends_the_old_token_and_all_that_came_in_with_it(void **state)
{
    const struct operator_rig *rig = *state;
    CLEANUP_JSON json_t *before = turn_on(rig, "");
    CLEANUP_FREE char *old = headers_for(before);
    struct tls_client *idle = connect_to(before), *busy = connect_to(before);
    assert_int_equal(status_on(idle, "/livez", old), 200);
    struct watch_client *watch = watch_workspaces(busy, old);
    wait_for_watches(rig, 1);
    CLEANUP_JSON json_t *after = turn_on(rig, "{\"rotate\": true}");
    CLEANUP_FREE char *new = headers_for(after);
    assert_null(watch_client_next(watch));
    assert_true(http_client_is_closed(tls_client_fd(idle), WAIT_MS));
    assert_true(json_equal(before, after)); // the same place, certificate and file
    assert_int_equal(status_of(after, "/livez", old), 401);
    assert_int_equal(status_of(after, "/livez", new), 200);
    wait_for_watches(rig, 0);
    watch_client_close(watch);
    tls_client_close(busy);
    tls_client_close(idle);
}

static void off_ends_everything_and_on_again_takes_another_token(void **state)
{
    const struct operator_rig *rig = *state;
    CLEANUP_JSON json_t *before = turn_on(rig, "");
    CLEANUP_FREE char *old = headers_for(before);
    struct tls_client *client = connect_to(before);
    struct watch_client *watch = watch_workspaces(client, old);
    wait_for_watches(rig, 1);
    turn_off(rig);
    assert_null(watch_client_next(watch));
    assert_true(is_refused(port_of(before)));
    assert_int_equal(access(json_get_text(before, "tokenFile"), F_OK), -1);
    CLEANUP_JSON json_t *after = turn_on(rig, "");
    assert_int_equal(status_of(after, "/livez", old), 401);
    assert_string_equal(json_get_text(after, "certificate"), json_get_text(before, "certificate"));
    watch_client_close(watch);
    tls_client_close(client);
}

// ---- restarts -----------------------------------------------------------------------------------------------------------------------
static void a_restart_opens_it_again_with_the_same_port_certificate_and_token(void **state)
{
    struct operator_rig *rig = *state;
    CLEANUP_JSON json_t *before = turn_on(rig, "");
    CLEANUP_FREE char *headers = headers_for(before);
    struct tls_client *client = connect_to(before);
    struct watch_client *watch = watch_workspaces(client, headers); // open while the server stops
    wait_for_watches(rig, 1);
    restart(rig);
    assert_null(watch_client_next(watch));
    CLEANUP_JSON json_t *after = operator_rig_call(rig, "GET", KUBECONFIG, "", "", 200);
    assert_true(json_equal(before, after));
    assert_int_equal(status_of(after, "/livez", headers), 200);
    watch_client_close(watch);
    tls_client_close(client);
    turn_off(rig);
    restart(rig);
    CLEANUP_JSON json_t *off = operator_rig_call(rig, "GET", KUBECONFIG, "", "", 200);
    assert_false(json_get_bool(off, "isOn", true));
}

static void a_port_that_is_taken_at_the_start_is_told_and_asking_again_helps(void **state)
{
    struct operator_rig *rig = *state;
    struct error err = ERROR_INIT;
    CLEANUP_JSON json_t *before = turn_on(rig, "");
    operator_server_stop(rig->server);
    world_restart(rig->fixture);
    int other = http_listen_tcp("127.0.0.1", port_of(before), &err);
    assert_true(other >= 0);
    assert_ok(operator_server_start(&rig->fixture->world, &rig->server, &err)); // the rest is served
    CLEANUP_JSON json_t *status = operator_rig_call(rig, "GET", "/chat2shell/v1/status", "", "", 200);
    const json_t *told = json_object_get(status, "kubernetes");
    assert_true(json_get_bool(told, "isOn", false));
    assert_int_equal(json_get_int(told, "port", -1), 0);
    assert_non_null(strstr(json_get_text(told, "message"), "in use"));
    CLEANUP_JSON json_t *refused = operator_rig_call(rig, "POST", KUBECONFIG, JSON, "", 503);
    assert_non_null(strstr(json_get_text(json_object_get(refused, "details"), "hint"), "CHAT2SHELL_KUBE_PORT"));
    close(other);
    CLEANUP_JSON json_t *after = turn_on(rig, "");
    assert_true(json_equal(before, after));
}

static void write_into(const struct operator_rig *rig, const char *name, const char *text)
{
    CLEANUP_FREE char *path = mem_format("%s/kubernetes", rig->fixture->config.state_dir);
    CLEANUP_CLOSE int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct error err = ERROR_INIT;
    assert_ok(fs_replace_file(dir, name, text, strlen(text), 0600, &err));
}

static void what_is_damaged_is_made_anew(void **state)
{
    struct operator_rig *rig = *state;
    CLEANUP_JSON json_t *before = turn_on(rig, "");
    CLEANUP_FREE char *old = headers_for(before);
    write_into(rig, "tls.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    write_into(rig, "token", "guess");
    restart(rig);
    CLEANUP_JSON json_t *after = operator_rig_call(rig, "GET", KUBECONFIG, "", "", 200);
    CLEANUP_FREE char *new = headers_for(after);
    assert_string_not_equal(json_get_text(after, "certificate"), json_get_text(before, "certificate"));
    assert_int_equal(status_of(after, "/livez", old), 401);
    assert_int_equal(status_of(after, "/livez", new), 200);
    write_into(rig, "listener.json", "{\"port\": 70000}");
    restart(rig);
    CLEANUP_JSON json_t *lost = operator_rig_call(rig, "GET", KUBECONFIG, "", "", 200);
    assert_false(json_get_bool(lost, "isListening", true));
    assert_non_null(strstr(json_get_text(lost, "message"), "listener.json"));
    json_decref(turn_on(rig, ""));
}

static void a_certificate_is_renewed_before_it_ends(void **state)
{
    const struct operator_rig *rig = *state;
    struct wall_time now = clock_wall(rig->fixture->world.clock), later = {now.ms + (CERTIFICATE_LIFE_DAYS - CERTIFICATE_RENEW_DAYS - 1) * DAY_MS},
                     late = {later.ms + 2 * DAY_MS}, early = {now.ms - 2 * 3600 * 1000};
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *pem = NULL, *other = NULL, *open = NULL, *again = NULL, *mixed = NULL;
    assert_ok(certificate_make(now, &pem, &err));
    assert_ok(certificate_make(now, &other, &err));
    assert_string_not_equal(pem, other);
    assert_ok(certificate_check(pem, later, &open, &err));
    assert_null(strstr(open, "PRIVATE"));
    assert_int_equal(certificate_check(pem, late, &again, &err), -1);
    assert_int_equal(certificate_check(pem, early, &again, &err), -1);
    mixed = mem_format("%.*s%s", (int)(strstr(pem, "-----BEGIN CERT") - pem), pem, strstr(other, "-----BEGIN CERT"));
    assert_int_equal(certificate_check(mixed, now, &again, &err), -1);
    assert_int_equal(certificate_check("", now, &again, &err), -1);
}

// ---- who means harm -------------------------------------------------------------------------------------------------------------------
static void handshakes_that_do_not_end_are_ended(void **state)
{
    const struct operator_rig *rig = *state;
    CLEANUP_JSON json_t *listener = turn_on(rig, "");
    CLEANUP_FREE char *headers = headers_for(listener);
    int silent = http_client_connect(port_of(listener)), half = http_client_connect(port_of(listener));
    http_client_send(half, "\x16\x03\x01\x02\x00\x01\x00", 7); // the beginning of a hello
    assert_int_equal(status_of(listener, "/livez", headers), 200); // both are accepted by now
    for (int ms = 0; ms < 2 * HTTP_HEAD_MS; ms += SWEEP_MS) {
        clock_advance(rig->fixture->world.clock, SWEEP_MS);
        usleep(5000);
    }
    assert_true(http_client_is_closed(silent, WAIT_MS));
    assert_true(http_client_is_closed(half, WAIT_MS));
    close(silent);
    close(half);
}

static void whoever_opens_connections_and_leaves_them_locks_nobody_out(void **state)
{
    enum { COUNT = LISTENER_CONNECTIONS_MAX + 40 };
    static int fds[COUNT];
    CLEANUP_JSON json_t *listener = turn_on(*state, "");
    CLEANUP_FREE char *headers = headers_for(listener);
    for (int i = 0; i < COUNT; i++)
        fds[i] = http_client_connect(port_of(listener));
    assert_true(http_client_is_closed(fds[0], WAIT_MS));
    assert_int_equal(status_of(listener, "/livez", headers), 200);
    for (int i = 0; i < COUNT; i++)
        close(fds[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, operator_rig_setup, operator_rig_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_listens_and_nothing_is_written_until_it_is_asked_for),
        TEST(what_it_keeps_only_its_owner_can_read),
        TEST(whoever_has_the_token_is_an_operator_and_recorded_as_one),
        TEST(asking_again_changes_nothing),
        TEST(nothing_is_answered_without_the_token),
        TEST(a_refusal_says_how_to_come_in),
        TEST(web_pages_and_names_that_point_here_are_refused),
        TEST(chat2shells_own_paths_are_on_the_socket_only),
        TEST(heads_are_as_strict_as_on_the_socket),
        TEST(only_tls_of_the_newest_version_is_spoken),
        TEST(watches_come_through_and_hang_ups_are_noticed),
        TEST(a_reader_that_takes_nothing_is_ended_and_others_go_on),
        TEST(rotating_ends_the_old_token_and_all_that_came_in_with_it),
        TEST(off_ends_everything_and_on_again_takes_another_token),
        TEST(a_restart_opens_it_again_with_the_same_port_certificate_and_token),
        TEST(a_port_that_is_taken_at_the_start_is_told_and_asking_again_helps),
        TEST(what_is_damaged_is_made_anew),
        TEST(a_certificate_is_renewed_before_it_ends),
        TEST(handshakes_that_do_not_end_are_ended),
        TEST(whoever_opens_connections_and_leaves_them_locks_nobody_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
