// Bash sessions over CodexPro: starting, reading, stopping. A read has no effect in the sandbox: the position is here and moves
// only with an answer, so an answer that is lost, damaged or no longer wanted costs no output.
#include "reconcilers/session/codexpro/shell_session.h"
#include "controller/base/memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MAX_MS 60000
#define STOP_WAIT_MS 3500          // as long as the script waits for the end
#define TIMEOUT_MAX_MS 100000000000 // three years: more is no limit
#define LATE_MS 1500               // a wait in the sandbox that has not ended by then is not waited for

static struct shell_session *find(struct shell *shell, const char *id)
{
    struct shell_session *session;
    TAILQ_FOREACH(session, &shell->sessions, link)
        if (strcmp(session->id, id) == 0)
            return session;
    return NULL;
}

static void drop(struct shell_session *session)
{
    TAILQ_REMOVE(&session->shell->sessions, session, link);
    session->shell->session_count--;
    shell_ask_drop(session->waiting);
    shell_ask_drop(session->stopping);
    shell_program_clear(&session->program);
    free(session);
}

void shell_sessions_free(struct shell *shell)
{
    while (!TAILQ_EMPTY(&shell->sessions))
        drop(TAILQ_FIRST(&shell->sessions));
}

// ---- bash_start ----------------------------------------------------------------------------------------------------

static bool is_used(const struct shell_session *session)
{
    struct shell_request *request;
    TAILQ_FOREACH(request, &session->shell->requests, link)
        if (request->context == session && !request->has_ended)
            return true;
    return session->waiting || session->stopping;
}

// Sessions are remembered until the sandbox ends, up to the limit; then the oldest that has ended goes, one whose output was
// read to the end before one with output left.
static int make_room(struct shell *shell, struct error *err)
{
    struct shell_session *session, *oldest = NULL, *oldest_read = NULL;
    if (shell->session_count < GUEST_MAX_BASH_SESSIONS)
        return 0;
    TAILQ_FOREACH(session, &shell->sessions, link)
    {
        if (!session->has_ended || is_used(session))
            continue;
        oldest = oldest ? oldest : session;
        oldest_read = oldest_read || session->has_unread ? oldest_read : session;
    }
    if (!oldest)
        return error_set(err, ERROR_LIMIT, "stop some with bash_stop", "%d Bash commands are running", GUEST_MAX_BASH_SESSIONS);
    session = oldest_read ? oldest_read : oldest;
    shell_forget(shell, "forget_bash", session->program.id);
    drop(session);
    return 0;
}

static int check_id(struct shell *shell, const char *id, struct error *err)
{
    size_t len = strlen(id);
    if (!len || len > SHELL_ID_MAX || strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789_") != len)
        return error_set(err, ERROR_INVALID, NULL, "session_id must be 1 to %d of a-z, 0-9 and _", SHELL_ID_MAX);
    if (find(shell, id))
        return error_set(err, ERROR_INVALID, NULL, "session_id %s is in use", id);
    return 0;
}

static void launched(void *arg, const struct shell_reply *reply, const struct error *failure)
{
    struct shell_session *session = arg;
    struct shell_request *request = TAKE_PTR(session->starting);
    struct error err = ERROR_INIT;
    if (!failure && shell_reply_is(reply, "ok")) {
        shell_answer(request, json_object());
        return;
    }
    if (failure)
        error_copy(&err, failure);
    else
        error_set(&err, ERROR_UNAVAILABLE, "look whether its disk is full, and whether it may start more processes",
                  "the sandbox could not start the command");
    shell_forget(session->shell, "end_any", session->program.id);
    drop(session);
    shell_fail(request, &err);
}

static void start(struct shell_request *request, const char *id, const char *command, const char *cwd, int64_t timeout_ms)
{
    struct shell *shell = request->shell;
    struct shell_session *session = mem_alloc(sizeof(*session));
    *session = (struct shell_session){.shell = shell, .starting = request};
    memcpy(session->id, id, strlen(id));
    TAILQ_INIT(&session->waits);
    TAILQ_INIT(&session->stops);
    session->program = (struct shell_program){.shell = shell,
                                              .kind = "bash",
                                              .cwd = mem_strdup_or_null(cwd),
                                              .spec = mem_strdup(command),
                                              .spec_len = strlen(command),
                                              .timeout_ms = timeout_ms <= TIMEOUT_MAX_MS ? timeout_ms : 0,
                                              .started = launched,
                                              .arg = session};
    snprintf(session->program.id, sizeof(session->program.id), "s%lld", (long long)request->id);
    TAILQ_INSERT_TAIL(&shell->sessions, session, link);
    shell->session_count++;
    shell_program_start(&session->program);
}

static int check_command(const char *command, struct error *err)
{
    if (!command[strspn(command, " \t\r\n")])
        return error_set(err, ERROR_INVALID, NULL, "command is required");
    if (strlen(command) > SHELL_COMMAND_MAX_BYTES)
        return error_set(err, ERROR_INVALID, "write it to a file with the tool write, and run that", "command is longer than %d bytes",
                         SHELL_COMMAND_MAX_BYTES);
    return 0;
}

void shell_bash_start(struct shell_request *request)
{
    const json_t *params = request->params;
    struct error err = ERROR_INIT;
    const char *id, *command, *cwd;
    int64_t timeout_ms = 0;
    if (shell_get_text(params, "session_id", true, &id, &err) == 0 && check_id(request->shell, id, &err) == 0 &&
        shell_get_text(params, "command", true, &command, &err) == 0 && shell_get_text(params, "cwd", false, &cwd, &err) == 0 &&
        shell_get_int(params, "timeout_ms", 1000, INT64_MAX / 4, &timeout_ms, &err) == 0 && check_command(command, &err) == 0 &&
        make_room(request->shell, &err) == 0)
        start(request, id, command, cwd, timeout_ms);
    else
        shell_fail(request, &err);
}

// ---- looks -----------------------------------------------------------------------------------------------------------

static struct boot_time now(const struct shell *shell)
{
    return clock_boot(loop_clock(shell->host.loop));
}

static size_t max_bytes_of(const struct shell_request *request)
{
    return (size_t)json_get_int(request->params, "max_bytes", SESSION_READ_BYTES);
}

// NULL after the request was answered.
static struct shell_session *find_session(struct shell_request *request)
{
    const char *id;
    struct error err = ERROR_INIT;
    struct shell_session *session = NULL;
    if (shell_get_text(request->params, "session_id", true, &id, &err) == 0) {
        session = find(request->shell, id);
        session = session && !session->starting ? session : NULL;
        if (!session)
            error_set(&err, ERROR_NOT_FOUND, NULL, "Unknown Bash session: %s", id);
    }
    if (!session)
        shell_fail(request, &err);
    return session;
}

// A session's files are gone with their directory: then it is unknown, as to a tool server that forgot it.
static int read_look(struct shell_session *session, const struct shell_reply *reply, struct shell_window *window, struct error *err)
{
    if (reply && shell_reply_is(reply, "unknown"))
        return error_set(err, ERROR_NOT_FOUND, "start the command again", "Unknown Bash session: %s", session->id);
    if (session_note_look(session, reply, window) < 0)
        return error_set(err, ERROR_UNAVAILABLE, "try again; if it keeps failing, destroy the sandbox and create a new one",
                         "the sandbox answered with something that is not the state of a Bash session");
    return 0;
}

static void looked(void *arg, const struct shell_reply *reply, const struct error *failure)
{
    struct shell_request *request = arg;
    request->ask = NULL;
    struct shell_session *session = request->context;
    struct shell_window window;
    struct error err = ERROR_INIT;
    if (failure)
        shell_fail(request, failure);
    else if (read_look(session, reply, &window, &err) < 0)
        shell_fail(request, &err);
    else
        shell_answer(request, session_take_snapshot(session, &window, max_bytes_of(request)));
}

static struct shell_ask *ask_read(struct shell_session *session, size_t max_bytes, const char *wait, int64_t wait_ms, int64_t pause_ms,
                                  shell_reply_fn fn, void *arg)
{
    CLEANUP_FREE char *arguments =
        mem_format("%s %llu %llu %zu %s %lld.%03lld", session->program.id, (unsigned long long)session->pos, (unsigned long long)session->seen,
                   max_bytes + 8, wait, (long long)(wait_ms / 1000), (long long)(wait_ms % 1000));
    const struct shell_order order = {.operation = "read_bash", .arguments = arguments, .wait_ms = wait_ms, .pause_ms = pause_ms};
    return shell_ask(session->shell, &order, fn, arg);
}

static void cancel_look(struct shell_request *request)
{
    (void)request; // its ask is dropped with it
}

static void look(struct shell_request *request)
{
    request->cancel = cancel_look;
    request->ask = ask_read(request->context, max_bytes_of(request), "none", 0, 0, looked, request);
}

// ---- waits -----------------------------------------------------------------------------------------------------------

static bool wants_output(const struct shell_request *request)
{
    return strcmp(json_get_text(request->params, "wait"), "output") == 0;
}

static void leave_waits(struct shell_request *request)
{
    struct shell_session *session = request->context;
    TAILQ_REMOVE(&session->waits, request, wait);
    loop_cancel(TAKE_PTR(request->timer));
    request->cancel = NULL;
}

static void pump(struct shell_session *session, int64_t pause_ms);

// Its time is up and the sandbox has not said so.
static void wait_is_late(void *arg)
{
    struct shell_request *request = arg;
    struct shell_session *session = request->context;
    request->timer = NULL;
    leave_waits(request);
    look(request);
    pump(session, 0);
}

static void fail_waits(struct shell_session *session, const struct error *err)
{
    struct shell_request *request;
    while ((request = TAILQ_FIRST(&session->waits))) {
        leave_waits(request);
        shell_fail(request, err);
    }
}

// In order of arrival: everybody whose condition holds or whose time is up.
static void serve_waits(struct shell_session *session, const struct shell_window *window)
{
    struct shell_request *request, *next;
    for (request = TAILQ_FIRST(&session->waits); request; request = next) {
        next = TAILQ_NEXT(request, wait);
        bool is_first = request == TAILQ_FIRST(&session->waits);
        bool is_due = session->has_exited || (is_first && wants_output(request) && session_has_readable(session, window));
        if (!is_due && now(session->shell).ms < request->until.ms)
            continue;
        leave_waits(request);
        shell_answer(request, session_take_snapshot(session, window, max_bytes_of(request)));
    }
}

static void waited(void *arg, const struct shell_reply *reply, const struct error *failure)
{
    struct shell_session *session = arg;
    session->waiting = NULL;
    struct shell_window window;
    struct error err = ERROR_INIT;
    if (failure) {
        fail_waits(session, failure);
    } else if (read_look(session, reply, &window, &err) < 0) {
        fail_waits(session, &err);
    } else {
        serve_waits(session, &window);
        if (!session_has_readable(session, &window)) // new bytes are not always a new character
            session->seen = window.start + window.len > session->seen ? window.start + window.len : session->seen;
        pump(session, SHELL_PAUSE_MS);
    }
}

// One wait of a session is in the sandbox at a time. It goes on when its request is cancelled: the next one takes it over.
static void pump(struct shell_session *session, int64_t pause_ms)
{
    struct shell_request *first = TAILQ_FIRST(&session->waits);
    if (!first || (session->waiting && (session->waits_for_output || !wants_output(first))))
        return;
    shell_ask_drop(TAKE_PTR(session->waiting));
    int64_t left_ms = first->until.ms - now(session->shell).ms;
    session->waits_for_output = wants_output(first);
    session->waiting_until = first->until;
    session->waiting = ask_read(session, SESSION_READ_BYTES, session->waits_for_output ? "output" : "exit", left_ms > 50 ? left_ms : 50,
                                pause_ms, waited, session);
}

static void add_wait(struct shell_session *session, struct shell_request *request, int64_t wait_ms)
{
    request->until.ms = now(session->shell).ms + wait_ms;
    request->cancel = leave_waits;
    TAILQ_INSERT_TAIL(&session->waits, request, wait);
    pump(session, 0);
    bool ends_with_it = session->waiting_until.ms <= request->until.ms;
    request->timer = loop_after(session->shell->host.loop, wait_ms + (ends_with_it ? LATE_MS : 0), wait_is_late, request);
}

static int check_wait(const json_t *params, struct error *err)
{
    const char *word;
    if (shell_get_text(params, "wait", true, &word, err) < 0)
        return -1;
    if (strcmp(word, "none") != 0 && strcmp(word, "output") != 0 && strcmp(word, "exit") != 0)
        return error_set(err, ERROR_INVALID, NULL, "wait must be none, output or exit");
    return 0;
}

void shell_bash_read(struct shell_request *request)
{
    struct error err = ERROR_INIT;
    int64_t wait_ms = 0, max_bytes = SESSION_READ_BYTES;
    if (check_wait(request->params, &err) < 0 || shell_get_int(request->params, "wait_ms", 0, WAIT_MAX_MS, &wait_ms, &err) < 0 ||
        shell_get_int(request->params, "max_bytes", 1, SESSION_READ_BYTES, &max_bytes, &err) < 0) {
        shell_fail(request, &err);
        return;
    }
    struct shell_session *session = find_session(request);
    if (!session)
        return;
    request->context = session;
    // A plain look does not queue behind a wait: whoever waits has nothing to lose but bytes it may not have yet.
    if (strcmp(json_get_text(request->params, "wait"), "none") == 0 || wait_ms == 0 || session->has_exited)
        look(request);
    else
        add_wait(session, request, wait_ms);
}

// ---- bash_stop -------------------------------------------------------------------------------------------------------

static void leave_stops(struct shell_request *request)
{
    struct shell_session *session = request->context;
    TAILQ_REMOVE(&session->stops, request, wait);
    request->cancel = NULL;
}

static void stopped(void *arg, const struct shell_reply *reply, const struct error *failure)
{
    struct shell_session *session = arg;
    session->stopping = NULL;
    struct shell_window window;
    struct error err = ERROR_INIT;
    if (failure)
        error_copy(&err, failure);
    else
        read_look(session, reply, &window, &err);
    struct shell_request *request;
    while ((request = TAILQ_FIRST(&session->stops))) {
        leave_stops(request);
        if (err.code)
            shell_fail(request, &err);
        else
            shell_answer(request, session_take_snapshot(session, &window, SESSION_READ_BYTES));
    }
}

void shell_bash_stop(struct shell_request *request)
{
    struct shell_session *session = find_session(request);
    if (!session)
        return;
    request->context = session;
    if (session->has_exited) {
        look(request);
        return;
    }
    request->cancel = leave_stops;
    TAILQ_INSERT_TAIL(&session->stops, request, wait);
    if (session->stopping)
        return;
    CLEANUP_FREE char *arguments = mem_format("%s %llu %d", session->program.id, (unsigned long long)session->pos, SESSION_READ_BYTES + 8);
    session->stopping = shell_ask(
        session->shell, &(struct shell_order){.operation = "stop_bash", .arguments = arguments, .wait_ms = STOP_WAIT_MS}, stopped, session);
}
