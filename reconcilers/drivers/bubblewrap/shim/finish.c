#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/json.h"
#include "reconcilers/drivers/bubblewrap/shim/shim.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define END_DEADLINE_MS 10000

static void kill_and_wait(int pidfd)
{
    if (pidfd < 0)
        return;
    syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
    struct pollfd at = {.fd = pidfd, .events = POLLIN};
    while (poll(&at, 1, END_DEADLINE_MS) < 0 && errno == EINTR)
        ;
}

// The first process reports its end only when every other process of its namespace is gone.
static void end_processes(struct shim *shim)
{
    bool was_running = shim->bwrap_pid > 0;
    kill_and_wait(shim->init_pidfd);
    struct pollfd at = {.fd = shim->bwrap_pidfd, .events = POLLIN};
    if (was_running && shim->init_pidfd >= 0 && shim->state == SHIM_RUNNING)
        poll(&at, 1, 200); // bubblewrap itself passes the exit status on
    kill_and_wait(shim->bwrap_pidfd);
    int status;
    if (shim->bwrap_pid > 0 && waitpid(shim->bwrap_pid, &status, 0) == shim->bwrap_pid && shim->exit_code < 0)
        shim->exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (shim->net.pid > 0 && kill(shim->net.pid, SIGKILL) == 0)
        waitpid(shim->net.pid, NULL, 0);
}

// Files in the layers belong to ids that only exist in the sandbox's user namespace.
static int remove_as(const struct identity *identity, const char *name, struct error *err)
{
    if (geteuid() == 0)
        return fs_remove_tree(SHIM_FD_DIRECTORY, name, err);
    pid_t pid = fork();
    if (pid == 0)
        _exit(identity_enter(identity, NULL) < 0 || fs_remove_tree(SHIM_FD_DIRECTORY, name, NULL) < 0);
    int status = 1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status == 0 ? 0 : error_set(err, ERROR_IO, NULL, "cannot remove the sandbox's files on disk");
}

static void write_exit(const struct shim *shim)
{
    CLEANUP_JSON json_t *object = json_pack("{s:i, s:i}", "version", SHIM_PROTOCOL_VERSION, "exit_code", shim->exit_code);
    CLEANUP_FREE char *text = json_to_text(object);
    CLEANUP_CLOSE int fd = openat(SHIM_FD_DIRECTORY, SHIM_EXIT_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0)
        fs_write_all(fd, text, strlen(text), NULL);
}

void shim_finish(struct shim *shim)
{
    end_processes(shim);
    shim->state = SHIM_ENDING;
    limits_remove(&shim->config);
    if (shim->identity.userns_fd >= 0)
        remove_as(&shim->identity, SHIM_LAYERS_NAME, NULL); // what stays is removed, or reported, by the driver
    unlinkat(SHIM_FD_DIRECTORY, SHIM_SOCKET_NAME, 0);
    write_exit(shim);
}

int shim_purge(const char *name, struct error *err)
{
    struct identity identity = {.userns_fd = -1};
    if (geteuid() != 0 && identity_make(false, &identity, err) < 0)
        return -1;
    return remove_as(&identity, name, err);
}

static _Noreturn void become_tar(const char *name)
{
    char *const argv[] = {"tar", "-x", "-p", "--same-owner", "--numeric-owner", "--exclude=./dev/*", "-C", (char *)name, NULL};
    char *const environment[] = {"PATH=/usr/bin:/bin", "LANG=C.UTF-8", NULL};
    execve("/usr/bin/tar", argv, environment);
    _exit(127);
}

int shim_unpack(const char *name, struct error *err)
{
    struct identity identity;
    if (mkdirat(SHIM_FD_DIRECTORY, name, 0755) < 0 || fchdir(SHIM_FD_DIRECTORY) < 0)
        return error_errno(err, errno, NULL, "cannot make the directory to unpack into");
    if (identity_make(false, &identity, err) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        if (identity_enter(&identity, err) == 0)
            become_tar(name);
        _exit(126);
    }
    int status = 1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return pid > 0 && status == 0 ? 0 : error_set(err, ERROR_IO, NULL, "tar could not unpack the template");
}
