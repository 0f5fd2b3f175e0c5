// The HTTP front over real sockets: answers from other threads, hang-ups, streams, limits, stop.
#include "api/http/http.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/base/socket.h"
#include "tests/support/http_client.h"
#include "tests/support/support.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SOON_MS SUPPORT_PATIENCE_MS

// The handler under test: what it does is told by the path.
static struct fixture {
    struct clock *clock;
    struct loop *loop;
    struct http_server *server;
    int port;  // of a TCP listener
    char *dir; // of a Unix listener
    int dir_fd;
    pthread_mutex_t lock; // guards the rest
    pthread_cond_t changed;
    struct http_request *kept; // "/keep": answered by the test
    struct http_stream *stream;
    _Atomic int gone, writable, bodies, upgrades, streams;
    struct ucred peer;
} fixture = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void change(_Atomic int *at)
{
    pthread_mutex_lock(&fixture.lock);
    ++*at;
    pthread_cond_broadcast(&fixture.changed);
    pthread_mutex_unlock(&fixture.lock);
}

static void wait_until(bool (*is_true)(void))
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += SOON_MS / 1000;
    pthread_mutex_lock(&fixture.lock);
    while (!is_true())
        if (pthread_cond_timedwait(&fixture.changed, &fixture.lock, &end))
            fail_msg("it did not happen in time");
    pthread_mutex_unlock(&fixture.lock);
}

static void gone(void *arg)
{
    assert_true(loop_is_current(fixture.loop));
    change(arg);
}

static void writable(void *arg)
{
    (void)arg;
    change(&fixture.writable);
}

static void respond_text(struct http_request *request, const char *text)
{
    http_respond(request, &(struct http_reply){.status = 200, .content_type = "text/plain"}, mem_strdup(text),
                 strlen(text));
}

static void start_stream(struct http_request *request, size_t queue_max)
{
    const struct http_stream_options options = {
        .queue_max = queue_max, .on_writable = writable, .on_gone = gone, .arg = &fixture.gone};
    struct http_stream *stream = http_stream_start(
        request, &(struct http_reply){.status = 200, .content_type = "text/plain"}, &options);
    pthread_mutex_lock(&fixture.lock);
    fixture.stream = stream;
    pthread_cond_broadcast(&fixture.changed);
    pthread_mutex_unlock(&fixture.lock);
}

static void keep(struct http_request *request)
{
    http_request_on_gone(request, gone, &fixture.gone);
    pthread_mutex_lock(&fixture.lock);
    fixture.kept = request;
    pthread_cond_broadcast(&fixture.changed);
    pthread_mutex_unlock(&fixture.lock);
}

static void end_upgrade(void *arg)
{
    http_upgrade_close(arg);
}

static void upgraded(void *arg, struct http_upgrade *upgrade, int fd, const char *early, size_t early_len)
{
    (void)arg, (void)fd, (void)early, (void)early_len;
    if (!upgrade)
        return;
    http_upgrade_on_stop(upgrade, end_upgrade, upgrade);
    fixture.streams++;
}

static void respond_filled(struct http_request *request, size_t len)
{
    char *text = mem_alloc(len);
    memset(text, 'x', len);
    http_respond(request, &(struct http_reply){.status = 200, .content_type = "text/plain"}, text, len);
}

static void handle(void *arg, struct http_request *request)
{
    (void)arg;
    const char *path = http_request_path(request);
    size_t len;
    const char *body = http_request_body(request, &len);
    fixture.bodies++;
    if (strcmp(path, "/keep") == 0)
        keep(request);
    else if (strcmp(path, "/upgrade") == 0) {
        http_upgrade(request, &(struct http_upgrade_options){.protocol = "test", .started = upgraded});
        fixture.upgrades++;
    } else if (strcmp(path, "/16k") == 0)
        respond_filled(request, 16 * 1024);
    else if (strcmp(path, "/stream") == 0)
        start_stream(request, 64 * 1024);
    else if (strcmp(path, "/peer") == 0) {
        bool is_known = http_request_peer(request, &fixture.peer);
        respond_text(request, is_known ? "known" : "unknown");
    } else if (strcmp(path, "/query") == 0)
        respond_text(request, http_request_query(request, "x") ? http_request_query(request, "x") : "absent");
    else {
        char *text = mem_format("%zu %s", len, len < 100 ? body : "");
        respond_text(request, text);
        free(text);
    }
}

static char *error_body(void *arg, int status, const struct error *err, const char *body, size_t len)
{
    (void)arg, (void)body, (void)len;
    return mem_format("{\"status\":%d,\"message\":\"%s\"}", status, err->message);
}

static void start_on(int fd, bool has_peer, int threads)
{
    struct error err = ERROR_INIT;
    const struct http_server_options options = {.loop = fixture.loop,
                                                .listen_fd = fd,
                                                .thread_count = threads,
                                                .has_peer = has_peer,
                                                .handle = handle,
                                                .error_body = error_body};
    assert_ok(http_server_start(&options, &fixture.server, &err));
}

static void set_up_loop(struct clock *clock)
{
    struct error err = ERROR_INIT;
    fixture.clock = clock;
    fixture.kept = NULL;
    fixture.stream = NULL;
    fixture.gone = fixture.writable = fixture.bodies = fixture.upgrades = fixture.streams = 0;
    assert_ok(loop_start(fixture.clock, &fixture.loop, &err));
}

static int set_up_with(struct clock *clock)
{
    struct error err = ERROR_INIT;
    set_up_loop(clock);
    int fd = http_listen_tcp("127.0.0.1", 0, &err);
    assert_ok(fd);
    fixture.port = http_listen_port(fd);
    start_on(fd, false, 2);
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    return set_up_with(clock_new_real());
}

static int set_up_unix(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    set_up_loop(clock_new_real());
    fixture.dir = support_make_dir();
    fixture.dir_fd = open(fixture.dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = socket_listen_at(fixture.dir_fd, "s", SOCK_STREAM, &err);
    assert_ok(fd);
    start_on(fd, true, 2);
    return 0;
}

static int set_up_fake_clock(void **state)
{
    (void)state;
    return set_up_with(clock_new_fake((struct wall_time){1000}));
}

static int tear_down(void **state)
{
    (void)state;
    http_server_stop(fixture.server);
    loop_stop(fixture.loop);
    clock_free(fixture.clock);
    if (!fixture.dir)
        return 0;
    close(fixture.dir_fd);
    support_remove_dir(fixture.dir);
    fixture.dir = NULL;
    return 0;
}

static int connect_here(void)
{
    struct error err = ERROR_INIT;
    int fd = fixture.dir ? socket_connect_at(fixture.dir_fd, "s", SOCK_STREAM, SUPPORT_PATIENCE_MS, &err) : http_client_connect(fixture.port);
    assert_true(fd >= 0);
    return fd;
}

static bool is_kept(void)
{
    return fixture.kept;
}

static bool is_streaming(void)
{
    return fixture.stream;
}

static bool is_gone(void)
{
    return fixture.gone;
}

static bool is_writable(void)
{
    return fixture.writable;
}

static int post(const char *path, const char *headers, const char *body, struct http_answer *answer)
{
    http_client_post(fixture.port, path, headers, body, answer);
    return answer->status;
}

// ---- answers ----------------------------------------------------------------------------------------------
static void a_request_is_answered_with_its_body_at_hand(void **state)
{
    (void)state;
    struct http_answer answer;
    assert_int_equal(post("/x", "", "hello", &answer), 200);
    assert_string_equal(answer.body, "5 hello");
    http_answer_clear(&answer);
    http_client_raw(fixture.port, "GET /query?x=a%20b HTTP/1.1\r\nHost: a\r\n\r\n", 39 + 2, &answer);
    assert_string_equal(answer.body, "a b");
    http_answer_clear(&answer);
}

static void a_connection_carries_many_requests(void **state)
{
    (void)state;
    int fd = http_client_connect(fixture.port);
    char *text = http_client_post_text("/x", "", "hello");
    for (int i = 0; i < 50; i++) {
        struct http_answer answer;
        http_client_send_text(fd, text);
        http_client_read(fd, &answer, SOON_MS);
        assert_string_equal(answer.body, "5 hello");
        http_answer_clear(&answer);
    }
    free(text);
    close(fd);
}

static void a_kept_request_is_answered_later_from_another_thread(void **state)
{
    (void)state;
    int fd = http_client_connect(fixture.port);
    char *text = http_client_post_text("/keep", "", "{}");
    for (int i = 0; i < 3; i++) {
        struct http_answer answer, other;
        http_client_send_text(fd, text);
        wait_until(is_kept);
        assert_int_equal(post("/x", "", "", &other), 200); // others are served meanwhile
        http_answer_clear(&other);
        struct http_request *kept = fixture.kept;
        fixture.kept = NULL;
        respond_text(kept, "late");
        http_client_read(fd, &answer, SOON_MS);
        assert_string_equal(answer.body, "late");
        http_answer_clear(&answer);
    }
    assert_int_equal(fixture.gone, 0);
    free(text);
    close(fd);
}

static void a_hang_up_of_a_waiting_client_is_told_once_and_the_late_answer_is_dropped(void **state)
{
    (void)state;
    int fd = http_client_connect(fixture.port);
    char *text = http_client_post_text("/keep", "", "{}");
    http_client_send_text(fd, text);
    wait_until(is_kept);
    close(fd);
    wait_until(is_gone);
    respond_text(fixture.kept, "nobody reads this");
    assert_int_equal(fixture.gone, 1);
    free(text);
}

static void stop_answers_waiting_requests_503(void **state)
{
    (void)state;
    int fd = http_client_connect(fixture.port);
    char *text = http_client_post_text("/keep", "", "{}");
    http_client_send_text(fd, text);
    wait_until(is_kept);
    http_server_stop(fixture.server);
    fixture.server = NULL;
    struct http_answer answer;
    http_client_read(fd, &answer, SOON_MS);
    assert_int_equal(answer.status, 503);
    assert_int_equal(fixture.gone, 1);
    respond_text(fixture.kept, "after the server's end");
    http_answer_clear(&answer);
    free(text);
    close(fd);
}

// ---- limits -----------------------------------------------------------------------------------------------
static void send_body(int fd, size_t size)
{
    char *bytes = mem_alloc(1024 * 1024);
    memset(bytes, 'x', 1024 * 1024);
    for (size_t sent = 0; sent < size; sent += 1024 * 1024)
        http_client_send(fd, bytes, size - sent < 1024 * 1024 ? size - sent : 1024 * 1024);
    free(bytes);
}

static void check_large(size_t size, int status)
{
    int fd = http_client_connect(fixture.port);
    char *head = mem_format("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", size);
    http_client_send_text(fd, head);
    send_body(fd, size);
    struct http_answer answer;
    http_client_read(fd, &answer, SUPPORT_PATIENCE_MS);
    assert_int_equal(answer.status, status);
    http_answer_clear(&answer);
    free(head);
    close(fd);
}

static void a_body_of_20_mib_passes_and_a_larger_one_is_answered_413(void **state)
{
    (void)state;
    check_large(HTTP_BODY_MAX_BYTES, 200);
    check_large(HTTP_BODY_MAX_BYTES + 1, 413);
    check_large(100 * 1024 * 1024, 413);
    struct http_server_stats stats;
    http_server_get_stats(fixture.server, &stats);
    assert_int_equal(stats.body_bytes, 0);
}

static void a_chunked_body_that_grows_too_large_is_answered_413(void **state)
{
    (void)state;
    int fd = http_client_connect(fixture.port);
    http_client_send_text(fd, "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 21; i++) {
        http_client_send_text(fd, "100000\r\n");
        send_body(fd, 1024 * 1024);
        http_client_send_text(fd, "\r\n");
    }
    http_client_send_text(fd, "0\r\n\r\n");
    struct http_answer answer;
    http_client_read(fd, &answer, SOON_MS);
    assert_int_equal(answer.status, 413);
    http_answer_clear(&answer);
    close(fd);
}

static void whoever_asks_for_leave_to_send_too_much_is_refused_at_once(void **state)
{
    (void)state;
    struct http_answer answer;
    const char *head =
        "POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 99999999\r\n\r\n";
    http_client_raw(fixture.port, head, strlen(head), &answer);
    assert_int_equal(answer.status, 413);
    http_answer_clear(&answer);
}

static void a_client_that_drips_its_body_is_cut_off(void **state)
{
    (void)state;
    int fd = http_client_connect(fixture.port);
    http_client_send_text(fd, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n");
    // A byte every ten seconds; the server may be late to begin with.
    for (int i = 0; i < SOON_MS / 20 && poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 20) == 0; i++) {
        http_client_send_text(fd, "x");
        clock_advance(fixture.clock, 10000);
    }
    struct http_answer answer;
    http_client_read(fd, &answer, SOON_MS);
    assert_int_equal(answer.status, 408);
    assert_true(http_client_is_closed(fd, SOON_MS));
    http_answer_clear(&answer);
    close(fd);
}

static void a_waiting_request_is_not_cut_off(void **state)
{
    (void)state;
    int fd = http_client_connect(fixture.port);
    char *text = http_client_post_text("/keep", "", "{}");
    http_client_send_text(fd, text);
    wait_until(is_kept);
    clock_advance(fixture.clock, 600000);
    assert_false(http_client_is_closed(fd, 200));
    respond_text(fixture.kept, "late");
    struct http_answer answer;
    http_client_read(fd, &answer, SOON_MS);
    assert_int_equal(answer.status, 200);
    http_answer_clear(&answer);
    free(text);
    close(fd);
}

static void malformed_heads_are_refused_and_the_connection_closed(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "POST /x HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 0\r\n\r\n",
        "POST /x HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
        "POST /x HTTP/1.1\r\nHost: a\r\nOrigin: a\r\norigin: b\r\nContent-Length: 0\r\n\r\n",
        "POST /x%00y HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        "FOO /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length : 0\r\n\r\n",
        "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        "GET x HTTP/1.1\r\nHost: a\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        int fd = http_client_connect(fixture.port);
        struct http_answer answer;
        http_client_send_text(fd, heads[i]);
        http_client_read(fd, &answer, SOON_MS);
        if (answer.status < 400)
            fail_msg("head %zu was answered %d", i, answer.status);
        assert_true(http_client_is_closed(fd, SOON_MS));
        http_answer_clear(&answer);
        close(fd);
    }
    assert_int_equal(fixture.bodies, 0);
}

// Whatever comes in, the listener lives and the next client is served.
static void random_bytes_and_cut_requests_do_not_end_the_listener(void **state)
{
    (void)state;
    char *text = http_client_post_text("/x", "Mcp-Name: a\r\nX-Any: chunked\r\n", "hello hello hello");
    size_t len = strlen(text);
    unsigned seed = 1;
    for (int i = 0; i < 400; i++) {
        char *bytes = mem_strndup(text, len);
        for (int k = 0; k < 1 + i % 4; k++)
            bytes[(size_t)rand_r(&seed) % len] = (char)(rand_r(&seed) & 0xFF);
        int fd = http_client_connect(fixture.port);
        http_client_send(fd, bytes, i % 3 ? len : (size_t)rand_r(&seed) % len);
        if (i % 2)
            http_client_is_closed(fd, 1);
        close(fd);
        free(bytes);
    }
    free(text);
    struct http_answer answer;
    assert_int_equal(post("/x", "", "hello", &answer), 200);
    http_answer_clear(&answer);
}

// ---- streams ----------------------------------------------------------------------------------------------
static int open_stream(void)
{
    int fd = connect_here();
    http_client_send_text(fd, "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until(is_streaming);
    return fd;
}

static void a_stream_brings_its_pieces_in_order_and_ends(void **state)
{
    (void)state;
    int fd = open_stream();
    for (int i = 0; i < 5; i++) {
        assert_int_equal(http_stream_write(fixture.stream, "piece\n", 6), 0);
        usleep(2000);
    }
    http_stream_close(fixture.stream);
    struct http_answer answer;
    http_client_read(fd, &answer, SOON_MS);
    assert_string_equal(answer.body, "piece\npiece\npiece\npiece\npiece\n");
    assert_int_equal(fixture.gone, 0);
    http_answer_clear(&answer);
    close(fd);
}

static void a_stream_whose_reader_is_slow_refuses_pieces_until_it_drained(void **state)
{
    (void)state;
    int fd = open_stream();
    char *piece = mem_alloc(32 * 1024);
    memset(piece, 'x', 32 * 1024);
    size_t written = 0;
    while (http_stream_write(fixture.stream, piece, 32 * 1024) == 0 && written < 64u * 1024 * 1024)
        written += 32 * 1024;
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(http_stream_write(fixture.stream, piece, 100 * 1024), -1);
    assert_int_equal(errno, EMSGSIZE);
    http_stream_close(fixture.stream); // what is queued still goes out
    struct http_answer answer;
    http_client_read(fd, &answer, SOON_MS);
    assert_int_equal(answer.body_len, written);
    http_answer_clear(&answer);
    free(piece);
    close(fd);
}

static void a_drained_stream_says_that_it_takes_more(void **state)
{
    (void)state;
    int fd = open_stream();
    char *piece = mem_alloc(32 * 1024);
    while (http_stream_write(fixture.stream, piece, 32 * 1024) == 0)
        ;
    char *sink = mem_alloc(1024 * 1024);
    for (int i = 0; i < SOON_MS / 5 && !fixture.writable; i++)
        if (recv(fd, sink, 1024 * 1024, MSG_DONTWAIT) < 0)
            usleep(5000);
    wait_until(is_writable);
    http_stream_close(fixture.stream);
    free(sink);
    free(piece);
    close(fd);
}

static void a_stream_tells_that_its_reader_hung_up(void **state)
{
    (void)state;
    int fd = open_stream();
    assert_int_equal(http_stream_write(fixture.stream, "x", 1), 0);
    close(fd);
    wait_until(is_gone);
    assert_int_equal(http_stream_write(fixture.stream, "x", 1), -1);
    assert_int_equal(errno, EPIPE);
    http_stream_close(fixture.stream);
    assert_int_equal(fixture.gone, 1);
}

static void read_until(int fd, const char *end)
{
    char text[1024];
    size_t len = 0;
    do {
        ssize_t n = recv(fd, text + len, sizeof(text) - 1 - len, 0);
        assert_true(n > 0);
        len += (size_t)n;
        text[len] = '\0';
    } while (!strstr(text, end));
}

// Beside connections that stand still longer, on either thread.
static void the_connection_of_a_stream_is_closed_when_its_reader_hung_up(void **state)
{
    (void)state;
    int idle[8];
    struct http_server_stats stats;
    for (size_t i = 0; i < ARRAY_LEN(idle); i++) {
        idle[i] = connect_here();
        http_client_send_text(idle[i], "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        struct http_answer answer;
        http_client_read(idle[i], &answer, SOON_MS);
        http_answer_clear(&answer);
    }
    for (size_t i = 0; i < ARRAY_LEN(idle); i++) {
        int fd = open_stream();
        assert_int_equal(http_stream_write(fixture.stream, "piece", 5), 0);
        read_until(fd, "piece");
        usleep(20 * 1000); // it waits for the next one, most likely
        close(fd);
        wait_until(is_gone);
        http_stream_close(fixture.stream);
        fixture.stream = NULL;
        fixture.gone = 0;
    }
    for (int waited_ms = 0; http_server_get_stats(fixture.server, &stats), stats.connections > ARRAY_LEN(idle); waited_ms += 10) {
        assert_true(waited_ms < SOON_MS);
        usleep(10 * 1000);
    }
    for (size_t i = 0; i < ARRAY_LEN(idle); i++)
        close(idle[i]);
}

static void stop_ends_streams(void **state)
{
    (void)state;
    int fd = open_stream();
    http_server_stop(fixture.server);
    fixture.server = NULL;
    wait_until(is_gone); // told on the loop thread, which outlives the server
    http_stream_close(fixture.stream);
    close(fd);
}

// ---- Unix sockets -----------------------------------------------------------------------------------------
#define READERS 48 // more than a socket takes of their answers

// For 200 ms an upgrade was answered that nobody got.
static bool is_upgrade_stuck(void)
{
    for (int i = 0; i < 20; i++) {
        if (fixture.upgrades == fixture.streams)
            return false;
        usleep(10 * 1000);
    }
    return true;
}

// Before the upgrade each has as many answers as it has elder brothers: one's socket is full when it is the upgrade's turn.
static void stop_does_not_wait_for_who_leaves_unread_what_comes_before_an_upgrade(void **state)
{
    (void)state;
    int fds[READERS];
    for (int i = 0; i < READERS; i++) {
        fds[i] = connect_here();
        for (int j = 0; j < i; j++)
            http_client_send_text(fds[i], "GET /16k HTTP/1.1\r\nHost: a\r\n\r\n");
        http_client_send_text(fds[i], "GET /upgrade HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\n");
    }
    for (int tries = 0; !is_upgrade_stuck(); tries++) {
        assert_true(tries < SOON_MS / 10);
        usleep(10 * 1000);
    }
    http_server_stop(fixture.server);
    fixture.server = NULL;
    for (int i = 0; i < READERS; i++)
        close(fds[i]);
}

static void a_unix_socket_tells_who_connected(void **state)
{
    (void)state;
    int fd = connect_here();
    http_client_send_text(fd, "GET /peer HTTP/1.1\r\nHost: a\r\n\r\n");
    struct http_answer answer;
    http_client_read(fd, &answer, SOON_MS);
    assert_string_equal(answer.body, "known");
    assert_int_equal(fixture.peer.uid, getuid());
    assert_int_equal(fixture.peer.pid, getpid());
    http_answer_clear(&answer);
    close(fd);
    fd = connect_here(); // hang-ups are noticed here too
    http_client_send_text(fd, "GET /keep HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until(is_kept);
    close(fd);
    wait_until(is_gone);
    respond_text(fixture.kept, "");
}

// Nobody runs in between: the writer has sent it itself.
static void a_waiting_reader_of_a_unix_socket_has_a_piece_once_the_write_returns(void **state)
{
    (void)state;
    char text[1024] = "";
    int fd = open_stream();
    for (int waited_ms = 0; !strstr(text, "5\r\npiece\r\n"); waited_ms++) {
        assert_true(waited_ms < SOON_MS);
        usleep(1000); // what came before is out, and the connection waits, most likely
        while (recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT) > 0)
            ;
        memset(text, 0, sizeof(text));
        assert_int_equal(http_stream_write(fixture.stream, "piece", 5), 0);
        (void)!recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);
    }
    http_stream_close(fixture.stream);
    close(fd);
}

// Pieces with pauses, so that most of them come while the connection waits.
static void an_http_1_0_reader_has_pieces_without_chunks(void **state)
{
    (void)state;
    static const char pieces[] = "one two three four five six seven eight nine ten";
    int fd = connect_here();
    http_client_send_text(fd, "GET /stream HTTP/1.0\r\nHost: a\r\n\r\n");
    wait_until(is_streaming);
    for (size_t i = 0; i < sizeof(pieces) - 1; i++) {
        usleep(3000);
        assert_int_equal(http_stream_write(fixture.stream, pieces + i, 1), 0);
    }
    http_stream_close(fixture.stream);
    char text[4096];
    size_t len = 0;
    for (ssize_t n = 1; n > 0 && len < sizeof(text) - 1; len += n > 0 ? (size_t)n : 0)
        n = recv(fd, text + len, sizeof(text) - 1 - len, 0);
    text[len] = '\0';
    const char *body = strstr(text, "\r\n\r\n");
    assert_non_null(body);
    assert_string_equal(body + 4, pieces);
    close(fd);
}

#define SENT_BYTES (768u * 1024)

static void *write_all(void *arg)
{
    (void)arg;
    char *piece = mem_alloc(64 * 1024);
    for (size_t sent = 0, number = 0; sent < SENT_BYTES; number++) {
        size_t len = number % 3 ? 1 + number * 7 % 2000 : 1 + number * 7919 % (16 * 1024); // small ones, and some too large to be one message
        for (size_t i = 0; i < len; i++)
            piece[i] = (char)('a' + (sent + i) % 23);
        while (http_stream_write(fixture.stream, piece, len) < 0)
            usleep(200); // full
        sent += len;
    }
    http_stream_close(fixture.stream);
    free(piece);
    return NULL;
}

static void pieces_stay_in_order_whichever_way_they_go(void **state)
{
    (void)state;
    int fd = open_stream();
    pthread_t writer;
    assert_int_equal(pthread_create(&writer, NULL, write_all, NULL), 0);
    struct http_answer answer;
    http_client_read(fd, &answer, SOON_MS);
    pthread_join(writer, NULL);
    assert_true(answer.body_len >= SENT_BYTES);
    for (size_t i = 0; i < answer.body_len; i++)
        if (answer.body[i] != (char)('a' + i % 23))
            fail_msg("byte %zu is not the one that was sent", i);
    http_answer_clear(&answer);
    close(fd);
}

static void a_port_in_use_is_named(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    assert_error(http_listen_tcp("127.0.0.1", fixture.port, &err), ERROR_UNAVAILABLE);
    assert_non_null(strstr(err.message, "already in use"));
    assert_error(http_listen_tcp("example", 1, &err), ERROR_INVALID);
}

// ---- many -------------------------------------------------------------------------------------------------
static void *hammer(void *arg)
{
    int *bad = arg;
    char *text = http_client_post_text("/x", "", "hello");
    int fd = http_client_connect(fixture.port);
    for (int i = 0; i < 200; i++) {
        struct http_answer answer;
        http_client_send_text(fd, text);
        http_client_read(fd, &answer, SOON_MS);
        *bad += answer.status != 200;
        http_answer_clear(&answer);
    }
    free(text);
    close(fd);
    return NULL;
}

static void many_connections_at_once_are_all_answered(void **state)
{
    (void)state;
    pthread_t threads[16];
    int bad[16] = {0};
    for (int i = 0; i < 16; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, &bad[i]), 0);
    for (int i = 0; i < 16; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 16; i++)
        assert_int_equal(bad[i], 0);
}
#define STOPS 100

static void *keep_connecting(void *arg)
{
    const _Atomic bool *is_over = arg;
    while (!*is_over) {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)fixture.port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        connect(fd, (struct sockaddr *)&at, sizeof(at)); // refused, reset or taken: all is well
        close(fd);
    }
    return NULL;
}

static void a_server_stops_while_clients_keep_coming(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    _Atomic bool is_over = false;
    pthread_t client;
    assert_int_equal(pthread_create(&client, NULL, keep_connecting, &is_over), 0);
    for (int i = 0; i < STOPS; i++) {
        http_server_stop(fixture.server);
        int fd = http_listen_tcp("127.0.0.1", fixture.port, &err);
        assert_ok(fd);
        start_on(fd, false, 2);
    }
    is_over = true;
    pthread_join(client, NULL);
}


#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define TEST_UNIX(name)                                                                                       \
    {                                                                                                        \
        #name " (Unix socket)", name, set_up_unix, tear_down, NULL                                           \
    }
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_is_answered_with_its_body_at_hand),
        TEST(a_server_stops_while_clients_keep_coming),
        TEST(a_connection_carries_many_requests),
        TEST(a_kept_request_is_answered_later_from_another_thread),
        TEST(a_hang_up_of_a_waiting_client_is_told_once_and_the_late_answer_is_dropped),
        TEST(stop_answers_waiting_requests_503),
        TEST(a_body_of_20_mib_passes_and_a_larger_one_is_answered_413),
        TEST(a_chunked_body_that_grows_too_large_is_answered_413),
        TEST(whoever_asks_for_leave_to_send_too_much_is_refused_at_once),
        cmocka_unit_test_setup_teardown(a_client_that_drips_its_body_is_cut_off, set_up_fake_clock,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_waiting_request_is_not_cut_off, set_up_fake_clock, tear_down),
        TEST(malformed_heads_are_refused_and_the_connection_closed),
        TEST(random_bytes_and_cut_requests_do_not_end_the_listener),
        TEST(a_stream_brings_its_pieces_in_order_and_ends),
        TEST(a_stream_whose_reader_is_slow_refuses_pieces_until_it_drained),
        TEST(a_drained_stream_says_that_it_takes_more),
        TEST(a_stream_tells_that_its_reader_hung_up),
        TEST(the_connection_of_a_stream_is_closed_when_its_reader_hung_up),
        TEST(stop_ends_streams),
        TEST(pieces_stay_in_order_whichever_way_they_go),
        TEST_UNIX(a_stream_brings_its_pieces_in_order_and_ends),
        TEST_UNIX(a_stream_whose_reader_is_slow_refuses_pieces_until_it_drained),
        TEST_UNIX(a_drained_stream_says_that_it_takes_more),
        TEST_UNIX(a_stream_tells_that_its_reader_hung_up),
        TEST_UNIX(the_connection_of_a_stream_is_closed_when_its_reader_hung_up),
        TEST_UNIX(stop_ends_streams),
        TEST_UNIX(pieces_stay_in_order_whichever_way_they_go),
        TEST(an_http_1_0_reader_has_pieces_without_chunks),
        TEST_UNIX(an_http_1_0_reader_has_pieces_without_chunks),
        TEST_UNIX(a_waiting_reader_of_a_unix_socket_has_a_piece_once_the_write_returns),
        TEST_UNIX(stop_does_not_wait_for_who_leaves_unread_what_comes_before_an_upgrade),
        TEST_UNIX(a_unix_socket_tells_who_connected),
        TEST(a_port_in_use_is_named),
        TEST(many_connections_at_once_are_all_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
