// Clients that mean harm, or just behave badly: slow, silent, too many, too greedy, gone in the middle. Each is
// bounded, and others are answered meanwhile.
#include "controller/base/memory.h"
#include "tests/support/http_bench.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define IDLE 3000
#define BYTES(text) text, sizeof(text) - 1
#define HEAD "POST /x HTTP/1.1\r\nHost: a\r\n"

static void pass_ms(int ms)
{
    for (int step = 0; step < ms; step += 5000) // so that each sweep finds its own time
        clock_advance(bench_clock(), 5000);
}

// Time goes on until it is true: a deadline may have been set in any of these instants.
static void pass_until(bool (*is_true)(void))
{
    for (int i = 0; !is_true(); i++) {
        if (i > SUPPORT_PATIENCE_MS / 5)
            fail_msg("it did not happen in time");
        clock_advance(bench_clock(), 5000);
        usleep(5000);
    }
}

// Likewise until something comes: an answer, or the end.
static void pass_until_heard(int fd)
{
    for (int i = 0; i < SUPPORT_PATIENCE_MS / 20 && poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 20) == 0; i++)
        clock_advance(bench_clock(), 5000);
}

static bool is_given_up(void)
{
    return bench_gone() > 0;
}

static int send_on_new(const char *text)
{
    int fd = http_client_connect(bench_port());
    http_client_send_text(fd, text);
    return fd;
}

static size_t count_connections(void)
{
    struct http_server_stats stats;
    http_server_get_stats(bench_server(), &stats);
    return stats.connections;
}

static bool is_one_there(void)
{
    return count_connections() >= 1;
}

static void expect_cut_with_408(int fd, const char *why)
{
    struct http_answer answer;
    pass_until_heard(fd);
    http_client_read(fd, &answer, BENCH_SOON_MS);
    assert_int_equal(answer.status, 408);
    assert_non_null(strstr(answer.body, why));
    assert_true(http_client_is_closed(fd, BENCH_SOON_MS));
    http_answer_clear(&answer);
    close(fd);
}

// ---- slow -------------------------------------------------------------------------------------------------
static void a_head_that_drips_is_ended_with_a_sentence_after_its_own_deadline(void **state)
{
    (void)state;
    int fd = send_on_new(HEAD);
    for (int i = 0; i < 6; i++) {
        http_client_send_text(fd, "X-A: b\r\n");
        usleep(20000);
        bench_check_served();
        clock_advance(bench_clock(), 5000);
    }
    expect_cut_with_408(fd, "head");
    assert_int_equal(bench_handed(), 6);
}

static void a_connection_that_never_asks_is_ended(void **state)
{
    (void)state;
    int silent = http_client_connect(bench_port()), dripping = send_on_new("GE");
    bench_wait(is_one_there);
    bench_check_served();
    usleep(50000);
    pass_ms(HTTP_HEAD_MS + 10000);
    expect_cut_with_408(silent, "head");
    expect_cut_with_408(dripping, "head");
}

static void a_kept_connection_may_be_idle_for_longer_and_is_closed_without_a_word(void **state)
{
    (void)state;
    char *text = http_client_post_text("/x", "", "hello");
    int fd = send_on_new(text);
    struct http_answer answer;
    http_client_read(fd, &answer, BENCH_SOON_MS);
    assert_int_equal(answer.status, 200);
    http_answer_clear(&answer);
    usleep(50000); // the library has completed it
    pass_ms(HTTP_IDLE_MS - 10000);
    assert_false(http_client_is_closed(fd, 100));
    pass_until_heard(fd);
    http_client_read(fd, &answer, BENCH_SOON_MS);
    assert_int_equal(answer.status, 0);
    http_answer_clear(&answer);
    free(text);
    close(fd);
}

static void a_body_that_drips_is_ended_with_a_sentence(void **state)
{
    (void)state;
    int fd = send_on_new(HEAD "Content-Length: 1000\r\n\r\n"), chunked = send_on_new(HEAD "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 14; i++) {
        http_client_send_text(fd, "x");
        http_client_send_text(chunked, "1\r\nx\r\n");
        usleep(20000);
        bench_check_served();
        clock_advance(bench_clock(), 5000);
    }
    expect_cut_with_408(fd, "body");
    expect_cut_with_408(chunked, "body");
    bench_wait(bench_is_quiet);
}

static void whoever_asks_for_leave_to_send_and_sends_nothing_is_ended(void **state)
{
    (void)state;
    int fd = send_on_new(HEAD "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    struct http_reader *reader = http_reader_new(fd, BENCH_SOON_MS);
    struct http_answer answer;
    http_reader_next(reader, &answer);
    assert_int_equal(answer.status, 100);
    http_answer_clear(&answer);
    bench_check_served();
    pass_until_heard(fd);
    http_reader_next(reader, &answer);
    assert_int_equal(answer.status, 408);
    http_answer_clear(&answer);
    http_reader_free(reader);
    close(fd);
}

static void an_answer_that_nobody_reads_is_given_up(void **state)
{
    (void)state;
    int fds[8];
    for (size_t i = 0; i < 8; i++)
        fds[i] = send_on_new("GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
    while (bench_handed() < 8)
        usleep(1000);
    usleep(100000);
    bench_check_served();
    pass_until(bench_is_quiet);
    for (size_t i = 0; i < 8; i++)
        close(fds[i]);
}

static void a_stream_that_nobody_reads_is_bounded_and_given_up(void **state)
{
    (void)state;
    int fd = send_on_new("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"), room = 4096;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
    struct http_stream *stream = bench_stream();
    char piece[8192] = {0};
    int refusals = 0, taken = 0;
    while (refusals < 50) {
        bool is_taken = http_stream_write(stream, piece, sizeof(piece)) == 0;
        taken += is_taken;
        refusals = is_taken ? 0 : refusals + 1;
        if (!is_taken)
            usleep(2000);
    }
    assert_true(taken < 4096); // the queue and the kernel's buffers, not what was wanted
    bench_check_served();
    assert_int_equal(bench_gone(), 0);
    pass_until(is_given_up);
    errno = 0;
    assert_int_equal(http_stream_write(stream, "x", 1), -1);
    assert_int_equal(errno, EPIPE);
    close(fd);
}

static void a_stream_with_a_reader_and_nothing_to_say_is_kept(void **state)
{
    (void)state;
    int fd = send_on_new("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
    struct http_stream *stream = bench_stream();
    assert_int_equal(http_stream_write(stream, "data: a\n\n", 9), 0);
    usleep(100000);
    pass_ms(10 * HTTP_REPLY_MS);
    assert_int_equal(bench_gone(), 0);
    assert_int_equal(http_stream_write(stream, "data: b\n\n", 9), 0);
    usleep(100000);
    assert_int_equal(bench_gone(), 0);
    close(fd);
}

// ---- many -------------------------------------------------------------------------------------------------
static bool raise_limit(rlim_t wanted)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur >= wanted;
}

static int set_up_many(void **state)
{
    raise_limit(0);
    return http_bench_set_up(state);
}

static bool are_all_there(void)
{
    return count_connections() >= IDLE;
}

static void three_thousand_idle_connections_keep_nobody_out(void **state)
{
    (void)state;
    if (!raise_limit(4 * HTTP_CONNECTIONS_MAX))
        skip();
    static int fds[IDLE];
    for (int i = 0; i < IDLE; i++) {
        fds[i] = http_client_connect(bench_port());
        if (i % 3 == 0)
            http_client_send_text(fds[i], "POST /x HT");
        if (i % 3 == 1)
            http_client_send_text(fds[i], HEAD);
    }
    bench_wait(are_all_there);
    for (int i = 0; i < 20; i++)
        bench_check_served();
    for (int i = 0; i < IDLE; i++)
        assert_int_equal(close(fds[i]), 0);
    bench_wait(bench_is_quiet);
}

static bool is_room_again(void)
{
    return count_connections() <= HTTP_CONNECTIONS_FULL;
}

static void a_full_house_closes_the_longest_idle_and_never_one_that_waits_for_its_answer(void **state)
{
    (void)state;
    if (!raise_limit(4 * HTTP_CONNECTIONS_MAX))
        skip();
    enum { COUNT = HTTP_CONNECTIONS_FULL + 600 };
    static int fds[COUNT];
    int waiting = send_on_new("GET /keep HTTP/1.1\r\nHost: a\r\n\r\n");
    while (!bench_kept())
        usleep(1000);
    for (int i = 0; i < COUNT; i++)
        fds[i] = http_client_connect(bench_port());
    bench_wait(is_room_again);
    for (int i = 0; i < 20; i++)
        bench_check_served();
    struct http_answer answer;
    http_client_read(fds[0], &answer, BENCH_SOON_MS);
    assert_int_equal(answer.status, 503);
    assert_non_null(strstr(answer.body, "stood still the longest"));
    assert_true(http_client_is_closed(fds[0], BENCH_SOON_MS));
    http_answer_clear(&answer);
    assert_false(http_client_is_closed(fds[COUNT - 1], 50));
    assert_false(http_client_is_closed(waiting, 50));
    assert_int_equal(bench_gone(), 0);
    bench_answer_kept();
    http_client_read(waiting, &answer, BENCH_SOON_MS);
    assert_int_equal(answer.status, 200);
    http_answer_clear(&answer);
    close(waiting);
    for (int i = 0; i < COUNT; i++)
        close(fds[i]);
    bench_wait(bench_is_quiet);
}

static void *come_and_go(void *arg)
{
    int *count = arg;
    for (; *count < 1000; ++*count) {
        int fd = http_client_connect(bench_port());
        struct linger reset = {.l_onoff = *count % 2};
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        close(fd);
    }
    return NULL;
}

static void clients_that_come_and_go_keep_nobody_out(void **state)
{
    (void)state;
    pthread_t threads[4];
    int counts[4] = {0};
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, &counts[i]), 0);
    for (int i = 0; i < 50; i++)
        bench_check_served();
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    bench_wait(bench_is_quiet);
}

struct flood {
    int fd;
    _Atomic bool is_over;
};

static void *pour(void *arg)
{
    struct flood *flood = arg;
    char *one = http_client_post_text("/x", "", "flood"), all[64 * 1024] = "";
    size_t len = 0;
    while (len + strlen(one) < sizeof(all))
        len += (size_t)snprintf(all + len, sizeof(all) - len, "%s", one);
    while (!flood->is_over)
        http_client_send(flood->fd, all, len);
    free(one);
    return NULL;
}

static void *drain(void *arg)
{
    struct flood *flood = arg;
    char bytes[64 * 1024];
    while (!flood->is_over && recv(flood->fd, bytes, sizeof(bytes), 0) > 0)
        ;
    return NULL;
}

static void floods_of_pipelined_requests_keep_nobody_out(void **state)
{
    (void)state;
    struct flood floods[4];
    pthread_t pouring[4], draining[4];
    for (int i = 0; i < 4; i++) {
        floods[i] = (struct flood){.fd = http_client_connect(bench_port())};
        assert_int_equal(pthread_create(&pouring[i], NULL, pour, &floods[i]), 0);
        assert_int_equal(pthread_create(&draining[i], NULL, drain, &floods[i]), 0);
    }
    for (int i = 0; i < 50; i++)
        bench_check_served();
    for (int i = 0; i < 4; i++) {
        floods[i].is_over = true;
        shutdown(floods[i].fd, SHUT_RDWR);
        pthread_join(pouring[i], NULL);
        pthread_join(draining[i], NULL);
        close(floods[i].fd);
    }
    assert_true(bench_handed() > 50);
}

// A pipeline behind a request that waits is neither read without bound nor answered before it.
static void what_is_sent_behind_a_waiting_request_waits_in_the_socket(void **state)
{
    (void)state;
    int fd = send_on_new("GET /keep HTTP/1.1\r\nHost: a\r\n\r\n");
    struct http_answer answer;
    while (!bench_kept())
        usleep(1000);
    for (int i = 0; i < 10; i++)
        http_client_send_text(fd, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
    usleep(50000);
    assert_int_equal(bench_handed(), 1);
    bench_answer_kept();
    struct http_reader *reader = http_reader_new(fd, BENCH_SOON_MS);
    for (int i = 0; i < 11; i++) {
        http_reader_next(reader, &answer);
        assert_int_equal(answer.status, 200);
        assert_string_equal(answer.body, i ? "0 " : "late");
        http_answer_clear(&answer);
    }
    http_reader_free(reader);
    close(fd);
}

// ---- greedy -----------------------------------------------------------------------------------------------
static size_t body_bytes(void)
{
    struct http_server_stats stats;
    http_server_get_stats(bench_server(), &stats);
    return stats.body_bytes;
}

static void *upload(void *arg)
{
    static const size_t size = 19 * 1024 * 1024;
    int *fd = arg;
    char *bytes = mem_alloc(size);
    http_client_send(*fd, bytes, size);
    free(bytes);
    return NULL;
}

static void large_bodies_that_never_end_leave_room_for_small_ones(void **state)
{
    (void)state;
    enum { COUNT = 12 };
    int fds[COUNT];
    pthread_t threads[COUNT];
    for (int i = 0; i < COUNT; i++) {
        fds[i] = send_on_new(HEAD "Content-Length: 20000000\r\n\r\n");
        assert_int_equal(pthread_create(&threads[i], NULL, upload, &fds[i]), 0);
    }
    for (int i = 0; i < 10; i++) {
        bench_check_served();
        assert_true(body_bytes() <= HTTP_BODIES_MAX_BYTES);
        usleep(10000);
    }
    for (int i = 0; i < COUNT; i++)
        pthread_join(threads[i], NULL);
    bench_check_served();
    assert_true(body_bytes() <= HTTP_BODIES_MAX_BYTES);
    for (int i = 0; i < COUNT; i++)
        close(fds[i]);
    pass_until(bench_is_quiet);
}

static void a_body_that_finds_too_little_room_is_refused_with_a_sentence(void **state)
{
    (void)state;
    enum { COUNT = 8 };
    int fds[COUNT], refused = 0;
    char *rest = mem_alloc(20000000 - 19 * 1024 * 1024);
    for (int i = 0; i < COUNT; i++) {
        fds[i] = send_on_new(HEAD "Content-Length: 20000000\r\n\r\n");
        upload(&fds[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        struct http_answer answer;
        http_client_send(fds[i], rest, 20000000 - 19 * 1024 * 1024);
        http_client_read(fds[i], &answer, BENCH_SOON_MS);
        assert_true(answer.status == 200 || answer.status == 503);
        refused += answer.status == 503 && strstr(answer.body, "too many request bodies") != NULL;
        http_answer_clear(&answer);
        close(fds[i]);
    }
    assert_true(refused > 0 && refused < COUNT);
    free(rest);
    pass_until(bench_is_quiet);
}

// ---- gone -------------------------------------------------------------------------------------------------
static void reset(int fd)
{
    struct linger now = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(fd);
}

static void a_reset_at_any_byte_of_a_request_leaves_nothing_behind(void **state)
{
    (void)state;
    static const char *const texts[] = {HEAD "Content-Length: 5\r\n\r\nhello", HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"};
    for (size_t t = 0; t < 2; t++) {
        for (size_t len = 0; len <= strlen(texts[t]); len++) {
            int fd = http_client_connect(bench_port());
            http_client_send(fd, texts[t], len);
            if (len % 3 == 0)
                usleep(1000); // the server has begun on it
            reset(fd);
        }
    }
    bench_check_served();
    bench_wait(bench_is_quiet);
}

static void a_reset_while_an_answer_or_a_stream_is_sent_leaves_nothing_behind(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++) {
        int fd = send_on_new("GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
        char bytes[4096];
        for (int n = 0; n < i; n++)
            assert_true(recv(fd, bytes, sizeof(bytes), 0) > 0);
        reset(fd);
    }
    int fd = send_on_new("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
    struct http_stream *stream = bench_stream();
    while (http_stream_write(stream, "0123456789", 10) == 0)
        ;
    reset(fd);
    while (!bench_gone())
        usleep(1000);
    bench_check_served();
    bench_wait(bench_is_quiet);
}

static void a_reset_of_a_waiting_client_ends_its_wait(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        int fd = send_on_new("GET /keep HTTP/1.1\r\nHost: a\r\n\r\n");
        while (bench_kept() <= (size_t)i)
            usleep(1000);
        reset(fd);
    }
    while (bench_gone() < 20)
        usleep(1000);
    bench_answer_kept();
    bench_check_served();
    bench_wait(bench_is_quiet);
}

static void a_client_that_closes_its_half_is_answered_if_it_need_not_wait(void **state)
{
    (void)state;
    char *text = http_client_post_text("/x", "", "hello");
    for (int i = 0; i < 50; i++) {
        int fd = send_on_new(text);
        shutdown(fd, SHUT_WR);
        struct http_answer answer;
        http_client_read(fd, &answer, BENCH_SOON_MS);
        assert_int_equal(answer.status, 200);
        http_answer_clear(&answer);
        close(fd);
    }
    int fd = send_on_new("GET /keep HTTP/1.1\r\nHost: a\r\n\r\n"); // nothing tells it from a hang-up
    while (!bench_kept())
        usleep(1000);
    shutdown(fd, SHUT_WR);
    while (!bench_gone())
        usleep(1000);
    close(fd);
    free(text);
}

// ---- something else altogether ----------------------------------------------------------------------------
static void other_protocols_are_turned_away(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
    } hellos[] = {
        {BYTES("\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03random bytes of a client hello\n\r\n\n\x00\x2f\x13\x01")}, // TLS
        {BYTES("SSH-2.0-OpenSSH_9.2\r\n\r\n")},
        {BYTES("EHLO a\r\nMAIL FROM:<a>\r\n\r\n")},
        {BYTES("*1\r\n$4\r\nPING\r\n\r\n")},
        {BYTES("\0\0\0\0\r\n\r\n")},
    };
    for (size_t i = 0; i < sizeof(hellos) / sizeof(hellos[0]); i++) {
        int fd = http_client_connect(bench_port());
        http_client_send(fd, hellos[i].bytes, hellos[i].len);
        shutdown(fd, SHUT_WR);
        struct http_answer answer;
        http_client_read(fd, &answer, 100);
        assert_true(!answer.status || answer.status >= 400);
        http_answer_clear(&answer);
        close(fd);
    }
    assert_int_equal(bench_handed(), 0);
    bench_check_served();
    pass_until(bench_is_quiet); // the library may miss an end that comes together with the last bytes
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, http_bench_set_up, http_bench_tear_down)
#define TEST_LATER(name) cmocka_unit_test_setup_teardown(name, http_bench_set_up_fake_clock, http_bench_tear_down)
#define TEST_MANY(name) cmocka_unit_test_setup_teardown(name, set_up_many, http_bench_tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_LATER(a_head_that_drips_is_ended_with_a_sentence_after_its_own_deadline),
        TEST_LATER(a_connection_that_never_asks_is_ended),
        TEST_LATER(a_kept_connection_may_be_idle_for_longer_and_is_closed_without_a_word),
        TEST_LATER(a_body_that_drips_is_ended_with_a_sentence),
        TEST_LATER(whoever_asks_for_leave_to_send_and_sends_nothing_is_ended),
        TEST_LATER(an_answer_that_nobody_reads_is_given_up),
        TEST_LATER(a_stream_that_nobody_reads_is_bounded_and_given_up),
        TEST_LATER(a_stream_with_a_reader_and_nothing_to_say_is_kept),
        TEST_MANY(three_thousand_idle_connections_keep_nobody_out),
        TEST_MANY(a_full_house_closes_the_longest_idle_and_never_one_that_waits_for_its_answer),
        TEST(clients_that_come_and_go_keep_nobody_out),
        TEST(floods_of_pipelined_requests_keep_nobody_out),
        TEST(what_is_sent_behind_a_waiting_request_waits_in_the_socket),
        TEST_LATER(large_bodies_that_never_end_leave_room_for_small_ones),
        TEST_LATER(a_body_that_finds_too_little_room_is_refused_with_a_sentence),
        TEST(a_reset_at_any_byte_of_a_request_leaves_nothing_behind),
        TEST(a_reset_while_an_answer_or_a_stream_is_sent_leaves_nothing_behind),
        TEST(a_reset_of_a_waiting_client_ends_its_wait),
        TEST(a_client_that_closes_its_half_is_answered_if_it_need_not_wait),
        TEST_LATER(other_protocols_are_turned_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
