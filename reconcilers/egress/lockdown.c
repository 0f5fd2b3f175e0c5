#include "reconcilers/egress/lockdown.h"
#include "controller/base/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

int lockdown_limit_files(size_t wanted, size_t *ret_nofile, struct error *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return error_errno(err, errno, NULL, "cannot read the descriptor limit");
    if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < wanted)
        wanted = limit.rlim_max;
    limit.rlim_cur = limit.rlim_max = wanted;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        return error_errno(err, errno, NULL, "cannot set the descriptor limit");
    *ret_nofile = wanted;
    return 0;
}

static int limit_resources(struct error *err)
{
    static const struct {
        int resource;
        const char *name;
    } zeroed[] = {{RLIMIT_CORE, "core size"}, {RLIMIT_FSIZE, "file size"}, {RLIMIT_MSGQUEUE, "message queue"}};
    struct rlimit none = {0, 0};
    signal(SIGXFSZ, SIG_IGN); // a last word to a log file must not kill
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < ARRAY_LEN(zeroed); i++)
        if (setrlimit((__rlimit_resource_t)zeroed[i].resource, &none) < 0)
            return error_errno(err, errno, NULL, "cannot limit the %s", zeroed[i].name);
    return 0;
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static int close_others(const struct lockdown *lockdown, struct error *err)
{
    int keep[16];
    size_t count = lockdown->keep_count;
    unsigned from = 3;
    if (count > ARRAY_LEN(keep))
        return error_set(err, ERROR_INTERNAL, NULL, "too many descriptors to keep");
    for (size_t i = 0; i < count; i++)
        keep[i] = lockdown->keep_fds[i];
    qsort(keep, count, sizeof(keep[0]), by_number);
    for (size_t i = 0; i < count; i++) {
        if ((unsigned)keep[i] > from && close_range(from, (unsigned)keep[i] - 1, 0) < 0)
            return error_errno(err, errno, NULL, "cannot close inherited descriptors");
        from = (unsigned)keep[i] + 1;
    }
    if (close_range(from, ~0U, 0) < 0)
        return error_errno(err, errno, NULL, "cannot close inherited descriptors");
    return 0;
}

// Root gives its ids away first: inside a user namespace of its own it would still be root for the host's files.
static int drop_root(struct error *err)
{
    if (geteuid() != 0)
        return 0;
    if (setgroups(0, NULL) < 0 && errno != EPERM) // EPERM: a user namespace that has none to give
        return error_errno(err, errno, NULL, "cannot give up the supplementary groups");
    if (setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0)
        return 0;
    // A user namespace that maps one id: its root is an ordinary user outside already.
    if (errno == EINVAL)
        return 0;
    return error_errno(err, errno, NULL, "cannot become an unprivileged user");
}

static int enter_namespaces(struct error *err)
{
    if (unshare(CLONE_NEWUSER) < 0)
        return error_errno(err, errno,
                           "unprivileged user namespaces are needed: sysctl user.max_user_namespaces and, where they "
                           "exist, kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns",
                           "cannot make a user namespace for the egress process");
    if (unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP) < 0)
        return error_errno(err, errno, NULL, "cannot make namespaces for the egress process");
    return 0;
}

// No id is mapped in the user namespace, so that nobody, we included, could make a file in the new root.
static int empty_root(struct error *err)
{
    unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return error_errno(err, errno, NULL, "cannot part from the host's mounts");
    if (mount("none", "/proc", "tmpfs", flags, "size=4k,nr_inodes=2") < 0 || chdir("/proc") < 0)
        return error_errno(err, errno, NULL, "cannot make an empty root");
    if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return error_errno(err, errno, NULL, "cannot change to the empty root");
    return 0;
}

static int drop_capabilities(struct error *err)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};
    for (int capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; capability++)
        prctl(PR_CAPBSET_DROP, capability);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (syscall(SYS_capset, &head, none) < 0)
        return error_errno(err, errno, NULL, "cannot give up the capabilities");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return error_errno(err, errno, NULL, "cannot rule out new privileges");
    return 0;
}

static int hide(struct error *err)
{
    if (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return error_errno(err, errno, NULL, "cannot become non-dumpable");
    return 0;
}

// The parent's whole life after the fork.
_Noreturn static void wait_for(pid_t child)
{
    struct error err = ERROR_INIT;
    int status = 0;
    close_range(1, ~0U, 0);
    if (drop_capabilities(&err) < 0 || lockdown_filter_waiting(&err) < 0)
        _exit(125);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    // Not _exit: where a sanitizer stands in between, it would want more than waiting.
    syscall(SYS_exit_group, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    __builtin_unreachable();
}

// PDEATHSIG is armed late: has the parent died before? Its end of the pipe tells.
static bool is_orphan(int life_fd)
{
    struct pollfd life = {.fd = life_fd, .events = POLLIN};
    return poll(&life, 1, 0) != 0;
}

static int fork_into_pid_namespace(struct error *err)
{
    int life[2];
    if (pipe2(life, O_CLOEXEC) < 0)
        return error_errno(err, errno, NULL, "cannot make a pipe");
    pid_t child = fork();
    if (child < 0)
        return error_errno(err, errno, NULL, "cannot start the egress process");
    if (child > 0) {
        dup2(life[1], 0); // the only descriptor that stays open, and ends with this process
        wait_for(child);
    }
    close(life[1]);
    if (hide(err) < 0 || is_orphan(life[0]))
        _exit(125);
    close(life[0]);
    return 0;
}

int lockdown_enter(const struct lockdown *lockdown, struct error *err)
{
    if (close_others(lockdown, err) < 0 || limit_resources(err) < 0 || drop_root(err) < 0 || hide(err) < 0)
        return -1;
    if (enter_namespaces(err) < 0 || empty_root(err) < 0 || fork_into_pid_namespace(err) < 0)
        return -1;
    return drop_capabilities(err) < 0 ? -1 : lockdown_filter_working(err);
}
