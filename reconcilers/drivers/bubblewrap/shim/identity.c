#include "reconcilers/drivers/bubblewrap/shim/identity.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/base/random.h"
#include "reconcilers/drivers/bubblewrap/shim/subid.h"
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define USERNS_HINT "allow unprivileged user namespaces: sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces=15000"

static const char *const names[] = {[IDENTITY_RANGE] = "range", [IDENTITY_SUBUID] = "subuid", [IDENTITY_SINGLE] = "single"};

const char *identity_name(enum identity_kind kind)
{
    return names[kind];
}

// A child that does nothing but hold a new user namespace until its maps are written and it was opened.
struct holder {
    pid_t pid;
    int fd; // closing it ends the child
};

static void holder_end(struct holder *holder)
{
    if (holder->fd >= 0)
        close(holder->fd);
    if (holder->pid > 0) {
        kill(holder->pid, SIGKILL);
        while (waitpid(holder->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
}

static int holder_start(struct holder *holder, struct error *err)
{
    int pipe_fds[2];
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return error_errno(err, errno, NULL, "cannot make a pipe");
    holder->fd = pipe_fds[0];
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int failed = unshare(CLONE_NEWUSER) < 0 ? errno : 0;
        if (write(pipe_fds[1], &failed, sizeof(failed)) != (ssize_t)sizeof(failed))
            _exit(1);
        for (;;)
            pause();
    }
    close(pipe_fds[1]);
    if (pid < 0)
        return error_errno(err, errno, NULL, "cannot start a process");
    holder->pid = pid;
    int failed = EPIPE;
    if (read(pipe_fds[0], &failed, sizeof(failed)) != (ssize_t)sizeof(failed) || failed != 0)
        return error_errno(err, failed, USERNS_HINT, "cannot make a user namespace");
    return 0;
}

static int write_proc(pid_t pid, const char *name, const char *text, struct error *err)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        return error_errno(err, errno, NULL, "cannot write %s of the sandbox", name);
    return 0;
}

static int open_userns(pid_t pid, struct error *err)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? error_errno(err, errno, NULL, "cannot open the sandbox's user namespace") : fd;
}

int identity_make_map(const char *uid_map, const char *gid_map, struct error *err)
{
    CLEANUP(holder_end) struct holder holder = {.fd = -1};
    if (holder_start(&holder, err) < 0 || write_proc(holder.pid, "uid_map", uid_map, err) < 0 ||
        write_proc(holder.pid, "gid_map", gid_map, err) < 0)
        return -1;
    return open_userns(holder.pid, err);
}

// The lock files are shared by all daemons of the machine: two must not give out one slot.
static int open_slot_dir(struct error *err)
{
    static const char *const places[] = {"/run/chat2shell-ids", "/var/tmp/chat2shell-ids"};
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        int fd;
        if (fs_make_private_dir(places[i], &fd, err) == 0)
            return fd;
    }
    return error_context(err, "cannot lock a range of user ids");
}

static int take_slot(struct identity *identity, struct error *err)
{
    CLEANUP_CLOSE int dir_fd = open_slot_dir(err);
    if (dir_fd < 0)
        return -1;
    uint32_t first = random_below(IDENTITY_SLOTS);
    for (uint32_t i = 0; i < IDENTITY_SLOTS; i++) {
        uint32_t slot = (first + i) % IDENTITY_SLOTS;
        char name[16];
        snprintf(name, sizeof(name), "%u", slot);
        CLEANUP_CLOSE int fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
            return error_errno(err, errno, NULL, "cannot make a lock file for a range of user ids");
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
            continue;
        identity->slot_fd = TAKE_FD(fd);
        identity->base = IDENTITY_FIRST_ID + slot * IDENTITY_IDS;
        return 0;
    }
    return error_set(err, ERROR_LIMIT, "remove sandboxes", "all %u ranges of user ids are in use", IDENTITY_SLOTS);
}

static int make_range(struct identity *identity, struct error *err)
{
    if (take_slot(identity, err) < 0)
        return -1;
    char map[64];
    snprintf(map, sizeof(map), "0 %u %u\n", identity->base, IDENTITY_IDS);
    identity->userns_fd = identity_make_map(map, map, err);
    return identity->userns_fd < 0 ? -1 : 0;
}

static int make_subuid(struct identity *identity, const struct subid_ranges *ranges, struct error *err)
{
    CLEANUP(holder_end) struct holder holder = {.fd = -1};
    if (holder_start(&holder, err) < 0 || subid_write_maps(holder.pid, ranges, err) < 0)
        return -1;
    identity->kind = IDENTITY_SUBUID;
    identity->userns_fd = open_userns(holder.pid, err);
    return identity->userns_fd < 0 ? -1 : 0;
}

static int make_single(struct identity *identity, struct error *err)
{
    CLEANUP(holder_end) struct holder holder = {.fd = -1};
    char uid_map[32], gid_map[32];
    snprintf(uid_map, sizeof(uid_map), "0 %u 1\n", geteuid());
    snprintf(gid_map, sizeof(gid_map), "0 %u 1\n", getegid());
    if (holder_start(&holder, err) < 0 || write_proc(holder.pid, "setgroups", "deny", err) < 0 ||
        write_proc(holder.pid, "uid_map", uid_map, err) < 0 || write_proc(holder.pid, "gid_map", gid_map, err) < 0)
        return -1;
    identity->kind = IDENTITY_SINGLE;
    identity->userns_fd = open_userns(holder.pid, err);
    gid_t groups[64];
    int count = getgroups((int)ARRAY_LEN(groups), groups);
    identity->keeps_groups = count < 0 || count > 1 || (count == 1 && groups[0] != getegid());
    return identity->userns_fd < 0 ? -1 : 0;
}

int identity_make(bool is_single, struct identity *ret, struct error *err)
{
    struct identity identity = {.kind = IDENTITY_RANGE, .userns_fd = -1, .slot_fd = -1, .base = geteuid()};
    struct subid_ranges ranges;
    int result;
    if (geteuid() == 0)
        result = make_range(&identity, err);
    else if (!is_single && subid_find(&ranges))
        result = make_subuid(&identity, &ranges, err);
    else
        result = make_single(&identity, err);
    if (result < 0)
        return -1;
    *ret = identity;
    return 0;
}

int identity_enter(const struct identity *identity, struct error *err)
{
    if (identity->kind == IDENTITY_RANGE && setgroups(0, NULL) < 0)
        return error_errno(err, errno, NULL, "cannot drop supplementary groups");
    if (setns(identity->userns_fd, CLONE_NEWUSER) < 0)
        return error_errno(err, errno, NULL, "cannot enter the sandbox's user namespace");
    if (identity->kind == IDENTITY_SUBUID && setgroups(0, NULL) < 0)
        return error_errno(err, errno, NULL, "cannot drop supplementary groups");
    if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        return error_errno(err, errno, NULL, "cannot become root inside the user namespace");
    // The change of identity made this process undumpable: /proc/self would belong to nobody. And it dropped the
    // death signal.
    prctl(PR_SET_DUMPABLE, 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return 0;
}
