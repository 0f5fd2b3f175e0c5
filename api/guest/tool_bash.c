// bash: one command, answered when it is done. Runs on the loop, so it holds no worker. Output is given byte
// for byte (as UTF-8): masking words that look like secrets would make it useless as evidence, and is not
// done. A command is never killed for printing much: what is over the limit is read and thrown away, and the
// answer says so.
#include "api/guest/request.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include "controller/base/utf8.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_OUTPUT_BYTES 120000 // both streams together
#define KILL_AFTER_MS 1500
#define GIVE_UP_MS 1000 // after the kill: a process in another session may hold the pipes

static const struct tool_arg args[] = {
    {"command", ARG_STRING, "Command for bash -lc.", .is_required = true},
    {"session_id", ARG_STRING, "Accepted for compatibility; has no effect."},
    {"cwd", ARG_STRING, "Directory to run in, inside the workspace.", .default_text = "."},
    {"timeout_ms", ARG_INTEGER, "Time limit in milliseconds.", .has_default = true, .default_number = 30000,
     .min = 1000, .max = 600000},
    {NULL},
};

static const struct tool_field fields[] = {
    {"command", FIELD_STRING},
    {"cwd", FIELD_STRING},
    {"exitCode", FIELD_INTEGER, .is_nullable = true},
    {"signal", FIELD_STRING, .is_nullable = true},
    {"durationMs", FIELD_INTEGER},
    {"stdout", FIELD_STRING},
    {"stderr", FIELD_STRING},
    {"truncated", FIELD_BOOLEAN},
    {"bash_session_id", FIELD_STRING, .is_nullable = true},
    {"bashSessionId", FIELD_STRING, .is_optional = true},
    {NULL},
};

struct stream {
    struct loop_source source; // fd -1 after its end
    struct buffer kept;
    bool is_cut;
};

struct run {
    struct request *request;
    struct child child;
    struct stream streams[2];
    struct loop_timer timer; // time limit, then kill, then giving up
    struct boot_time started;
    int64_t timeout_ms;
    char *cwd;
    bool has_exited, is_timed_out;
};

static struct loop *loop_of(const struct run *run)
{
    return &run->request->guest->loop;
}

static void close_stream(struct run *run, struct stream *stream)
{
    guest_loop_remove(loop_of(run), &stream->source);
    if (stream->source.fd >= 0)
        close(stream->source.fd);
    stream->source.fd = -1;
}

static void free_run(struct run *run)
{
    for (int i = 0; i < 2; i++) {
        close_stream(run, &run->streams[i]);
        buffer_free(&run->streams[i].kept);
    }
    guest_loop_timer_stop(loop_of(run), &run->timer);
    children_forget(&run->request->guest->children, &run->child);
    free(run->cwd);
    free(run);
}

static size_t count_lines(const struct buffer *text)
{
    size_t count = 0;
    for (size_t i = 0; i < text->len; i++)
        count += text->data[i] == '\n' || (i + 1 == text->len);
    return count;
}

static json_t *stream_text(struct stream *stream)
{
    if (stream->is_cut) {
        stream->kept.len = utf8_cut(buffer_text(&stream->kept), stream->kept.len);
        bool has_line_end = stream->kept.len && stream->kept.data[stream->kept.len - 1] == '\n';
        buffer_format(&stream->kept, "%s...[output truncated to %d bytes]\n", has_line_end ? "" : "\n",
                      MAX_OUTPUT_BYTES);
    }
    return json_from_bytes(buffer_text(&stream->kept), stream->kept.len);
}

static void add_timeout_line(struct run *run)
{
    struct buffer *text = &run->streams[1].kept;
    bool needs_line_end = text->len && text->data[text->len - 1] != '\n';
    buffer_format(text, "%s[codexpro] Command timed out after %lld ms.", needs_line_end ? "\n" : "",
                  (long long)run->timeout_ms);
}

static void set_end(const struct run *run, json_t *structured)
{
    int status = run->child.wait_status;
    bool has_code = run->has_exited && WIFEXITED(status);
    const char *abbreviation = run->has_exited && WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : NULL;
    CLEANUP_FREE char *name = abbreviation ? mem_format("SIG%s", abbreviation) : NULL;
    json_object_set_new(structured, "exitCode", has_code ? json_integer(WEXITSTATUS(status)) : json_null());
    json_object_set_new(structured, "signal",
                        name              ? json_string(name)
                        : run->has_exited ? json_null()
                                          : json_string("SIGKILL"));
}

static char *result_text(const json_t *structured, const struct run *run)
{
    const json_t *code = json_object_get(structured, "exitCode");
    CLEANUP_FREE char *end = json_is_integer(code)
                                 ? mem_format("%lld", (long long)json_integer_value(code))
                                 : mem_format("signal %s", json_get_text(structured, "signal"));
    return mem_format("`%s`\nCWD: %s\nExit: %s\nDuration: %lld ms\nstdout: %zu lines\nstderr: %zu lines%s",
                      json_get_text(structured, "command"), run->cwd, end,
                      (long long)json_get_int(structured, "durationMs", 0),
                      count_lines(&run->streams[0].kept), count_lines(&run->streams[1].kept),
                      json_get_bool(structured, "truncated", false) ? "\nOutput was truncated." : "");
}

static void finish(struct run *run)
{
    struct request *request = run->request;
    json_t *to = guest_tool_start_structured(request->tool, &request->guest->workspace);
    json_object_set(to, "command", json_object_get(request->args, "command"));
    json_set_text(to, "cwd", run->cwd);
    set_end(run, to);
    json_object_set_new(to, "durationMs", json_integer(boot_time_now().ms - run->started.ms));
    json_object_set_new(to, "stdout", stream_text(&run->streams[0]));
    bool is_cut = run->streams[0].is_cut || run->streams[1].is_cut;
    CLEANUP_JSON json_t *errors = NULL;
    if (!run->streams[1].is_cut && run->is_timed_out)
        add_timeout_line(run);
    errors = stream_text(&run->streams[1]);
    if (run->streams[1].is_cut &&
        run->is_timed_out) { // the line stands behind the note, so that it is the last
        add_timeout_line(run);
        json_decref(errors);
        errors = json_from_bytes(run->streams[1].kept.data, run->streams[1].kept.len);
    }
    json_object_set(to, "stderr", errors);
    json_object_set_new(to, "truncated", json_boolean(is_cut));
    json_object_set_new(to, "bash_session_id", json_null());
    CLEANUP_FREE char *text = result_text(to, run);
    free_run(run);
    request_answer(request, guest_tool_result(to, text, strlen(text)));
}

static void finish_if_done(struct run *run)
{
    if (run->has_exited && run->streams[0].source.fd < 0 && run->streams[1].source.fd < 0)
        finish(run);
}

static void keep(struct run *run, struct stream *stream, const char *bytes, size_t len)
{
    size_t used = run->streams[0].kept.len + run->streams[1].kept.len;
    size_t room = used < MAX_OUTPUT_BYTES ? MAX_OUTPUT_BYTES - used : 0;
    if (len > room)
        stream->is_cut = true;
    buffer_append(&stream->kept, bytes, len < room ? len : room);
}

static void read_stream(struct run *run, struct stream *stream)
{
    static char bytes[64 * 1024]; // loop thread only
    ssize_t n = read(stream->source.fd, bytes, sizeof(bytes));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n > 0)
        keep(run, stream, bytes, (size_t)n);
    else
        close_stream(run, stream);
    finish_if_done(run);
}

static void out_ready(struct loop_source *source, uint32_t events)
{
    (void)events;
    struct run *run = CONTAINER_OF(source, struct run, streams[0].source);
    read_stream(run, &run->streams[0]);
}

static void errors_ready(struct loop_source *source, uint32_t events)
{
    (void)events;
    struct run *run = CONTAINER_OF(source, struct run, streams[1].source);
    read_stream(run, &run->streams[1]);
}

static void exited(struct child *child)
{
    struct run *run = CONTAINER_OF(child, struct run, child);
    run->has_exited = true;
    finish_if_done(run);
}

static void give_up(struct loop_timer *timer)
{
    finish(CONTAINER_OF(timer, struct run, timer));
}

static void kill_now(struct loop_timer *timer)
{
    struct run *run = CONTAINER_OF(timer, struct run, timer);
    child_signal_group(&run->child, SIGKILL);
    run->timer.fire = give_up;
    guest_loop_timer_start(loop_of(run), &run->timer, GIVE_UP_MS);
}

static void time_is_up(struct loop_timer *timer)
{
    struct run *run = CONTAINER_OF(timer, struct run, timer);
    run->is_timed_out = true;
    child_signal_group(&run->child, SIGTERM);
    run->timer.fire = kill_now;
    guest_loop_timer_start(loop_of(run), &run->timer, KILL_AFTER_MS);
}

static void cancel(struct request *request)
{
    struct run *run = request->context;
    child_signal_group(&run->child, SIGKILL);
    free_run(run);
    request_fail_cancelled(request);
}

static int open_stream(struct run *run, struct stream *stream, void (*ready)(struct loop_source *, uint32_t),
                       int *ret_write_fd, struct error *err)
{
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) < 0)
        return guest_tool_fail_errno(err, errno, "pipe");
    stream->source = (struct loop_source){.fd = pair[0], .events = EPOLLIN, .ready = ready};
    fs_set_nonblocking(pair[0], true);
    *ret_write_fd = pair[1];
    return guest_loop_add(loop_of(run), &stream->source, err);
}

static int spawn(struct run *run, const char *command, int cwd_fd, struct error *err)
{
    struct guest *guest = run->request->guest;
    CLEANUP_CLOSE int out = -1;
    CLEANUP_CLOSE int errors = -1;
    if (open_stream(run, &run->streams[0], out_ready, &out, err) < 0 ||
        open_stream(run, &run->streams[1], errors_ready, &errors, err) < 0)
        return -1;
    char *argv[] = {(char *)"/bin/bash", (char *)"-lc", (char *)command, NULL};
    struct child_spec spec = {.program = argv[0],
                              .argv = argv,
                              .envp = guest->environment.vars,
                              .cwd_fd = cwd_fd,
                              .stdio = {-1, out, errors}};
    int number = 0;
    if (children_spawn(&guest->children, &spec, &run->child, &number, err) == 0)
        return 0;
    return number == E2BIG ? error_context(err, "CodexProError")
                           : guest_tool_fail_errno(err, number, "spawn /bin/bash");
}

// A directory that is not there fails in the words that clients know of a spawn.
static int reword_cwd(struct error *err, const char *cwd)
{
    static const struct {
        const char *begins, *word;
    } words[] = {{"Error: ENOENT", "spawn /bin/bash ENOENT"}, {"Error: ENOTDIR", "spawn ENOTDIR"}};
    for (size_t i = 0; err && i < ARRAY_LEN(words); i++)
        if (strncmp(err->message, words[i].begins, strlen(words[i].begins)) == 0)
            return error_set(err, err->code, "name a directory that is there", "Error: %s: cwd %.200s",
                             words[i].word, cwd);
    return -1;
}

static int begin(struct request *request, const json_t *call_args, struct error *err)
{
    const json_t *command = json_object_get(call_args, "command"), *cwd = json_object_get(call_args, "cwd");
    const char *text = json_string_value(command);
    CLEANUP_PLACE struct place place = PLACE_INIT;
    if (!text[strspn(text, " \t\r\n")])
        return guest_tool_fail(err, NULL, "command is required.");
    if (strlen(text) != json_string_length(command))
        return guest_tool_fail_type(err, "The argument 'command' must be a string without null bytes");
    if (workspace_open_place(&request->guest->workspace, json_string_value(cwd), json_string_length(cwd),
                             O_RDONLY | O_DIRECTORY, &place, err) < 0)
        return reword_cwd(err, json_string_value(cwd));
    struct run *run = mem_alloc(sizeof(*run));
    run->request = request;
    run->started = boot_time_now();
    run->timeout_ms = json_get_int(call_args, "timeout_ms", 30000);
    run->cwd = mem_strdup(place.path);
    run->child.exited = exited;
    for (int i = 0; i < 2; i++) {
        run->streams[i].source.fd = -1;
        run->streams[i].kept = (struct buffer)BUFFER_INIT(MAX_OUTPUT_BYTES + 256);
    }
    if (spawn(run, text, place.fd, err) < 0) {
        free_run(run);
        return -1;
    }
    request->context = run;
    request->cancel = cancel;
    run->timer.fire = time_is_up;
    guest_loop_timer_start(loop_of(run), &run->timer, run->timeout_ms);
    return 0;
}

static void start(struct request *request, const json_t *call_args)
{
    struct error err = ERROR_INIT;
    if (begin(request, call_args, &err) < 0)
        request_answer(request, guest_tool_failure(request->tool, &err));
}

const struct tool guest_tool_bash = {
    .name = "bash",
    .title = "Run command",
    .description = "Run one command with bash -lc in the workspace and wait for its end. Output is returned "
                   "unchanged, the first "
                   "120000 bytes of it. At the time limit the command is ended.",
    .args = args,
    .fields = fields,
    .hints = {.is_destructive = true, .is_open_world = true},
    .start = start,
};
