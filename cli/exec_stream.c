#include "cli/exec_stream.h"
#include "cli/objects.h"
#include "cli/outlet.h"
#include "cli/raw_terminal.h"
#include "controller/base/frames.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#define READ_BYTES FRAME_MAX_BYTES
#define IN_BYTES (2 * (FRAME_HEAD_BYTES + FRAME_MAX_BYTES))
#define OUT_BYTES (2 * STREAM_WINDOW_BYTES) // input is read while less than READ_BYTES wait; the rest is for signals and sizes
#define EXIT_SIGPIPE (128 + SIGPIPE)
enum { SOCKET, INPUT, SIGNALS, OUTPUT, ERRORS, POLLED };

struct session {
    const struct exec_stream *ask;
    int fd;
    struct buffer in, out; // frames from and to the daemon
    size_t window;         // bytes of input that may be sent
    bool has_input;        // there may be more
    struct outlet outlets[2];
    int64_t written;
    int signal_fd;
    sigset_t mask_before;
    bool has_ended; // the connection; frames of it may still wait
    bool is_over;   // exit_code holds the end; what is printed may still wait
    int exit_code;
};

// ---- start ----------------------------------------------------------------------------------------------------------
static int pack_argv(json_t *body, const struct exec_stream *ask, struct error *err)
{
    json_t *argv = json_array();
    json_object_set_new(body, "argv", argv);
    for (size_t i = 0; ask->argv[i]; i++) {
        json_t *word = json_string(ask->argv[i]);
        if (!word)
            return error_set(err, ERROR_INVALID, "put such bytes into a file", "argument %zu of the command is not UTF-8", i);
        json_array_append_new(argv, word);
    }
    return 0;
}

static int pack_env(json_t *body, const struct exec_stream *ask, struct error *err)
{
    json_t *env = json_object();
    json_object_set_new(body, "env", env);
    for (size_t i = 0; ask->env && ask->env[i]; i++) {
        size_t len = strcspn(ask->env[i], "=");
        CLEANUP_FREE char *name = mem_strndup(ask->env[i], len);
        if (!len || !ask->env[i][len])
            return error_set(err, ERROR_USAGE, "give --env NAME=VALUE", "'%.100s' is not NAME=VALUE", ask->env[i]);
        if (json_object_set_new(env, name, json_string(ask->env[i] + len + 1)) < 0)
            return error_set(err, ERROR_INVALID, "put such bytes into a file", "the variable %.100s is not UTF-8", name);
    }
    return 0;
}

static void pack_terminal(json_t *body, const struct exec_stream *ask)
{
    uint16_t columns = 0, rows = 0;
    const char *term = getenv("TERM");
    json_t *tty = json_object();
    json_object_set_new(body, "tty", tty);
    raw_terminal_size(ask->input_fd, &columns, &rows);
    json_object_set_new(tty, "columns", json_integer(columns));
    json_object_set_new(tty, "rows", json_integer(rows));
    json_set_text(tty, "term", term && *term ? term : NULL);
}

static int open_stream(const struct rest *rest, struct session *session, struct error *err)
{
    const struct exec_stream *ask = session->ask;
    const char *sandbox = object_reference(kind_info(KIND_SANDBOX), ask->sandbox, err);
    if (!sandbox)
        return -1;
    CLEANUP_FREE char *name = http_escape(sandbox);
    CLEANUP_FREE char *path = mem_format(REST_OWN "/sandboxes/%s/exec", name);
    CLEANUP_JSON json_t *body = json_object();
    json_set_text(body, "cwd", ask->cwd);
    if (ask->label)
        json_set_text(body, "label", ask->label);
    if (pack_argv(body, ask, err) < 0 || pack_env(body, ask, err) < 0)
        return -1;
    if (ask->has_terminal)
        pack_terminal(body, ask);
    if (rest_open_stream(rest, path, body, &session->fd, &session->in, err) < 0)
        return -1;
    if (fs_set_nonblocking(session->fd, true) < 0)
        return error_errno(err, errno, NULL, "cannot prepare the connection to the daemon");
    return 0;
}

// ---- to the daemon --------------------------------------------------------------------------------------------------
// An end of the connection is told by its other direction, which may still hold why.
static void push(struct session *session)
{
    size_t sent = 0;
    while (sent < session->out.len) {
        ssize_t n = send(session->fd, session->out.data + sent, session->out.len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        sent = n < 0 ? session->out.len : sent + (size_t)n;
    }
    buffer_consume(&session->out, sent);
}

static void send_size(struct session *session)
{
    uint16_t columns, rows;
    if (raw_terminal_size(session->ask->input_fd, &columns, &rows))
        frame_append_size(&session->out, columns, rows);
}

static void end_input(struct session *session)
{
    session->has_input = false;
    frame_append(&session->out, FRAME_END, NULL, 0);
}

static void take_input(struct session *session)
{
    static char bytes[READ_BYTES];
    size_t room = session->window < sizeof(bytes) ? session->window : sizeof(bytes);
    ssize_t n = read(session->ask->input_fd, bytes, room);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        end_input(session);
        return;
    }
    int r = frame_append(&session->out, FRAME_DATA, bytes, (size_t)n);
    assert(r == 0 && "input is read only while little waits");
    session->window -= (size_t)n;
}

// ---- from the daemon ------------------------------------------------------------------------------------------------
static int take_output(struct session *session, const struct frame *frame, struct error *err)
{
    bool is_error = frame->type == FRAME_ERRORS;
    if (!is_error) {
        session->written += (int64_t)frame->len;
        if (session->ask->output_max_bytes && session->written > session->ask->output_max_bytes)
            return error_set(err, ERROR_TOO_LARGE, NULL, "it is larger than %lld bytes", (long long)session->ask->output_max_bytes);
    }
    return outlet_put(&session->outlets[is_error], frame->bytes, frame->len, err);
}

static int take_failure(const struct frame *frame, struct error *err)
{
    CLEANUP_JSON json_t *status = NULL;
    if (json_parse(frame->bytes, frame->len, &status, err) < 0)
        return error_context(err, "the daemon's answer makes no sense");
    return rest_status_to_error((int)json_get_int(status, "code", 500), status, err);
}

static int take_frame(struct session *session, const struct frame *frame, struct error *err)
{
    switch (frame->type) {
    case FRAME_DATA:
    case FRAME_ERRORS:
        return take_output(session, frame, err);
    case FRAME_TAKEN:
        session->window += frame_number(frame->bytes, 4);
        return session->window <= STREAM_WINDOW_BYTES ? 0 : error_set(err, ERROR_INTERNAL, NULL, "the daemon took more than was sent");
    case FRAME_END:
        session->has_input = false;
        return 0;
    case FRAME_EXIT:
        session->is_over = true;
        session->exit_code = (int)frame_number(frame->bytes, 1);
        return 0;
    case FRAME_FAILED:
        return take_failure(frame, err);
    default:
        return error_set(err, ERROR_INTERNAL, "is the daemon of another version?", "the daemon's answer makes no sense");
    }
}

static bool holds_back(const struct session *session)
{
    return outlet_is_waiting(&session->outlets[0]) || outlet_is_waiting(&session->outlets[1]);
}

// As long as the outputs take what comes.
static int take_frames(struct session *session, struct error *err)
{
    size_t at = 0, size;
    struct frame frame;
    int r = 0;
    while (r == 0 && !session->is_over && !holds_back(session)) {
        int found = frame_read(session->in.data + at, session->in.len - at, &frame, &size, err);
        if (found <= 0) {
            r = found;
            break;
        }
        r = take_frame(session, &frame, err);
        at += size;
    }
    buffer_consume(&session->in, at);
    return r;
}

static int receive(struct session *session, struct error *err)
{
    size_t room = session->in.max - session->in.len;
    if (!room) // held back until now: there is a whole frame in it
        return take_frames(session, err);
    ssize_t n = recv(session->fd, buffer_reserve(&session->in, room), room, MSG_DONTWAIT);
    if (n > 0)
        session->in.len += (size_t)n;
    else
        session->has_ended = n == 0 || (errno != EAGAIN && errno != EINTR);
    return take_frames(session, err);
}

static int check_end(const struct session *session, struct error *err)
{
    if (!session->has_ended || session->is_over || holds_back(session))
        return 0;
    return error_set(err, ERROR_UNAVAILABLE, "is it still there? chat2shell status", "the daemon ended the connection; it ended the command, too");
}

// ---- signals --------------------------------------------------------------------------------------------------------
static int block_signals(struct session *session, struct error *err)
{
    static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT}, terminal[] = {SIGWINCH, SIGTSTP, SIGCONT};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(forwarded) && (session->ask->forwards_signals || session->ask->has_terminal); i++)
        sigaddset(&set, forwarded[i]);
    for (size_t i = 0; i < ARRAY_LEN(terminal) && session->ask->has_terminal; i++)
        sigaddset(&set, terminal[i]);
    sigaddset(&set, SIGPIPE); // an output that nobody reads is told by write()
    pthread_sigmask(SIG_BLOCK, &set, &session->mask_before);
    sigdelset(&set, SIGPIPE);
    session->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return session->signal_fd < 0 ? error_errno(err, errno, NULL, "cannot watch for signals") : 0;
}

static void stop_here(struct session *session)
{
    raw_terminal_leave();
    raise(SIGSTOP);
    raw_terminal_again();
    send_size(session);
}

static void take_terminal_signal(struct session *session, int number)
{
    if (number == SIGTSTP) {
        stop_here(session);
    } else if (number == SIGWINCH || number == SIGCONT) {
        if (number == SIGCONT)
            raw_terminal_again(); // whoever had the terminal meanwhile set it otherwise
        send_size(session);
    } else {
        session->is_over = true; // the connection's end hangs the terminal inside up
        session->exit_code = 128 + number;
    }
}

static void take_signals(struct session *session)
{
    struct signalfd_siginfo info;
    while (read(session->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (session->ask->has_terminal)
            take_terminal_signal(session, (int)info.ssi_signo);
        else
            frame_append_number(&session->out, FRAME_SIGNAL, info.ssi_signo, 1);
    }
}

// ---- the whole ------------------------------------------------------------------------------------------------------
static void want(struct session *session, struct pollfd polls[POLLED])
{
    bool may_read = session->has_input && !session->is_over && session->window > 0 && session->out.len < READ_BYTES;
    bool is_open = !session->is_over && !session->has_ended;
    short in = holds_back(session) ? 0 : POLLIN, out = session->out.len ? POLLOUT : 0;
    polls[SOCKET] = (struct pollfd){is_open && (in | out) ? session->fd : -1, (short)(in | out), 0}; // else its end would be told for ever
    polls[INPUT] = (struct pollfd){may_read ? session->ask->input_fd : -1, POLLIN, 0};
    polls[SIGNALS] = (struct pollfd){session->signal_fd, POLLIN, 0};
    for (int i = 0; i < 2; i++)
        polls[OUTPUT + i] = (struct pollfd){outlet_is_waiting(&session->outlets[i]) ? session->outlets[i].fd : -1, POLLOUT, 0};
    if (session->ask->ends_with_reader && polls[OUTPUT].fd < 0)
        polls[OUTPUT] = (struct pollfd){session->outlets[0].fd, 0, 0}; // its reader's end is told unasked
}

static int step(struct session *session, const struct pollfd polls[POLLED], struct error *err)
{
    if (session->ask->ends_with_reader && (polls[OUTPUT].revents & POLLERR))
        session->outlets[0].is_closed = true;
    for (int i = 0; i < 2; i++)
        if (polls[OUTPUT + i].revents && outlet_push(&session->outlets[i], err) < 0)
            return -1;
    if (polls[SIGNALS].revents)
        take_signals(session);
    if (polls[INPUT].revents)
        take_input(session);
    if (session->is_over)
        return 0;
    push(session);
    bool is_told = (polls[SOCKET].revents & ~POLLOUT) && !holds_back(session);
    if ((is_told ? receive(session, err) : take_frames(session, err)) < 0)
        return -1;
    return check_end(session, err);
}

static int follow(struct session *session, struct error *err)
{
    struct pollfd polls[POLLED];
    if (take_frames(session, err) < 0)
        return -1;
    while (!session->is_over || holds_back(session)) {
        want(session, polls);
        if (poll(polls, POLLED, -1) < 0 && errno != EINTR)
            return error_errno(err, errno, NULL, "cannot wait for the command");
        if (step(session, polls, err) < 0)
            return -1;
        if (session->outlets[0].is_closed || session->outlets[1].is_closed) {
            session->exit_code = EXIT_SIGPIPE;
            return 0;
        }
    }
    return 0;
}

static void session_clear(struct session *session)
{
    raw_terminal_leave();
    cleanup_close(&session->fd);
    if (session->signal_fd >= 0) {
        close(session->signal_fd);
        pthread_sigmask(SIG_SETMASK, &session->mask_before, NULL);
    }
    for (int i = 0; i < 2; i++)
        outlet_close(&session->outlets[i]);
    buffer_free(&session->in);
    buffer_free(&session->out);
}

int exec_stream_run(const struct rest *rest, const struct exec_stream *stream, int *ret_exit_code, struct error *err)
{
    CLEANUP(session_clear) struct session session = {.ask = stream, .fd = -1, .signal_fd = -1, .window = STREAM_WINDOW_BYTES,
                                                     .in = BUFFER_INIT(IN_BYTES), .out = BUFFER_INIT(OUT_BYTES), .has_input = stream->input_fd >= 0};
    outlet_open(&session.outlets[0], stream->output_fd);
    outlet_open(&session.outlets[1], stream->error_fd);
    if (open_stream(rest, &session, err) < 0 || block_signals(&session, err) < 0)
        return -1;
    if (stream->has_terminal && raw_terminal_enter(stream->input_fd, err) < 0)
        return -1;
    if (stream->input_fd < 0)
        end_input(&session);
    push(&session);
    if (follow(&session, err) < 0)
        return -1;
    *ret_exit_code = session.exit_code;
    return 0;
}
