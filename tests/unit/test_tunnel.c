// The tunnel client as a child of the daemon: its start, its end, its readiness. The client is a small script, or the
// stand-in tests/fakes/tunnel-client. How it is confined is the end-to-end test's subject.
#include "controller/tunnel.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/tunnel_probe.h"
#include "controller/tunnel_url.h"
#include "tests/support/support.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct fixture {
    char *dir;
    struct config config;
    struct clock *clock;
    struct loop *loop;
    struct spawner *spawner;
};

static void put_file(const struct fixture *it, const char *name, const char *text, mode_t mode)
{
    CLEANUP_FREE char *path = mem_format("%s/%s", it->dir, name);
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct error err = ERROR_INIT;
    assert_true(fd >= 0);
    assert_ok(fs_write_all(fd, text, strlen(text), &err));
    fchmod(fd, mode);
}

// Notes its arguments and lives until it is told to end; or ends at once.
static const char staying_client[] = "#!/bin/sh\nprintf '%s\\n' \"$@\" >\"$(dirname \"$0\")/arguments\"\n"
                                     "echo $$ >>\"$(dirname \"$0\")/starts\"\nexec sleep 60\n";
static const char ending_client[] = "#!/bin/sh\necho $$ >>\"$(dirname \"$0\")/starts\"\nexit 3\n";

static int set_up(void **state)
{
    struct error err = ERROR_INIT;
    struct fixture *it = mem_alloc(sizeof(*it));
    it->dir = support_make_dir();
    it->config = (struct config){.host = "127.0.0.1", .secret_dir = it->dir, .state_dir = it->dir, .tunnel_client = mem_format("%s/client", it->dir)};
    it->clock = clock_new_fake((struct wall_time){1});
    assert_ok(spawner_start(&it->spawner, &err));
    assert_ok(loop_start(it->clock, &it->loop, &err));
    *state = it;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *it = *state;
    loop_stop(it->loop);
    spawner_stop(it->spawner);
    clock_free(it->clock);
    free(it->config.tunnel_client);
    support_remove_dir(it->dir);
    free(it);
    return 0;
}

static void put_all(const struct fixture *it, const char *client)
{
    put_file(it, "client", client, 0700);
    put_file(it, "key", "secret", 0600);
    put_file(it, "tunnel-id", "tunnel_0123\n", 0600);
}

static void assert_missing(const struct fixture *it, const char *const *words, size_t count)
{
    struct error err = ERROR_INIT;
    char *id = NULL;
    assert_error(tunnel_check(&it->config, &id, &err), ERROR_STATE);
    assert_null(id);
    for (size_t i = 0; i < count; i++)
        if (!strstr(err.message, words[i]))
            fail_msg("'%s' is not in '%s'", words[i], err.message);
    assert_non_null(strstr(err.hint, "CHAT2SHELL_ENABLE_TUNNEL=0"));
}

static void each_missing_piece_is_named_with_the_switch(void **state)
{
    const struct fixture *it = *state;
    assert_missing(it, (const char *[]){"/client is missing", "/key is missing", "/tunnel-id is missing"}, 3);
    put_all(it, staying_client);
    put_file(it, "client", "x", 0600);
    assert_missing(it, (const char *[]){"/client cannot be run"}, 1);
    put_all(it, staying_client);
    put_file(it, "key", "secret", 0644);
    assert_missing(it, (const char *[]){"/key may be read by others"}, 1);
    put_file(it, "key", "", 0600);
    assert_missing(it, (const char *[]){"/key is not a file with something in it"}, 1);
    put_all(it, staying_client);
    put_file(it, "tunnel-id", "--control-plane.evil\n", 0600);
    assert_missing(it, (const char *[]){"/tunnel-id does not hold an id"}, 1);
    put_file(it, "tunnel-id", "a b", 0600);
    assert_missing(it, (const char *[]){"/tunnel-id does not hold an id"}, 1);
}

static void the_key_is_not_opened(void **state)
{
    const struct fixture *it = *state;
    struct error err = ERROR_INIT;
    put_all(it, staying_client);
    CLEANUP_FREE char *key = mem_format("%s/key", it->dir), *id = NULL;
    struct stat before, after;
    struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 2000}}; // atime before mtime: any read would show
    assert_int_equal(utimensat(AT_FDCWD, key, old, 0), 0);
    assert_int_equal(stat(key, &before), 0);
    assert_ok(tunnel_check(&it->config, &id, &err));
    assert_int_equal(stat(key, &after), 0);
    assert_int_equal(before.st_atim.tv_sec, after.st_atim.tv_sec);
    assert_string_equal(id, "tunnel_0123");
}

// ---- with a client -----------------------------------------------------------------------------------------------------------

static char *read_text(const struct fixture *it, const char *name)
{
    CLEANUP_FREE char *path = mem_format("%s/%s", it->dir, name);
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(65536);
    fs_read_file(path, &text, NULL);
    return buffer_take_string(&text);
}

static size_t count_lines(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}

// Waits for real work (processes); the clock of the tunnel stands still meanwhile.
static void wait_for_lines(const struct fixture *it, const char *name, size_t wanted)
{
    for (int i = 0; i < SUPPORT_PATIENCE_MS / 10; i++) {
        CLEANUP_FREE char *text = read_text(it, name);
        if (count_lines(text) >= wanted)
            return;
        usleep(10 * 1000);
    }
    fail_msg("%s never had %zu lines", name, wanted);
}

static struct tunnel *start(struct fixture *it)
{
    struct error err = ERROR_INIT;
    struct tunnel *tunnel = NULL;
    const struct tunnel_options options = {.config = &it->config, .clock = it->clock, .loop = it->loop, .spawner = it->spawner, .mcp_port = 4711};
    assert_ok(tunnel_start(&options, &tunnel, &err));
    return tunnel;
}

static void the_client_gets_its_arguments_and_ends_with_the_tunnel(void **state)
{
    struct fixture *it = *state;
    put_all(it, staying_client);
    struct tunnel *tunnel = start(it);
    wait_for_lines(it, "starts", 1);
    wait_for_lines(it, "arguments", 11);
    CLEANUP_FREE char *arguments = read_text(it, "arguments"), *starts = read_text(it, "starts");
    CLEANUP_FREE char *wanted = mem_format("run\n--control-plane.tunnel-id\ntunnel_0123\n--control-plane.api-key\nfile:%s/key\n--mcp.server-url\n"
                                           "http://127.0.0.1:4711/mcp\n--health.listen-addr\n127.0.0.1:0\n--health.url-file\n%s/tunnel/health-url\n",
                                           it->dir, it->dir);
    assert_string_equal(arguments, wanted);
    pid_t pid = (pid_t)strtol(starts, NULL, 10);
    assert_int_equal(kill(pid, 0), 0);
    tunnel_stop(tunnel);
    assert_int_equal(kill(pid, 0), -1);
}

static void a_header_for_an_endpoint_that_asks_is_passed_by_path_and_must_be_private(void **state)
{
    struct fixture *it = *state;
    put_all(it, staying_client);
    put_file(it, "mcp-authorization", "Bearer x", 0600);
    assert_null(tunnel_authorization_path(&it->config)); // the endpoint asks for nothing
    it->config.auth_modes = AUTH_TOKEN;
    struct tunnel *tunnel = start(it);
    wait_for_lines(it, "arguments", 13);
    CLEANUP_FREE char *arguments = read_text(it, "arguments");
    CLEANUP_FREE char *wanted = mem_format("\n--mcp.extra-headers\nAuthorization: file:%s/mcp-authorization\n", it->dir);
    assert_non_null(strstr(arguments, wanted));
    tunnel_stop(tunnel);
    put_file(it, "mcp-authorization", "Bearer x", 0644);
    assert_missing(it, (const char *[]){"/mcp-authorization may be read by others"}, 1);
}

struct seen {
    enum tunnel_state state;
    char reason[1024];
    int64_t starts, restart_in_ms;
    int exit_code;
    bool is_confined, is_answered;
};
struct question {
    struct tunnel *tunnel;
    struct seen *seen;
};

static void note_status(void *arg, const struct tunnel_status *status)
{
    struct seen *seen = arg;
    seen->state = status->state;
    seen->starts = status->starts;
    seen->restart_in_ms = status->restart_in_ms;
    seen->exit_code = status->exit_code;
    seen->is_confined = !status->not_confined;
    snprintf(seen->reason, sizeof(seen->reason), "%s", status->reason ? status->reason : "");
    __atomic_store_n(&seen->is_answered, true, __ATOMIC_RELEASE);
}

static void ask_on_loop(void *arg)
{
    const struct question *question = arg;
    tunnel_ask(question->tunnel, note_status, question->seen);
}

static struct seen ask(const struct fixture *it, struct tunnel *tunnel)
{
    struct seen seen = {0};
    loop_call(it->loop, ask_on_loop, &(struct question){tunnel, &seen});
    assert_true(support_await(5, __atomic_load_n(&seen.is_answered, __ATOMIC_ACQUIRE)));
    return seen;
}

static struct seen wait_for_state(const struct fixture *it, struct tunnel *tunnel, enum tunnel_state wanted)
{
    for (int i = 0; i < SUPPORT_PATIENCE_MS / 10; i++) {
        struct seen seen = ask(it, tunnel);
        if (seen.state == wanted)
            return seen;
        usleep(10 * 1000);
    }
    fail_msg("the tunnel was never %s", tunnel_state_word(wanted));
    return (struct seen){0};
}

// Moves the clock until the client was started `wanted` times, and tells by how much. Only while it waits for its next start: to start
// and to end takes a program real time.
static int64_t advance_until(const struct fixture *it, struct tunnel *tunnel, size_t wanted, int64_t step_ms)
{
    int64_t moved_ms = 0;
    for (int i = 0; moved_ms <= 2 * TUNNEL_BACKOFF_MAX_MS && i < SUPPORT_PATIENCE_MS / 5; i++) {
        struct seen seen = ask(it, tunnel);
        CLEANUP_FREE char *text = read_text(it, "starts");
        if (count_lines(text) >= wanted)
            return moved_ms;
        if (seen.state == TUNNEL_ENDED) {
            moved_ms += step_ms;
            clock_advance(it->clock, step_ms);
        }
        support_pause(5);
    }
    fail_msg("the client was not started %zu times", wanted);
    return 0;
}

static void a_client_that_dies_is_started_again_later_and_later(void **state)
{
    struct fixture *it = *state;
    put_all(it, ending_client);
    struct tunnel *tunnel = start(it);
    wait_for_lines(it, "starts", 1);
    int64_t waited_ms[4];
    for (size_t i = 0; i < ARRAY_LEN(waited_ms); i++)
        waited_ms[i] = advance_until(it, tunnel, i + 2, 500);
    tunnel_stop(tunnel);
    assert_in_range(waited_ms[0], 500, 1500);
    assert_in_range(waited_ms[1], 1500, 2500);
    assert_in_range(waited_ms[2], 3500, 4500);
    assert_in_range(waited_ms[3], 7500, 8500);
}

static void a_client_that_vanished_is_tried_again(void **state)
{
    struct fixture *it = *state;
    struct tunnel *tunnel = start(it); // there is no such program
    put_all(it, staying_client);
    advance_until(it, tunnel, 1, 500);
    tunnel_stop(tunnel);
}

// ---- its readiness -----------------------------------------------------------------------------------------------------------

static char *stand_in(void)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(1 << 20);
    struct error err = ERROR_INIT;
    assert_ok(fs_read_file(TEST_SOURCE_DIR "/tests/fakes/tunnel-client", &text, &err));
    return buffer_take_string(&text);
}

static void without_an_mcp_server_it_is_not_ready_and_tells_the_clients_reason(void **state)
{
    struct fixture *it = *state;
    CLEANUP_FREE char *client = stand_in();
    put_all(it, client);
    struct tunnel *tunnel = start(it); // nothing listens on port 4711
    struct seen seen = wait_for_state(it, tunnel, TUNNEL_NOT_READY);
    assert_false(seen.is_confined);
    // What it says first is that it is asking.
    assert_true(support_await(5, (seen = ask(it, tunnel), strstr(seen.reason, "mcp probe failed"))));
    tunnel_stop(tunnel);
}


static void who_asks_while_it_stops_is_answered(void **state)
{
    struct fixture *it = *state;
    CLEANUP_FREE char *client = stand_in();
    put_all(it, client);
    struct tunnel *tunnel = start(it);
    wait_for_state(it, tunnel, TUNNEL_NOT_READY);
    struct seen seen[4] = {0};
    for (size_t i = 0; i < ARRAY_LEN(seen); i++)
        loop_call(it->loop, ask_on_loop, &(struct question){tunnel, &seen[i]});
    tunnel_stop(tunnel);
    for (size_t i = 0; i < ARRAY_LEN(seen); i++)
        assert_true(seen[i].is_answered);
}

static void an_end_is_told_with_its_exit_code_and_the_time_of_the_next_start(void **state)
{
    struct fixture *it = *state;
    put_all(it, ending_client);
    struct tunnel *tunnel = start(it);
    struct seen seen = wait_for_state(it, tunnel, TUNNEL_ENDED);
    assert_string_equal(seen.reason, "exit code 3");
    assert_int_equal(seen.exit_code, 3);
    assert_int_equal(seen.restart_in_ms, TUNNEL_BACKOFF_MIN_MS);
    assert_int_equal(seen.starts, 1);
    tunnel_stop(tunnel);
}

static void an_id_that_changed_is_used_at_the_next_start(void **state)
{
    struct fixture *it = *state;
    put_all(it, "#!/bin/sh\necho \"$3\" >>\"$(dirname \"$0\")/starts\"\nexit 3\n");
    struct tunnel *tunnel = start(it);
    wait_for_state(it, tunnel, TUNNEL_ENDED);
    put_file(it, "tunnel-id", "tunnel_4567", 0600);
    advance_until(it, tunnel, 2, 500);
    CLEANUP_FREE char *starts = read_text(it, "starts");
    assert_string_equal(starts, "tunnel_0123\ntunnel_4567\n");
    tunnel_stop(tunnel);
}

// ---- the health address ------------------------------------------------------------------------------------------------------

static void only_a_plain_loopback_address_is_a_health_address(void **state)
{
    (void)state;
    static const char *const good[] = {"http://127.0.0.1:1", "http://127.0.0.1:65535/", "http://127.8.9.10:8080/\n", "http://127.0.0.1:80\n"};
    static const char *const bad[] = {
        "",          "\n",   "http://",  "http://127.0.0.1", "http://127.0.0.1:", "http://127.0.0.1:0", "http://127.0.0.1:080", "http://127.0.0.1:65536",
        "http://127.0.0.1:-1", "http://127.0.0.1:+1", "http://127.0.0.1: 1", "http://127.0.0.1:80//", "http://127.0.0.1:80/x", "http://127.0.0.1:80\n\n",
        "http://127.0.0.1:80 ", " http://127.0.0.1:80", "https://127.0.0.1:80", "HTTP://127.0.0.1:80", "http://localhost:80", "http://[::1]:80",
        "http://0.0.0.0:80", "http://128.0.0.1:80", "http://126.255.255.255:80", "http://169.254.169.254:80", "http://127.1:80", "http://0127.0.0.1:80",
        "http://127.0.0.1:80@10.0.0.1:80", "http://a@127.0.0.1:80", "http://127.0.0.1#:80", "unix:///run/x", "http://127.0.0.1:99999999999999999999",
        "http://127.0.0.1:80\r\n", "http://127.000000000000000000000000000000000000000000000000000000000000000.0.1:80",
    };
    struct sockaddr_in address;
    struct error err = ERROR_INIT;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        if (tunnel_url_parse(good[i], strlen(good[i]), &address, &err) < 0)
            fail_msg("'%s' was refused: %s", good[i], err.message);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (tunnel_url_parse(bad[i], strlen(bad[i]), &address, &err) == 0)
            fail_msg("'%s' was taken", bad[i]);
    assert_error(tunnel_url_parse("http://127.0.0.1:8\0000", 20, &address, &err), ERROR_INVALID);
}

// ---- the question ------------------------------------------------------------------------------------------------------------

struct answer {
    bool is_done, is_ready;
    char said[512];
};
struct probe_call {
    const struct fixture *it;
    struct sockaddr_in address;
    struct answer *answer;
};

static void note_answer(void *arg, bool is_ready, const char *said)
{
    struct answer *answer = arg;
    answer->is_ready = is_ready;
    snprintf(answer->said, sizeof(answer->said), "%s", said);
    __atomic_store_n(&answer->is_done, true, __ATOMIC_RELEASE);
}

static void start_probe(void *arg)
{
    const struct probe_call *call = arg;
    tunnel_probe_start(call->it->loop, &call->address, note_answer, call->answer);
}

// A server that takes one connection, reads the question, sends that and hangs up. NULL: it sends nothing and stays.
static struct answer ask_server(const struct fixture *it, const char *reply)
{
    struct answer answer = {0};
    struct probe_call call = {it, {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}}, &answer};
    socklen_t len = sizeof(call.address);
    CLEANUP_CLOSE int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&call.address, len), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&call.address, &len), 0);
    loop_call(it->loop, start_probe, &call);
    CLEANUP_CLOSE int peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    char question[512] = "";
    assert_true(peer >= 0 && read(peer, question, sizeof(question) - 1) > 0);
    assert_int_equal(strncmp(question, "GET /readyz HTTP/1.0\r\nHost: 127.0.0.1:", 38), 0);
    if (reply) {
        assert_true(send(peer, reply, strlen(reply), MSG_NOSIGNAL) > 0);
        close(TAKE_FD(peer));
    }
    for (int i = 0; i < SUPPORT_PATIENCE_MS / 2 && !__atomic_load_n(&answer.is_done, __ATOMIC_ACQUIRE); i++) {
        usleep(2 * 1000);
        if (!reply && i == 5)
            clock_advance(it->clock, TUNNEL_PROBE_MS);
    }
    assert_true(answer.is_done);
    return answer;
}

static void only_an_http_answer_of_200_means_ready(void **state)
{
    const struct fixture *it = *state;
    static const struct {
        const char *reply, *said;
        bool is_ready;
    } rows[] = {
        {"HTTP/1.0 200 OK\r\n\r\nready", "ready", true},
        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "ready", true},
        {"HTTP/1.1 503 Service Unavailable\r\n\r\nmcp startup probe pending\nsecond line", "mcp startup probe pending", false},
        {"HTTP/1.1 503 x\r\n\r\n", "it gives no reason", false},
        {"HTTP/1.1 500 x\r\n\r\n\x1b[2J\x07", "\\u001b[2J\\u0007", false},
        {"HTTP/1.1 2000 x\r\n\r\nready", "its health address answers with something else than HTTP", false},
        {"HTTP/2.0 200 OK\r\n\r\nready", "its health address answers with something else than HTTP", false},
        {"HTTP/1.1 200 OK\r\n", "its health address answers with something else than HTTP", false},
        {"200", "its health address answers with something else than HTTP", false},
        {"SSH-2.0-OpenSSH_9.2p1 Debian\r\n", "its health address answers with something else than HTTP", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct answer answer = ask_server(it, rows[i].reply);
        assert_string_equal(answer.said, rows[i].said);
        assert_int_equal(answer.is_ready, rows[i].is_ready);
    }
}

static void an_endless_answer_is_cut_and_a_missing_one_ends_at_the_deadline(void **state)
{
    const struct fixture *it = *state;
    CLEANUP_FREE char *flood = mem_alloc(TUNNEL_PROBE_MAX_BYTES * 4 + 1);
    memset(flood, 'x', TUNNEL_PROBE_MAX_BYTES * 4);
    memcpy(flood, "HTTP/1.1 503 x\r\n\r\n", 18);
    struct answer answer = ask_server(it, flood);
    assert_false(answer.is_ready);
    assert_int_equal(strlen(answer.said), 200);
    answer = ask_server(it, NULL);
    assert_string_equal(answer.said, "its health address does not answer: Connection timed out");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_missing_piece_is_named_with_the_switch, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_key_is_not_opened, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_header_for_an_endpoint_that_asks_is_passed_by_path_and_must_be_private, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_client_gets_its_arguments_and_ends_with_the_tunnel, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_client_that_dies_is_started_again_later_and_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_client_that_vanished_is_tried_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_an_mcp_server_it_is_not_ready_and_tells_the_clients_reason, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_asks_while_it_stops_is_answered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_end_is_told_with_its_exit_code_and_the_time_of_the_next_start, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_id_that_changed_is_used_at_the_next_start, set_up, tear_down),
        cmocka_unit_test(only_a_plain_loopback_address_is_a_health_address),
        cmocka_unit_test_setup_teardown(only_an_http_answer_of_200_means_ready, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_endless_answer_is_cut_and_a_missing_one_ends_at_the_deadline, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
