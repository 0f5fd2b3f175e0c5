// Waiting for a Bash session without a thread: reads in order of arrival, and stops.
#include "api/guest/params.h"
#include "api/guest/session_state.h"
#include "controller/base/memory.h"
#include <signal.h>
#include <string.h>

#define MAX_READ_BYTES 60000
#define PROGRESS_MS 1000
#define KILLED_WAIT_MS 2000 // for the kernel to finish a process that was sent SIGKILL

enum wait_for { WAIT_NONE, WAIT_OUTPUT, WAIT_EXIT };
static const char *const wait_words[] = {"none", "output", "exit"};

struct session_wait {
    struct session *session;
    struct request *request;
    enum wait_for wait_for;
    size_t max_bytes;
    struct loop_timer timer;
    const char *progress_token; // the request's; NULL: nobody asked for progress
    struct loop_timer progress; // armed: something was said less than a second ago
    int64_t said_bytes;
    struct session_wait *next;
};

static void unlink_wait(struct session_wait **list, struct session_wait *wait)
{
    while (*list && *list != wait)
        list = &(*list)->next;
    if (*list)
        *list = wait->next;
}

static void end_wait(struct session_wait *wait)
{
    unlink_wait(&wait->session->first_read, wait);
    unlink_wait(&wait->session->first_stop, wait);
    guest_loop_timer_stop(&wait->session->guest->loop, &wait->timer);
    guest_loop_timer_stop(&wait->session->guest->loop, &wait->progress);
    free(wait);
}

static void answer(struct session_wait *wait)
{
    struct request *request = wait->request;
    json_t *result = session_take_snapshot(wait->session, wait->max_bytes);
    end_wait(wait);
    request_answer(request, result);
}

static void say_progress(struct session_wait *wait)
{
    struct guest *guest = wait->session->guest;
    if (!wait->progress_token || wait->progress.is_armed || wait->said_bytes == wait->session->printed_bytes ||
        guest->output.pending_bytes > OUTPUT_PAUSE_BYTES)
        return;
    wait->said_bytes = wait->session->printed_bytes;
    guest_loop_timer_start(&guest->loop, &wait->progress, PROGRESS_MS);
    rpc_send_notification(guest, "notifications/progress",
                          json_pack("{s:s, s:I}", "progressToken", wait->progress_token, "progress",
                                    (json_int_t)wait->said_bytes));
}

static void look_for_progress(struct loop_timer *timer)
{
    say_progress(CONTAINER_OF(timer, struct session_wait, progress));
}

static void time_is_up(struct loop_timer *timer)
{
    answer(CONTAINER_OF(timer, struct session_wait, timer));
}

static void cancel_wait(struct request *request)
{
    end_wait(request->context);
    request_fail_cancelled(request);
}

static void add_wait(struct session_wait **list, struct session *session, struct request *request,
                     enum wait_for wait_for, size_t max_bytes, int64_t wait_ms)
{
    struct session_wait *wait = mem_alloc(sizeof(*wait));
    *wait = (struct session_wait){
        .session = session, .request = request, .wait_for = wait_for, .max_bytes = max_bytes};
    wait->timer.fire = time_is_up;
    wait->progress.fire = look_for_progress;
    if (wait_for == WAIT_EXIT && list == &session->first_read)
        wait->progress_token = json_get_text(json_object_get(request->params, "_meta"), "progressToken");
    request->context = wait;
    request->cancel = cancel_wait;
    while (*list)
        list = &(*list)->next;
    *list = wait;
    guest_loop_timer_start(&session->guest->loop, &wait->timer, wait_ms);
}

static bool is_due(const struct session_wait *wait)
{
    return wait->session->has_exited ||
           (wait->wait_for == WAIT_OUTPUT && session_has_readable(wait->session));
}

void session_wake_waits(struct session *session)
{
    while (session->first_read && is_due(session->first_read))
        answer(session->first_read);
    while (session->first_stop && session->has_exited)
        answer(session->first_stop);
    for (struct session_wait *wait = session->first_read; wait; wait = wait->next)
        say_progress(wait);
}

static int parse_wait(const json_t *params, enum wait_for *ret, struct error *err)
{
    const char *word;
    if (params_get_text(params, "wait", &word, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(wait_words); i++) {
        if (strcmp(word, wait_words[i]) == 0) {
            *ret = (enum wait_for)i;
            return 0;
        }
    }
    return error_set(err, ERROR_INVALID, NULL, "wait must be none, output or exit");
}

static struct session *find_session(struct request *request)
{
    const char *id;
    struct error err = ERROR_INIT;
    if (params_get_text(request->params, "session_id", &id, &err) < 0) {
        request_fail(request, RPC_INVALID_PARAMS, &err);
        return NULL;
    }
    struct session *session = session_find(request->guest, id);
    if (!session) {
        error_set(&err, ERROR_NOT_FOUND, NULL, "Unknown Bash session: %s", id);
        request_fail(request, GUEST_ERROR_UNKNOWN_SESSION, &err);
    }
    return session;
}

void session_read_request(struct request *request)
{
    struct error err = ERROR_INIT;
    enum wait_for wait_for = WAIT_NONE;
    int64_t wait_ms = 0, max_bytes = MAX_READ_BYTES;
    if (parse_wait(request->params, &wait_for, &err) < 0 ||
        params_get_optional_int(request->params, "wait_ms", 0, 60000, &wait_ms, &err) < 0 ||
        params_get_optional_int(request->params, "max_bytes", 1, MAX_READ_BYTES, &max_bytes, &err) < 0) {
        request_fail(request, RPC_INVALID_PARAMS, &err);
        return;
    }
    struct session *session = find_session(request);
    if (!session)
        return;
    // A plain look does not queue behind a wait: whoever waits has nothing to lose but bytes it may not have
    // yet.
    if (wait_for == WAIT_NONE || wait_ms == 0) {
        request_answer(request, session_take_snapshot(session, (size_t)max_bytes));
        return;
    }
    add_wait(&session->first_read, session, request, wait_for, (size_t)max_bytes, wait_ms);
    session_wake_waits(session);
}

static void kill_group(struct loop_timer *timer)
{
    struct session *session = CONTAINER_OF(timer, struct session, kill_timer);
    kill(-session->group, SIGKILL); // a group that still has members keeps its number
}

void session_end_group(struct session *session, int64_t grace_ms)
{
    child_signal_group(&session->child, SIGTERM);
    session->kill_timer.fire = kill_group;
    guest_loop_timer_start(&session->guest->loop, &session->kill_timer, grace_ms);
}

void session_stop_request(struct request *request)
{
    struct session *session = find_session(request);
    if (!session)
        return;
    if (session->has_exited) {
        request_answer(request, session_take_snapshot(session, MAX_READ_BYTES));
        return;
    }
    if (!session->first_stop && !session->kill_timer.is_armed)
        session_end_group(session, SESSION_STOP_GRACE_MS);
    add_wait(&session->first_stop, session, request, WAIT_EXIT, MAX_READ_BYTES,
             SESSION_STOP_GRACE_MS + KILLED_WAIT_MS);
}
