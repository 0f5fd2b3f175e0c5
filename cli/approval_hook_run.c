#include "cli/approval_hooks.h"
#include "cli/approvals.h"
#include "cli/objects.h"
#include "controller/base/buffer.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include "controller/base/utf8.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

extern char **environ;

void hook_verdict_clear(struct hook_verdict *verdict)
{
    free(verdict->reason);
    *verdict = (struct hook_verdict){0};
}

static void say_nothing(struct hook_verdict *ret, char *why)
{
    hook_verdict_clear(ret);
    *ret = (struct hook_verdict){HOOK_NOTHING, why};
}

// ---- what it said -----------------------------------------------------------------------------------------------------------
static bool is_word(const char *line, size_t len, const char *word)
{
    return len == strlen(word) && memcmp(line, word, len) == 0;
}

void hook_read_word(const char *output, size_t len, struct hook_verdict *ret)
{
    static const char reject[] = "reject ";
    const char *end = len ? memchr(output, '\n', len) : NULL;
    size_t line = end ? (size_t)(end - output) : len;
    if (line && output[line - 1] == '\r')
        line--;
    if (line && memchr(output, '\0', line))
        say_nothing(ret, mem_strdup("its first line has a NUL byte"));
    else if (!end && len >= HOOK_OUTPUT_MAX)
        say_nothing(ret, mem_format("its first line is longer than %d bytes", HOOK_OUTPUT_MAX));
    else if (is_word(output, line, "approve"))
        *ret = (struct hook_verdict){HOOK_APPROVE, NULL};
    else if (is_word(output, line, "reject"))
        *ret = (struct hook_verdict){HOOK_REJECT, NULL};
    else if (line > strlen(reject) && memcmp(output, reject, strlen(reject)) == 0) {
        size_t reason = line - strlen(reject) < 1024 ? line - strlen(reject) : 1024;
        *ret = (struct hook_verdict){HOOK_REJECT, utf8_to_printable(output + strlen(reject), utf8_cut(output + strlen(reject), reason), false)};
    } else
        say_nothing(ret, mem_strdup(line ? "its first line is neither `approve` nor `reject`" : "it said nothing"));
}

// ---- what it is given ---------------------------------------------------------------------------------------------------------
struct surroundings {
    char **list; // NULL-terminated; the first `own` are ours
    size_t own;
};

static void surroundings_free(struct surroundings *surroundings)
{
    for (size_t i = 0; i < surroundings->own; i++)
        free(surroundings->list[i]);
    free(surroundings->list);
}

static bool is_ours(const char *variable)
{
    return strncmp(variable, "CHAT2SHELL_APPROVAL_", 20) == 0;
}

static void make_surroundings(const json_t *approval, struct surroundings *ret)
{
    const char *version = json_get_text(json_object_get(approval, "metadata"), "resourceVersion");
    const struct {
        const char *name, *value;
    } own[] = {{"ID", object_uid(approval)},
               {"NAME", object_name(approval)},
               {"PATH", approval_spec(approval, "path")},
               {"MODE", approval_spec(approval, "mode")},
               {"REQUESTER", approval_spec(approval, "requester")},
               {"RESOURCE_VERSION", version ? version : ""}};
    size_t count = 0;
    while (environ[count])
        count++;
    ret->list = mem_alloc((count + ARRAY_LEN(own) + 1) * sizeof(char *));
    for (; ret->own < ARRAY_LEN(own); ret->own++)
        ret->list[ret->own] = mem_format("CHAT2SHELL_APPROVAL_%s=%s", own[ret->own].name, own[ret->own].value);
    size_t at = ret->own;
    for (size_t i = 0; i < count; i++)
        if (!is_ours(environ[i]))
            ret->list[at++] = environ[i];
    ret->list[at] = NULL;
}

// A file in memory: a program that does not read it holds nobody up.
static int make_input(const json_t *approval, struct error *err)
{
    CLEANUP_CLOSE int fd = memfd_create("approval", MFD_CLOEXEC);
    CLEANUP_FREE char *text = json_to_text(approval);
    CLEANUP_FREE char *line = mem_format("%s\n", text);
    if (fd < 0)
        return error_errno(err, errno, NULL, "cannot make its input");
    if (fs_write_all(fd, line, strlen(line), err) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return -1;
    return TAKE_FD(fd);
}

// ---- while it runs --------------------------------------------------------------------------------------------------------------
struct run {
    pid_t pid;
    int pidfd, output_fd; // output_fd -1: it has closed it
    struct buffer output;
    int64_t deadline_ms;
    bool is_told, is_late, is_stopped; // told: to end
};

// What a pipe holds, and no more at once: a program that never stops writing does not keep us from its deadline.
#define READS_MAX 64

static void read_output(struct run *run)
{
    char bytes[1024];
    ssize_t got;
    for (int i = 0; i < READS_MAX && run->output_fd >= 0 && (got = read(run->output_fd, bytes, sizeof(bytes))) != -1; i++) {
        size_t room = HOOK_OUTPUT_MAX - run->output.len;
        if (got == 0) {
            close(run->output_fd);
            run->output_fd = -1;
        } else {
            buffer_append(&run->output, bytes, (size_t)got < room ? (size_t)got : room);
        }
    }
}

static void tell_to_end(struct run *run, int signal_number)
{
    spawn_signal_group(run->pid, run->pidfd, signal_number);
    run->is_told = true;
    run->deadline_ms = boot_time_now().ms + HOOK_GRACE_MS;
}

static bool is_over(struct run *run, int stop_fd)
{
    struct pollfd at[] = {{.fd = run->pidfd, .events = POLLIN}, {.fd = run->output_fd, .events = POLLIN}, {.fd = run->is_told ? -1 : stop_fd, .events = POLLIN}};
    int64_t left_ms = run->deadline_ms - boot_time_now().ms;
    poll(at, ARRAY_LEN(at), left_ms < 0 ? 0 : left_ms > 60000 ? 60000 : (int)left_ms);
    read_output(run);
    if (at[0].revents)
        return true;
    if (at[2].revents) {
        run->is_stopped = true;
        tell_to_end(run, SIGTERM);
    } else if (boot_time_now().ms >= run->deadline_ms) {
        run->is_late |= !run->is_told;
        tell_to_end(run, run->is_told ? SIGKILL : SIGTERM);
    }
    return false;
}

static void judge(const struct run *run, int exit_code, const struct hook_options *options, struct hook_verdict *ret)
{
    if (run->is_stopped)
        say_nothing(ret, mem_strdup("it was ended with the watch"));
    else if (run->is_late)
        say_nothing(ret, mem_format("it took longer than %d s", options->timeout_ms / 1000));
    else if (exit_code > 128)
        say_nothing(ret, mem_format("it was ended by signal %d", exit_code - 128));
    else if (exit_code)
        say_nothing(ret, mem_format("it ended with status %d", exit_code));
    else
        hook_read_word(run->output.data ? run->output.data : "", run->output.len, ret);
}

static void follow(struct run *run, const struct hook_options *options, int stop_fd, struct hook_verdict *ret)
{
    int exit_code = -1;
    while (!is_over(run, stop_fd))
        ;
    read_output(run);
    spawn_signal_group(run->pid, run->pidfd, SIGKILL); // what it left behind
    if (spawn_reap(run->pidfd, &exit_code) < 0)
        exit_code = 255;
    judge(run, exit_code, options, ret);
}

static int begin(const struct hook_options *options, struct spawner *spawner, const json_t *approval, struct run *run, struct error *err)
{
    CLEANUP(surroundings_free) struct surroundings surroundings = {0};
    CLEANUP_CLOSE int input = make_input(approval, err);
    int pipe_fds[2];
    if (input < 0)
        return -1;
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return error_errno(err, errno, NULL, "cannot make a pipe");
    CLEANUP_CLOSE int from = pipe_fds[0], to = pipe_fds[1];
    make_surroundings(approval, &surroundings);
    const struct spawn_options spawn = {.path = options->path, .argv = options->argv, .environment = (const char *const *)surroundings.list,
                                        .fds = {{input, 0}, {to, 1}, {STDERR_FILENO, 2}}, .fd_count = 3, .directory = options->directory, .dies_with_us = true};
    if (fs_set_nonblocking(from, true) < 0 || spawn_process(spawner, &spawn, &run->pid, &run->pidfd, err) < 0)
        return -1;
    run->output_fd = TAKE_FD(from);
    return 0;
}

void hook_run(const struct hook_options *options, struct spawner *spawner, const json_t *approval, int stop_fd, struct hook_verdict *ret)
{
    struct run run = {.output = BUFFER_INIT(HOOK_OUTPUT_MAX), .output_fd = -1, .deadline_ms = boot_time_now().ms + options->timeout_ms};
    struct error err = ERROR_INIT;
    if (begin(options, spawner, approval, &run, &err) < 0) {
        say_nothing(ret, mem_strdup(err.message[0] ? err.message : "it cannot be started"));
    } else {
        follow(&run, options, stop_fd, ret);
        close(run.pidfd);
    }
    if (run.output_fd >= 0)
        close(run.output_fd);
    buffer_free(&run.output);
}
