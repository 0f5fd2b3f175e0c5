#include "api/guest/command.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define TIME_LIMIT_MS 20000
#define LOOK_MS 250 // how often a long run looks whether its request was cancelled

struct command {
    struct child child;
    pthread_mutex_t lock; // guards has_exited
    pthread_cond_t changed;
    bool has_exited;
};

void command_result_free(struct command_result *result)
{
    buffer_free(&result->out);
    buffer_free(&result->errors);
}

static void exited(struct child *child)
{
    struct command *command = CONTAINER_OF(child, struct command, child);
    pthread_mutex_lock(&command->lock);
    command->has_exited = true;
    pthread_cond_signal(&command->changed);
    pthread_mutex_unlock(&command->lock);
}

static void wait_for_exit(struct command *command)
{
    pthread_mutex_lock(&command->lock);
    while (!command->has_exited)
        pthread_cond_wait(&command->changed, &command->lock);
    pthread_mutex_unlock(&command->lock);
}

// The bytes past the maximum are read and dropped. False at the end of the stream.
static bool read_some(int fd, struct buffer *out, bool *ret_is_cut)
{
    char bytes[16 * 1024];
    ssize_t n = read(fd, bytes, sizeof(bytes));
    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    size_t room = out->max - out->len;
    *ret_is_cut |= (size_t)n > room;
    buffer_append(out, bytes, (size_t)n < room ? (size_t)n : room);
    return n > 0;
}

enum ending { ENDED_BY_ITSELF, ENDED_BY_TIME, ENDED_WHEN_FULL };

static enum ending collect(const struct command_spec *spec, struct pollfd streams[2],
                           struct command_result *result)
{
    int64_t deadline = boot_time_now().ms + (spec->time_limit_ms ? spec->time_limit_ms : TIME_LIMIT_MS);
    bool is_ignored = false;
    while (streams[0].fd >= 0 || streams[1].fd >= 0) {
        if (boot_time_now().ms >= deadline || atomic_load(spec->is_cancelled))
            return ENDED_BY_TIME;
        if (result->is_cut && spec->is_ended_when_full)
            return ENDED_WHEN_FULL;
        if (poll(streams, 2, LOOK_MS) <= 0)
            continue;
        if (streams[0].fd >= 0 && streams[0].revents &&
            !read_some(streams[0].fd, &result->out, &result->is_cut))
            streams[0].fd = -1;
        if (streams[1].fd >= 0 && streams[1].revents &&
            !read_some(streams[1].fd, &result->errors, &is_ignored))
            streams[1].fd = -1;
    }
    return ENDED_BY_ITSELF;
}

static char *find_in_path(const struct environment *environment, const char *name)
{
    const char *path = environment_get(environment, "PATH");
    while (path && *path) {
        size_t len = strcspn(path, ":");
        CLEANUP_FREE char *candidate = mem_format("%.*s/%s", (int)len, path, name);
        if (len && access(candidate, X_OK) == 0)
            return TAKE_PTR(candidate);
        path += len + (path[len] == ':');
    }
    return NULL;
}

static void make_environment(const struct environment *usual, const char *const *more, struct environment *to)
{
    environment_copy(usual, to);
    for (; more && *more; more++) {
        CLEANUP_FREE char *name = mem_strndup(*more, strcspn(*more, "="));
        environment_set(to, name, *more + strlen(name) + 1);
    }
}

static int spawn(struct guest *guest, const struct command_spec *spec, struct command *command,
                 const char *program, struct pollfd streams[2], struct error *err)
{
    int out[2], errors[2];
    if (pipe2(out, O_CLOEXEC) < 0)
        return error_errno(err, errno, NULL, "cannot make a pipe");
    streams[0].fd = out[0];
    CLEANUP_CLOSE int out_write = out[1];
    if (pipe2(errors, O_CLOEXEC) < 0)
        return error_errno(err, errno, NULL, "cannot make a pipe");
    streams[1].fd = errors[0];
    CLEANUP_CLOSE int errors_write = errors[1];
    CLEANUP(environment_free) struct environment environment;
    make_environment(&guest->environment, spec->env, &environment);
    struct child_spec child = {.program = program,
                               .argv = (char *const *)spec->argv,
                               .envp = environment.vars,
                               .cwd_fd = spec->cwd_fd,
                               .stdio = {spec->stdin_fd, out_write, errors_write}};
    return children_spawn(&guest->children, &child, &command->child, NULL, err);
}

static void kill_group(struct guest *guest, const struct command *command)
{
    pthread_mutex_lock(&guest->children.lock); // against the reaper, which clears the pid
    child_signal_group(&command->child, SIGKILL);
    pthread_mutex_unlock(&guest->children.lock);
}

static int run(struct guest *guest, const struct command_spec *spec, const char *program,
               struct command_result *result, struct error *err)
{
    struct command command = {.child = {.exited = exited}};
    struct pollfd streams[2] = {{.fd = -1, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
    int status = spawn(guest, spec, &command, program, streams, err);
    CLEANUP_CLOSE int out = streams[0].fd;
    CLEANUP_CLOSE int errors = streams[1].fd;
    if (status < 0)
        return -1;
    enum ending ending = collect(spec, streams, result);
    if (ending != ENDED_BY_ITSELF)
        kill_group(guest, &command);
    wait_for_exit(&command);
    result->exit_code = child_exit_code(command.child.wait_status);
    return ending == ENDED_BY_TIME
               ? error_set(err, ERROR_TIMEOUT, NULL, "%s did not end in time", spec->argv[0])
               : 0;
}

static void terminate(struct buffer *text) // data is a string, also where nothing came
{
    if (!text->data && buffer_append_char(text, '\0') == 0)
        text->len = 0;
    buffer_text(text);
}

int command_run_spec(struct guest *guest, const struct command_spec *spec, struct command_result *ret,
                     struct error *err)
{
    CLEANUP(command_result_free)
    struct command_result result = {.out = BUFFER_INIT(spec->max_bytes),
                                    .errors = BUFFER_INIT(spec->max_bytes)};
    CLEANUP_FREE char *program = find_in_path(&guest->environment, spec->argv[0]);
    if (!program) {
        result.exit_code = 127;
        result.is_missing = true;
        buffer_format(&result.errors, "%s is not installed in this sandbox", spec->argv[0]);
    } else if (run(guest, spec, program, &result, err) < 0) {
        return -1;
    }
    terminate(&result.out);
    terminate(&result.errors);
    *ret = result;
    result = (struct command_result){0};
    return 0;
}

int command_run(struct guest *guest, const char *const *argv, size_t max_bytes,
                const atomic_bool *is_cancelled, struct command_result *ret, struct error *err)
{
    struct command_spec spec = {.argv = argv,
                                .max_bytes = max_bytes,
                                .cwd_fd = guest->workspace.root_fd,
                                .stdin_fd = -1,
                                .is_cancelled = is_cancelled};
    return command_run_spec(guest, &spec, ret, err);
}
