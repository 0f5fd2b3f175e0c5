#include "api/guest/children.h"
#include "controller/base/time.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KILL_ALL_MS 2000

void children_init(struct children *children)
{
    pthread_mutex_init(&children->lock, NULL);
    children->first = NULL;
}

static void set_stdio(posix_spawn_file_actions_t *actions, const int stdio[3])
{
    for (int i = 0; i < 3; i++) {
        if (stdio[i] >= 0)
            posix_spawn_file_actions_adddup2(actions, stdio[i], i);
        else
            posix_spawn_file_actions_addopen(actions, i, "/dev/null", i ? O_WRONLY : O_RDONLY, 0);
    }
}

// Who leads a session without a terminal and opens one has it as its controlling terminal from then on.
static void set_terminal(posix_spawn_file_actions_t *actions, const char *terminal)
{
    posix_spawn_file_actions_addopen(actions, 0, terminal, O_RDWR, 0);
    posix_spawn_file_actions_adddup2(actions, 0, 1);
    posix_spawn_file_actions_adddup2(actions, 0, 2);
}

static int spawn(const struct child_spec *spec, pid_t *ret_pid)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_t attr;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_init(&attr);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawn_file_actions_addfchdir_np(&actions, spec->cwd_fd);
    if (spec->terminal)
        set_terminal(&actions, spec->terminal);
    else
        set_stdio(&actions, spec->stdio);
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    int result = posix_spawn(ret_pid, spec->program, &actions, &attr, spec->argv, spec->envp);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    return result;
}

int children_spawn(struct children *children, const struct child_spec *spec, struct child *child,
                   int *ret_errno, struct error *err)
{
    pthread_mutex_lock(&children->lock);
    int result = spawn(spec, &child->pid);
    if (result == 0) {
        child->next = children->first;
        children->first = child;
    }
    pthread_mutex_unlock(&children->lock);
    if (result == 0)
        return 0;
    child->pid = 0;
    if (ret_errno)
        *ret_errno = result;
    if (result == E2BIG)
        return error_set(err, ERROR_TOO_LARGE, "put the text into a file and run that file",
                         "the command line is longer than Linux passes to a program (128 KiB an argument)");
    return error_errno(err, result, NULL, "spawn %s", spec->program);
}

void children_forget(struct children *children, struct child *child)
{
    pthread_mutex_lock(&children->lock);
    for (struct child **at = &children->first; *at; at = &(*at)->next) {
        if (*at == child) {
            *at = child->next;
            break;
        }
    }
    pthread_mutex_unlock(&children->lock);
}

static struct child *take_reaped(struct children *children, pid_t *ret_pid)
{
    int status;
    pthread_mutex_lock(&children->lock);
    *ret_pid = waitpid(-1, &status, WNOHANG);
    struct child *found = NULL;
    for (struct child **at = &children->first; *ret_pid > 0 && *at; at = &(*at)->next) {
        if ((*at)->pid == *ret_pid) {
            found = *at;
            *at = found->next;
            found->pid = 0;
            found->wait_status = status;
            break;
        }
    }
    pthread_mutex_unlock(&children->lock);
    return found;
}

bool children_reap(struct children *children)
{
    for (;;) {
        pid_t pid;
        struct child *child = take_reaped(children, &pid);
        if (pid <= 0)
            return pid == 0;
        if (child)
            child->exited(child);
    }
}

void child_signal_group(const struct child *child, int signal)
{
    if (child->pid > 0)
        kill(-child->pid, signal);
}

int child_exit_code(int wait_status)
{
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

// The parent's number in /proc/PID/stat stands behind the name, which may hold anything but is in the last
// ')'.
static pid_t parent_of(const char *pid_text)
{
    char path[64], line[512];
    snprintf(path, sizeof(path), "/proc/%.20s/stat", pid_text);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, line, sizeof(line) - 1);
    close(fd);
    line[n > 0 ? n : 0] = '\0';
    const char *end = strrchr(line, ')');
    char state;
    int parent = -1;
    return end && sscanf(end + 1, " %c %d", &state, &parent) == 2 ? parent : -1;
}

static void kill_direct_children(void)
{
    DIR *proc = opendir("/proc");
    for (struct dirent *entry; proc && (entry = readdir(proc));)
        if (isdigit((unsigned char)entry->d_name[0]) && parent_of(entry->d_name) == getpid())
            kill((pid_t)strtol(entry->d_name, NULL, 10), SIGKILL);
    if (proc)
        closedir(proc);
}

void children_kill_all(struct children *children)
{
    int64_t deadline = boot_time_now().ms + KILL_ALL_MS;
    pthread_mutex_lock(&children->lock);
    for (struct child *child = children->first; child; child = child->next)
        child_signal_group(child, SIGKILL);
    pthread_mutex_unlock(&children->lock);
    while (boot_time_now().ms < deadline) {
        kill_direct_children();
        if (!children_reap(children))
            return;
        nanosleep(&(struct timespec){.tv_nsec = 2 * 1000 * 1000},
                  NULL); // a dying process announces itself no better
    }
}
