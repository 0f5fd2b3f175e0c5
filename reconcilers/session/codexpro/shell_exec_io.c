// The three streams of an exec. What a program prints goes to files in the sandbox (its writers stop where nobody reads), and
// is read by position; what it is to read goes there in numbered pieces, one at a time, and is fed to it in their order.
#include "controller/base/memory.h"
#include "reconcilers/session/codexpro/shell_exec.h"
#include <stdlib.h>
#include <string.h>

#define READ_BYTES GUEST_EXEC_CHUNK_BYTES // both streams of one look: what the protocol allows one, and below what CodexPro lets pass
#define READ_WAIT_MAX_MS 60000
#define FEED_WAIT_S 20

// ---- reading -------------------------------------------------------------------------------------------------------

static void read_more(struct shell_exec *exec, int64_t pause_ms);

struct piece { // of one stream
    const char *bytes;
    size_t len;
    bool is_all; // there is no more for now
};

// "… START SIZE LENGTH DISK-WAS-FULL" from word `at` on. -1: garbled; 1: bytes were lost.
static int take_stream(const struct shell_exec *exec, const struct shell_reply *reply, int stream, struct piece *ret)
{
    size_t at = 3 + 4 * (size_t)stream;
    int64_t start = shell_reply_number(reply, at), size = shell_reply_number(reply, at + 1), len = shell_reply_number(reply, at + 2);
    int64_t pos = (int64_t)exec->pos[stream];
    if (start < 0 || size < start || len != (int64_t)reply->blocks[stream].len || len > size - start)
        return -1;
    if (start != pos)
        return start > pos ? 1 : -1;
    *ret = (struct piece){reply->blocks[stream].bytes, (size_t)len, start + len == size};
    return 0;
}

static int read_look(const struct shell_exec *exec, const struct shell_reply *reply, struct piece pieces[2], int64_t *ret_code,
                     struct error *err)
{
    if (shell_reply_is(reply, "unknown"))
        return error_set(err, ERROR_NOT_FOUND, NULL, "Unknown exec: %s", exec->id);
    int64_t code = shell_reply_number(reply, 1);
    bool is_running = reply->word_count > 1 && strcmp(reply->words[1], "-") == 0;
    int out = -1, errors = -1;
    if (shell_reply_is(reply, "ok") && reply->word_count == 11 && reply->block_count == 2 && (is_running || shell_is_exit_code(code))) {
        out = take_stream(exec, reply, 0, &pieces[0]);
        errors = take_stream(exec, reply, 1, &pieces[1]);
    }
    if (out == 1 || errors == 1)
        return error_set(err, ERROR_UNAVAILABLE, "free space in the sandbox and run it again",
                         "output of the program was lost, because the disk of the sandbox is full");
    if (out < 0 || errors < 0)
        return error_set(err, ERROR_UNAVAILABLE, "try again; if it keeps failing, destroy the sandbox and create a new one",
                         "the sandbox answered with something that is not the state of a program");
    *ret_code = code;
    return 0;
}

static void answer_read(struct shell_exec *exec, const struct piece pieces[2], bool is_finished, int64_t code)
{
    struct shell_request *request = TAKE_PTR(exec->reader);
    json_t *result = json_object();
    json_object_set_new(result, "stdout", json_encode_base64(pieces[0].bytes, pieces[0].len));
    json_object_set_new(result, "stderr", json_encode_base64(pieces[1].bytes, pieces[1].len));
    json_object_set_new(result, "exited", json_boolean(is_finished));
    json_object_set_new(result, "exit_code", is_finished ? json_integer(code) : json_null());
    for (int i = 0; i < 2; i++)
        exec->pos[i] += pieces[i].len;
    shell_answer(request, result);
}

static void looked(void *arg, const struct shell_reply *reply, const struct error *failure)
{
    struct shell_exec *exec = arg;
    exec->reading = NULL;
    struct piece pieces[2];
    struct error err = ERROR_INIT;
    int64_t code = -1;
    if (failure || read_look(exec, reply, pieces, &code, &err) < 0) {
        shell_fail(TAKE_PTR(exec->reader), failure ? failure : &err);
        return;
    }
    // A stray background process may hold a pipe open for ever: empty and the program gone is the end.
    bool is_finished = code >= 0 && pieces[0].is_all && pieces[1].is_all;
    if (pieces[0].len || pieces[1].len || is_finished || clock_boot(loop_clock(exec->shell->host.loop)).ms >= exec->reader->until.ms)
        answer_read(exec, pieces, is_finished, code);
    else
        read_more(exec, SHELL_PAUSE_MS);
}

static void read_more(struct shell_exec *exec, int64_t pause_ms)
{
    int64_t left_ms = exec->reader->until.ms - clock_boot(loop_clock(exec->shell->host.loop)).ms;
    CLEANUP_FREE char *wait = left_ms > 0 ? mem_format("%lld.%03lld", (long long)(left_ms / 1000), (long long)(left_ms % 1000)) : mem_strdup("0");
    CLEANUP_FREE char *arguments = mem_format("%s %llu %llu %d %s", exec->program.id, (unsigned long long)exec->pos[0],
                                              (unsigned long long)exec->pos[1], READ_BYTES, wait);
    const struct shell_order order = {.operation = "read_exec", .arguments = arguments, .wait_ms = left_ms > 0 ? left_ms : 0, .pause_ms = pause_ms};
    exec->reading = shell_ask(exec->shell, &order, looked, exec);
}

static void cancel_read(struct shell_request *request)
{
    struct shell_exec *exec = request->context;
    exec->reader = NULL;
    shell_ask_drop(TAKE_PTR(exec->reading));
}

void shell_exec_read(struct shell_request *request)
{
    struct error err = ERROR_INIT;
    int64_t wait_ms = 0;
    struct shell_exec *exec = exec_of_request(request);
    if (!exec)
        return;
    if (shell_get_int(request->params, "wait_ms", 0, READ_WAIT_MAX_MS, &wait_ms, &err) == 0 && exec->reader)
        error_set(&err, ERROR_INVALID, NULL, "another exec_read of %s is waiting", exec->id);
    if (err.code) {
        shell_fail(request, &err);
        return;
    }
    exec->reader = request;
    request->context = exec;
    request->cancel = cancel_read;
    request->until.ms = clock_boot(loop_clock(exec->shell->host.loop)).ms + wait_ms;
    read_more(exec, 0);
}

// ---- writing -------------------------------------------------------------------------------------------------------

static void end_first_write(struct shell_exec *exec, const struct error *failure)
{
    struct shell_exec_write *write = TAILQ_FIRST(&exec->writes);
    TAILQ_REMOVE(&exec->writes, write, link);
    exec->pending_bytes -= write->len;
    if (failure)
        shell_fail(write->request, failure);
    else
        shell_answer(write->request, json_object());
    free(write->bytes);
    free(write);
}

static void close_input(struct shell_exec *exec, const char *why)
{
    struct error err = ERROR_INIT;
    exec->closed = why;
    error_set(&err, ERROR_UNAVAILABLE, NULL, "%s", why);
    while (!TAILQ_EMPTY(&exec->writes))
        end_first_write(exec, &err);
}

static void write_more(struct shell_exec *exec, int64_t pause_ms);

static void fed(struct shell_exec *exec)
{
    struct shell_exec_write *write = TAILQ_FIRST(&exec->writes);
    bool is_eof = write->is_eof;
    exec->piece++;
    write->sent += exec->piece_bytes;
    if (write->sent < write->len) {
        write_more(exec, 0);
        return;
    }
    end_first_write(exec, NULL);
    if (is_eof)
        close_input(exec, "the input was closed before");
    else
        write_more(exec, 0);
}

// To close what a program has stopped reading, or has ended without reading, is no failure.
static void note_unread(struct shell_exec *exec)
{
    const struct shell_exec_write *write = TAILQ_FIRST(&exec->writes);
    if (write->is_eof && write->sent == write->len)
        end_first_write(exec, NULL);
    close_input(exec, "the program does not read its input any more");
}

static void written(void *arg, const struct shell_reply *reply, const struct error *err)
{
    struct shell_exec *exec = arg;
    exec->writing = NULL;
    if (err)
        end_first_write(exec, err), close_input(exec, "an earlier write failed");
    else if (shell_reply_is(reply, "fed"))
        fed(exec);
    else if (shell_reply_is(reply, "pending"))
        write_more(exec, SHELL_PAUSE_MS);
    else if (shell_reply_is(reply, "broken"))
        note_unread(exec);
    else
        close_input(exec, "the sandbox did not take the input");
}

static void write_more(struct shell_exec *exec, int64_t pause_ms)
{
    struct shell_exec_write *write = TAILQ_FIRST(&exec->writes);
    if (!write || exec->writing)
        return;
    size_t left = write->len - write->sent;
    exec->piece_bytes = left < SHELL_PIECE_BYTES ? left : SHELL_PIECE_BYTES;
    CLEANUP_JSON json_t *text = json_encode_base64(write->bytes + write->sent, exec->piece_bytes);
    CLEANUP_FREE char *arguments =
        mem_format("%s %lld %d %s %d", exec->program.id, (long long)exec->piece, write->is_eof && left <= SHELL_PIECE_BYTES,
                   exec->piece_bytes ? json_string_value(text) : "-", FEED_WAIT_S);
    const struct shell_order order = {.operation = "write_exec", .arguments = arguments, .wait_ms = FEED_WAIT_S * 1000, .pause_ms = pause_ms};
    exec->writing = shell_ask(exec->shell, &order, written, exec);
}

static void add_write(struct shell_exec *exec, struct shell_request *request, char *bytes, size_t len)
{
    struct shell_exec_write *write = mem_alloc(sizeof(*write));
    *write = (struct shell_exec_write){
        .request = request, .bytes = bytes, .len = len, .is_eof = json_get_bool(request->params, "eof", false)};
    TAILQ_INSERT_TAIL(&exec->writes, write, link);
    exec->pending_bytes += len;
}

void shell_exec_write(struct shell_request *request)
{
    struct error err = ERROR_INIT;
    struct shell_exec *exec = exec_of_request(request);
    if (!exec)
        return;
    CLEANUP_FREE char *bytes = NULL;
    size_t len = 0;
    const char *data;
    if (shell_get_text(request->params, "data", false, &data, &err) == 0 && json_decode_base64(data, &bytes, &len, &err) == 0) {
        if (exec->closed)
            error_set(&err, ERROR_UNAVAILABLE, NULL, "the input of %s is closed: %s", exec->id, exec->closed);
        else if (exec->pending_bytes + len > EXEC_MAX_PENDING_BYTES)
            error_set(&err, ERROR_LIMIT, "wait for the answers", "more than %d bytes of input are waiting", EXEC_MAX_PENDING_BYTES);
    }
    if (err.code) {
        shell_fail(request, &err);
        return;
    }
    add_write(exec, request, TAKE_PTR(bytes), len);
    write_more(exec, 0);
}

// ---- the end -------------------------------------------------------------------------------------------------------

void exec_end_io(struct shell_exec *exec)
{
    struct error err = ERROR_INIT;
    error_set(&err, ERROR_CANCELLED, NULL, "the program was ended");
    shell_ask_drop(TAKE_PTR(exec->reading));
    shell_ask_drop(TAKE_PTR(exec->writing));
    if (exec->reader)
        shell_fail(TAKE_PTR(exec->reader), &err);
    close_input(exec, "the program was ended");
}
