// The three pipes of an exec.
#include "api/guest/exec_state.h"
#include "api/guest/params.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

static void close_source(struct exec *exec, struct loop_source *source)
{
    guest_loop_remove(&exec->guest->loop, source);
    if (source->fd >= 0)
        close(source->fd);
    source->fd = -1;
}

static void watch(struct exec *exec, struct loop_source *source)
{
    if (source->fd >= 0 && !source->is_added)
        guest_loop_add(&exec->guest->loop, source, NULL);
}

// --- reading

// Adds what is there now, at most a chunk. True if the stream may have more.
static bool read_stream(struct exec *exec, struct loop_source *source, struct buffer *out)
{
    while (source->fd >= 0 && out->len < GUEST_EXEC_CHUNK_BYTES) {
        size_t room = GUEST_EXEC_CHUNK_BYTES - out->len < 65536 ? GUEST_EXEC_CHUNK_BYTES - out->len : 65536;
        ssize_t n = read(source->fd, buffer_reserve(out, room), room);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return false;
        if (n <= 0) {
            close_source(exec, source);
            return false;
        }
        out->len += (size_t)n;
    }
    return source->fd >= 0;
}

static json_t *read_result(struct exec *exec, struct buffer streams[2], bool is_finished)
{
    json_t *result = json_object();
    json_object_set_new(result, "stdout", json_encode_base64(buffer_text(&streams[0]), streams[0].len));
    json_object_set_new(result, "stderr", json_encode_base64(buffer_text(&streams[1]), streams[1].len));
    json_object_set_new(result, "exited", json_boolean(is_finished));
    json_object_set_new(result, "exit_code", is_finished ? json_integer(exec->exit_code) : json_null());
    return result;
}

static void stop_waiting(struct exec *exec)
{
    guest_loop_timer_stop(&exec->guest->loop, &exec->read_timer);
    for (int i = 0; i < 2; i++)
        guest_loop_remove(&exec->guest->loop, &exec->out[i]);
    exec->reader = NULL;
}

// Answers the waiting reader if there are bytes or the end, or if it may wait no longer.
static void serve_reader(struct exec *exec, bool is_last_chance)
{
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(GUEST_EXEC_CHUNK_BYTES);
    CLEANUP(buffer_free) struct buffer errors = BUFFER_INIT(GUEST_EXEC_CHUNK_BYTES);
    struct buffer streams[2] = {out, errors};
    bool has_exited = exec->has_exited; // before reading: what it wrote is then in the pipes
    bool may_have_more = false;
    for (int i = 0; i < 2; i++)
        may_have_more |= read_stream(exec, &exec->out[i], &streams[i]);
    if (exec->failure) {
        buffer_append_text(&streams[1], exec->failure);
        free(TAKE_PTR(exec->failure));
    }
    // A stray background process may hold a pipe open for ever: empty and the program gone is the end. What was written to a
    // terminal may still be on its way through the kernel: there the end is told, or silence.
    bool is_finished = has_exited && !may_have_more && (exec->out[0].fd < 0 || !exec->silence.is_armed);
    if (streams[0].len || streams[1].len || is_finished || is_last_chance) {
        struct request *request = exec->reader;
        json_t *result = read_result(exec, streams, is_finished);
        stop_waiting(exec);
        request_answer(request, result);
    } else {
        watch(exec, &exec->out[0]);
        watch(exec, &exec->out[1]);
    }
    out = streams[0];
    errors = streams[1];
}

static void exec_wake_reader(struct exec *exec)
{
    if (exec->reader)
        serve_reader(exec, false);
}

static void silence_is_over(struct loop_timer *timer)
{
    exec_wake_reader(CONTAINER_OF(timer, struct exec, silence));
}

void exec_program_ended(struct exec *exec)
{
    if (exec->has_terminal && exec->out[0].fd >= 0)
        guest_loop_timer_start(&exec->guest->loop, &exec->silence, EXEC_SILENCE_MS);
    exec_wake_reader(exec);
}

static void out_ready(struct loop_source *source, uint32_t events)
{
    (void)events;
    exec_wake_reader(CONTAINER_OF(source, struct exec, out[0]));
}

static void errors_ready(struct loop_source *source, uint32_t events)
{
    (void)events;
    exec_wake_reader(CONTAINER_OF(source, struct exec, out[1]));
}

static void read_time_is_up(struct loop_timer *timer)
{
    serve_reader(CONTAINER_OF(timer, struct exec, read_timer), true);
}

static void cancel_read(struct request *request)
{
    stop_waiting(request->context);
    request_fail_cancelled(request);
}

void exec_read_request(struct request *request)
{
    struct error err = ERROR_INIT;
    int64_t wait_ms = 0;
    struct exec *exec = exec_of_request(request);
    if (!exec)
        return;
    if (params_get_optional_int(request->params, "wait_ms", 0, 60000, &wait_ms, &err) == 0 && exec->reader)
        error_set(&err, ERROR_INVALID, NULL, "another exec_read of %s is waiting", exec->id);
    if (err.code) {
        request_fail(request, RPC_INVALID_PARAMS, &err);
        return;
    }
    exec->reader = request;
    request->context = exec;
    request->cancel = cancel_read;
    guest_loop_timer_start(&exec->guest->loop, &exec->read_timer, wait_ms);
    serve_reader(exec, wait_ms == 0);
}

// --- writing

static void end_first_write(struct exec *exec, const struct error *failure)
{
    struct exec_write *write = exec->first_write;
    struct request *request = write->request;
    exec->first_write = write->next;
    if (!exec->first_write)
        exec->last_write = NULL;
    exec->pending_bytes -= write->len;
    free(write->bytes);
    free(write);
    if (failure)
        request_fail(request, RPC_INTERNAL_ERROR, failure);
    else
        request_answer(request, json_object());
}

static void fail_writes(struct exec *exec, const char *why)
{
    struct error err = ERROR_INIT;
    error_set(&err, ERROR_STATE, NULL, "%s", why);
    while (exec->first_write)
        end_first_write(exec, &err);
}

// True if the first write is complete; false if the pipe is full or broken.
static bool push_first(struct exec *exec)
{
    struct exec_write *pending = exec->first_write;
    while (pending->sent < pending->len) {
        ssize_t n = write(exec->in.fd, pending->bytes + pending->sent, pending->len - pending->sent);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return false;
        if (n < 0) {
            close_source(exec, &exec->in);
            fail_writes(exec, "the program does not read its input any more");
            return false;
        }
        pending->sent += (size_t)n;
    }
    return true;
}

static void push_writes(struct exec *exec)
{
    while (exec->first_write && push_first(exec)) {
        bool is_eof = exec->first_write->is_eof;
        end_first_write(exec, NULL);
        if (is_eof) {
            close_source(exec, &exec->in);
            fail_writes(exec, "the input was closed before");
        }
    }
    if (exec->first_write)
        watch(exec, &exec->in);
    else
        guest_loop_remove(&exec->guest->loop, &exec->in);
}

static void in_ready(struct loop_source *source, uint32_t events)
{
    (void)events;
    push_writes(CONTAINER_OF(source, struct exec, in));
}

static void add_write(struct exec *exec, struct request *request, char *bytes, size_t len)
{
    struct exec_write *write = mem_alloc(sizeof(*write));
    *write = (struct exec_write){.request = request,
                                 .bytes = bytes,
                                 .len = len,
                                 .is_eof = json_get_bool(request->params, "eof", false)};
    if (exec->last_write)
        exec->last_write->next = write;
    else
        exec->first_write = write;
    exec->last_write = write;
    exec->pending_bytes += len;
}

void exec_write_request(struct request *request)
{
    struct error err = ERROR_INIT;
    struct exec *exec = exec_of_request(request);
    if (!exec)
        return;
    CLEANUP_FREE char *bytes = NULL;
    size_t len = 0;
    const char *data;
    if (params_get_optional_text(request->params, "data", &data, &err) < 0 ||
        json_decode_base64(data, &bytes, &len, &err) < 0) {
        request_fail(request, RPC_INVALID_PARAMS, &err);
    } else if (exec->in.fd < 0) {
        error_set(&err, ERROR_STATE, NULL, "the input of %s is closed", exec->id);
        request_fail(request, RPC_INTERNAL_ERROR, &err);
    } else if (exec->pending_bytes + len > EXEC_MAX_PENDING_BYTES) {
        error_set(&err, ERROR_LIMIT, "wait for the answers", "more than %d bytes of input are waiting",
                  EXEC_MAX_PENDING_BYTES);
        request_fail(request, GUEST_ERROR_LIMIT, &err);
    } else {
        add_write(exec, request, TAKE_PTR(bytes), len);
        push_writes(exec);
    }
}

// --- life

void exec_start_io(struct exec *exec)
{
    exec->in = (struct loop_source){.fd = -1, .events = EPOLLOUT, .ready = in_ready};
    exec->out[0] = (struct loop_source){.fd = -1, .events = EPOLLIN, .ready = out_ready};
    exec->out[1] = (struct loop_source){.fd = -1, .events = EPOLLIN, .ready = errors_ready};
    exec->read_timer.fire = read_time_is_up;
    exec->silence.fire = silence_is_over;
}

void exec_end_io(struct exec *exec)
{
    if (exec->reader)
        cancel_read(exec->reader);
    fail_writes(exec, "the program was ended");
    guest_loop_timer_stop(&exec->guest->loop, &exec->silence);
    close_source(exec, &exec->in);
    close_source(exec, &exec->out[0]);
    close_source(exec, &exec->out[1]);
}
