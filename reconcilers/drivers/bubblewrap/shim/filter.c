// The sandbox's seccomp filter, assembled from the tables in rules.c. Classic BPF, straight down: each rule is a
// comparison and a verdict, so it can be read and cannot loop. The kernel remembers the verdict of calls that do not
// depend on arguments, so its length costs nothing at run time.
#include "controller/base/cleanup.h"
#include "reconcilers/drivers/bubblewrap/shim/rules.h"
#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "state the audit architecture of this machine"
#endif

// Newer calls answer "not there" until somebody has looked at them. It also refuses the x32 numbers (bit 30).
#define LAST_KNOWN_CALL 456
#define NEW_NAMESPACES                                                                                                 \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define LOAD_ARG(n) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[n])) // low half, little endian
#define REFUSE(errno_value) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (errno_value))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define UNLESS_EQUAL(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (skip))
#define IF_EQUAL(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (skip), 0)

static void add(struct filter_program *program, const struct sock_filter *code, size_t len)
{
    assert(program->len + len <= FILTER_MAX_LEN);
    for (size_t i = 0; i < len; i++)
        program->code[program->len++] = code[i];
}
#define ADD(program, ...)                                                                                              \
    do {                                                                                                               \
        const struct sock_filter code_[] = {__VA_ARGS__};                                                              \
        add(program, code_, ARRAY_LEN(code_));                                                                         \
    } while (0)

static void add_native_only(struct filter_program *program)
{
    ADD(program, LOAD(arch), IF_EQUAL(NATIVE_ARCH, 1), REFUSE(ENOSYS), LOAD(nr),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, LAST_KNOWN_CALL, 0, 1), REFUSE(ENOSYS));
}

static void add_refused(struct filter_program *program)
{
    for (size_t i = 0; i < refused_call_count; i++)
        ADD(program, UNLESS_EQUAL((uint32_t)refused_calls[i].number, 1), REFUSE((uint32_t)refused_calls[i].errno_value));
}

static void add_namespace_flags(struct filter_program *program)
{
    ADD(program, UNLESS_EQUAL(SYS_clone, 4), LOAD_ARG(0), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NEW_NAMESPACES, 0, 1),
        REFUSE(EPERM), ALLOW);
    ADD(program, UNLESS_EQUAL(SYS_unshare, 4), LOAD_ARG(0),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NEW_NAMESPACES | CLONE_NEWTIME, 0, 1), REFUSE(EPERM), ALLOW);
}

static void add_sockets(struct filter_program *program)
{
    ADD(program, UNLESS_EQUAL(SYS_socket, 9), LOAD_ARG(0), IF_EQUAL(AF_UNIX, 6), IF_EQUAL(AF_INET, 5),
        IF_EQUAL(AF_INET6, 4), UNLESS_EQUAL(AF_NETLINK, 2), LOAD_ARG(2), IF_EQUAL(NETLINK_ROUTE, 1),
        REFUSE(EAFNOSUPPORT), ALLOW);
    ADD(program, UNLESS_EQUAL(SYS_socketpair, 4), LOAD_ARG(0), IF_EQUAL(AF_UNIX, 1), REFUSE(EAFNOSUPPORT), ALLOW);
}

// Faking terminal input reaches whoever holds the other end.
static void add_ioctls(struct filter_program *program)
{
    ADD(program, UNLESS_EQUAL(SYS_ioctl, 5), LOAD_ARG(1), IF_EQUAL(TIOCSTI, 1), UNLESS_EQUAL(TIOCLINUX, 1), REFUSE(EPERM),
        ALLOW);
}

static void add_fake_owners(struct filter_program *program)
{
    static const int calls[] = {
#ifdef __x86_64__
        SYS_chown, SYS_lchown,
#endif
        SYS_fchown, SYS_fchownat, SYS_setgroups, SYS_setuid,   SYS_setgid,
        SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid, SYS_setfsuid, SYS_setfsgid};
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        ADD(program, UNLESS_EQUAL((uint32_t)calls[i], 1), REFUSE(0));
}

void filter_build(bool with_fake_owners, struct filter_program *ret)
{
    ret->len = 0;
    add_native_only(ret);
    add_refused(ret);
    add_namespace_flags(ret);
    add_sockets(ret);
    add_ioctls(ret);
    if (with_fake_owners)
        add_fake_owners(ret);
    ADD(ret, ALLOW);
}
