// Starting a tool server as one held foreground process. Before anything else it prints a private marker: what comes before it
// on stdout (banners, notices, an error of the container's engine) is ours to read, what comes after it is the tool server's.
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/base/random.h"
#include "reconcilers/drivers/sbx/sbx.h"
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#define PREAMBLE_MAX_BYTES (64 * 1024)
#define TOKEN_DIGITS 64 // 256 bits
#define TOKEN_VARIABLE "CODEXPRO_HTTP_TOKEN"
#define PID_FILE "/tmp/.chat2shell-session"

// $1 marker, $2 the file that keeps the process's number (it leads its own group), then the command.
static const char start_script[] = "echo \"$$\" > \"$2\"\n"
                                   "command -v \"$3\" > /dev/null 2>&1 || { echo \"ERROR: there is no $3 in the sandbox\" >&2; exit 127; }\n"
                                   "printf '%s\\n' \"$1\"; shift 2; exec \"$@\"\n";
// $1 the file: asks the process to end, then ends it and its group.
static const char end_script[] = "p=$(cat \"$1\") && [ \"$p\" -gt 1 ] || exit 0\n"
                                 "kill -TERM \"$p\" 2> /dev/null || exit 0\n"
                                 "for i in 1 2 3 4 5 6 7 8 9 10; do kill -0 \"$p\" 2> /dev/null || exit 0; sleep 0.2; done\n"
                                 "kill -KILL -- \"-$p\" 2> /dev/null; kill -KILL \"$p\" 2> /dev/null; exit 0\n";

struct sbx_session_start {
    struct sbx *sbx;
    struct runtime *runtime;
    struct call *call;
    struct held *held;
    struct held_streams streams;
    struct loop_source *source; // of output_fd, until the marker
    struct loop_timer *timer;
    char marker[INSIDE_MARKER_DIGITS + 1];
    struct buffer preamble;
    size_t line_start;
    bool is_published; // asked for here
    int host_port;
    char *token;
    driver_session_fn done;
    void *arg;
};

// ---- the end of a start ------------------------------------------------------------------------------------------------

static void close_streams(struct sbx_session_start *start)
{
    int *const fds[] = {&start->streams.input_fd, &start->streams.output_fd, &start->streams.error_fd};
    loop_unwatch(TAKE_PTR(start->source));
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (*fds[i] >= 0)
            close(TAKE_FD(*fds[i]));
}

static void start_free(struct sbx_session_start *start)
{
    loop_cancel(TAKE_PTR(start->timer));
    close_streams(start);
    sbx_held_free(start->held);
    buffer_free(&start->preamble);
    cleanup_secret(&start->token);
    free(start);
}

static void fail(struct sbx_session_start *start, const struct error *err)
{
    if (start->runtime)
        start->runtime->starting = NULL;
    start->runtime = NULL;
    if (start->done) {
        start->done(start->arg, -1, NULL, err);
        start->done = NULL;
    }
    if (start->call)
        sbx_call_cancel(start->call); // its end frees
    else
        start_free(start);
}

void sbx_session_cancel(struct sbx_session_start *start, const struct error *err)
{
    fail(start, err);
}

static void on_deadline(void *arg)
{
    struct sbx_session_start *start = arg;
    struct error err = ERROR_INIT;
    start->timer = NULL;
    error_set(&err, ERROR_TIMEOUT, "look at: sbx daemon status", "the tool server did not start within %lld s", (long long)start->sbx->deadlines.session_ms / 1000);
    fail(start, &err);
}

static void succeed(struct sbx_session_start *start)
{
    struct runtime *runtime = start->runtime;
    struct driver_session session = {.input_fd = TAKE_FD(start->streams.input_fd),
                                     .output_fd = TAKE_FD(start->streams.output_fd),
                                     .error_fd = TAKE_FD(start->streams.error_fd),
                                     .port = start->host_port,
                                     .token = TAKE_PTR(start->token)};
    runtime->starting = NULL;
    runtime->held = TAKE_PTR(start->held);
    start->done(start->arg, 0, &session, NULL);
    start_free(start);
}

// ---- the end of a session ----------------------------------------------------------------------------------------------

struct ending {
    struct sbx *sbx;
    char *name;
};

static void on_ended_inside(void *arg, const struct call_result *result)
{
    struct ending *ending = arg;
    struct runtime *runtime = sbx_runtime_find(ending->sbx, ending->name);
    (void)result; // the sandbox's removal ends the rest
    if (runtime)
        runtime->ending_call = NULL;
    free(ending->name);
    free(ending);
}

// The client was killed on the host: what it had started lives on inside, and is ended there.
static void end_inside(struct runtime *runtime)
{
    const char *const texts[] = {"exec", runtime->name, "sh", "-c", end_script, "sh", PID_FILE, NULL};
    struct call_options options = {.subject = runtime->name, .deadline_ms = runtime->sbx->deadlines.call_ms};
    struct ending *ending = mem_alloc(sizeof(*ending));
    *ending = (struct ending){runtime->sbx, mem_strdup(runtime->name)};
    sbx_words_add_all(&options.words, texts);
    runtime->ending_call = sbx_call_start(runtime->sbx, &options, on_ended_inside, ending);
}

// ---- until the marker --------------------------------------------------------------------------------------------------

static void fail_early(struct sbx_session_start *start, int exit_code)
{
    struct error err = ERROR_INIT;
    CLEANUP(buffer_free) struct buffer errors = BUFFER_INIT(PREAMBLE_MAX_BYTES);
    if (start->streams.error_fd >= 0) {
        fs_set_nonblocking(start->streams.error_fd, true);
        fs_read_all(start->streams.error_fd, &errors, NULL);
    }
    CLEANUP_FREE char *all = mem_format("%s\n%s", buffer_text(&errors), buffer_text(&start->preamble));
    const struct call_result result = {.end = CALL_EXITED, .exit_code = exit_code, .verb = "exec", .subject = start->runtime->name, .output = all,
                                       .output_len = strlen(all), .printed = buffer_text(&start->preamble), .printed_len = start->preamble.len,
                                       .errors = buffer_text(&errors), .errors_len = errors.len};
    sbx_call_fail(&result, &err);
    if (exit_code == 127 && err.code == ERROR_IO) {
        err.code = ERROR_NOT_FOUND;
        error_hint(&err, "run: chat2shell setup; or choose another template");
        error_context(&err, "the tool server's program cannot be run in the sandbox");
    } else {
        error_context(&err, "the tool server did not start");
    }
    fail(start, &err);
}

// One byte at a time, because what follows the marker is not ours. True once the marker's line is read.
static bool read_preamble(struct sbx_session_start *start, bool *ret_is_ended)
{
    struct buffer *text = &start->preamble;
    char byte;
    for (;;) {
        ssize_t n = read(start->streams.output_fd, &byte, 1);
        if (n < 0 && errno == EINTR)
            continue;
        *ret_is_ended = n == 0 || (n < 0 && errno != EAGAIN) || text->len == PREAMBLE_MAX_BYTES;
        if (n != 1 || buffer_append_char(text, byte) < 0)
            return false;
        if (byte != '\n')
            continue;
        const char *line = text->data + start->line_start;
        size_t len = text->len - start->line_start - 1;
        start->line_start = text->len;
        if (len >= INSIDE_MARKER_DIGITS && strncmp(line, start->marker, INSIDE_MARKER_DIGITS) == 0)
            return true;
    }
}

static void on_output(void *arg, uint32_t events)
{
    struct sbx_session_start *start = arg;
    bool is_ended = false;
    (void)events;
    if (read_preamble(start, &is_ended)) {
        loop_unwatch(TAKE_PTR(start->source));
        succeed(start);
    } else if (is_ended) {
        loop_unwatch(TAKE_PTR(start->source)); // the client's end tells why
    }
}

static void on_held_started(void *arg, const struct held_streams *streams, const struct error *err)
{
    struct sbx_session_start *start = ((struct runtime *)arg)->starting;
    if (err) {
        start->held = NULL;
        fail(start, err);
        return;
    }
    start->streams = *streams;
    fs_set_nonblocking(streams->output_fd, true);
    start->source = loop_watch(start->sbx->loop, streams->output_fd, EPOLLIN, on_output, start);
}

// Of the client: before the marker it ends the start, after it the session.
static void on_held_ended(void *arg, int exit_code)
{
    struct runtime *runtime = arg;
    struct sbx_session_start *start = runtime->starting;
    bool is_ended;
    if (start) {
        start->held = NULL;
        read_preamble(start, &is_ended); // even with the marker among it: it ended at once
        fail_early(start, exit_code);
        return;
    }
    runtime->held = NULL;
    if (exit_code > 128 && !runtime->is_removing)
        end_inside(runtime);
}

// ---- the command -------------------------------------------------------------------------------------------------------

static void add_command(const struct sbx_session_start *start, struct words *words)
{
    const char *root = start->runtime->root;
    const char *const guest[] = {SBX_GUEST_PATH, "--root", root, "--stdio", NULL};
    const char *const codexpro[] = {SBX_CODEXPRO_PROGRAM, "--root", root, "--allow-root", root, "--host", "0.0.0.0", NULL};
    const char *const rest[] = {"--bash", "full", "--write", "workspace", "--tool-mode", "standard", NULL};
    if (start->token == NULL) {
        sbx_words_add_all(words, guest);
        return;
    }
    sbx_words_add_all(words, codexpro);
    sbx_words_add(words, "--port");
    sbx_words_add(words, "%d", SBX_CODEXPRO_PORT);
    sbx_words_add_all(words, rest);
}

// The token goes through the client's environment: `-e NAME` takes its value from there.
static char **environment_with(const struct sbx *sbx, const char *token)
{
    struct words all = {0};
    sbx_words_add_all(&all, (const char *const *)sbx->environment);
    sbx_words_add(&all, TOKEN_VARIABLE "=%s", token);
    return all.items;
}

static void begin_held(struct sbx_session_start *start)
{
    struct runtime *runtime = start->runtime;
    const struct held_events events = {on_held_started, on_held_ended, runtime};
    const char *const texts[] = {runtime->name, "sh", "-c", start_script, "sh", start->marker, PID_FILE, NULL};
    struct words words = {0};
    random_hex(start->marker, INSIDE_MARKER_DIGITS);
    sbx_words_add(&words, "exec");
    sbx_words_add(&words, "-i");
    if (start->token) {
        sbx_words_add(&words, "-e");
        sbx_words_add(&words, TOKEN_VARIABLE);
    }
    sbx_words_add_all(&words, texts);
    add_command(start, &words);
    start->held = sbx_held_start(start->sbx, &words, start->token ? environment_with(start->sbx, start->token) : NULL, &events);
}

// ---- before the command ------------------------------------------------------------------------------------------------

// False if the start was cancelled, or ended with this call's failure.
static bool settle_call(struct sbx_session_start *start, const struct call_result *result, const char *doing)
{
    struct error err = ERROR_INIT;
    start->call = NULL;
    if (start->runtime == NULL) {
        start_free(start);
        return false;
    }
    if (sbx_call_judge(result, &err) == 0)
        return true;
    error_context(&err, "%s", doing);
    fail(start, &err);
    return false;
}

static void on_copied(void *arg, const struct call_result *result)
{
    if (settle_call(arg, result, "the tool server cannot be copied into the sandbox"))
        begin_held(arg);
}

static void begin_copy(struct sbx_session_start *start)
{
    struct call_options options = {.subject = start->runtime->name, .deadline_ms = start->sbx->deadlines.call_ms};
    sbx_words_add(&options.words, "cp");
    sbx_words_add(&options.words, "%s/chat2shell-guest", start->sbx->program_dir);
    sbx_words_add(&options.words, "%s:" SBX_GUEST_PATH, start->runtime->name);
    start->call = sbx_call_start(start->sbx, &options, on_copied, start);
}

static void begin_ports(struct sbx_session_start *start);

static void on_published(void *arg, const struct call_result *result)
{
    if (settle_call(arg, result, "the tool server's port cannot be published"))
        begin_ports(arg);
}

// Where the create could not ask for it, or the sandbox had stopped meanwhile: sbx starts it for that. No host address in the
// request means loopback.
static void publish_port(struct sbx_session_start *start)
{
    struct call_options options = {.subject = start->runtime->name, .deadline_ms = start->sbx->deadlines.call_ms};
    sbx_words_add(&options.words, "ports");
    sbx_words_add(&options.words, "%s", start->runtime->name);
    sbx_words_add(&options.words, "--publish");
    sbx_words_add(&options.words, "%d", SBX_CODEXPRO_PORT);
    start->is_published = true;
    start->call = sbx_call_start(start->sbx, &options, on_published, start);
}

// The tool server's host port; 0 if there is none. On any other interface than loopback it would be open to the network.
static int find_port(const struct port_row_list *rows, struct error *err)
{
    int found = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const struct port_row *row = &rows->items[i];
        if (row->sandbox_port != SBX_CODEXPRO_PORT)
            continue;
        if (!sbx_port_row_is_loopback(row))
            return error_set(err, ERROR_REFUSED, "look at: sbx ports", "the tool server's port was published on %s instead of loopback", row->host_ip);
        if (strcmp(row->host_ip, "127.0.0.1") == 0)
            found = row->host_port;
    }
    return found;
}

static void on_ports(void *arg, const struct call_result *result)
{
    struct sbx_session_start *start = arg;
    struct error err = ERROR_INIT;
    CLEANUP_JSON json_t *json = NULL;
    CLEANUP_FREE struct port_row_list *rows = mem_alloc(sizeof(*rows));
    if (!settle_call(start, result, "the tool server's port cannot be looked up"))
        return;
    int port = sbx_call_json(result, &json, &err) < 0 || sbx_port_rows_read(json, rows, &err) < 0 ? -1 : find_port(rows, &err);
    if (port == 0 && !start->is_published) {
        publish_port(start);
        return;
    }
    if (port == 0)
        port = error_set(&err, ERROR_UNAVAILABLE, "look at: sbx ports", "sbx published the tool server's port and does not list it");
    start->host_port = port;
    if (port < 0)
        fail(start, &err);
    else
        begin_held(start);
}

static void begin_ports(struct sbx_session_start *start)
{
    sbx_ports_ask(start->sbx, start->runtime->name, on_ports, start, &start->call);
}

// ---- the start ---------------------------------------------------------------------------------------------------------

struct start_call {
    struct sbx *sbx;
    char *name;
    driver_session_fn done;
    void *arg;
};

static void begin(struct runtime *runtime, driver_session_fn done, void *arg)
{
    struct sbx_session_start *start = mem_alloc(sizeof(*start));
    *start = (struct sbx_session_start){.sbx = runtime->sbx, .runtime = runtime, .streams = {-1, -1, -1}, .preamble = BUFFER_INIT(PREAMBLE_MAX_BYTES),
                                    .done = done, .arg = arg};
    runtime->starting = start;
    start->timer = loop_after(start->sbx->loop, start->sbx->deadlines.session_ms, on_deadline, start);
    if (runtime->session == SESSION_GUEST) {
        begin_copy(start);
        return;
    }
    start->token = mem_alloc(TOKEN_DIGITS + 1);
    random_hex(start->token, TOKEN_DIGITS);
    begin_ports(start);
}

static void start_on_loop(void *arg)
{
    struct start_call *call = arg;
    struct runtime *runtime = sbx_runtime_find(call->sbx, call->name);
    struct error err = ERROR_INIT;
    if (runtime && runtime->is_made && !runtime->is_removing && !runtime->starting && !runtime->held) {
        begin(runtime, call->done, call->arg);
    } else {
        error_set(&err, ERROR_STATE, NULL, runtime && (runtime->starting || runtime->held) ? "the sandbox has a session already" : "the sandbox is not running");
        call->done(call->arg, -1, NULL, &err);
    }
    free(call->name);
    free(call);
}

void sbx_session_start(struct driver *driver, const char *name, driver_session_fn done, void *arg)
{
    struct start_call *call = mem_alloc(sizeof(*call));
    *call = (struct start_call){sbx_of(driver), mem_strdup(name), done, arg};
    loop_post(call->sbx->loop, start_on_loop, call);
}
