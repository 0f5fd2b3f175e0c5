#include "tests/support/lane_rig.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S (SUPPORT_PATIENCE_MS / 1000)

static pthread_mutex_t heard_mutex = PTHREAD_MUTEX_INITIALIZER; // guards every struct heard
static pthread_cond_t heard_cond = PTHREAD_COND_INITIALIZER;

static int set_up(void **state, struct clock *clock)
{
    struct error err = ERROR_INIT;
    signal(SIGPIPE, SIG_IGN); // for the test's own writes
    struct rig *rig = mem_alloc(sizeof(*rig));
    rig->dir = support_make_dir();
    rig->clock = clock;
    assert_ok(store_open(&(struct store_options){.state_dir = rig->dir, .clock = rig->clock}, &rig->store, &err));
    assert_ok(loop_start(rig->clock, &rig->loop, &err));
    rig->lanes = lanes_new(rig->loop, rig->store);
    *state = rig;
    return 0;
}

int rig_setup(void **state)
{
    return set_up(state, clock_new_fake((struct wall_time){RIG_START_MS}));
}

int rig_setup_real(void **state)
{
    return set_up(state, clock_new_real());
}

int rig_teardown(void **state)
{
    struct rig *rig = *state;
    lanes_free(rig->lanes);
    loop_stop(rig->loop);
    store_close(rig->store);
    clock_free(rig->clock);
    support_remove_dir(rig->dir);
    free(rig);
    return 0;
}

// ---- callbacks -----------------------------------------------------------------------------------------------------

static void hear(struct heard *heard)
{
    heard->count++;
    pthread_cond_broadcast(&heard_cond);
    pthread_mutex_unlock(&heard_mutex);
}

void heard_answer(void *arg, int result, json_t *answer, const struct error *err)
{
    struct heard *heard = arg;
    pthread_mutex_lock(&heard_mutex);
    heard->result = result;
    heard->answer = json_deep_copy(answer);
    if (result < 0)
        heard->error = *err;
    hear(heard);
}

static void heard_ready(void *arg, int result, const struct lane_hello *hello, const struct error *err)
{
    struct heard *heard = ((struct heard **)arg)[0];
    pthread_mutex_lock(&heard_mutex);
    heard->result = result;
    if (result == 0) {
        heard->has_sessions = hello->has_sessions;
        heard->server_name = mem_format("%s %s", hello->server_name, hello->server_version);
    } else {
        heard->error = *err;
    }
    hear(heard);
}

static void heard_died(void *arg, const char *sandbox_uid, const char *reason, const struct text_list *last_lines)
{
    struct heard *heard = ((struct heard **)arg)[1];
    (void)sandbox_uid;
    if (!heard)
        return;
    struct buffer lines = BUFFER_INIT(64 * 1024);
    for (size_t i = 0; i < last_lines->count; i++)
        buffer_format(&lines, "%s\n", last_lines->items[i]);
    pthread_mutex_lock(&heard_mutex);
    heard->reason = mem_strdup(reason);
    heard->last_lines = buffer_take_string(&lines);
    hear(heard);
}

void heard_wait(struct heard *heard)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    int r = 0;
    pthread_mutex_lock(&heard_mutex);
    while (!heard->count && r == 0)
        r = pthread_cond_timedwait(&heard_cond, &heard_mutex, &until);
    int count = heard->count;
    pthread_mutex_unlock(&heard_mutex);
    if (!count)
        fail_msg("no callback within %d s", PATIENCE_S);
    assert_int_equal(count, 1);
}

bool heard_yet(struct heard *heard)
{
    pthread_mutex_lock(&heard_mutex);
    bool is = heard->count > 0;
    pthread_mutex_unlock(&heard_mutex);
    return is;
}

// Under the lock that the callback takes, so the handle is valid.
bool heard_leave(struct heard *heard, struct lane_call *call)
{
    pthread_mutex_lock(&heard_mutex);
    bool has_left = !heard->count && lane_call_cancel(call);
    pthread_mutex_unlock(&heard_mutex);
    return has_left;
}

void heard_clear(struct heard *heard)
{
    json_decref(heard->answer);
    free(heard->reason);
    free(heard->last_lines);
    free(heard->server_name);
    *heard = (struct heard){0};
}

// ---- the tool server -----------------------------------------------------------------------------------------------

void server_pipes(struct server *server, struct driver_session *session)
{
    int in[2], out[2], errors[2];
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(errors, O_CLOEXEC), 0);
    *server = (struct server){.input_fd = in[0], .output_fd = out[1], .error_fd = errors[1], .in = BUFFER_INIT(64 * 1024 * 1024)};
    *session = (struct driver_session){.input_fd = in[1], .output_fd = out[0], .error_fd = errors[0]};
}

void server_close(struct server *server)
{
    int *fds[] = {&server->input_fd, &server->output_fd, &server->error_fd};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (*fds[i] >= 0)
            close(TAKE_FD(*fds[i]));
    buffer_free(&server->in);
}

void server_say(struct server *server, const char *bytes, size_t len)
{
    while (len) {
        ssize_t n = write(server->output_fd, bytes, len);
        if (n < 0 && errno == EPIPE)
            return; // the lane gave up: what the test then looks at
        assert_true(n > 0);
        bytes += n;
        len -= (size_t)n;
    }
}

void server_say_text(struct server *server, const char *text)
{
    CLEANUP_FREE char *line = mem_format("%s\n", text);
    server_say(server, line, strlen(line));
}

static void say_json(struct server *server, json_t *message)
{
    char *text = json_dumps(message, JSON_COMPACT);
    json_decref(message);
    server_say_text(server, text);
    free(text);
}

void server_answer(struct server *server, const json_t *request, json_t *result)
{
    say_json(server, json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", json_object_get(request, "id"), "result", result));
    json_decref((json_t *)request);
}

void server_refuse(struct server *server, const json_t *request, int code, const char *message)
{
    say_json(server, json_pack("{s:s, s:O, s:{s:i, s:s}}", "jsonrpc", "2.0", "id", json_object_get(request, "id"), "error", "code", code,
                               "message", message));
    json_decref((json_t *)request);
}

// False: nothing came, or the lane closed the pipe.
static bool fill(struct server *server, int patience_ms)
{
    struct pollfd poll_fd = {.fd = server->input_fd, .events = POLLIN};
    if (poll(&poll_fd, 1, patience_ms) <= 0)
        return false;
    char *at = buffer_reserve(&server->in, 64 * 1024);
    ssize_t n = read(server->input_fd, at, 64 * 1024);
    server->in.len += n > 0 ? (size_t)n : 0;
    return n > 0;
}

static json_t *take_any(struct server *server, int patience_ms)
{
    char *newline;
    while (!server->in.len || !(newline = memchr(server->in.data, '\n', server->in.len)))
        if (!fill(server, patience_ms))
            return NULL;
    json_t *message = json_loadb(server->in.data, (size_t)(newline - server->in.data), 0, NULL);
    assert_non_null(message);
    assert_string_equal(json_get_text(message, "jsonrpc"), "2.0");
    buffer_consume(&server->in, (size_t)(newline - server->in.data) + 1);
    return message;
}

// Health probes are answered as every server does, unless the test wants to see them.
static json_t *take_message(struct server *server, int patience_ms)
{
    json_t *message;
    while ((message = take_any(server, patience_ms)) && !server->shows_pings && json_object_get(message, "id") &&
           strcmp(json_get_text(message, "method") ? json_get_text(message, "method") : "", "ping") == 0)
        server_answer(server, message, json_object());
    return message;
}

json_t *server_next(struct server *server)
{
    json_t *message = take_message(server, PATIENCE_S * 1000);
    if (!message)
        fail_msg("the lane sent nothing within %d s, or closed the tool server's input", PATIENCE_S);
    return message;
}

json_t *server_try_next(struct server *server)
{
    return take_message(server, 0);
}

json_t *server_expect(struct server *server, const char *method)
{
    json_t *message = server_next(server);
    assert_string_equal(json_get_text(message, "method"), method);
    return message;
}

void server_expect_nothing(struct rig *rig, struct server *server)
{
    rig_settle(rig);
    assert_null(take_message(server, 0));
    assert_int_equal(server->in.len, 0);
}

json_t *server_hello(bool has_sessions)
{
    json_t *hello = json_pack("{s:s, s:{s:{}}, s:{s:s, s:s}}", "protocolVersion", "2025-11-25", "capabilities", "experimental", "serverInfo",
                              "name", "scripted", "version", "1");
    if (has_sessions)
        json_object_set_new(json_object_get(json_object_get(hello, "capabilities"), "experimental"), "chat2shell.dev/sessions",
                            json_pack("{s:i}", "version", 1));
    return hello;
}

// ---- lanes ---------------------------------------------------------------------------------------------------------

void rig_open_session(struct rig *rig, const char *uid, struct driver_session *session, struct heard *ready, struct heard *died)
{
    static struct heard *pairs[64][2]; // stays valid as long as callbacks may come
    static size_t count;
    struct heard **pair = pairs[count++ % ARRAY_LEN(pairs)];
    pair[0] = ready;
    pair[1] = died;
    lane_open(rig->lanes, uid, RIG_WORKSPACE, session, heard_ready, heard_died, pair);
    assert_int_equal(session->input_fd, -1);
}

void rig_open_unfinished(struct rig *rig, const char *uid, struct server *server, struct heard *ready, struct heard *died)
{
    struct driver_session session;
    server_pipes(server, &session);
    rig_open_session(rig, uid, &session, ready, died);
}

void rig_open(struct rig *rig, const char *uid, struct server *server, struct heard *died)
{
    struct heard ready = {0};
    rig_open_unfinished(rig, uid, server, &ready, died);
    server_answer(server, server_expect(server, "initialize"), server_hello(true));
    json_decref(server_expect(server, "notifications/initialized"));
    heard_wait(&ready);
    assert_int_equal(ready.result, 0);
    assert_true(ready.has_sessions);
    heard_clear(&ready);
}

void rig_settle(struct rig *rig)
{
    for (int i = 0; i < 3; i++) // what was asked, what came of it, the callbacks
        lane_is_open(rig->lanes, RIG_SANDBOX);
}

void rig_advance(struct rig *rig, int64_t ms)
{
    rig_settle(rig);
    clock_advance(rig->clock, ms);
    rig_settle(rig);
}

struct lane_call *rig_call(struct rig *rig, const char *uid, const char *tool, struct heard *heard)
{
    return lane_call_tool(rig->lanes, uid, tool, json_object(), heard_answer, heard);
}

json_t *rig_result(const char *text)
{
    return json_pack("{s:[{s:s, s:s}]}", "content", "type", "text", "text", text);
}
