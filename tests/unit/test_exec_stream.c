// `exec` at a daemon that is slow: what it is given arrives whole.
#include "tests/support/support.h"
#include "cli/exec_stream.h"
#include "controller/base/cleanup.h"
#include "controller/base/frames.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define INPUT_BYTES (8 * 1024 * 1024)
#define PIECE_BYTES 20000 // read, and told as taken, at once: so little that something always waits for the socket

struct daemon {
    struct sockaddr_un at;
    int listen_fd;
    pthread_t thread;
    size_t taken, told;
    bool is_as_sent, has_ended;
};

static char byte_at(size_t at)
{
    return (char)(at * 31 ^ at >> 11);
}

// ---- the daemon -----------------------------------------------------------------------------------------------------
static void take_ask(int fd)
{
    static const char answer[] = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " STREAM_PROTOCOL "\r\n\r\n";
    char head[4096] = "", byte;
    size_t len = 0, left;
    while (!strstr(head, "\r\n\r\n") && len < sizeof(head) - 1)
        assert_int_equal(read(fd, &head[len++], 1), 1);
    const char *length = strstr(head, "Content-Length: ");
    assert_non_null(length);
    for (left = strtoul(length + 16, NULL, 10); left; left--)
        assert_int_equal(read(fd, &byte, 1), 1);
    assert_int_equal(write(fd, answer, strlen(answer)), strlen(answer));
}

static void take_frame(struct daemon *daemon, const struct frame *frame)
{
    for (size_t i = 0; i < frame->len; i++)
        daemon->is_as_sent &= frame->bytes[i] == byte_at(daemon->taken + i);
    daemon->taken += frame->len;
    daemon->has_ended = frame->type == FRAME_END;
}

static void tell(struct daemon *daemon, int fd)
{
    CLEANUP(buffer_free) struct buffer answer = BUFFER_INIT(64);
    size_t left = daemon->taken - daemon->told, piece = left < PIECE_BYTES ? left : PIECE_BYTES;
    daemon->told += piece;
    if (daemon->has_ended)
        frame_append_number(&answer, FRAME_EXIT, 0, 1);
    else if (piece)
        frame_append_number(&answer, FRAME_TAKEN, (uint32_t)piece, 4);
    assert_int_equal(write(fd, buffer_text(&answer), answer.len), answer.len);
}

static void *run_daemon(void *arg)
{
    struct daemon *daemon = arg;
    CLEANUP_CLOSE int fd = accept4(daemon->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    CLEANUP(buffer_free) struct buffer in = BUFFER_INIT(2 * FRAME_MAX_BYTES);
    struct frame frame;
    size_t size;
    ssize_t n;
    take_ask(fd);
    while (!daemon->has_ended && (n = read(fd, buffer_reserve(&in, PIECE_BYTES), PIECE_BYTES)) > 0) {
        for (in.len += (size_t)n; frame_read(in.data, in.len, &frame, &size, NULL) > 0; buffer_consume(&in, size))
            take_frame(daemon, &frame);
        tell(daemon, fd);
        usleep(1000);
    }
    return NULL;
}

// ---- the test -------------------------------------------------------------------------------------------------------
static int make_input(void)
{
    int fd = memfd_create("input", MFD_CLOEXEC);
    CLEANUP_FREE char *bytes = mem_alloc(INPUT_BYTES);
    for (size_t i = 0; i < INPUT_BYTES; i++)
        bytes[i] = byte_at(i);
    assert_int_equal(fs_write_all(fd, bytes, INPUT_BYTES, NULL), 0);
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static void input_that_the_daemon_takes_slowly_arrives_whole(void **state)
{
    (void)state;
    char *dir = support_make_dir();
    struct daemon daemon = {.at = {.sun_family = AF_UNIX}, .is_as_sent = true};
    snprintf(daemon.at.sun_path, sizeof(daemon.at.sun_path), "%s/s", dir);
    daemon.listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(daemon.listen_fd, (struct sockaddr *)&daemon.at, sizeof(daemon.at)) | listen(daemon.listen_fd, 1), 0);
    pthread_create(&daemon.thread, NULL, run_daemon, &daemon);
    CLEANUP_CLOSE int input_fd = make_input(), nowhere_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const struct rest rest = {.socket_path = daemon.at.sun_path};
    const struct exec_stream stream = {.sandbox = "dev", .argv = (const char *const[]){"cat", NULL}, .input_fd = input_fd, .output_fd = nowhere_fd, .error_fd = nowhere_fd};
    struct error err = ERROR_INIT;
    int exit_code = -1;
    assert_ok(exec_stream_run(&rest, &stream, &exit_code, &err));
    pthread_join(daemon.thread, NULL);
    assert_int_equal(exit_code, 0);
    assert_int_equal(daemon.taken, INPUT_BYTES);
    assert_true(daemon.is_as_sent);
    close(daemon.listen_fd);
    support_remove_dir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(input_that_the_daemon_takes_slowly_arrives_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
