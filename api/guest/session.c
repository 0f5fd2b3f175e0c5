// Starting a Bash session, collecting its output, and its end.
#include "api/guest/session_state.h"
#include "api/guest/params.h"
#include "api/guest/workspace.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES (64 * 1024)
#define DRAIN_MAX_BYTES (1024 * 1024) // the largest pipe: what a process wrote before it ended is in there
#define TIMEOUT_EXIT_CODE 124
#define RESERVED_DESCRIPTORS 320 // of the process: for the other tools, and output that goes to files

struct session *session_find(struct guest *guest, const char *id)
{
    struct session *session = guest->sessions;
    while (session && strcmp(session->id, id) != 0)
        session = session->next;
    return session;
}

static void close_pipe(struct session *session)
{
    guest_loop_remove(&session->guest->loop, &session->pipe);
    if (session->pipe.fd >= 0)
        close(session->pipe.fd);
    session->pipe.fd = -1;
}

// Returns bytes read, 0 when there is nothing more for now or for ever.
static size_t read_pipe(struct session *session)
{
    static char bytes[READ_BYTES]; // loop thread only
    if (session->pipe.fd < 0)
        return 0;
    ssize_t n = read(session->pipe.fd, bytes, sizeof(bytes));
    if (n > 0) {
        bash_log_append(&session->log, bytes, (size_t)n);
        session->printed_bytes += n;
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        close_pipe(session);
    return n > 0 ? (size_t)n : 0;
}

static void readable(struct loop_source *source, uint32_t events)
{
    (void)events;
    struct session *session = CONTAINER_OF(source, struct session, pipe);
    read_pipe(session);
    session_wake_waits(session);
}

static void exited(struct child *child)
{
    struct session *session = CONTAINER_OF(child, struct session, child);
    for (size_t total = 0, n; total < DRAIN_MAX_BYTES && (n = read_pipe(session));)
        total += n;
    session->has_exited = true;
    session->exit_code = child_exit_code(child->wait_status);
    if (session->is_timed_out && session->exit_code != 128 + SIGKILL)
        session->exit_code = TIMEOUT_EXIT_CODE;
    guest_loop_timer_stop(&session->guest->loop, &session->deadline);
    session_wake_waits(session);
}

static void time_is_up(struct loop_timer *timer)
{
    struct session *session = CONTAINER_OF(timer, struct session, deadline);
    session->is_timed_out = true;
    session_end_group(session, SESSION_TIMEOUT_GRACE_MS);
}

void session_drop(struct session *session)
{
    struct loop *loop = &session->guest->loop;
    children_forget(&session->guest->children, &session->child);
    close_pipe(session);
    guest_loop_timer_stop(loop, &session->deadline);
    guest_loop_timer_stop(loop, &session->kill_timer);
    bash_log_free(&session->log);
    session->guest->session_count--;
    free(session);
}

// Sessions are remembered until the sandbox ends, up to the limit; then the oldest that has ended goes, one
// whose output was read to the end before one with output left.
static struct session **choose_forgettable(struct guest *guest)
{
    struct session **oldest = NULL, **oldest_read = NULL;
    for (struct session **at = &guest->sessions; *at; at = &(*at)->next) {
        if (!(*at)->has_exited || (*at)->pipe.fd >= 0)
            continue;
        oldest = at;
        if (!session_has_readable(*at))
            oldest_read = at;
    }
    return oldest_read ? oldest_read : oldest;
}

static int make_room(struct guest *guest, struct error *err)
{
    if (guest->session_count < GUEST_MAX_BASH_SESSIONS)
        return 0;
    struct session **at = choose_forgettable(guest);
    if (!at)
        return error_set(err, ERROR_LIMIT, "stop some with bash_stop", "%d Bash commands are running",
                         GUEST_MAX_BASH_SESSIONS);
    struct session *session = *at;
    *at = session->next;
    session_drop(session);
    return 0;
}

static int spawn(struct session *session, const char *command, int cwd_fd, struct error *err)
{
    struct guest *guest = session->guest;
    int pipe_fds[2];
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return error_errno(err, errno, "stop running commands", "cannot make a pipe");
    CLEANUP_CLOSE int write_fd = pipe_fds[1];
    session->pipe.fd = pipe_fds[0];
    if (write_fd >= sysconf(_SC_OPEN_MAX) - RESERVED_DESCRIPTORS)
        return error_set(err, ERROR_LIMIT, "stop some with bash_stop, or raise the limit of open files",
                         "%d Bash commands are running, and the limit of open files leaves no room for more",
                         guest->session_count - 1);
    fs_set_nonblocking(pipe_fds[0], true);
    char *argv[] = {(char *)"/bin/bash", (char *)"-lc", (char *)command, NULL};
    struct child_spec spec = {.program = argv[0],
                              .argv = argv,
                              .envp = guest->environment.vars,
                              .cwd_fd = cwd_fd,
                              .stdio = {-1, write_fd, write_fd}};
    if (guest_loop_add(&guest->loop, &session->pipe, err) < 0)
        return -1;
    return children_spawn(&guest->children, &spec, &session->child, NULL, err);
}

static int start(struct guest *guest, const char *id, const char *command, int cwd_fd, int64_t timeout_ms,
                 struct error *err)
{
    struct session *session = mem_alloc(sizeof(*session));
    session->guest = guest;
    memcpy(session->id, id, strlen(id));
    session->pipe = (struct loop_source){.fd = -1, .events = EPOLLIN, .ready = readable};
    session->child.exited = exited;
    session->deadline.fire = time_is_up;
    bash_log_init(&session->log);
    guest->session_count++;
    if (spawn(session, command, cwd_fd, err) < 0) {
        session_drop(session);
        return -1;
    }
    session->group = session->child.pid;
    session->next = guest->sessions;
    guest->sessions = session;
    if (timeout_ms)
        guest_loop_timer_start(&guest->loop, &session->deadline, timeout_ms);
    return 0;
}

static int check_id(struct guest *guest, const char *id, struct error *err)
{
    size_t len = strlen(id);
    if (!len || len > SESSION_ID_MAX || strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789_") != len)
        return error_set(err, ERROR_INVALID, NULL, "session_id must be 1 to %d of a-z, 0-9 and _",
                         SESSION_ID_MAX);
    if (session_find(guest, id))
        return error_set(err, ERROR_INVALID, NULL, "session_id %s is in use", id);
    return 0;
}

void session_start_request(struct request *request)
{
    struct guest *guest = request->guest;
    struct error err = ERROR_INIT;
    const char *id, *command, *cwd;
    int64_t timeout_ms = 0;
    CLEANUP_PLACE struct place place = PLACE_INIT;
    if (params_get_text(request->params, "session_id", &id, &err) < 0 || check_id(guest, id, &err) < 0 ||
        params_get_text(request->params, "command", &command, &err) < 0 ||
        params_get_optional_text(request->params, "cwd", &cwd, &err) < 0 ||
        params_get_optional_int(request->params, "timeout_ms", 1000, INT64_MAX / 4, &timeout_ms, &err) < 0) {
        request_fail(request, RPC_INVALID_PARAMS, &err);
        return;
    }
    if (!command[strspn(command, " \t\r\n")])
        error_set(&err, ERROR_INVALID, NULL, "command is required");
    else
        workspace_open_place(&guest->workspace, cwd ? cwd : ".", cwd ? strlen(cwd) : 1,
                             O_RDONLY | O_DIRECTORY, &place, &err);
    if (place.fd < 0)
        request_fail(request, RPC_INVALID_PARAMS, &err);
    else if (make_room(guest, &err) < 0)
        request_fail(request, GUEST_ERROR_LIMIT, &err);
    else if (start(guest, id, command, place.fd, timeout_ms, &err) < 0)
        request_fail(request,
                     err.code == ERROR_TOO_LARGE ? RPC_INVALID_PARAMS
                     : err.code == ERROR_LIMIT   ? GUEST_ERROR_LIMIT
                                                 : RPC_INTERNAL_ERROR,
                     &err);
    else
        request_answer(request, json_object());
}

void sessions_free(struct guest *guest)
{
    while (guest->sessions) {
        struct session *session = guest->sessions;
        guest->sessions = session->next;
        session_drop(session);
    }
}
