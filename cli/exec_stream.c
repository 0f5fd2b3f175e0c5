#include "cli/exec_stream.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/thread.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#define INPUT_CHUNK_BYTES (128 * 1024)
#define READ_WAIT_MS 25000
#define EXIT_SIGPIPE (128 + SIGPIPE)

// Lives as long as the process, its strings included: the two side threads use it, are never joined, and may still be at work
// when the command's own memory is freed.
struct exec_session {
    struct rest rest; // a copy of its own
    char *path; // …/exec/ID
    int input_fd;
    sigset_t signals;
};

static int ask(const struct exec_session *session, const char *verb, json_t *taken, json_t **ret, struct error *err)
{
    CLEANUP_JSON json_t *body = taken;
    CLEANUP_FREE char *path = mem_format("%s/%s", session->path, verb);
    return rest_post(&session->rest, path, body, ret, err);
}

// ---- input and signals, each in a thread of its own ---------------------------------------------------------------------------
static void *run_input(void *arg)
{
    const struct exec_session *session = arg;
    CLEANUP_FREE char *bytes = mem_alloc(INPUT_CHUNK_BYTES);
    for (ssize_t n = 1; n > 0;) {
        do
            n = read(session->input_fd, bytes, INPUT_CHUNK_BYTES);
        while (n < 0 && errno == EINTR);
        json_t *body = json_object();
        json_object_set_new(body, "data", json_encode_base64(bytes, n > 0 ? (size_t)n : 0));
        json_object_set_new(body, "eof", json_boolean(n <= 0));
        if (ask(session, "write", body, NULL, NULL) < 0)
            break; // it does not read any more; its end is told by the other side
    }
    return NULL;
}

static void *run_signals(void *arg)
{
    const struct exec_session *session = arg;
    for (int number = 0; sigwait(&session->signals, &number) == 0;)
        if (ask(session, "signal", json_pack("{s:i}", "signal", number), NULL, NULL) < 0)
            _exit(128 + number); // nobody is there to end it
    return NULL;
}

static int start_threads(struct exec_session *session, const struct exec_stream *stream, struct error *err)
{
    pthread_t thread;
    if (stream->forwards_signals && thread_start(&thread, "signals", run_signals, session, err) < 0)
        return -1;
    return stream->input_fd >= 0 ? thread_start(&thread, "input", run_input, session, err)
                                 : ask(session, "write", json_pack("{s:s, s:b}", "data", "", "eof", 1), NULL, err);
}

static void block_signals(struct exec_session *session)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigemptyset(&session->signals);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        sigaddset(&session->signals, numbers[i]);
    pthread_sigmask(SIG_BLOCK, &session->signals, NULL);
}

// ---- output ---------------------------------------------------------------------------------------------------------------------
// *ret_is_open becomes false when the reader of our output has gone.
static int put(int fd, const json_t *answer, const char *name, bool *ret_is_open, struct error *err)
{
    CLEANUP_FREE char *bytes = NULL;
    size_t len = 0;
    if (json_decode_base64(json_get_text(answer, name), &bytes, &len, err) < 0)
        return error_context(err, "the daemon's answer makes no sense");
    for (size_t at = 0; at < len;) {
        ssize_t n = write(fd, bytes + at, len - at);
        if (n >= 0)
            at += (size_t)n;
        else if (errno == EAGAIN)
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        else if (errno == EPIPE) {
            *ret_is_open = false;
            return 0;
        } else if (errno != EINTR)
            return error_errno(err, errno, NULL, "cannot write what the command prints");
    }
    return 0;
}

// One answer's bytes to where they belong.
static int take(const struct exec_stream *stream, const json_t *answer, int64_t *written, bool *ret_is_open, struct error *err)
{
    *written += (int64_t)json_string_length(json_object_get(answer, "stdout")) / 4 * 3;
    if (stream->output_max_bytes && *written > stream->output_max_bytes)
        return error_set(err, ERROR_TOO_LARGE, NULL, "it is larger than %lld bytes", (long long)stream->output_max_bytes);
    if (put(stream->output_fd, answer, "stdout", ret_is_open, err) < 0)
        return -1;
    return put(stream->error_fd, answer, "stderr", ret_is_open, err);
}

static int follow(const struct exec_session *session, const struct exec_stream *stream, int *ret_exit_code, struct error *err)
{
    for (int64_t written = 0;;) {
        CLEANUP_JSON json_t *answer = NULL;
        bool is_open = true;
        if (ask(session, "read", json_pack("{s:i}", "waitMs", READ_WAIT_MS), &answer, err) < 0 || take(stream, answer, &written, &is_open, err) < 0)
            return -1;
        if (!is_open || json_get_bool(answer, "exited", false)) {
            *ret_exit_code = is_open ? (int)json_get_int(answer, "exitCode", 1) : EXIT_SIGPIPE;
            return 0;
        }
    }
}

// ---- start ------------------------------------------------------------------------------------------------------------------------
static int start(struct exec_session *session, const struct exec_stream *stream, struct error *err)
{
    CLEANUP_FREE char *name = http_escape(stream->sandbox);
    CLEANUP_FREE char *path = mem_format(REST_OWN "/sandboxes/%s/exec", name);
    CLEANUP_JSON json_t *body = json_object(), *answer = NULL;
    json_t *argv = json_array();
    json_object_set_new(body, "argv", argv);
    json_set_text(body, "cwd", stream->cwd);
    for (size_t i = 0; stream->argv[i]; i++) {
        json_t *word = json_string(stream->argv[i]);
        if (!word)
            return error_set(err, ERROR_INVALID, "put such bytes into a file", "argument %zu of the command is not UTF-8", i);
        json_array_append_new(argv, word);
    }
    if (rest_post(&session->rest, path, body, &answer, err) < 0)
        return -1;
    const char *id = json_get_text(answer, "execId");
    if (!id)
        return error_set(err, ERROR_INTERNAL, "is the daemon of another version?", "the daemon does not say which command it started");
    session->path = mem_format("%s/%s", path, id);
    return 0;
}

int exec_stream_run(const struct rest *rest, const struct exec_stream *stream, int *ret_exit_code, struct error *err)
{
    static struct exec_session session;
    session = (struct exec_session){.rest = {mem_strdup(rest->socket_path), rest->timeout_ms}, .input_fd = stream->input_fd};
    if (start(&session, stream, err) < 0)
        return -1;
    signal(SIGPIPE, SIG_IGN);
    if (stream->forwards_signals)
        block_signals(&session);
    int r = start_threads(&session, stream, err);
    if (r == 0)
        r = follow(&session, stream, ret_exit_code, err);
    ask(&session, "end", NULL, NULL, NULL); // after a clean end there is nothing left to do for it
    return r;
}
