#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "reconcilers/drivers/sbx/template.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#define OUTPUT_MAX_BYTES (1024 * 1024)
#define LINE_MAX_BYTES 4096
#define LINES_MAX 5000
#define GRACE_MS 2000
#define DRAIN_READS 64

enum { OUT, ERRORS, STREAMS };

struct run {
    const struct setup *setup;
    const struct order *order;
    struct answer *answer;
    pid_t pid;
    int pidfd, fds[STREAMS]; // read ends; -1 once at their end
    struct buffer lines[STREAMS];
    size_t line_count;
    int64_t ends_at_ms; // boot time
    bool is_ending;
};

void setup_say(const struct setup *setup, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *line = mem_vformat(format, args);
    va_end(args);
    setup->build->progress(setup->build->arg, line);
}

bool setup_is_stopped(const struct setup *setup)
{
    struct pollfd stop = {.fd = setup->build->stop_fd, .events = POLLIN};
    return stop.fd >= 0 && poll(&stop, 1, 0) > 0;
}

// ---- what it prints ------------------------------------------------------------------------------------------------------

static void show_line(struct run *run, char *line)
{
    line[strcspn(line, "\r")] = '\0'; // a spinner's end
    if (line[0] && ++run->line_count <= LINES_MAX)
        setup_say(run->setup, "  %s", line);
}

static void show(struct run *run, struct buffer *lines, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] == '\n' || lines->len == lines->max) {
            if (lines->len)
                show_line(run, lines->data);
            lines->len = 0;
        }
        if (bytes[i] != '\n' && bytes[i] != '\0')
            buffer_append_char(lines, bytes[i]);
    }
}

static void keep(struct buffer *to, const char *bytes, size_t len, bool *is_cut)
{
    size_t room = to->max - to->len;
    *is_cut |= len > room;
    buffer_append(to, bytes, len < room ? len : room);
}

// One read. False at the end or when nothing is there.
static bool read_stream(struct run *run, int stream)
{
    char bytes[16 * 1024];
    bool is_cut = false;
    ssize_t got = read(run->fds[stream], bytes, sizeof(bytes));
    if (got <= 0) {
        if (got == 0 || (errno != EAGAIN && errno != EINTR))
            close(TAKE_FD(run->fds[stream]));
        return false;
    }
    keep(&run->answer->output, bytes, (size_t)got, &is_cut);
    keep(stream == OUT ? &run->answer->printed : &run->answer->errors, bytes, (size_t)got, &is_cut);
    run->answer->result.is_cut |= is_cut && !run->order->is_shown; // progress is shown, not read
    if (run->order->is_shown)
        show(run, &run->lines[stream], bytes, (size_t)got);
    return true;
}

static void drain(struct run *run)
{
    for (int stream = 0; stream < STREAMS; stream++) {
        for (int i = 0; i < DRAIN_READS && run->fds[stream] >= 0 && read_stream(run, stream); i++)
            ;
        if (run->order->is_shown)
            show(run, &run->lines[stream], "\n", 1);
        if (run->fds[stream] >= 0)
            close(TAKE_FD(run->fds[stream]));
        buffer_free(&run->lines[stream]);
    }
}

// ---- its life ------------------------------------------------------------------------------------------------------------

static int start(struct run *run, const char *const *argv, struct error *err)
{
    int ends[STREAMS][2] = {{-1, -1}, {-1, -1}};
    if (pipe2(ends[OUT], O_CLOEXEC) < 0 || pipe2(ends[ERRORS], O_CLOEXEC) < 0) {
        error_errno(err, errno, NULL, "cannot make a pipe");
        if (ends[OUT][0] >= 0) {
            close(ends[OUT][0]);
            close(ends[OUT][1]);
        }
        return -1;
    }
    CLEANUP_CLOSE int out_end = ends[OUT][1];
    CLEANUP_CLOSE int error_end = ends[ERRORS][1];
    for (int stream = 0; stream < STREAMS; stream++) {
        run->fds[stream] = ends[stream][0];
        fs_set_nonblocking(run->fds[stream], true);
    }
    const struct spawn_options options = {.path = run->setup->program, .argv = argv, .environment = (const char *const *)run->setup->environment,
                                          .fds = {{out_end, 1}, {error_end, 2}}, .fd_count = 2, .dies_with_us = true};
    return spawn_process(run->setup->build->spawner, &options, &run->pid, &run->pidfd, err);
}

// First asked, then forced: what time is left is the grace.
static void end_soon(struct run *run, enum call_end why)
{
    spawn_signal_group(run->pid, run->pidfd, run->is_ending ? SIGKILL : SIGTERM);
    if (!run->is_ending)
        run->answer->result.end = why;
    run->is_ending = true;
    run->ends_at_ms = boot_time_now().ms + GRACE_MS;
}

static void await(struct run *run)
{
    for (;;) {
        bool is_stoppable = !run->order->is_cleanup && !run->is_ending;
        struct pollfd polled[] = {{run->pidfd, POLLIN, 0}, {run->fds[OUT], POLLIN, 0}, {run->fds[ERRORS], POLLIN, 0},
                                  {is_stoppable ? run->setup->build->stop_fd : -1, POLLIN, 0}};
        int64_t left_ms = run->ends_at_ms - boot_time_now().ms;
        int ready = poll(polled, ARRAY_LEN(polled), left_ms > 60000 ? 60000 : left_ms > 0 ? (int)left_ms : 0);
        for (int stream = 0; ready > 0 && stream < STREAMS; stream++)
            if (polled[1 + stream].revents)
                read_stream(run, stream);
        if (ready > 0 && polled[0].revents)
            return;
        if (ready > 0 && polled[3].revents)
            end_soon(run, CALL_CANCELLED);
        else if (run->ends_at_ms <= boot_time_now().ms)
            end_soon(run, CALL_TIMED_OUT);
    }
}

void order_run(const struct setup *setup, const struct order *order, struct answer *ret)
{
    const char *argv[ARRAY_LEN(order->words) + 2] = {"sbx"};
    struct run run = {.setup = setup, .order = order, .answer = ret, .pidfd = -1, .fds = {-1, -1}, .lines = {BUFFER_INIT(LINE_MAX_BYTES), BUFFER_INIT(LINE_MAX_BYTES)},
                      .ends_at_ms = boot_time_now().ms + order->deadline_ms};
    *ret = (struct answer){.output = BUFFER_INIT(OUTPUT_MAX_BYTES), .printed = BUFFER_INIT(OUTPUT_MAX_BYTES), .errors = BUFFER_INIT(OUTPUT_MAX_BYTES)};
    struct call_result *result = &ret->result;
    for (size_t i = 0; i < ARRAY_LEN(order->words) && order->words[i]; i++)
        argv[i + 1] = order->words[i];
    *result = (struct call_result){.end = CALL_EXITED, .verb = order->words[0], .subject = order->subject, .deadline_ms = order->deadline_ms, .start_error = &ret->start_error};
    if (!order->is_cleanup && setup_is_stopped(setup))
        result->end = CALL_CANCELLED;
    else if (start(&run, argv, &ret->start_error) < 0)
        result->end = CALL_NOT_STARTED;
    if (run.pidfd >= 0) {
        await(&run);
        if (run.is_ending)
            spawn_signal_group(run.pid, run.pidfd, SIGKILL); // what it left in its group, before the number is anybody's
        spawn_wait(run.pidfd, -1, &result->exit_code);
        close(run.pidfd);
    }
    drain(&run);
    result->output = buffer_text(&ret->output);
    result->printed = buffer_text(&ret->printed);
    result->errors = buffer_text(&ret->errors);
    result->output_len = ret->output.len;
    result->printed_len = ret->printed.len;
    result->errors_len = ret->errors.len;
}

void answer_free(struct answer *answer)
{
    buffer_free(&answer->output);
    buffer_free(&answer->printed);
    buffer_free(&answer->errors);
}

int order_check(const struct setup *setup, const struct order *order, struct error *err)
{
    CLEANUP(answer_free) struct answer answer;
    order_run(setup, order, &answer);
    return sbx_call_judge(&answer.result, err);
}
