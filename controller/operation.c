#include "controller/operation.h"
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define KILL_AFTER_MS 2000
#define READ_BYTES (16 * 1024)
#define DRAIN_READS 64 // more than a pipe holds; a process left behind may write for ever

enum { STREAM_OUT, STREAM_ERROR, STREAM_COUNT };

struct stream {
    struct operation *operation;
    int fd; // read end; -1 once at its end
    struct loop_source *source;
};

// Loop thread only, except references. One reference belongs to the running process, one to each posted
// cancel.
struct operation {
    atomic_int references;
    struct loop *loop;
    pid_t pid;
    int pidfd;
    struct loop_source *exit_source;
    struct stream streams[STREAM_COUNT];
    struct buffer output, apart[STREAM_COUNT]; // both streams as they came; each apart
    int64_t deadline_ms;
    struct loop_timer *timer; // the deadline, then the kill
    bool is_ending, is_done;
    struct operation_result result;
    operation_done_fn done;
    void *arg;
};

static void unref(struct operation *operation)
{
    if (atomic_fetch_sub(&operation->references, 1) > 1)
        return;
    buffer_free(&operation->output);
    for (int i = 0; i < STREAM_COUNT; i++)
        buffer_free(&operation->apart[i]);
    free(operation);
}

// ---- output -------------------------------------------------------------------------------------

static void keep(struct operation *operation, struct buffer *to, const char *bytes, size_t len)
{
    size_t room = to->max - to->len;
    if (len > room)
        operation->result.is_output_cut = true;
    buffer_append(to, bytes, len < room ? len : room);
}

// One read. Returns false at the end of the stream or when nothing is there.
static bool read_stream(struct stream *stream)
{
    struct operation *operation = stream->operation;
    char bytes[READ_BYTES];
    ssize_t got = read(stream->fd, bytes, sizeof(bytes));
    if (got > 0) {
        keep(operation, &operation->output, bytes, (size_t)got);
        keep(operation, &operation->apart[stream - operation->streams], bytes, (size_t)got);
    }
    return got > 0;
}

static void close_stream(struct stream *stream)
{
    loop_unwatch(TAKE_PTR(stream->source));
    if (stream->fd >= 0)
        close(TAKE_FD(stream->fd));
}

static void stream_ready(void *arg, uint32_t events)
{
    struct stream *stream = arg;
    (void)events;
    errno = 0;
    if (!read_stream(stream) && errno != EAGAIN && errno != EINTR)
        close_stream(stream);
}

static void drain(struct stream *stream)
{
    for (int i = 0; stream->fd >= 0 && i < DRAIN_READS && read_stream(stream); i++)
        ;
    close_stream(stream);
}

// ---- the end ------------------------------------------------------------------------------------

static void finish(struct operation *operation)
{
    loop_unwatch(TAKE_PTR(operation->exit_source));
    loop_cancel(TAKE_PTR(operation->timer));
    close(TAKE_FD(operation->pidfd));
    for (int i = 0; i < STREAM_COUNT; i++)
        drain(&operation->streams[i]);
    struct operation_result *result = &operation->result;
    result->output = buffer_text(&operation->output);
    result->output_len = operation->output.len;
    result->printed = buffer_text(&operation->apart[STREAM_OUT]);
    result->printed_len = operation->apart[STREAM_OUT].len;
    result->errors = buffer_text(&operation->apart[STREAM_ERROR]);
    result->errors_len = operation->apart[STREAM_ERROR].len;
    operation->is_done = true;
    operation->done(operation->arg, result);
    unref(operation);
}

static void process_ended(void *arg, uint32_t events)
{
    struct operation *operation = arg;
    (void)events;
    if (operation->is_ending) // before the reaping: the group's number is still ours
        spawn_signal_group(operation->pid, operation->pidfd, SIGKILL);
    if (spawn_reap(operation->pidfd, &operation->result.exit_code) == 0)
        finish(operation);
}

static void kill_group(void *arg)
{
    struct operation *operation = arg;
    operation->timer = NULL;
    spawn_signal_group(operation->pid, operation->pidfd, SIGKILL);
}

static void end_group(struct operation *operation)
{
    if (operation->is_ending)
        return;
    operation->is_ending = true;
    loop_cancel(operation->timer);
    operation->timer = loop_after(operation->loop, KILL_AFTER_MS, kill_group, operation);
    spawn_signal_group(operation->pid, operation->pidfd, SIGTERM);
}

static void deadline_passed(void *arg)
{
    struct operation *operation = arg;
    operation->timer = NULL;
    operation->result.is_timed_out = true;
    end_group(operation);
}

static void cancel(void *arg)
{
    struct operation *operation = arg;
    if (!operation->is_done && !operation->is_ending) {
        operation->result.is_cancelled = true;
        end_group(operation);
    }
    unref(operation);
}

void operation_cancel(struct operation *operation)
{
    operation->references++;
    loop_post(operation->loop, cancel, operation);
}

pid_t operation_pid(const struct operation *operation)
{
    return operation->pid;
}

// ---- the start ----------------------------------------------------------------------------------

// On the loop thread, so that nothing can end before all of it is in place.
static void arm(void *arg)
{
    struct operation *operation = arg;
    for (int i = 0; i < STREAM_COUNT; i++) {
        struct stream *stream = &operation->streams[i];
        stream->source = loop_watch(operation->loop, stream->fd, EPOLLIN, stream_ready, stream);
    }
    operation->timer = loop_after(operation->loop, operation->deadline_ms, deadline_passed, operation);
    operation->exit_source = loop_watch(operation->loop, operation->pidfd, EPOLLIN, process_ended, operation);
}

static int make_pipe(int *ret_read, int *ret_write, struct error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_errno(err, errno, "raise the limit on open files (ulimit -n)", "cannot make a pipe");
    fs_set_nonblocking(ends[0], true);
    *ret_read = ends[0];
    *ret_write = ends[1];
    return 0;
}

static struct operation *operation_new(struct loop *loop, int64_t deadline_ms, size_t output_max_bytes)
{
    struct operation *operation = mem_alloc(sizeof(*operation));
    *operation = (struct operation){
        .references = 1,
        .loop = loop,
        .pidfd = -1,
        .output = BUFFER_INIT(output_max_bytes),
        .apart = {BUFFER_INIT(output_max_bytes), BUFFER_INIT(output_max_bytes)},
        .deadline_ms = deadline_ms,
    };
    for (int i = 0; i < STREAM_COUNT; i++)
        operation->streams[i].operation = operation;
    return operation;
}

int operation_start(struct loop *loop, struct spawner *spawner, const struct spawn_options *options,
                    int64_t deadline_ms, size_t output_max_bytes, operation_done_fn done, void *arg,
                    struct operation **ret, struct error *err)
{
    assert(options->fd_count + STREAM_COUNT <= SPAWN_MAX_FDS && deadline_ms > 0);
    CLEANUP_CLOSE int out_read = -1, out_write = -1, error_read = -1, error_write = -1;
    if (make_pipe(&out_read, &out_write, err) < 0 || make_pipe(&error_read, &error_write, err) < 0)
        return -1;
    struct spawn_options with_pipes = *options;
    with_pipes.fds[with_pipes.fd_count++] = (struct spawn_fd){out_write, STDOUT_FILENO};
    with_pipes.fds[with_pipes.fd_count++] = (struct spawn_fd){error_write, STDERR_FILENO};
    pid_t pid;
    int pidfd;
    if (spawn_process(spawner, &with_pipes, &pid, &pidfd, err) < 0)
        return -1;
    struct operation *operation = operation_new(loop, deadline_ms, output_max_bytes);
    operation->pid = pid;
    operation->pidfd = pidfd;
    operation->done = done;
    operation->arg = arg;
    operation->streams[STREAM_OUT].fd = TAKE_FD(out_read);
    operation->streams[STREAM_ERROR].fd = TAKE_FD(error_read);
    if (ret)
        *ret = operation;
    loop_post(loop, arm, operation);
    return 0;
}
