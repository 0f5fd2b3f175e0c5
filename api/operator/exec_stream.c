// A program's streams over the connection that asked for it: at most one read, one write and one order (a signal, a window
// size) of it are under way, each of them starts the next. Nothing is polled: a read is answered when there is something.
// When the connection ends, so does the program. Loop thread only.
#include "api/operator/exec.h"
#include "api/operator/stream.h"
#include "controller/base/guest_protocol.h"
#include "controller/base/memory.h"
#include <stdio.h>
#include <string.h>

#define READ_WAIT_MS 30000
#define WRITE_PIECE_BYTES GUEST_EXEC_CHUNK_BYTES
#define SIGNALS 65 // numbers 1 to 64

struct joined {
    struct operator_server *server;
    struct operator_stream *stream; // NULL: ended
    char *uid;
    char id[EXEC_ID_SIZE];
    struct lane_call *reading, *writing, *ordering; // each is one of refs
    size_t refs;
    struct buffer input; // not sent yet
    size_t writing_bytes;
    bool has_eof;    // the client's
    bool is_deaf;    // nobody reads the input any more, or its end was told
    bool has_size;
    uint16_t columns, rows;
    bool signals[SIGNALS];
};

static void unref(struct joined *joined)
{
    if (--joined->refs)
        return;
    operator_server_unref(joined->server);
    buffer_free(&joined->input);
    free(joined->uid);
    free(joined);
}

static json_t *make_params(const struct joined *joined)
{
    return json_pack("{s:s}", "exec_id", joined->id);
}

// A call of the lane whose end is told with the reference that it holds.
static struct lane_call *ask(struct joined *joined, const char *method, json_t *params, int64_t deadline_ms, lane_answer_fn done)
{
    joined->refs++;
    return lane_request(joined->server->world->lanes, joined->uid, method, params, deadline_ms, done, joined);
}

static void drop_call(struct joined *joined, struct lane_call **call)
{
    if (*call && lane_call_cancel(TAKE_PTR(*call)))
        unref(joined);
}

// ---- the end --------------------------------------------------------------------------------------------------------
static void on_ended(void *arg, int result, json_t *answer, const struct error *err)
{
    (void)result, (void)answer, (void)err; // the sandbox may be gone: then so is the program
    unref(arg);
}

// The program is forgotten here, so it must end there; one that has ended by itself is forgotten there, too.
static void end(struct joined *joined)
{
    joined->stream = NULL;
    drop_call(joined, &joined->reading);
    drop_call(joined, &joined->writing);
    drop_call(joined, &joined->ordering);
    operator_execs_remove(joined->server->execs, joined->id);
    ask(joined, "chat2shell/exec_end", make_params(joined), EXEC_GRACE_MS, on_ended);
    unref(joined);
}

static void fail(struct joined *joined, const struct error *err)
{
    struct error why;
    sandbox_ask_explain(joined->server->world, joined->uid, err, &why);
    operator_stream_fail(joined->stream, &why);
    end(joined);
}

static void on_gone(void *arg)
{
    end(arg);
}

// ---- output ---------------------------------------------------------------------------------------------------------
static void read_more(struct joined *joined);

static void pass_output(struct joined *joined, const struct exec_output *output)
{
    static const enum frame_type types[] = {FRAME_DATA, FRAME_ERRORS};
    if (!output->has_exited)
        read_more(joined); // the next one is on its way while this one is passed on
    for (int i = 0; i < 2; i++)
        if (output->len[i])
            operator_stream_send(joined->stream, types[i], output->bytes[i], output->len[i]);
    if (!output->has_exited)
        return;
    operator_stream_send_number(joined->stream, FRAME_EXIT, (uint32_t)output->exit_code, 1);
    operator_stream_end(joined->stream);
    end(joined);
}

static void on_read(void *arg, int result, json_t *answer, const struct error *err)
{
    struct joined *joined = arg;
    CLEANUP(exec_output_clear) struct exec_output output = {0};
    struct error garbled = ERROR_INIT;
    joined->reading = NULL;
    if (result == 0 && exec_output_read(answer, &output) < 0) {
        error_set(&garbled, ERROR_UNAVAILABLE, "delete the sandbox if it goes on", "the sandbox's tool server gave an answer that makes no sense");
        err = &garbled;
    }
    if (joined->stream && err)
        fail(joined, err);
    else if (joined->stream)
        pass_output(joined, &output);
    unref(joined);
}

static void read_more(struct joined *joined)
{
    if (joined->reading || operator_stream_is_full(joined->stream))
        return; // on_drained goes on
    json_t *params = make_params(joined);
    json_object_set_new(params, "wait_ms", json_integer(READ_WAIT_MS));
    joined->reading = ask(joined, "chat2shell/exec_read", params, READ_WAIT_MS + EXEC_GRACE_MS, on_read);
}

static void on_drained(void *arg)
{
    read_more(arg);
}

// ---- input ----------------------------------------------------------------------------------------------------------
static void write_more(struct joined *joined);

static void on_written(void *arg, int result, json_t *answer, const struct error *err)
{
    struct joined *joined = arg;
    (void)answer, (void)err; // why nobody reads is seen at the end of the output
    joined->writing = NULL;
    if (joined->stream && result < 0 && !joined->is_deaf) {
        joined->is_deaf = true;
        buffer_free(&joined->input);
        operator_stream_send(joined->stream, FRAME_END, NULL, 0);
    } else if (joined->stream && joined->writing_bytes) {
        operator_stream_send_number(joined->stream, FRAME_TAKEN, (uint32_t)joined->writing_bytes, 4);
        write_more(joined);
    }
    unref(joined);
}

static void write_more(struct joined *joined)
{
    bool has_end = joined->has_eof && joined->input.len <= WRITE_PIECE_BYTES;
    if (joined->writing || joined->is_deaf || (!joined->input.len && !has_end))
        return;
    joined->writing_bytes = joined->input.len < WRITE_PIECE_BYTES ? joined->input.len : WRITE_PIECE_BYTES;
    json_t *params = make_params(joined);
    json_object_set_new(params, "data", json_encode_base64(buffer_text(&joined->input), joined->writing_bytes));
    json_object_set_new(params, "eof", json_boolean(has_end));
    joined->is_deaf = has_end;
    buffer_consume(&joined->input, joined->writing_bytes);
    if (!joined->input.len)
        buffer_free(&joined->input);
    joined->writing = ask(joined, "chat2shell/exec_write", params, LANE_CALL_DEADLINE_MS, on_written);
}

// ---- orders ---------------------------------------------------------------------------------------------------------
static void order_more(struct joined *joined);

static void on_ordered(void *arg, int result, json_t *answer, const struct error *err)
{
    struct joined *joined = arg;
    (void)result, (void)answer, (void)err; // a program that has ended takes neither
    joined->ordering = NULL;
    if (joined->stream)
        order_more(joined);
    unref(joined);
}

static void order_more(struct joined *joined)
{
    json_t *params = make_params(joined);
    const char *method = NULL;
    for (int number = 1; !method && number < SIGNALS; number++)
        if (joined->signals[number]) {
            joined->signals[number] = false;
            json_object_set_new(params, "signal", json_integer(number));
            method = "chat2shell/exec_signal";
        }
    if (!method && joined->has_size) {
        joined->has_size = false;
        json_object_set_new(params, "columns", json_integer(joined->columns));
        json_object_set_new(params, "rows", json_integer(joined->rows));
        method = "chat2shell/exec_resize";
    }
    if (method)
        joined->ordering = ask(joined, method, params, EXEC_GRACE_MS, on_ordered);
    else
        json_decref(params);
}

// ---- what the client sends ------------------------------------------------------------------------------------------
// False: it may not do that.
static bool take_data(struct joined *joined, const struct frame *frame)
{
    if (joined->has_eof || joined->input.len + (joined->writing ? joined->writing_bytes : 0) + frame->len > STREAM_WINDOW_BYTES)
        return false;
    if (!joined->is_deaf)
        buffer_append(&joined->input, frame->bytes, frame->len);
    write_more(joined);
    return true;
}

static bool take_end(struct joined *joined, const struct frame *frame)
{
    (void)frame;
    joined->has_eof = true;
    write_more(joined);
    return true;
}

static bool take_size(struct joined *joined, const struct frame *frame)
{
    joined->has_size = true;
    joined->columns = (uint16_t)frame_number(frame->bytes, 2);
    joined->rows = (uint16_t)frame_number(frame->bytes + 2, 2);
    if (!joined->ordering)
        order_more(joined);
    return true;
}

static bool take_signal(struct joined *joined, const struct frame *frame)
{
    uint32_t number = frame_number(frame->bytes, 1);
    if (number < 1 || number >= SIGNALS)
        return false;
    joined->signals[number] = true;
    if (!joined->ordering)
        order_more(joined);
    return true;
}

static void on_frame(void *arg, const struct frame *frame)
{
    static bool (*const takers[FRAME_TYPE_COUNT])(struct joined *joined, const struct frame *frame) = {
        [FRAME_DATA] = take_data, [FRAME_END] = take_end, [FRAME_RESIZE] = take_size, [FRAME_SIGNAL] = take_signal};
    struct joined *joined = arg;
    struct error err = ERROR_INIT;
    if (takers[frame->type] && takers[frame->type](joined, frame))
        return;
    error_set(&err, ERROR_INVALID, "is the client of another version?", "the client sent a frame of type %d that may not come here", (int)frame->type);
    operator_stream_fail(joined->stream, &err);
    end(joined);
}

// ---- start ----------------------------------------------------------------------------------------------------------
static void on_started(void *arg, struct http_upgrade *upgrade, int fd, const char *early, size_t early_len)
{
    struct joined *joined = arg;
    const struct operator_stream_events events = {.frame = on_frame, .drained = on_drained, .gone = on_gone, .arg = joined};
    if (!upgrade) {
        end(joined); // the client left while the program was started
        return;
    }
    joined->stream = operator_stream_new(joined->server, upgrade, fd, early, early_len, &events);
    read_more(joined);
}

void operator_exec_join(struct call *call, const char *sandbox_uid, const char *exec_id)
{
    struct joined *joined = mem_alloc(sizeof(*joined));
    *joined = (struct joined){.server = call->server, .uid = mem_strdup(sandbox_uid), .refs = 1, .input = BUFFER_INIT(STREAM_WINDOW_BYTES)};
    snprintf(joined->id, sizeof(joined->id), "%s", exec_id);
    operator_server_ref(joined->server);
    operator_execs_touch(joined->server->execs, exec_id, sandbox_uid, 1); // it is never unread: the stream looks after it
    operator_answer_upgrade(call, &(struct http_upgrade_options){.protocol = STREAM_PROTOCOL, .started = on_started, .arg = joined});
}
