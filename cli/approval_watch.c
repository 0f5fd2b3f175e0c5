// approval watch: a line for each change, and a program for each approval that waits. It outlives restarts of the daemon: what it
// has told already is not told again.
#include "api/client/watch.h"
#include "cli/approval_hooks.h"
#include "cli/approvals.h"
#include "cli/objects.h"
#include "cli/printers/print.h"
#include "cli/terminal.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include "controller/thread.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define RETRY_FIRST_MS 200
#define RETRY_MAX_MS 5000

struct watching {
    struct invocation *in;
    struct approval_filter filter;
    bool only_pending;
    json_t *known; // uid: {object, seen, line}: what was told last, and the status in its line
    struct hooks *hooks; // NULL: none
    int leave_fd;  // loses its reader when it is to end
    bool is_synced; // the daemon answered
};

// ---- lines ----------------------------------------------------------------------------------------------------------------------
static void print_json_line(const struct invocation *in, const char *type, const json_t *approval)
{
    CLEANUP_JSON json_t *event = json_pack("{s:s, s:O}", "type", type, "object", approval), *shown = object_shown(in, event);
    CLEANUP_FREE char *text = json_to_text(shown);
    CLEANUP_FREE char *line = mem_format("%s\n", text);
    print_text(line);
}

static void print_line(const struct watching *watching, const char *type, const json_t *approval)
{
    bool is_deleted = strcmp(type, "DELETED") == 0;
    const char *status = is_deleted ? "deleted" : approval_status(approval, "phase");
    if (invocation_is_output(watching->in, "json")) {
        print_json_line(watching->in, type, approval);
    } else if (invocation_is_output(watching->in, "name")) {
        CLEANUP_FREE char *line = mem_format("approval/%s\n", object_name(approval));
        print_text(line);
    } else {
        CLEANUP_FREE char *cells = mem_format("%-9s  %-36s  %-6s  %-20s  %s", status, object_name(approval), approval_spec(approval, "mode"),
                                              approval_spec(approval, "requester"), approval_spec(approval, "path"));
        CLEANUP(text_table_free) struct text_table row = {0};
        text_table_add_row(&row, (const char *[]){cells}, 1); // one line, whatever is in it
        text_table_print(&row, true);
    }
}

// ---- what was told --------------------------------------------------------------------------------------------------------------
static const char *version_of(const json_t *object)
{
    const char *version = json_get_text(json_object_get(object, "metadata"), "resourceVersion");
    return version ? version : "";
}

// True if it is news.
static bool remember(struct watching *watching, json_t *approval)
{
    json_t *before = json_object_get(watching->known, object_uid(approval));
    bool is_same = before && strcmp(version_of(json_object_get(before, "object")), version_of(approval)) == 0;
    json_t *now = json_pack("{s:O, s:b}", "object", approval, "seen", 1), *line = json_object_get(before, "line");
    if (line)
        json_object_set(now, "line", line);
    json_object_set_new(watching->known, object_uid(approval), now);
    return !is_same;
}

// A line shows of what can change the status only: a change of anything else would be the same line again.
static bool has_new_line(struct watching *watching, const json_t *approval)
{
    json_t *entry = json_object_get(watching->known, object_uid(approval));
    const char *before = json_get_text(entry, "line"), *status = approval_status(approval, "phase");
    if (invocation_is_output(watching->in, "json"))
        return true;
    bool is_new = !before || strcmp(before, status) != 0;
    json_object_set_new(entry, "line", json_string(status));
    return is_new;
}

static void mark_unseen(struct watching *watching)
{
    const char *uid;
    json_t *entry;
    json_object_foreach(watching->known, uid, entry) json_object_set_new(entry, "seen", json_false());
}

static void tell_hooks(struct watching *watching, const json_t *approval, bool is_gone)
{
    if (!watching->hooks)
        return;
    if (!is_gone && approval_is_open(approval))
        hooks_offer(watching->hooks, approval);
    else if (is_gone || !approval_is_pending(approval))
        hooks_settle(watching->hooks, object_uid(approval));
}

static void tell(struct watching *watching, const char *type, const json_t *approval, bool is_gone)
{
    if (!approval_filter_holds(&watching->filter, approval))
        return;
    tell_hooks(watching, approval, is_gone);
    if (watching->only_pending && (is_gone || !approval_is_open(approval)))
        return;
    if (is_gone || has_new_line(watching, approval))
        print_line(watching, type, approval);
}

static void forget(struct watching *watching, const json_t *approval)
{
    tell(watching, "DELETED", approval, true);
    json_object_del(watching->known, object_uid(approval));
}

// What was there before and is not told again has gone meanwhile.
static void forget_unseen(struct watching *watching)
{
    void *next;
    const char *uid;
    json_t *entry;
    json_object_foreach_safe(watching->known, next, uid, entry) if (!json_get_bool(entry, "seen", true))
    {
        CLEANUP_JSON json_t *approval = json_incref(json_object_get(entry, "object"));
        forget(watching, approval);
    }
}

static int on_event(void *arg, size_t ask, enum watch_type type, json_t *object, struct error *err)
{
    struct watching *watching = arg;
    (void)ask, (void)err;
    if (type == WATCH_RESTART)
        mark_unseen(watching);
    else if (type == WATCH_SYNCED)
        forget_unseen(watching);
    else if (type == WATCH_DELETED)
        forget(watching, object);
    else {
        bool is_known = json_object_get(watching->known, object_uid(object)) != NULL;
        if (remember(watching, object))
            tell(watching, is_known ? "MODIFIED" : "ADDED", object, false);
    }
    watching->is_synced = true;
    return fflush(stdout) != 0 || ferror(stdout); // nobody listens
}

// ---- staying ----------------------------------------------------------------------------------------------------------------------
static bool is_told_to_leave(const struct watching *watching, int wait_ms)
{
    struct pollfd at = {.fd = watching->leave_fd};
    return poll(&at, 1, wait_ms) > 0;
}

static bool is_passing(enum error_code code)
{
    return code == ERROR_UNREACHABLE || code == ERROR_UNAVAILABLE || code == ERROR_TIMEOUT;
}

static int follow(struct watching *watching, const struct rest *rest, struct error *err)
{
    CLEANUP_FREE char *path = rest_path(approval_info(), NULL);
    const struct watch_ask ask = {.path = path};
    bool was_there = false;
    for (int wait_ms = RETRY_FIRST_MS;; wait_ms = wait_ms * 2 < RETRY_MAX_MS ? wait_ms * 2 : RETRY_MAX_MS) {
        struct error why = ERROR_INIT;
        watching->is_synced = false;
        mark_unseen(watching);
        int r = watch_follow(rest, &ask, 1, WATCH_FOREVER, watching->leave_fd, on_event, watching, &why);
        was_there |= watching->is_synced;
        if (r >= 0)
            return 0;
        if (!was_there || !is_passing(why.code))
            return error_copy(err, &why);
        if (watching->is_synced) {
            terminal_note("%s: waiting until it does again", why.message);
            wait_ms = RETRY_FIRST_MS;
        }
        if (is_told_to_leave(watching, wait_ms))
            return 0;
    }
}

// ---- being told to leave ------------------------------------------------------------------------------------------------------------
// With programs under way a signal must not just end this process: they are ended first.
struct interrupt {
    pthread_t thread;
    sigset_t signals;
    int pipe_fds[2]; // its reader closes when a signal comes
    int number;      // of the signal; written before the close
};

static void *await_signal(void *arg)
{
    struct interrupt *interrupt = arg;
    while (sigwait(&interrupt->signals, &interrupt->number) != 0)
        ;
    close(interrupt->pipe_fds[0]);
    return NULL;
}

static int interrupt_start(struct interrupt *interrupt, struct error *err)
{
    if (pipe2(interrupt->pipe_fds, O_CLOEXEC) < 0)
        return error_errno(err, errno, NULL, "cannot make a pipe");
    sigemptyset(&interrupt->signals);
    sigaddset(&interrupt->signals, SIGINT);
    sigaddset(&interrupt->signals, SIGTERM);
    sigaddset(&interrupt->signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &interrupt->signals, NULL);
    signal(SIGPIPE, SIG_IGN); // a reader that has gone is seen at the write
    if (thread_start(&interrupt->thread, "signals", await_signal, interrupt, err) == 0)
        return 0;
    close(interrupt->pipe_fds[0]);
    close(interrupt->pipe_fds[1]);
    return -1;
}

// 0, or the exit code of the signal.
static int interrupt_end(struct interrupt *interrupt)
{
    struct pollfd at = {.fd = interrupt->pipe_fds[1]};
    bool is_told = poll(&at, 1, 0) > 0;
    if (!is_told)
        pthread_kill(interrupt->thread, SIGTERM);
    pthread_join(interrupt->thread, NULL);
    close(interrupt->pipe_fds[1]);
    return is_told ? 128 + interrupt->number : 0;
}

// ---- with programs --------------------------------------------------------------------------------------------------------------------
static int read_parallel(const struct invocation *in, struct error *err)
{
    const char *text = invocation_option(in, "parallel");
    char *end = NULL;
    long number = text ? strtol(text, &end, 10) : 1;
    if (!text || (*text && !*end && number >= 1 && number <= HOOKS_PARALLEL_MAX))
        return (int)number;
    return error_set(err, ERROR_USAGE, "give a number like --parallel 4", "--parallel is from 1 to %d, not '%.40s'", HOOKS_PARALLEL_MAX, text);
}

// A name without a slash is looked for in PATH, as a shell would.
static char *find_program(const char *word, struct error *err)
{
    CLEANUP_FREE char *paths = mem_strdup(getenv("PATH") ? getenv("PATH") : "/usr/local/bin:/usr/bin:/bin");
    char *rest = NULL;
    if (strchr(word, '/')) {
        char *resolved = realpath(word, NULL);
        if (!resolved || access(resolved, X_OK) < 0) {
            error_errno(err, errno, "give a program that can be run", "cannot run %s", word);
            free(resolved);
            return NULL;
        }
        return resolved;
    }
    for (const char *dir = strtok_r(paths, ":", &rest); dir; dir = strtok_r(NULL, ":", &rest)) {
        CLEANUP_FREE char *path = mem_format("%s/%s", dir, word);
        if (dir[0] == '/' && access(path, X_OK) == 0)
            return TAKE_PTR(path);
    }
    error_set(err, ERROR_NOT_FOUND, "give its path, like --exec ./decide", "there is no program %s in PATH", word);
    return NULL;
}

// PROGRAM, the arguments, and those behind --.
static const char **make_argv(const struct invocation *in, const char *program)
{
    size_t more = 0, at = 0;
    while (in->rest && in->rest[more])
        more++;
    const char **argv = mem_alloc(((size_t)in->argument_count + more + 2) * sizeof(*argv));
    argv[at++] = program;
    for (int i = 0; i < in->argument_count; i++)
        argv[at++] = in->arguments[i];
    for (size_t i = 0; i < more; i++)
        argv[at++] = in->rest[i];
    return argv;
}

static int follow_with_hooks(struct watching *watching, const struct rest *rest, const struct hook_options *options, struct error *err)
{
    struct interrupt interrupt = {0};
    if (interrupt_start(&interrupt, err) < 0)
        return -1;
    watching->leave_fd = interrupt.pipe_fds[1];
    int r = hooks_start(options, &watching->hooks, err);
    if (r == 0)
        r = follow(watching, rest, err);
    hooks_stop(watching->hooks);
    watching->in->exit_code = interrupt_end(&interrupt);
    return r;
}

static int run_with_hooks(struct watching *watching, const struct rest *rest, const char *program, struct error *err)
{
    const struct invocation *in = watching->in;
    int parallel = read_parallel(in, err), timeout_s = parallel < 0 ? -1 : wait_seconds(in, err);
    CLEANUP_FREE char *path = timeout_s < 0 ? NULL : find_program(program, err);
    CLEANUP_FREE char *here = getcwd(NULL, 0);
    if (!path)
        return -1;
    CLEANUP_FREE const char **argv = make_argv(in, program);
    const struct hook_options options = {.rest = rest, .path = path, .argv = argv, .directory = here, .parallel = parallel, .timeout_ms = timeout_s * 1000};
    return follow_with_hooks(watching, rest, &options, err);
}

static int check(const struct invocation *in, const char *program, struct error *err)
{
    bool has_more = in->argument_count || in->rest || invocation_option(in, "parallel") || invocation_option(in, "timeout");
    return program || !has_more ? 0
                                : error_set(err, ERROR_USAGE, "chat2shell approval watch --exec PROGRAM ARG…",
                                            "arguments, --parallel and --timeout are for a program, and --exec is missing");
}

int approval_run_watch(struct invocation *in, struct error *err)
{
    struct watching watching = {.in = in, .only_pending = invocation_switch(in, "pending", false), .known = json_object(), .leave_fd = STDOUT_FILENO};
    const char *program = invocation_option(in, "exec");
    const struct rest *rest = NULL;
    int r = check(in, program, err) < 0 || approval_filter_read(in, &watching.filter, err) < 0 || !(rest = invocation_rest(in, err)) ? -1 : 0;
    if (r == 0)
        r = program ? run_with_hooks(&watching, rest, program, err) : follow(&watching, rest, err);
    approval_filter_clear(&watching.filter);
    json_decref(watching.known);
    return r;
}
