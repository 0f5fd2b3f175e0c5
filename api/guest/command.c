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
static bool read_some(int fd, struct buffer *out)
{
    char bytes[16 * 1024];
    ssize_t n = read(fd, bytes, sizeof(bytes));
    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    size_t room = out->max - out->len;
    buffer_append(out, bytes, (size_t)n < room ? (size_t)n : room);
    return n > 0;
}

// 0 when both streams ended.
static int collect(struct pollfd streams[2], struct command_result *result, const atomic_bool *is_cancelled)
{
    int64_t deadline = boot_time_now().ms + TIME_LIMIT_MS;
    while (streams[0].fd >= 0 || streams[1].fd >= 0) {
        if (boot_time_now().ms >= deadline || atomic_load(is_cancelled))
            return -1;
        if (poll(streams, 2, LOOK_MS) <= 0)
            continue;
        for (int i = 0; i < 2; i++)
            if (streams[i].fd >= 0 && streams[i].revents &&
                !read_some(streams[i].fd, i ? &result->errors : &result->out))
                streams[i].fd = -1;
    }
    return 0;
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

static int spawn(struct guest *guest, struct command *command, const char *program, const char *const *argv,
                 struct pollfd streams[2], struct error *err)
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
    struct child_spec spec = {.program = program,
                              .argv = (char *const *)argv,
                              .envp = guest->environment.vars,
                              .cwd_fd = guest->workspace.root_fd,
                              .stdio = {-1, out_write, errors_write}};
    return children_spawn(&guest->children, &spec, &command->child, NULL, err);
}

static int run(struct guest *guest, const char *program, const char *const *argv,
               const atomic_bool *is_cancelled, struct command_result *result, struct error *err)
{
    struct command command = {.child = {.exited = exited}};
    struct pollfd streams[2] = {{.fd = -1, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
    int status = spawn(guest, &command, program, argv, streams, err);
    CLEANUP_CLOSE int out = streams[0].fd;
    CLEANUP_CLOSE int errors = streams[1].fd;
    if (status < 0)
        return -1;
    status = collect(streams, result, is_cancelled);
    if (status < 0) {
        pthread_mutex_lock(&guest->children.lock); // against the reaper, which clears the pid
        child_signal_group(&command.child, SIGKILL);
        pthread_mutex_unlock(&guest->children.lock);
    }
    wait_for_exit(&command);
    result->exit_code = child_exit_code(command.child.wait_status);
    return status < 0 ? error_set(err, ERROR_TIMEOUT, NULL, "%s did not end in time", argv[0]) : 0;
}

int command_run(struct guest *guest, const char *const *argv, size_t max_bytes,
                const atomic_bool *is_cancelled, struct command_result *ret, struct error *err)
{
    CLEANUP(command_result_free)
    struct command_result result = {.out = BUFFER_INIT(max_bytes), .errors = BUFFER_INIT(max_bytes)};
    CLEANUP_FREE char *program = find_in_path(&guest->environment, argv[0]);
    if (!program) {
        result.exit_code = 127;
        buffer_format(&result.errors, "%s is not installed in this sandbox", argv[0]);
    } else if (run(guest, program, argv, is_cancelled, &result, err) < 0) {
        return -1;
    }
    buffer_text(&result.out);
    buffer_text(&result.errors);
    *ret = result;
    result = (struct command_result){0};
    return 0;
}
