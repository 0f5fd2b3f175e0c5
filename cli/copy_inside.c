#include "cli/copy_inside.h"
#include "cli/exec_stream.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/thread.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>

#define PIPE_BYTES (1024 * 1024)
#define LEAVING_S 2
#define MINUTE_MS 60000
#define ENDING_US 60000000 // for it to end when all is read: a slow disk may have to take it first
#define DRAINED_MAX_BYTES (256 * 1024)

// ---- its side, in threads -------------------------------------------------------------------------------------------------
static void *run_program(void *arg)
{
    struct inside *inside = arg;
    bool is_input = inside->stream == INSIDE_INPUT;
    const struct exec_stream stream = {.sandbox = inside->sandbox, .label = inside->label, .argv = inside->argv, .input_fd = is_input ? inside->its_fd : -1,
                                       .output_fd = is_input ? inside->words_fds[1] : inside->its_fd, .error_fd = inside->words_fds[1], .ends_with_reader = !is_input};
    inside->result = exec_stream_run(inside->rest, &stream, &inside->exit_code, &inside->error);
    close(TAKE_FD(inside->its_fd)); // tells the other end
    close(TAKE_FD(inside->words_fds[1]));
    return NULL;
}

static void *run_words(void *arg)
{
    struct inside *inside = arg;
    char bytes[1024];
    for (ssize_t n; (n = read(inside->words_fds[0], bytes, sizeof(bytes))) != 0;) {
        if (n < 0 && errno != EINTR)
            break;
        size_t room = inside->words.max - inside->words.len;
        if (n > 0)
            buffer_append(&inside->words, bytes, (size_t)n < room ? (size_t)n : room);
    }
    return NULL;
}

// ---- start ------------------------------------------------------------------------------------------------------------------
static const int signals[] = {SIGINT, SIGTERM, SIGHUP}; // they are never taken: one that came waits until the process ends

static int watch_signals(struct inside *inside, struct error *err)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        sigaddset(&set, signals[i]);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    inside->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return inside->signal_fd < 0 ? error_errno(err, errno, NULL, "cannot watch for signals") : 0;
}

bool inside_was_interrupted(void)
{
    sigset_t waiting;
    bool is = false;
    sigpending(&waiting);
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        is = is || sigismember(&waiting, signals[i]);
    return is;
}

// A socket pair towards its input: when we have sent all, its own end is still told on it.
static int join_stream(struct inside *inside, struct error *err)
{
    int fds[2];
    bool is_input = inside->stream == INSIDE_INPUT;
    if ((is_input ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) : pipe2(fds, O_CLOEXEC)) < 0)
        return error_errno(err, errno, NULL, "cannot make a pipe");
    inside->fd = fds[0];
    inside->its_fd = fds[1];
    fs_set_nonblocking(inside->fd, true);
    if (!is_input)
        fcntl(inside->fd, F_SETPIPE_SZ, PIPE_BYTES); // fewer wake-ups; a refusal does not matter
    return pipe2(inside->words_fds, O_CLOEXEC) < 0 ? error_errno(err, errno, NULL, "cannot make a pipe") : 0;
}

int inside_start(struct inside *inside, const struct rest *rest, const char *sandbox, const char *label, const char *const *argv,
                 enum inside_stream stream, struct error *err)
{
    *inside = (struct inside){.rest = rest, .sandbox = sandbox, .label = label, .argv = argv, .stream = stream, .idle_ms = INSIDE_IDLE_MS, .fd = -1, .its_fd = -1, .signal_fd = -1,
                              .words_fds = {-1, -1}, .error = ERROR_INIT, .words = BUFFER_INIT(INSIDE_WORDS_MAX_BYTES)};
    if (watch_signals(inside, err) < 0 || join_stream(inside, err) < 0 || thread_start(&inside->words_thread, "words", run_words, inside, err) < 0)
        return -1;
    inside->has_words_thread = true;
    if (thread_start(&inside->thread, "inside", run_program, inside, err) < 0)
        return -1;
    inside->has_thread = true;
    return 0;
}

// ---- the stream ---------------------------------------------------------------------------------------------------------------
static int fail_stalled(const struct inside *inside, const char *what, struct error *err)
{
    error_set(err, ERROR_TIMEOUT, NULL, "the program in the sandbox %s has %s for %d minutes; it is ended now", inside->sandbox, what, inside->idle_ms / MINUTE_MS);
    return error_hint(err, "look what it waits for: chat2shell exec %s -- ps -ef", inside->sandbox);
}

// stalled: what it has been doing if nothing moves.
static int wait_ready(struct inside *inside, short events, const char *stalled, struct error *err)
{
    struct pollfd polls[] = {{.fd = inside->fd, .events = events}, {.fd = inside->signal_fd, .events = POLLIN}};
    int found;
    while ((found = poll(polls, ARRAY_LEN(polls), inside->idle_ms)) < 0)
        if (errno != EINTR)
            return error_errno(err, errno, NULL, "cannot wait for the sandbox");
    inside->is_left = !found || polls[1].revents;
    if (!inside->is_left)
        return 0;
    return found ? error_set(err, ERROR_CANCELLED, NULL, "interrupted: the rest was not copied") : fail_stalled(inside, stalled, err);
}

ssize_t inside_read(void *arg, void *to, size_t len, struct error *err)
{
    struct inside *inside = arg;
    for (;;) {
        if (wait_ready(inside, POLLIN, "sent nothing", err) < 0)
            return -1;
        ssize_t n = read(inside->fd, to, len);
        if (n >= 0)
            return n;
        if (errno != EAGAIN && errno != EINTR)
            return error_errno(err, errno, NULL, "cannot read what the sandbox sends");
    }
}

int inside_drain(struct inside *inside, struct error *err)
{
    struct pollfd polls[] = {{.fd = inside->fd, .events = POLLIN}, {.fd = inside->signal_fd, .events = POLLIN}};
    int64_t until_us = boot_time_us() + ENDING_US, left_us;
    char bytes[4096];
    size_t drained = 0;
    while (drained < DRAINED_MAX_BYTES && (left_us = until_us - boot_time_us()) > 0) {
        if (poll(polls, ARRAY_LEN(polls), (int)(left_us / 1000) + 1) < 0)
            continue;
        inside->is_left = polls[1].revents != 0;
        if (inside->is_left)
            return error_set(err, ERROR_CANCELLED, NULL, "interrupted: all was copied, but tar had not ended in the sandbox %s", inside->sandbox);
        ssize_t n = read(inside->fd, bytes, sizeof(bytes));
        if (n == 0)
            return 0;
        drained += n > 0 ? (size_t)n : 0;
    }
    error_set(err, ERROR_TIMEOUT, NULL, "the archive has ended, but tar goes on in the sandbox %s; it is ended now", inside->sandbox);
    return error_hint(err, "what was copied is whole; look what tar is there: chat2shell exec %s -- sh -c 'command -v tar'", inside->sandbox);
}

int inside_write(void *arg, const void *bytes, size_t len, struct error *err)
{
    struct inside *inside = arg;
    for (size_t at = 0; at < len;) {
        if (wait_ready(inside, POLLOUT, "taken nothing", err) < 0)
            return -1;
        ssize_t n = send(inside->fd, (const char *)bytes + at, len - at, MSG_NOSIGNAL);
        if (n >= 0)
            at += (size_t)n;
        else if (errno == EPIPE || errno == ECONNRESET)
            return error_set(err, ERROR_STATE, NULL, "the sandbox does not take the rest");
        else if (errno != EAGAIN && errno != EINTR)
            return error_errno(err, errno, NULL, "cannot write to the sandbox");
    }
    return 0;
}

// ---- end ------------------------------------------------------------------------------------------------------------------------
// Of one that is left nobody waits longer than a moment for the end: the daemon ends what nobody reads.
static bool join(struct inside *inside, bool *has_thread, pthread_t thread)
{
    struct wall_time until = wall_time_now();
    const struct timespec deadline = {.tv_sec = until.ms / 1000 + LEAVING_S};
    if (*has_thread && (inside->is_left ? pthread_timedjoin_np(thread, NULL, &deadline) : pthread_join(thread, NULL)) == 0)
        *has_thread = false;
    return !*has_thread;
}

// It has all: nothing comes on its input but the end. Whatever is called tar there may never end.
static int await_end(struct inside *inside, struct error *err)
{
    struct error why = ERROR_INIT;
    shutdown(inside->fd, SHUT_WR);
    if (wait_ready(inside, POLLIN, "had all and not ended", &why) == 0)
        return 0;
    if (why.code != ERROR_CANCELLED)
        return error_copy(err, &why);
    return error_set(err, ERROR_CANCELLED, NULL, "interrupted: all was sent, but tar had not ended in the sandbox %s", inside->sandbox);
}

int inside_wait(struct inside *inside, int *ret_exit_code, struct error *err)
{
    bool is_awaited = inside->stream == INSIDE_INPUT && inside->has_thread && !inside->is_left;
    int r = is_awaited ? await_end(inside, err) : 0;
    if (inside->fd >= 0)
        close(TAKE_FD(inside->fd));
    if (r < 0)
        return -1;
    if (!join(inside, &inside->has_thread, inside->thread) || !join(inside, &inside->has_words_thread, inside->words_thread))
        return error_set(err, ERROR_CANCELLED, NULL, "interrupted: the rest was not copied");
    if (inside->result < 0)
        return error_copy(err, &inside->error);
    *ret_exit_code = inside->exit_code;
    return 0;
}

void inside_clear(struct inside *inside)
{
    int *const fds[] = {&inside->fd, &inside->its_fd, &inside->signal_fd, &inside->words_fds[0], &inside->words_fds[1]};
    if (inside->has_thread || inside->has_words_thread)
        return; // left behind: the process ends
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (*fds[i] >= 0)
            close(TAKE_FD(*fds[i]));
    buffer_free(&inside->words);
}
