// The shim's parts that need no namespace: its configuration, its filter as the kernel would run it, its tables.
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "tests/support/support.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
// The shim is a program of its own: its sources are compiled in here.
#include "reconcilers/drivers/bubblewrap/shim/config.c"
#include "reconcilers/drivers/bubblewrap/shim/filter.c"
#include "reconcilers/drivers/bubblewrap/shim/rules.c"

#define GOOD_LIMITS "\"limits\":{\"memory_bytes\":1,\"pids\":1,\"cpus_milli\":1,\"root_bytes\":1}"
#define GOOD_REST "\"name\":\"n\",\"template\":{\"kind\":\"host\"},\"command\":[\"/bin/true\"],\"environment\":[\"A=b\"],\"cwd\":\"/ws\"," GOOD_LIMITS

static int read_text(const char *text, struct shim_config *config, struct error *err)
{
    CLEANUP_CLOSE int fd = memfd_create("config", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fs_write_all(fd, text, strlen(text), err), 0);
    return config_read(fd, config, err);
}

static void a_whole_configuration_is_read(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct shim_config config;
    assert_ok(read_text("{\"version\":1,\"flags\":[\"ends-with-controller\",\"later\"],\"network\":true,\"later\":{},"
                        "\"mounts\":[{\"fd\":8,\"target\":\"/ws\",\"read_only\":true,\"device\":1,\"inode\":2}]," GOOD_REST "}",
                        &config, &err));
    assert_true(config.ends_with_controller && config.has_network && config.mounts[0].is_read_only);
    assert_int_equal(config.mount_count, 1);
    assert_int_equal(config.mounts[0].inode, 2);
    assert_int_equal(config.template_fd, -1);
    json_decref(config.root);
}

static void a_wrong_configuration_is_refused_with_a_sentence(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "", "{", "[]", "{\"version\":2," GOOD_REST "}", "{\"version\":1}",
        "{\"version\":1,\"version\":1," GOOD_REST "}",
        "{\"version\":1,\"mounts\":[{\"fd\":3,\"target\":\"/ws\"}]," GOOD_REST "}",
        "{\"version\":1,\"mounts\":[{\"fd\":8,\"target\":\"/ws/../etc\"}]," GOOD_REST "}",
        "{\"version\":1,\"mounts\":[{\"fd\":8,\"target\":\"/\"}]," GOOD_REST "}",
        "{\"version\":1,\"mounts\":[{\"fd\":8,\"target\":\"ws\"}]," GOOD_REST "}",
        "{\"version\":1,\"mounts\":[{\"fd\":8,\"target\":\"/ws//x\"}]," GOOD_REST "}",
        "{\"version\":1,\"mounts\":[{},{},{},{},{},{},{},{},{}]," GOOD_REST "}",
        "{\"version\":1,\"name\":\"a/b\",\"template\":{\"kind\":\"host\"},\"command\":[\"x\"],\"environment\":[],\"cwd\":\"/w\"," GOOD_LIMITS "}",
        "{\"version\":1,\"name\":\"n\",\"template\":{\"kind\":\"moon\"},\"command\":[\"x\"],\"environment\":[],\"cwd\":\"/w\"," GOOD_LIMITS "}",
        "{\"version\":1,\"name\":\"n\",\"template\":{\"kind\":\"host\"},\"command\":[],\"environment\":[],\"cwd\":\"/w\"," GOOD_LIMITS "}",
        "{\"version\":1,\"name\":\"n\",\"template\":{\"kind\":\"host\"},\"command\":[1],\"environment\":[],\"cwd\":\"/w\"," GOOD_LIMITS "}",
        "{\"version\":1,\"name\":\"n\",\"template\":{\"kind\":\"host\"},\"command\":[\"x\"],\"environment\":[],\"cwd\":\"/w\",\"limits\":{}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct error err = ERROR_INIT;
        struct shim_config config;
        if (read_text(wrong[i], &config, &err) == 0)
            fail_msg("accepted: %s", wrong[i]);
        assert_true(err.message[0] != '\0');
    }
}

// ---- the filter: classic BPF, run by hand ------------------------------------------------------------------------------

static uint32_t word_at(const struct seccomp_data *data, uint32_t offset)
{
    uint32_t word;
    assert_true(offset + sizeof(word) <= sizeof(*data));
    memcpy(&word, (const char *)data + offset, sizeof(word));
    return word;
}

static uint32_t run_filter(const struct filter_program *program, const struct seccomp_data *data)
{
    uint32_t word = 0;
    for (size_t at = 0; at < program->len; at++) {
        const struct sock_filter *code = &program->code[at];
        bool is_true = false;
        switch (code->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            word = word_at(data, code->k);
            continue;
        case BPF_RET | BPF_K:
            return code->k;
        case BPF_JMP | BPF_JEQ | BPF_K:
            is_true = word == code->k;
            break;
        case BPF_JMP | BPF_JGT | BPF_K:
            is_true = word > code->k;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            is_true = word & code->k;
            break;
        default:
            fail_msg("instruction %zu has the unknown code %x", at, code->code);
        }
        at += is_true ? code->jt : code->jf;
    }
    fail_msg("the filter has no end");
    return 0;
}

static uint32_t judge(int number, uint64_t first, uint64_t second, uint64_t third)
{
    static struct filter_program program;
    filter_build(false, &program);
    struct seccomp_data data = {.nr = number, .arch = NATIVE_ARCH, .args = {first, second, third}};
    return run_filter(&program, &data);
}
#define ERRNO(value) (SECCOMP_RET_ERRNO | (value))

static void ordinary_calls_pass(void **state)
{
    (void)state;
    static const int calls[] = {SYS_read, SYS_openat, SYS_execve, SYS_mmap, SYS_futex, SYS_chroot, SYS_fchown, SYS_ptrace, SYS_exit_group, SYS_clone};
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        assert_int_equal(judge(calls[i], SIGCHLD, 0, 0), SECCOMP_RET_ALLOW);
}

static void each_refused_call_gets_its_error(void **state)
{
    (void)state;
    for (size_t i = 0; i < refused_call_count; i++)
        assert_int_equal(judge(refused_calls[i].number, 0, 0, 0), ERRNO((uint32_t)refused_calls[i].errno_value));
}

static void unknown_and_foreign_calls_are_not_there(void **state)
{
    (void)state;
    struct filter_program program;
    filter_build(true, &program);
    struct seccomp_data foreign = {.nr = SYS_read, .arch = AUDIT_ARCH_I386};
    assert_int_equal(run_filter(&program, &foreign), ERRNO(ENOSYS));
    assert_int_equal(judge(0x40000000 | SYS_read, 0, 0, 0), ERRNO(ENOSYS));
    assert_int_equal(judge(LAST_KNOWN_CALL + 1, 0, 0, 0), ERRNO(ENOSYS));
    assert_int_equal(judge(-1, 0, 0, 0), ERRNO(ENOSYS));
}

static void new_namespaces_are_refused_whatever_else_is_asked(void **state)
{
    (void)state;
    static const unsigned long flags[] = {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWCGROUP};
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        assert_int_equal(judge(SYS_clone, flags[i] | SIGCHLD | CLONE_VM, 0, 0), ERRNO(EPERM));
        assert_int_equal(judge(SYS_unshare, flags[i] | CLONE_FILES, 0, 0), ERRNO(EPERM));
    }
    assert_int_equal(judge(SYS_unshare, CLONE_FILES, 0, 0), SECCOMP_RET_ALLOW);
}

static void only_four_socket_families_pass(void **state)
{
    (void)state;
    for (uint64_t family = 0; family < 64; family++) {
        bool is_allowed = family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
        assert_int_equal(judge(SYS_socket, family, SOCK_STREAM, 0), is_allowed ? SECCOMP_RET_ALLOW : ERRNO(EAFNOSUPPORT));
        // The kernel looks at 32 bits of the argument; so must the filter.
        assert_int_equal(judge(SYS_socket, family | 1ULL << 32, SOCK_STREAM, 0), is_allowed ? SECCOMP_RET_ALLOW : ERRNO(EAFNOSUPPORT));
    }
    for (uint64_t protocol = 1; protocol < 32; protocol++)
        assert_int_equal(judge(SYS_socket, AF_NETLINK, SOCK_RAW, protocol), ERRNO(EAFNOSUPPORT));
    assert_int_equal(judge(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(judge(SYS_socketpair, AF_TIPC, SOCK_STREAM, 0), ERRNO(EAFNOSUPPORT));
}

static void terminal_input_cannot_be_faked(void **state)
{
    (void)state;
    assert_int_equal(judge(SYS_ioctl, 0, TIOCSTI, 0), ERRNO(EPERM));
    assert_int_equal(judge(SYS_ioctl, 0, TIOCSTI | 1ULL << 32, 0), ERRNO(EPERM));
    assert_int_equal(judge(SYS_ioctl, 0, TIOCLINUX, 0), ERRNO(EPERM));
    assert_int_equal(judge(SYS_ioctl, 0, TIOCGWINSZ, 0), SECCOMP_RET_ALLOW);
}

static void owners_are_faked_only_with_one_id(void **state)
{
    (void)state;
    struct filter_program program;
    filter_build(true, &program);
    static const int calls[] = {SYS_fchown, SYS_fchownat, SYS_setuid, SYS_setgroups, SYS_setresgid};
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        struct seccomp_data data = {.nr = calls[i], .arch = NATIVE_ARCH};
        assert_int_equal(run_filter(&program, &data), ERRNO(0));
        assert_int_equal(judge(calls[i], 0, 0, 0), SECCOMP_RET_ALLOW);
    }
}

static void no_kept_capability_reaches_beyond_the_sandbox(void **state)
{
    (void)state;
    static const int never[] = {CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_RESOURCE, CAP_SYS_PTRACE, CAP_SYS_MODULE, CAP_SYS_RAWIO,
                                CAP_SYS_BOOT, CAP_SYS_TIME, CAP_BPF, CAP_PERFMON, CAP_DAC_READ_SEARCH, CAP_MKNOD, CAP_SYSLOG};
    for (size_t i = 0; i < ARRAY_LEN(never); i++)
        assert_false(kept_capability_mask() & 1ULL << never[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_configuration_is_read),
        cmocka_unit_test(a_wrong_configuration_is_refused_with_a_sentence),
        cmocka_unit_test(ordinary_calls_pass),
        cmocka_unit_test(each_refused_call_gets_its_error),
        cmocka_unit_test(unknown_and_foreign_calls_are_not_there),
        cmocka_unit_test(new_namespaces_are_refused_whatever_else_is_asked),
        cmocka_unit_test(only_four_socket_families_pass),
        cmocka_unit_test(terminal_input_cannot_be_faked),
        cmocka_unit_test(owners_are_faked_only_with_one_id),
        cmocka_unit_test(no_kept_capability_reaches_beyond_the_sandbox),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
