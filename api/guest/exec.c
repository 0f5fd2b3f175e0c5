// Starting, signalling and forgetting the operator's programs. No shell: argv as it is, with a PATH search.
#include "api/guest/exec_state.h"
#include "api/guest/params.h"
#include "api/guest/terminal.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define MAX_ARGS 4096

static struct exec *find(struct guest *guest, const char *id)
{
    struct exec *exec = guest->execs;
    while (exec && strcmp(exec->id, id) != 0)
        exec = exec->next;
    return exec;
}

struct exec *exec_of_request(struct request *request)
{
    struct error err = ERROR_INIT;
    const char *id;
    if (params_get_text(request->params, "exec_id", &id, &err) < 0) {
        request_fail(request, RPC_INVALID_PARAMS, &err);
        return NULL;
    }
    struct exec *exec = find(request->guest, id);
    if (!exec) {
        error_set(&err, ERROR_NOT_FOUND, NULL, "Unknown exec: %s", id);
        request_fail(request, GUEST_ERROR_UNKNOWN_SESSION, &err);
    }
    return exec;
}

static void exited(struct child *child)
{
    struct exec *exec = CONTAINER_OF(child, struct exec, child);
    exec->has_exited = true;
    exec->exit_code = child_exit_code(child->wait_status);
    exec_program_ended(exec);
}

void exec_drop(struct exec *exec)
{
    children_forget(&exec->guest->children, &exec->child);
    child_signal_group(&exec->child, SIGKILL);
    exec_end_io(exec);
    guest_loop_timer_stop(&exec->guest->loop, &exec->hangup);
    exec->guest->exec_count--;
    free(exec->failure);
    free(exec);
}

// --- what to start

struct program {
    char **argv; // borrowed texts
    char *path;
    struct environment environment;
    int cwd_fd;
    bool has_terminal;
    struct terminal_size size;
};

static void program_free(struct program *program)
{
    free(program->argv);
    free(program->path);
    environment_free(&program->environment);
    if (program->cwd_fd >= 0)
        close(program->cwd_fd);
}

static int parse_argv(const json_t *params, struct program *program, struct error *err)
{
    const json_t *argv = json_object_get(params, "argv");
    size_t count = json_array_size(argv);
    if (count < 1 || count > MAX_ARGS)
        return error_set(err, ERROR_INVALID, NULL, "argv must be an array of 1 to %d strings", MAX_ARGS);
    program->argv = mem_alloc((count + 1) * sizeof(char *));
    for (size_t i = 0; i < count; i++) {
        const json_t *arg = json_array_get(argv, i);
        if (!json_is_string(arg) || strlen(json_string_value(arg)) != json_string_length(arg))
            return error_set(err, ERROR_INVALID, NULL, "argv[%zu] must be a string without NUL characters",
                             i);
        program->argv[i] = (char *)json_string_value(arg);
    }
    return 0;
}

static int parse_env(const json_t *params, struct program *program, struct error *err)
{
    json_t *env = json_object_get(params, "env"), *value;
    const char *name;
    if (env && !json_is_object(env))
        return error_set(err, ERROR_INVALID, NULL, "env must be an object of strings");
    json_object_foreach(env, name, value)
    {
        if (!json_is_string(value) || !*name || strchr(name, '=') ||
            strlen(json_string_value(value)) != json_string_length(value))
            return error_set(err, ERROR_INVALID, NULL, "env.%s must be a string", name);
        environment_set(&program->environment, name, json_string_value(value));
    }
    return 0;
}

// The operator may start anywhere in the sandbox; a relative cwd is below the workspace.
static int open_cwd(const struct guest *guest, const json_t *params, struct program *program,
                    struct error *err)
{
    const char *cwd;
    if (params_get_optional_text(params, "cwd", &cwd, err) < 0)
        return -1;
    program->cwd_fd =
        openat(guest->workspace.root_fd, cwd && *cwd ? cwd : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return program->cwd_fd < 0
               ? error_errno(err, errno, "give a directory", "cannot work in %s", cwd ? cwd : ".")
               : 0;
}

// As a shell looks for it: names with a slash as they are, others along PATH.
static char *find_program(const struct program *program)
{
    const char *name = program->argv[0], *path = environment_get(&program->environment, "PATH");
    if (strchr(name, '/') || !path)
        return mem_strdup(name);
    char *found = NULL; // there, but not executable: reported as such if nothing better comes
    while (*path) {
        size_t len = strcspn(path, ":");
        char *candidate = mem_format("%.*s/%s", len ? (int)len : 1, len ? path : ".", name);
        struct stat meta;
        bool is_file = stat(candidate, &meta) == 0 && S_ISREG(meta.st_mode);
        bool is_runnable = is_file && access(candidate, X_OK) == 0;
        if (is_runnable || (is_file && !found)) {
            free(found);
            found = TAKE_PTR(candidate);
        }
        free(candidate);
        if (is_runnable)
            return found;
        path += len + (path[len] == ':');
    }
    return found;
}

static int parse_terminal(const json_t *params, struct program *program, struct error *err)
{
    const json_t *tty = json_object_get(params, "tty");
    const char *term;
    if (!tty)
        return 0;
    if (terminal_read(tty, &program->size, &term, err) < 0)
        return -1;
    terminal_set_environment(&program->environment, term);
    program->has_terminal = true;
    return 0;
}

static int parse_program(struct guest *guest, const json_t *params, struct program *program,
                         struct error *err)
{
    environment_copy(&guest->environment, &program->environment);
    if (parse_argv(params, program, err) < 0 || parse_terminal(params, program, err) < 0 || parse_env(params, program, err) < 0 ||
        open_cwd(guest, params, program, err) < 0)
        return -1;
    program->path = find_program(program);
    return 0;
}

// --- starting

static void note_failure(struct exec *exec, const char *name, int errno_value)
{
    exec->has_exited = true;
    exec->exit_code = errno_value == ENOENT ? 127 : 126;
    exec->failure =
        mem_format("%s: %s\n", name, errno_value == ENOENT ? "command not found" : strerror(errno_value));
}

static void close_pair(int (*pair)[2])
{
    for (int i = 0; i < 2; i++)
        if ((*pair)[i] >= 0)
            close((*pair)[i]);
}

// A failed start is the program's result, as in a shell. False: it was one.
static bool start_child(struct exec *exec, const struct program *program, struct child_spec *spec)
{
    int number = program->path ? 0 : ENOENT;
    spec->program = program->path;
    spec->argv = program->argv;
    spec->envp = program->environment.vars;
    spec->cwd_fd = program->cwd_fd;
    if (!number)
        children_spawn(&exec->guest->children, spec, &exec->child, &number, NULL);
    if (number)
        note_failure(exec, program->argv[0], number);
    return number == 0;
}

// The master is there twice, so that its two directions can be watched apart.
static int spawn_on_terminal(struct exec *exec, const struct program *program, struct error *err)
{
    CLEANUP_FREE char *slave = NULL;
    CLEANUP_CLOSE int master = -1;
    if (terminal_open(&program->size, &master, &slave, err) < 0)
        return -1;
    CLEANUP_CLOSE int second = fcntl(master, F_DUPFD_CLOEXEC, 3);
    if (second < 0)
        return error_errno(err, errno, NULL, "cannot open a terminal");
    if (!start_child(exec, program, &(struct child_spec){.terminal = slave}))
        return 0;
    exec->has_terminal = true;
    exec->leader = exec->child.pid;
    exec->in.fd = TAKE_FD(master);
    exec->out[0].fd = TAKE_FD(second);
    return 0;
}

static int spawn(struct exec *exec, const struct program *program, struct error *err)
{
    CLEANUP(close_pair) int in[2] = {-1, -1};
    CLEANUP(close_pair) int out[2] = {-1, -1};
    CLEANUP(close_pair) int errors[2] = {-1, -1};
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(errors, O_CLOEXEC) < 0)
        return error_errno(err, errno, NULL, "cannot make a pipe");
    if (!start_child(exec, program, &(struct child_spec){.stdio = {in[0], out[1], errors[1]}}))
        return 0;
    exec->in.fd = TAKE_FD(in[1]);
    exec->out[0].fd = TAKE_FD(out[0]);
    exec->out[1].fd = TAKE_FD(errors[0]);
    fs_set_nonblocking(exec->in.fd, true);
    fs_set_nonblocking(exec->out[0].fd, true);
    fs_set_nonblocking(exec->out[1].fd, true);
    return 0;
}

static int start(struct guest *guest, const char *id, const struct program *program, struct error *err)
{
    struct exec *exec = mem_alloc(sizeof(*exec));
    exec->guest = guest;
    memcpy(exec->id, id, strlen(id));
    exec->child.exited = exited;
    exec_start_io(exec);
    guest->exec_count++;
    if ((program->has_terminal ? spawn_on_terminal(exec, program, err) : spawn(exec, program, err)) < 0) {
        exec_drop(exec);
        return -1;
    }
    exec->next = guest->execs;
    guest->execs = exec;
    return 0;
}

void exec_start_request(struct request *request)
{
    struct guest *guest = request->guest;
    struct error err = ERROR_INIT;
    const char *id;
    int code = RPC_INVALID_PARAMS;
    CLEANUP(program_free) struct program program = {.cwd_fd = -1};
    if (params_get_text(request->params, "exec_id", &id, &err) == 0) {
        if (!*id || strlen(id) > EXEC_ID_MAX || find(guest, id)) {
            error_set(&err, ERROR_INVALID, NULL, "exec_id must be new and 1 to %d characters", EXEC_ID_MAX);
        } else if (guest->exec_count >= GUEST_MAX_EXECS) {
            code = GUEST_ERROR_LIMIT;
            error_set(&err, ERROR_LIMIT, "end some first", "%d programs are running", GUEST_MAX_EXECS);
        } else if (parse_program(guest, request->params, &program, &err) == 0) {
            code = RPC_INTERNAL_ERROR;
            start(guest, id, &program, &err);
        }
    }
    if (err.code)
        request_fail(request, code, &err);
    else
        request_answer(request, json_object());
}

void exec_signal_request(struct request *request)
{
    struct error err = ERROR_INIT;
    int64_t signal;
    struct exec *exec = exec_of_request(request);
    if (!exec)
        return;
    if (params_get_int(request->params, "signal", 1, 64, &signal, &err) < 0) {
        request_fail(request, RPC_INVALID_PARAMS, &err);
        return;
    }
    child_signal_group(&exec->child, (int)signal);
    request_answer(request, json_object());
}

void exec_resize_request(struct request *request)
{
    struct error err = ERROR_INIT;
    int64_t columns = 0, rows = 0;
    struct exec *exec = exec_of_request(request);
    if (!exec)
        return;
    if (params_get_int(request->params, "columns", 0, UINT16_MAX, &columns, &err) == 0 &&
        params_get_int(request->params, "rows", 0, UINT16_MAX, &rows, &err) == 0 && !exec->has_terminal)
        error_set(&err, ERROR_INVALID, NULL, "%s has no terminal", exec->id);
    if (err.code) {
        request_fail(request, RPC_INVALID_PARAMS, &err);
        return;
    }
    const struct terminal_size size = {(uint16_t)columns, (uint16_t)rows};
    if (exec->out[0].fd >= 0)
        terminal_resize(exec->out[0].fd, &size);
    request_answer(request, json_object());
}

// ---- ending

static struct exec **place_of(const struct exec *exec)
{
    struct exec **at = &exec->guest->execs;
    while (*at != exec)
        at = &(*at)->next;
    return at;
}

static void forget(struct exec *exec)
{
    *place_of(exec) = exec->next;
    exec_drop(exec);
}

static void hangup_is_over(struct loop_timer *timer)
{
    struct exec *exec = CONTAINER_OF(timer, struct exec, hangup);
    terminal_kill_session(exec->leader, exec->child.pid == 0);
    forget(exec);
}

// The terminal goes: its shell gets SIGHUP and passes it on to its jobs. What of the session is left then is killed; only what
// made a session of its own lives on, as behind a modem.
static void hang_up(struct exec *exec)
{
    exec->id[0] = '\0'; // nobody finds it any more
    exec_end_io(exec);
    exec->hangup.fire = hangup_is_over;
    guest_loop_timer_start(&exec->guest->loop, &exec->hangup, EXEC_HANGUP_MS);
}

void exec_end_request(struct request *request)
{
    struct exec *exec = exec_of_request(request);
    if (!exec)
        return;
    if (exec->has_terminal && !exec->has_exited)
        hang_up(exec);
    else
        forget(exec);
    request_answer(request, json_object());
}

void execs_free(struct guest *guest)
{
    while (guest->execs) {
        struct exec *exec = guest->execs;
        guest->execs = exec->next;
        exec_drop(exec);
    }
}
