#include "tests/support/support.h"
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/egress_protocol.h"
#include "controller/base/memory.h"
#include "tests/support/egress_world.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define GET(url) "GET " url " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

static int start(void **state)
{
    static struct egress_process process;
    static const char *const args[] = {"--deny", "denied.example", "--deny", "OpenRouter.ai", NULL};
    *state = NULL;
    if (!egress_world_make())
        return 0;
    egress_start(&process, args);
    *state = &process;
    return 0;
}

static int stop(void **state)
{
    if (*state && egress_stop(*state) != 0)
        return -1;
    return 0;
}

// The process under test; where no world can be made the test is skipped.
static struct egress_process *process_of(void **state)
{
    if (!*state)
        skip();
    return *state;
}

static bool is_answered(struct egress_process *process, const char *request, const char *status)
{
    CLEANUP_FREE char *answer = world_talk(process->proxy_port, request);
    return strncmp(answer, "HTTP/1.1 ", 9) == 0 && strncmp(answer + 9, status, strlen(status)) == 0;
}

static void assert_answer(struct egress_process *process, const char *request, const char *status, const char *piece)
{
    CLEANUP_FREE char *answer = world_talk(process->proxy_port, request);
    if (strncmp(answer, "HTTP/1.1 ", 9) != 0 || strncmp(answer + 9, status, strlen(status)) != 0 ||
        (piece && !strstr(answer, piece)))
        fail_msg("%s\nwas answered\n%s", request, answer);
}

static void addresses_that_are_not_public_are_refused_with_a_sentence(void **state)
{
    struct egress_process *process = process_of(state);
    static const struct {
        const char *url, *word;
    } cases[] = {
        {"127.0.0.1:22", "loopback"},     {"[::1]:80", "loopback"},       {"localhost:80", "loopback"},
        {"10.0.0.1:80", "private"},       {"192.168.1.1:80", "private"},  {"169.254.169.254:80", "link-local"},
        {"[::ffff:127.0.0.1]:80", "loopback"}, {"[64:ff9b::7f00:1]:80", "loopback"}, {"0.0.0.0:80", "unspecified"},
        {"[fd00::1]:80", "private"},      {"255.255.255.255:80", "broadcast"}, {"224.0.0.1:80", "multicast"},
        {WORLD_HOST ":80", "host"},       {"203.0.113.255:80", "host"},   {"own.example:80", "host"},
        {"inside.example:80", "private"}, {"denied.example:80", "name"},  {"Api.Denied.Example.:443", "name"},
        {"xn--openrouter-.ai:443", "name"}, {"a.b.openrouter.ai:443", "name"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP_FREE char *word = mem_format("X-Chat2shell-Denied: %s\r\n", cases[i].word);
        CLEANUP_FREE char *get = mem_format("GET http://%s/ HTTP/1.1\r\nHost: x\r\n\r\n", cases[i].url);
        CLEANUP_FREE char *tunnel = mem_format("CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", cases[i].url);
        assert_answer(process, get, "403", word);
        assert_answer(process, tunnel, "403", " is refused: ");
    }
}

static void requests_reach_the_origin_in_every_framing(void **state)
{
    struct egress_process *process = process_of(state);
    assert_answer(process, GET("http://" WORLD_OUTSIDE "/hello"), "200", "X-Origin: yes");
    assert_answer(process, GET("http://" WORLD_OUTSIDE "/hello"), "200", "\r\n\r\nhello");
    assert_answer(process, GET("http://origin.example/chunked"), "200", "3\r\nllo\r\n0\r\nT: x\r\n\r\n");
    assert_answer(process, GET("http://ORIGIN.example.:80/close"), "200", "\r\n\r\nhello");
    assert_answer(process, GET("http://hosted.example/interim"), "103", "Link: x\r\n");
    assert_answer(process, GET("http://mixed.example/interim"), "103", "\r\n\r\nhello");
    assert_answer(process, "GET http://origin.example/interim HTTP/1.0\r\n\r\n", "200", "\r\n\r\nhello");
    CLEANUP_FREE char *answer = world_talk(process->proxy_port, GET("http://origin.example/hello"));
    assert_null(strstr(answer, "X-Hop"));
    CLEANUP_FREE char *head = world_talk(process->proxy_port, "HEAD http://origin.example/hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert_non_null(strstr(head, "Content-Length: 5\r\n"));
    assert_string_equal(head + strlen(head) - 4, "\r\n\r\n");
}

static void request_bodies_arrive_and_the_connection_is_kept(void **state)
{
    struct egress_process *process = process_of(state);
    static const char requests[] =
        "POST http://origin.example/echo HTTP/1.1\r\nHost: evil\r\nContent-Length: 6\r\nProxy-Authorization: s\r\n\r\nabcEND"
        "POST http://origin.example/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nxyzEND\r\n0\r\n\r\n"
        "GET http://origin.example/hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    for (size_t step = 1; step <= sizeof(requests); step += sizeof(requests) - 1) { // bytewise, then all at once
        int fd = world_connect(process->proxy_port);
        for (size_t at = 0; at < sizeof(requests) - 1; at += step)
            world_send(fd, requests + at, sizeof(requests) - 1 - at < step ? sizeof(requests) - 1 - at : step);
        CLEANUP_FREE char *answer = world_read_all(fd, NULL);
        const char *first = strstr(answer, "Host: origin.example\r\nContent-Length: 6\r\n");
        assert_non_null(first);
        assert_non_null(strstr(first, "\r\n\r\nabcEND"));
        assert_null(strstr(answer, "evil"));
        assert_null(strstr(answer, "Proxy-Authorization"));
        assert_non_null(strstr(answer, "6\r\nxyzEND\r\n0\r\n\r\n"));
        assert_non_null(strstr(answer, "\r\n\r\nhello"));
    }
}

static void large_answers_arrive_whole_at_a_slow_reader(void **state)
{
    struct egress_process *process = process_of(state);
    int fd = world_connect(process->proxy_port);
    size_t len;
    world_send(fd, GET("http://origin.example/big"), sizeof(GET("http://origin.example/big")) - 1);
    usleep(100000); // buffers fill up on the way
    CLEANUP_FREE char *answer = world_read_all(fd, &len);
    const char *body = strstr(answer, "\r\n\r\n") + 4;
    assert_int_equal(len - (size_t)(body - answer), 8 * 1024 * 1024);
    assert_int_equal(strspn(body, "b"), 8 * 1024 * 1024);
}

static void broken_answers_of_a_server_do_not_reach_the_client(void **state)
{
    struct egress_process *process = process_of(state);
    assert_answer(process, GET("http://origin.example/both"), "502", "both there");
    assert_answer(process, GET("http://origin.example/lf"), "502", "carriage return");
    assert_answer(process, GET("http://origin.example/nothing"), "502", "without an answer");
    CLEANUP_FREE char *twice = world_talk(process->proxy_port, GET("http://origin.example/twice"));
    assert_null(strstr(twice, "evil"));
    CLEANUP_FREE char *chunk = world_talk(process->proxy_port, GET("http://origin.example/badchunk"));
    assert_null(strstr(chunk, "hello"));
    int fd = world_connect(process->proxy_port);
    char bytes[4096];
    ssize_t len;
    world_send(fd, GET("http://origin.example/cut"), sizeof(GET("http://origin.example/cut")) - 1);
    while ((len = recv(fd, bytes, sizeof(bytes), 0)) > 0)
        ;
    assert_int_equal(len, -1); // a reset: half a body must not look whole
    assert_int_equal(errno, ECONNRESET);
    close(fd);
}

static void malformed_requests_are_refused(void **state)
{
    struct egress_process *process = process_of(state);
    static const char *const requests[] = {
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET http://a/ HTTP/1.1\nHost: x\n\n",
        "GET http://a/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET http://a/ HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        "GET https://origin.example/ HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET http://127.1/ HTTP/1.1\r\nHost: x\r\n\r\n",
        "CONNECT origin.example HTTP/1.1\r\nHost: x\r\n\r\n",
        "CONNECT origin.example:0 HTTP/1.1\r\nHost: x\r\n\r\n",
        "CONNECT origin.example:443 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n",
        "POST http://origin.example/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\n\r\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(requests); i++)
        assert_answer(process, requests[i], "400", "Content-Type: text/plain");
}

static void failures_outside_are_told_apart(void **state)
{
    struct egress_process *process = process_of(state);
    assert_answer(process, GET("http://nosuch.example/"), "502", "cannot be resolved");
    assert_answer(process, GET("http://" WORLD_OUTSIDE ":81/"), "502", "Connection refused");
    assert_answer(process, GET("http://198.51.100.1/"), "502", "unreachable");
    assert_answer(process, GET("http://six.example/"), "502", "has no address");
    assert_answer(process, "CONNECT nosuch.example:443 HTTP/1.1\r\nHost: x\r\n\r\n", "502", "cannot be resolved");
}

static void tunnels_carry_bytes_both_ways_and_pass_a_half_close_on(void **state)
{
    struct egress_process *process = process_of(state);
    enum { SIZE = 1 << 20 };
    CLEANUP_FREE char *sent = mem_alloc(SIZE);
    size_t len;
    for (size_t i = 0; i < SIZE; i++)
        sent[i] = (char)(i * 7 + (i >> 9));
    int fd = world_tunnel(process->proxy_port, "origin.example:7000");
    assert_true(fd >= 0);
    if (fork() == 0) {
        for (size_t at = 0; at < SIZE; at += 65536)
            send(fd, sent + at, 65536, MSG_NOSIGNAL);
        shutdown(fd, SHUT_WR);
        _exit(0);
    }
    CLEANUP_FREE char *got = world_read_all(fd, &len);
    wait(NULL);
    assert_int_equal(len, SIZE + 3);
    assert_memory_equal(got, sent, SIZE);
    assert_memory_equal(got + SIZE, "bye", 3);
}

// A minimal ClientHello; name NULL: without server name.
static size_t make_hello(unsigned char *to, const char *name)
{
    size_t name_len = name ? strlen(name) : 0, list = name ? name_len + 9 : 0, body = 2 + 32 + 1 + 4 + 2 + 2 + list;
    unsigned char start[] = {22, 3, 1, 0, (unsigned char)(body + 4), 1, 0, 0, (unsigned char)body, 3, 3};
    unsigned char middle[] = {0, 0, 2, 0x13, 1, 1, 0, 0, (unsigned char)list};
    unsigned char sni[] = {0, 0, 0, (unsigned char)(name_len + 5), 0, (unsigned char)(name_len + 3), 0, 0,
                           (unsigned char)name_len};
    size_t at = 0;
    memcpy(to, start, sizeof(start)), at += sizeof(start);
    memset(to + at, 7, 32), at += 32;
    memcpy(to + at, middle, sizeof(middle)), at += sizeof(middle);
    if (name) {
        memcpy(to + at, sni, sizeof(sni)), at += sizeof(sni);
        memcpy(to + at, name, name_len), at += name_len;
    }
    return at;
}

static const struct {
    const char *target, *name;
    int alert; // 0: passes
} hellos[] = {
    {WORLD_OUTSIDE ":7000", "fine.example", 0},
    {WORLD_OUTSIDE ":7000", "openrouter.ai", 49},
    {WORLD_OUTSIDE ":7000", "API.OpenRouter.AI", 49},
    {WORLD_OUTSIDE ":7000", NULL, 109},
    {"origin.example:7000", "denied.example", 49},
    {"origin.example:7000", "other.example", 0},
    {"origin.example:7000", NULL, 0},
};

static void tls_is_judged_by_its_server_name_while_names_are_denied(void **state)
{
    struct egress_process *process = process_of(state);
    for (size_t i = 0; i < ARRAY_LEN(hellos); i++)
        for (size_t step = 1; step < 400; step += 250) {
            unsigned char hello[512];
            size_t size = make_hello(hello, hellos[i].name), len;
            int fd = world_tunnel(process->proxy_port, hellos[i].target);
            assert_true(fd >= 0);
            for (size_t at = 0; at < size; at += step) {
                world_send(fd, hello + at, size - at < step ? size - at : step);
                usleep(step == 1 && at < 20 ? 500 : 0);
            }
            shutdown(fd, SHUT_WR);
            CLEANUP_FREE char *got = world_read_all(fd, &len);
            bool has_passed = len == size + 3 && memcmp(got, hello, size) == 0;
            bool has_alert = len == 7 && got[0] == 21 && got[6] == hellos[i].alert;
            if (hellos[i].alert ? !has_alert : !has_passed)
                fail_msg("hello %zu by %zu: %zu bytes came back", i, step, len);
        }
}

static void other_protocols_pass_at_once_and_broken_tls_does_not(void **state)
{
    struct egress_process *process = process_of(state);
    char bytes[64];
    int fd = world_tunnel(process->proxy_port, WORLD_OUTSIDE ":7000");
    assert_true(fd >= 0);
    world_send(fd, "S", 1);
    assert_int_equal(recv(fd, bytes, sizeof(bytes), 0), 1);
    close(fd);
    fd = world_tunnel(process->proxy_port, "origin.example:7000");
    world_send(fd, "\x15\x03\x01\x00\x02\x01\x5a", 7);
    assert_int_equal(recv(fd, bytes, sizeof(bytes), 0), 7);
    assert_int_equal(bytes[6], 50);
    close(fd);
}

static uint16_t publish(struct egress_process *process, uint16_t port)
{
    uint16_t host_port;
    CLEANUP_CLOSE int listener = world_listen(&host_port);
    CLEANUP_FREE char *message = mem_format("{\"seq\":7,\"op\":\"publish\",\"port\":%u}", port);
    CLEANUP_FREE char *answer = egress_ask(process, message, listener);
    assert_string_equal(answer, "{\"seq\":7,\"ok\":true}");
    return host_port;
}

static void published_ports_reach_the_sandbox_until_unpublished(void **state)
{
    struct egress_process *process = process_of(state);
    uint16_t inside_port;
    CLEANUP_CLOSE int inside = world_listen(&inside_port);
    uint16_t host_port = publish(process, inside_port);
    int visitor = world_connect(host_port);
    world_send(visitor, "ping", 4);
    int server = accept(inside, NULL, NULL);
    char bytes[8];
    assert_int_equal(recv(server, bytes, 4, MSG_WAITALL), 4);
    world_send(server, "pong", 4);
    assert_int_equal(recv(visitor, bytes, 4, MSG_WAITALL), 4);
    shutdown(visitor, SHUT_WR);
    assert_int_equal(recv(server, bytes, 4, 0), 0); // the half-close arrives, the other way stays open
    world_send(server, "more", 4);
    assert_int_equal(recv(visitor, bytes, 4, MSG_WAITALL), 4);
    CLEANUP_FREE char *message = mem_format("{\"seq\":8,\"op\":\"unpublish\",\"port\":%u}", inside_port);
    CLEANUP_FREE char *answer = egress_ask(process, message, -1);
    assert_string_equal(answer, "{\"seq\":8,\"ok\":true}");
    assert_true(recv(visitor, bytes, 4, 0) <= 0);
    close(visitor);
    close(server);
    CLEANUP_FREE char *again = egress_ask(process, message, -1);
    assert_non_null(strstr(again, "is not published"));
}

static void probes_tell_whether_something_listens(void **state)
{
    struct egress_process *process = process_of(state);
    uint16_t port;
    int inside = world_listen(&port);
    CLEANUP_FREE char *message = mem_format("{\"seq\":1,\"op\":\"probe\",\"port\":%u}", port);
    CLEANUP_FREE char *yes = egress_ask(process, message, -1);
    assert_string_equal(yes, "{\"seq\":1,\"ok\":true}");
    close(inside);
    CLEANUP_FREE char *no = egress_ask(process, message, -1);
    CLEANUP_FREE char *wanted = mem_format("{\"seq\":1,\"ok\":false,\"error\":\"nothing listens on port %u\"}", port);
    assert_string_equal(no, wanted);
}

static void descriptors_that_were_not_asked_for_are_refused(void **state)
{
    struct egress_process *process = process_of(state);
    uint16_t port;
    CLEANUP_CLOSE int inside = world_listen(&port);
    CLEANUP_FREE char *message = mem_format("{\"seq\":1,\"op\":\"probe\",\"port\":%u}", port);
    for (process->mode = CONNECTOR_OTHER_NAMESPACE; process->mode <= CONNECTOR_NOTHING; process->mode++) {
        CLEANUP_FREE char *answer = egress_ask(process, message, -1);
        assert_non_null(strstr(answer, "wrong descriptor"));
    }
    uint16_t host_port = publish(process, port);
    process->mode = CONNECTOR_OTHER_NAMESPACE;
    char byte;
    CLEANUP_CLOSE int visitor = world_connect(host_port);
    assert_int_equal(recv(visitor, &byte, 1, 0), -1);
    assert_int_equal(errno, ECONNRESET);
    process->mode = CONNECTOR_HONEST;
    CLEANUP_FREE char *yes = egress_ask(process, message, -1);
    assert_string_equal(yes, "{\"seq\":1,\"ok\":true}");
}

static void wrong_control_messages_get_a_sentence(void **state)
{
    struct egress_process *process = process_of(state);
    static const struct {
        const char *message, *piece;
    } cases[] = {
        {"{\"seq\":3,\"op\":\"dance\",\"port\":1}", "\"seq\":3,\"ok\":false,\"error\":\"op is not"},
        {"{\"seq\":4,\"op\":\"probe\",\"port\":65536}", "port is not"},
        {"{\"seq\":4,\"op\":\"probe\"}", "port is not"},
        {"{\"seq\":5,\"op\":\"publish\",\"port\":80}", "without a listening socket"},
        {"not json", "\"ok\":false"},
        {"[]", "\"ok\":false"},
        {"{\"seq\":6,\"seq\":7}", "\"ok\":false"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP_FREE char *answer = egress_ask(process, cases[i].message, -1);
        if (!strstr(answer, cases[i].piece))
            fail_msg("%s was answered %s", cases[i].message, answer);
    }
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    CLEANUP_FREE char *answer = egress_ask(process, "{\"seq\":5,\"op\":\"publish\",\"port\":80}", pair[0]);
    assert_non_null(strstr(answer, "not a listening TCP socket"));
    close(pair[0]), close(pair[1]);
}

static void beyond_the_limit_a_connection_is_told_so(void **state)
{
    struct egress_process *process = process_of(state);
    static int fds[EGRESS_MAX_CONNECTIONS];
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max < 2048)
        skip();
    limit.rlim_cur = 2048;
    setrlimit(RLIMIT_NOFILE, &limit);
    usleep(100000); // the connections of earlier tests end
    for (size_t i = 0; i < EGRESS_MAX_CONNECTIONS; i++) {
        fds[i] = world_connect(process->proxy_port);
        world_send(fds[i], "G", 1);
    }
    assert_answer(process, GET("http://origin.example/hello"), "503", "too many connections");
    for (size_t i = 0; i < EGRESS_MAX_CONNECTIONS; i++)
        close(fds[i]);
    assert_true(support_await(20, is_answered(process, GET("http://origin.example/hello"), "200")));
}

static void status_line(pid_t pid, const char *key, char *value, size_t size)
{
    CLEANUP_FREE char *path = mem_format("/proc/%d/status", pid);
    FILE *file = fopen(path, "re");
    char line[256];
    value[0] = '\0';
    assert_non_null(file);
    while (fgets(line, sizeof(line), file))
        if (strncmp(line, key, strlen(key)) == 0)
            snprintf(value, size, "%s", line + strlen(key));
    fclose(file);
}

static void the_process_has_given_everything_up(void **state)
{
    struct egress_process *process = process_of(state);
    pid_t pids[] = {process->pid, egress_working_pid(process)};
    for (size_t i = 0; i < 2; i++) {
        char value[256];
        assert_true(pids[i] > 0);
        status_line(pids[i], "CapEff:", value, sizeof(value));
        assert_string_equal(value, "\t0000000000000000\n");
        status_line(pids[i], "CapBnd:", value, sizeof(value));
        assert_string_equal(value, "\t0000000000000000\n");
        status_line(pids[i], "NoNewPrivs:", value, sizeof(value));
        assert_string_equal(value, "\t1\n");
        status_line(pids[i], "Seccomp:", value, sizeof(value));
        assert_string_equal(value, "\t2\n");
        status_line(pids[i], "Threads:", value, sizeof(value));
        assert_string_equal(value, "\t1\n");
    }
    char value[256];
    status_line(pids[1], "NSpid:", value, sizeof(value));
    CLEANUP_FREE char *nspid = mem_format("\t%d\t1\n", pids[1]);
    assert_non_null(strstr(value, nspid + 1));
    status_line(pids[1], "VmRSS:", value, sizeof(value));
    print_message("resident memory after these tests:%s", value);
}

static void a_gone_connector_does_not_end_the_proxy(void **state)
{
    struct egress_process *process = process_of(state);
    shutdown(process->connector_fd, SHUT_RDWR);
    usleep(50000);
    CLEANUP_FREE char *answer = egress_ask(process, "{\"seq\":1,\"op\":\"probe\",\"port\":80}", -1);
    assert_non_null(strstr(answer, "cannot be reached"));
    assert_answer(process, GET("http://origin.example/hello"), "200", NULL);
}

static void its_end_is_clean_and_leaves_no_process(void **state)
{
    (void)state;
    struct egress_process process;
    if (!egress_world_make())
        skip();
    egress_start(&process, NULL);
    pid_t working = egress_working_pid(&process);
    assert_int_equal(egress_stop(&process), 0);
    assert_int_equal(kill(working, 0), -1);
    egress_start(&process, NULL);
    working = egress_working_pid(&process);
    kill(process.pid, SIGKILL);
    assert_int_equal(egress_stop(&process), 256 + SIGKILL);
    support_await(20, kill(working, 0) != 0); // its new parent reaps it
    CLEANUP_FREE char *path = mem_format("/proc/%d/exe", working);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void an_upstream_proxy_is_asked_for_the_checked_address(void **state)
{
    (void)state;
    static const char *const args[] = {"--upstream", "http://" WORLD_OUTSIDE ":3128/", "--deny", "denied.example", NULL};
    struct egress_process process;
    if (!egress_world_make())
        skip();
    egress_start(&process, args);
    assert_answer(&process, GET("http://origin.example/hello"), "200", "\r\n\r\nhello");
    assert_answer(&process, GET("http://origin.example:81/hello"), "502", "refused");
    assert_answer(&process, GET("http://inside.example/hello"), "403", "private");
    assert_answer(&process, GET("http://api.denied.example/hello"), "403", "name");
    int fd = world_tunnel(process.proxy_port, "origin.example:7000");
    assert_true(fd >= 0);
    world_send(fd, "x", 1);
    char byte;
    assert_int_equal(recv(fd, &byte, 1, 0), 1);
    close(fd);
    assert_int_equal(egress_stop(&process), 0);
}

static void an_upstream_proxy_that_refuses_addresses_is_reported(void **state)
{
    (void)state;
    static const char *const args[] = {"--upstream", "http://" WORLD_OUTSIDE ":3129", NULL};
    struct egress_process process;
    if (!egress_world_make())
        skip();
    egress_start(&process, args);
    assert_answer(&process, GET("http://" WORLD_OUTSIDE "/hello"), "502", "refused");
    assert_answer(&process, GET("http://origin.example/hello"), "200", "\r\n\r\nhello");
    CLEANUP_FREE char *report = egress_read_control(&process);
    assert_non_null(report);
    assert_non_null(strstr(report, "\"address_check\":false"));
    assert_answer(&process, GET("http://origin.example/hello"), "200", "\r\n\r\nhello");
    assert_answer(&process, GET("http://inside.example/hello"), "403", "private");
    assert_int_equal(egress_stop(&process), 0);
}

static void wrong_arguments_are_named(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"--deny", "a b"}, {"--upstream", "https://x:1"}, {"--upstream", "http://x"}, {"--what", "x"}, {"--deny"}};
    if (!egress_world_make())
        skip();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct egress_process process;
        egress_start(&process, cases[i]);
        assert_int_equal(egress_stop(&process), 2);
    }
}

#define WITH_PROCESS(test) cmocka_unit_test_setup_teardown(test, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_PROCESS(addresses_that_are_not_public_are_refused_with_a_sentence),
        WITH_PROCESS(requests_reach_the_origin_in_every_framing),
        WITH_PROCESS(request_bodies_arrive_and_the_connection_is_kept),
        WITH_PROCESS(large_answers_arrive_whole_at_a_slow_reader),
        WITH_PROCESS(broken_answers_of_a_server_do_not_reach_the_client),
        WITH_PROCESS(malformed_requests_are_refused),
        WITH_PROCESS(failures_outside_are_told_apart),
        WITH_PROCESS(tunnels_carry_bytes_both_ways_and_pass_a_half_close_on),
        WITH_PROCESS(tls_is_judged_by_its_server_name_while_names_are_denied),
        WITH_PROCESS(other_protocols_pass_at_once_and_broken_tls_does_not),
        WITH_PROCESS(published_ports_reach_the_sandbox_until_unpublished),
        WITH_PROCESS(probes_tell_whether_something_listens),
        WITH_PROCESS(descriptors_that_were_not_asked_for_are_refused),
        WITH_PROCESS(wrong_control_messages_get_a_sentence),
        WITH_PROCESS(beyond_the_limit_a_connection_is_told_so),
        WITH_PROCESS(the_process_has_given_everything_up),
        WITH_PROCESS(a_gone_connector_does_not_end_the_proxy),
        cmocka_unit_test(its_end_is_clean_and_leaves_no_process),
        cmocka_unit_test(an_upstream_proxy_is_asked_for_the_checked_address),
        cmocka_unit_test(an_upstream_proxy_that_refuses_addresses_is_reported),
        cmocka_unit_test(wrong_arguments_are_named),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    egress_world_end();
    return failed;
}
