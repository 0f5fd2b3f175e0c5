#include "reconcilers/session/codexpro/foreground.h"
#include "reconcilers/session/last_lines.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define CHUNK 4096
#define LAST_READS 64 // at the end: what a pipe may still hold

struct output { // stdout or stderr
    struct foreground *foreground;
    int fd;
    struct loop_source *source;
    struct last_lines *last;
};

struct foreground {
    int input_fd;
    struct output output, errors;
    struct last_lines last, from_stdout; // two, so that their unfinished lines do not mix
    void (*ended)(void *arg, const char *reason);
    void *arg;
    bool is_closed;
};

// Returns what read() returned.
static ssize_t take(struct output *output)
{
    char bytes[CHUNK];
    ssize_t n = read(output->fd, bytes, sizeof(bytes));
    if (n > 0)
        last_lines_add(output->last, bytes, (size_t)n);
    return n;
}

static void stop(struct output *output)
{
    for (int i = 0; output->fd >= 0 && i < LAST_READS && take(output) > 0; i++)
        ;
    last_lines_end(output->last);
    loop_unwatch(TAKE_PTR(output->source));
    if (output->fd >= 0)
        close(TAKE_FD(output->fd));
}

static bool is_over(ssize_t n)
{
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

static void on_errors(void *arg, uint32_t events)
{
    struct output *output = arg;
    (void)events;
    if (is_over(take(output)))
        stop(output);
}

static void on_output(void *arg, uint32_t events)
{
    struct output *output = arg;
    struct foreground *foreground = output->foreground;
    (void)events;
    if (!is_over(take(output)))
        return;
    foreground_close(foreground);
    foreground->ended(foreground->arg, "its process ended");
}

static void start(struct loop *loop, struct output *output, struct foreground *foreground, int fd, struct last_lines *last,
                  void (*fn)(void *arg, uint32_t events))
{
    *output = (struct output){.foreground = foreground, .fd = fd, .last = last};
    if (fd < 0)
        return;
    fs_set_nonblocking(fd, true);
    output->source = loop_watch(loop, fd, EPOLLIN, fn, output);
}

struct foreground *foreground_new(struct loop *loop, struct driver_session *session, void (*ended)(void *arg, const char *reason), void *arg)
{
    struct foreground *foreground = mem_alloc(sizeof(*foreground));
    *foreground = (struct foreground){.input_fd = TAKE_FD(session->input_fd),
                          .last = LAST_LINES_INIT,
                          .from_stdout = LAST_LINES_INIT,
                          .ended = ended,
                          .arg = arg};
    start(loop, &foreground->output, foreground, TAKE_FD(session->output_fd), &foreground->from_stdout, on_output);
    start(loop, &foreground->errors, foreground, TAKE_FD(session->error_fd), &foreground->last, on_errors);
    return foreground;
}

// stdout speaks last: it is silent, unless the program that holds the session says why it ends.
static void join_lines(struct foreground *foreground)
{
    for (size_t i = 0; i < foreground->from_stdout.lines.count; i++) {
        const char *line = foreground->from_stdout.lines.items[i];
        last_lines_add(&foreground->last, line, strlen(line));
        last_lines_end(&foreground->last);
    }
}

void foreground_close(struct foreground *foreground)
{
    if (foreground->is_closed)
        return;
    foreground->is_closed = true;
    stop(&foreground->output);
    stop(&foreground->errors);
    join_lines(foreground);
    if (foreground->input_fd >= 0)
        close(TAKE_FD(foreground->input_fd));
}

void foreground_free(struct foreground *foreground)
{
    if (!foreground)
        return;
    foreground_close(foreground);
    last_lines_free(&foreground->last);
    last_lines_free(&foreground->from_stdout);
    free(foreground);
}

const struct text_list *foreground_last_lines(const struct foreground *foreground)
{
    return &foreground->last.lines;
}
