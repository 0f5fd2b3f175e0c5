#include "tests/support/http_bench.h"
#include "controller/base/memory.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEPT_MAX 64
#define QUEUE_BYTES (64 * 1024)

static struct {
    struct clock *clock;
    struct loop *loop;
    struct http_server *server;
    int port;
    pthread_mutex_t lock; // guards the rest
    struct http_request *kept[KEPT_MAX];
    size_t kept_count;
    struct http_stream *stream;
    _Atomic int gone, handed;
} bench = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void gone(void *arg)
{
    (void)arg;
    bench.gone++;
}

static void keep(struct http_request *request)
{
    http_request_on_gone(request, gone, NULL);
    pthread_mutex_lock(&bench.lock);
    assert_true(bench.kept_count < KEPT_MAX);
    bench.kept[bench.kept_count++] = request;
    pthread_mutex_unlock(&bench.lock);
}

static void start_stream(struct http_request *request)
{
    const struct http_stream_options options = {.queue_max = QUEUE_BYTES, .on_gone = gone};
    struct http_stream *stream =
        http_stream_start(request, &(struct http_reply){.status = 200, .content_type = "text/event-stream"}, &options);
    pthread_mutex_lock(&bench.lock);
    bench.stream = stream;
    pthread_mutex_unlock(&bench.lock);
}

static void respond(struct http_request *request, char *text, size_t len)
{
    http_respond(request, &(struct http_reply){.status = 200, .content_type = "text/plain"}, text, len);
}

static void respond_big(struct http_request *request)
{
    char *text = mem_alloc(BENCH_BIG_BYTES);
    memset(text, 'b', BENCH_BIG_BYTES);
    respond(request, text, BENCH_BIG_BYTES);
}

static void respond_echo(struct http_request *request)
{
    size_t len;
    const char *body = http_request_body(request, &len);
    char *text = mem_format("%zu %.100s", len, body);
    respond(request, text, strlen(text));
}

static void handle(void *arg, struct http_request *request)
{
    (void)arg;
    const char *path = http_request_path(request);
    bench.handed++;
    if (strcmp(path, "/keep") == 0)
        keep(request);
    else if (strcmp(path, "/stream") == 0)
        start_stream(request);
    else if (strcmp(path, "/big") == 0)
        respond_big(request);
    else
        respond_echo(request);
}

static char *error_body(void *arg, int status, const struct error *err, const char *body, size_t len)
{
    (void)arg, (void)body, (void)len;
    return mem_format("{\"status\":%d,\"message\":\"%s\"}", status, err->message);
}

static int set_up_with(struct clock *clock)
{
    struct error err = ERROR_INIT;
    bench.clock = clock;
    bench.kept_count = 0;
    bench.stream = NULL;
    bench.gone = bench.handed = 0;
    assert_ok(loop_start(clock, &bench.loop, &err));
    int fd = http_listen_tcp("127.0.0.1", 0, &err);
    assert_ok(fd);
    bench.port = http_listen_port(fd);
    const struct http_server_options options = {
        .loop = bench.loop, .listen_fd = fd, .thread_count = 2, .handle = handle, .error_body = error_body};
    assert_ok(http_server_start(&options, &bench.server, &err));
    return 0;
}

int http_bench_set_up(void **state)
{
    (void)state;
    return set_up_with(clock_new_real());
}

int http_bench_set_up_fake_clock(void **state)
{
    (void)state;
    return set_up_with(clock_new_fake((struct wall_time){1000}));
}

int http_bench_tear_down(void **state)
{
    (void)state;
    http_server_stop(bench.server);
    if (bench.stream)
        http_stream_close(bench.stream);
    bench_answer_kept();
    loop_stop(bench.loop);
    clock_free(bench.clock);
    return 0;
}

int bench_port(void)
{
    return bench.port;
}

struct clock *bench_clock(void)
{
    return bench.clock;
}

struct http_server *bench_server(void)
{
    return bench.server;
}

int bench_handed(void)
{
    return bench.handed;
}

int bench_gone(void)
{
    return bench.gone;
}

size_t bench_kept(void)
{
    pthread_mutex_lock(&bench.lock);
    size_t count = bench.kept_count;
    pthread_mutex_unlock(&bench.lock);
    return count;
}

static struct http_stream *stream_now(void)
{
    pthread_mutex_lock(&bench.lock);
    struct http_stream *stream = bench.stream;
    pthread_mutex_unlock(&bench.lock);
    return stream;
}

static bool is_streaming(void)
{
    return stream_now() != NULL;
}

struct http_stream *bench_stream(void)
{
    bench_wait(is_streaming);
    return stream_now();
}

void bench_answer_kept(void)
{
    pthread_mutex_lock(&bench.lock);
    size_t count = bench.kept_count;
    struct http_request *kept[KEPT_MAX];
    memcpy(kept, bench.kept, sizeof(kept));
    bench.kept_count = 0;
    pthread_mutex_unlock(&bench.lock);
    for (size_t i = 0; i < count; i++)
        respond(kept[i], mem_strdup("late"), 4);
}

void bench_wait(bool (*is_true)(void))
{
    for (int waited_ms = 0; !is_true(); waited_ms += 5) {
        if (waited_ms > BENCH_SOON_MS)
            fail_msg("it did not happen in time");
        usleep(5000);
    }
}

bool bench_is_quiet(void)
{
    struct http_server_stats stats;
    http_server_get_stats(bench.server, &stats);
    return !stats.connections && !stats.body_bytes && !stats.waiting;
}

void bench_check_served(void)
{
    struct http_answer answer;
    http_client_post(bench.port, "/x", "", "hello", &answer);
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.body, "5 hello");
    http_answer_clear(&answer);
}
