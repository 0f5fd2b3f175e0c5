#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/base/socket.h"
#include "controller/spawn.h"
#include "reconcilers/drivers/bubblewrap/remove.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#define LOOK_AGAIN_MS 10
#define LEFTOVER_CONNECT_MS 1000 // the loop stands still for it, if a shim that is left over takes no connection
#define KILL_AFTER_MS 5000
#define GIVE_UP_AFTER_MS 20000
#define PURGE_GIVE_UP_AFTER_MS 110000

static enum step_result give_up(struct error *err, const char *what)
{
    error_set(err, ERROR_TIMEOUT, "look at the host's processes with: ps axf", "%s", what);
    return STEP_FAILED;
}

// ---- the throwaway sandbox of a private clone ------------------------------------------------------------------------

static void clone_is_gone(void *arg, int result, const struct error *err)
{
    struct removal *removal = arg;
    if (result < 0)
        error_copy(&removal->child_error, err);
    removal->step++;
    removal->step_began = clock_boot(removal->bw->clock);
    removal_advance(removal);
}

static enum step_result end_clone(struct removal *removal, struct error *err)
{
    (void)err;
    size_t len = strlen(removal->name), suffix_len = strlen(BUBBLEWRAP_CLONE_SUFFIX);
    if (len > suffix_len && strcmp(removal->name + len - suffix_len, BUBBLEWRAP_CLONE_SUFFIX) == 0)
        return STEP_NEXT;
    CLEANUP_FREE char *name = mem_format("%s" BUBBLEWRAP_CLONE_SUFFIX, removal->name);
    if (!runtime_find(removal->bw, name) && faccessat(removal->bw->runtimes_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return STEP_NEXT;
    if (!removal->was_asked) {
        removal->was_asked = true;
        struct runtime *runtime = runtime_find(removal->bw, removal->name);
        if (runtime)
            runtime->is_removing = true;
        remove_on_loop(removal->bw, name, clone_is_gone, removal);
    }
    return STEP_WAIT;
}

static enum step_result check_clone(struct removal *removal, struct error *err)
{
    removal->was_asked = false;
    if (removal->child_error.code == ERROR_NONE)
        return STEP_NEXT;
    error_copy(err, &removal->child_error);
    return STEP_FAILED;
}

// ---- processes -----------------------------------------------------------------------------------------------------------

static void ignore_answer(void *arg, struct channel_message *message, const struct error *err)
{
    (void)arg;
    (void)message;
    (void)err; // its end is what counts
}

static enum step_result end_shim(struct removal *removal, struct error *err)
{
    struct runtime *runtime = runtime_find(removal->bw, removal->name);
    if (runtime == NULL)
        return STEP_NEXT;
    runtime->is_removing = true;
    if (runtime->is_launching)
        return removal_step_age_ms(removal) > PURGE_GIVE_UP_AFTER_MS ? give_up(err, "its start does not end")
                                                                     : removal_wait(removal, KILL_AFTER_MS);
    if (!child_is_there(&runtime->supervisor))
        return STEP_NEXT;
    if (!removal->was_asked) {
        removal->was_asked = true;
        removal->step_began = clock_boot(removal->bw->clock);
        channel_call(runtime->shim, json_pack("{s:s}", "op", "end"), -1, KILL_AFTER_MS, ignore_answer, NULL);
    }
    if (removal_step_age_ms(removal) >= KILL_AFTER_MS)
        child_signal(&runtime->supervisor, SIGKILL);
    return removal_step_age_ms(removal) > GIVE_UP_AFTER_MS ? give_up(err, "its supervisor does not end")
                                                           : removal_wait(removal, KILL_AFTER_MS);
}

static enum step_result open_directory(struct removal *removal, struct error *err)
{
    removal->dir_fd = openat(removal->bw->runtimes_fd, removal->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (removal->dir_fd >= 0 || errno == ENOENT)
        return STEP_NEXT;
    error_errno(err, errno, NULL, "cannot open its directory");
    return STEP_FAILED;
}

// A shim that this daemon did not start is found by its socket, and held by a pidfd of the process behind that socket.
static enum step_result end_leftover(struct removal *removal, struct error *err)
{
    (void)err;
    if (removal->dir_fd < 0 || runtime_find(removal->bw, removal->name))
        return STEP_NEXT;
    static const char message[] = "{\"v\":1,\"seq\":1,\"op\":\"end\"}";
    removal->leftover_fd = socket_connect_at(removal->dir_fd, SHIM_SOCKET_NAME, SOCK_SEQPACKET, LEFTOVER_CONNECT_MS, NULL);
    if (removal->leftover_fd < 0)
        return STEP_NEXT;
    socklen_t size = sizeof(removal->leftover_pidfd);
    if (getsockopt(removal->leftover_fd, SOL_SOCKET, SO_PEERPIDFD, &removal->leftover_pidfd, &size) < 0)
        removal->leftover_pidfd = -1; // an older kernel: its answer to the message must do
    socket_send_fds(removal->leftover_fd, message, strlen(message), NULL, 0);
    return STEP_NEXT;
}

static bool init_has_ended(const struct removal *removal)
{
    struct runtime *runtime = runtime_find(removal->bw, removal->name);
    if (runtime == NULL || runtime->init_pidfd < 0)
        return true;
    struct pollfd at = {.fd = runtime->init_pidfd, .events = POLLIN};
    if (poll(&at, 1, 0) == 1)
        return true;
    spawn_signal(runtime->init_pidfd, SIGKILL);
    return false;
}

// Shim and sandbox hold shared locks to their very end.
static bool lock_is_free(struct removal *removal)
{
    if (removal->dir_fd < 0)
        return true;
    if (removal->lock_fd < 0)
        removal->lock_fd = openat(removal->dir_fd, SHIM_LOCK_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return removal->lock_fd < 0 ? errno == ENOENT : flock(removal->lock_fd, LOCK_EX | LOCK_NB) == 0;
}

static enum step_result confirm_end(struct removal *removal, struct error *err)
{
    if (init_has_ended(removal) && lock_is_free(removal) && cgroups_are_gone(&removal->bw->cgroups, removal->name))
        return STEP_NEXT;
    if (removal_step_age_ms(removal) >= KILL_AFTER_MS || removal->leftover_fd < 0) {
        if (removal->leftover_pidfd >= 0)
            spawn_signal(removal->leftover_pidfd, SIGKILL);
        cgroups_kill(&removal->bw->cgroups, removal->name);
    }
    return removal_step_age_ms(removal) > GIVE_UP_AFTER_MS ? give_up(err, "processes of it are still there")
                                                           : removal_wait(removal, LOOK_AGAIN_MS);
}

// ---- files -----------------------------------------------------------------------------------------------------------------

static void on_purge_exit(void *arg, uint32_t events)
{
    (void)events;
    removal_advance(arg);
}

static int start_purge(struct removal *removal, int parent_fd, const char *name, struct error *err)
{
    CLEANUP_FREE char *path = mem_format("%s/chat2shell-shim", removal->bw->program_dir);
    const char *const argv[] = {"chat2shell-shim", "purge", name, NULL};
    struct spawn_options options = {.path = path, .argv = argv, .fds = {{parent_fd, SHIM_FD_DIRECTORY}}, .fd_count = 1};
    pid_t pid;
    if (spawn_process(removal->bw->spawner, &options, &pid, &removal->child_pidfd, err) < 0)
        return -1;
    removal->child_source = loop_watch(removal->bw->loop, removal->child_pidfd, EPOLLIN, on_purge_exit, removal);
    return 0;
}

// Big trees, whose files may belong to ids that only exist in the sandbox's user namespace: a process of its own.
static enum step_result purge(struct removal *removal, int parent_fd, const char *name, struct error *err)
{
    if (removal->child_pidfd < 0) {
        if (faccessat(parent_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
            return STEP_NEXT;
        return start_purge(removal, parent_fd, name, err) < 0 ? STEP_FAILED : removal_wait(removal, PURGE_GIVE_UP_AFTER_MS);
    }
    int exit_code;
    if (spawn_reap(removal->child_pidfd, &exit_code) < 0) {
        if (removal_step_age_ms(removal) >= PURGE_GIVE_UP_AFTER_MS)
            spawn_signal(removal->child_pidfd, SIGKILL);
        return removal_wait(removal, 1000);
    }
    loop_unwatch(TAKE_PTR(removal->child_source));
    close(TAKE_FD(removal->child_pidfd));
    if (exit_code == 0)
        return STEP_NEXT;
    error_set(err, ERROR_IO, "remove it by hand", "its files (%s) cannot be removed", name);
    return STEP_FAILED;
}

static enum step_result purge_layers(struct removal *removal, struct error *err)
{
    return removal->dir_fd < 0 ? STEP_NEXT : purge(removal, removal->dir_fd, SHIM_LAYERS_NAME, err);
}

static enum step_result purge_clone(struct removal *removal, struct error *err)
{
    CLEANUP_FREE char *path = mem_format("%s/clones", removal->bw->data_root);
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    CLEANUP_FREE char *name = driver_clone_dir_name(removal->name);
    return fd < 0 ? STEP_NEXT : purge(removal, fd, name, err);
}

static enum step_result remove_directory(struct removal *removal, struct error *err)
{
    struct runtime *runtime = runtime_find(removal->bw, removal->name);
    if (fs_remove_tree(removal->bw->runtimes_fd, removal->name, err) < 0)
        return STEP_FAILED;
    if (runtime)
        runtime_free(runtime);
    return STEP_NEXT;
}

const removal_step_fn removal_steps[] = {end_clone,   check_clone,  end_shim,    open_directory,  end_leftover,
                                         confirm_end, purge_layers, purge_clone, remove_directory};
const size_t removal_step_count = ARRAY_LEN(removal_steps);
