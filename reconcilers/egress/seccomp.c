#include "controller/base/cleanup.h"
#include "reconcilers/egress/lockdown.h"
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

// Closed lists; whatever is not here fails with EPERM. No open, no exec, no clone, no kill, no AF_UNIX. The sockets
// that are there already (control, connector, route) are used through read and write like calls only.
static const int working[] = {
    SCMP_SYS(read),         SCMP_SYS(write),       SCMP_SYS(recvfrom),      SCMP_SYS(sendto),
    SCMP_SYS(recvmsg),      SCMP_SYS(sendmsg),     SCMP_SYS(close),         SCMP_SYS(epoll_wait),
    SCMP_SYS(epoll_pwait),  SCMP_SYS(epoll_ctl),   SCMP_SYS(accept4),       SCMP_SYS(connect),
    SCMP_SYS(shutdown),     SCMP_SYS(getsockopt),  SCMP_SYS(setsockopt),    SCMP_SYS(getsockname),
    SCMP_SYS(getpeername),  SCMP_SYS(brk),         SCMP_SYS(munmap),        SCMP_SYS(mremap),
    SCMP_SYS(madvise),      SCMP_SYS(getrandom),   SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday),
    SCMP_SYS(rt_sigreturn), SCMP_SYS(exit),        SCMP_SYS(exit_group),    SCMP_SYS(restart_syscall),
    SCMP_SYS(futex),        SCMP_SYS(getpid),      SCMP_SYS(gettid),        SCMP_SYS(time),
    SCMP_SYS(rt_sigprocmask), SCMP_SYS(readv),     SCMP_SYS(writev),
};
static const int waiting[] = {
    SCMP_SYS(wait4), SCMP_SYS(waitid), SCMP_SYS(exit_group), SCMP_SYS(exit), SCMP_SYS(rt_sigreturn),
    SCMP_SYS(restart_syscall),
};

static int allow_all(scmp_filter_ctx filter, const int *calls, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (calls[i] != __NR_SCMP_ERROR && seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0) < 0)
            return -1;
    return 0;
}

static int allow_internet_sockets(scmp_filter_ctx filter)
{
    static const int families[] = {AF_INET, AF_INET6};
    static const int types[] = {SOCK_STREAM, SOCK_DGRAM};
    for (size_t f = 0; f < ARRAY_LEN(families); f++)
        for (size_t t = 0; t < ARRAY_LEN(types); t++)
            if (seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2,
                                 SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[f]),
                                 SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, (scmp_datum_t)types[t])) < 0)
                return -1;
    return 0;
}

static int allow_fcntl(scmp_filter_ctx filter)
{
    static const int commands[] = {F_GETFL, F_SETFL, F_GETFD, F_SETFD};
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
                             SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)commands[i])) < 0)
            return -1;
    return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_EQ, FIONREAD));
}

// Memory that can be written or run, never both, and never newly made runnable.
static int allow_data_memory(scmp_filter_ctx filter)
{
    if (seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)) < 0)
        return -1;
    return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
                            SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
}

static void release(scmp_filter_ctx *filter)
{
    if (*filter)
        seccomp_release(*filter);
}

static int fail(struct error *err)
{
    return error_set(err, ERROR_UNSUPPORTED, "the kernel needs CONFIG_SECCOMP_FILTER",
                     "cannot install the system call filter");
}

int lockdown_filter_working(struct error *err)
{
    CLEANUP(release) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!filter || allow_all(filter, working, ARRAY_LEN(working)) < 0 || allow_internet_sockets(filter) < 0 ||
        allow_fcntl(filter) < 0 || allow_data_memory(filter) < 0)
        return fail(err);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    // The sanitizers' runtime needs these to report what it found; never in a release build.
    static const int runtime[] = {SCMP_SYS(sigaltstack), SCMP_SYS(rt_sigaction), SCMP_SYS(sched_yield),
                                  SCMP_SYS(getrlimit),   SCMP_SYS(prlimit64),    SCMP_SYS(tgkill)};
    if (allow_all(filter, runtime, ARRAY_LEN(runtime)) < 0)
        return fail(err);
#endif
    return seccomp_load(filter) < 0 ? fail(err) : 0;
}

int lockdown_filter_waiting(struct error *err)
{
    CLEANUP(release) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!filter || allow_all(filter, waiting, ARRAY_LEN(waiting)) < 0)
        return fail(err);
    return seccomp_load(filter) < 0 ? fail(err) : 0;
}
