// Tries from inside a sandbox what the hard rules forbid and prints a line for each: "ok RULE" or "BROKEN RULE: how".
// It refuses to run anywhere but in a sandbox: on a host, as root, its attempts would succeed and do harm.
// Static, so that it runs in every template. Unlike the checks at each start it may be slow and may be killed by what it tries:
// each attempt is a process of its own.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// Each returns 0 when the rule holds, 1 when it was broken.
static int opens(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK, 0600);
    return fd >= 0;
}
static int mounts_tmpfs(void)
{
    return mount("tmpfs", "/tmp", "tmpfs", 0, NULL) == 0 || errno != EPERM;
}
static int remounts_usr(void)
{
    return mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL) == 0 || umount2("/usr", MNT_DETACH) == 0;
}
static int writes_usr(void)
{
    return opens("/usr/bin/probe-was-here", O_CREAT | O_WRONLY);
}
static int makes_userns(void)
{
    return unshare(CLONE_NEWUSER) == 0;
}
static int makes_userns_by_clone3(void)
{
    unsigned long args[11] = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD};
    long pid = syscall(SYS_clone3, args, 64);
    if (pid == 0)
        _exit(0);
    return pid > 0 || errno != ENOSYS;
}
static int raises_userns_limit(void)
{
    return opens("/proc/sys/user/max_user_namespaces", O_WRONLY);
}
static int joins_init_namespace(void)
{
    int fd = open("/proc/1/ns/user", O_RDONLY);
    return fd >= 0 && setns(fd, 0) == 0;
}
static int socket_opens(int domain, int type, int protocol)
{
    return socket(domain, type, protocol) >= 0;
}
static int opens_vsock(void)
{
    return socket_opens(AF_VSOCK, SOCK_STREAM, 0);
}
static int opens_packet(void)
{
    return socket_opens(AF_PACKET, SOCK_RAW, 0) || socket_opens(AF_INET, SOCK_RAW, 255);
}
static int opens_netfilter(void)
{
    return socket_opens(AF_NETLINK, SOCK_RAW, 12);
}
static int opens_alg(void)
{
    return socket_opens(AF_ALG, SOCK_SEQPACKET, 0);
}
static int uses_keys(void)
{
    return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0) >= 0 ||
           syscall(SYS_add_key, "user", "probe", "x", 1, KEY_SPEC_SESSION_KEYRING) >= 0;
}
static int loads_bpf(void)
{
    return syscall(SYS_bpf, 0, NULL, 0) >= 0 || errno != EPERM;
}
static int uses_io_uring(void)
{
    char params[256] = {0};
    return syscall(SYS_io_uring_setup, 1, params) >= 0 || errno != ENOSYS;
}
static int fakes_input(void)
{
    char c = 'x';
    int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    return ioctl(fd >= 0 ? fd : 0, TIOCSTI, &c) == 0 || errno != EPERM;
}
static int traces_init(void)
{
    return ptrace(PTRACE_ATTACH, 1, NULL, NULL) == 0 || opens("/proc/1/mem", O_RDWR);
}
static int signals_init(void)
{
    kill(1, SIGKILL); // the kernel lets it pass without effect
    return kill(1, 0) != 0;
}
static int reads_init_files(void)
{
    DIR *dir = opendir("/proc/1/fd");
    int found = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        char path[300], target[300];
        snprintf(path, sizeof(path), "/proc/1/fd/%s", entry->d_name);
        found |= entry->d_name[0] != '.' && readlink(path, target, sizeof(target)) > 0;
    }
    return found;
}
static int makes_devices(void)
{
    return mknod("/tmp/probe-device", S_IFBLK | 0600, makedev(254, 0)) == 0;
}
static int reads_kernel_memory(void)
{
    return opens("/proc/kcore", O_RDONLY) || opens("/dev/mem", O_RDONLY) || opens("/dev/kmsg", O_RDONLY) || opens("/proc/kmsg", O_RDONLY);
}
static int writes_sysctl(void)
{
    return opens("/proc/sys/kernel/core_pattern", O_WRONLY) || opens("/proc/sysrq-trigger", O_WRONLY) ||
           opens("/proc/sys/vm/overcommit_memory", O_WRONLY);
}
static int sees_sys(void)
{
    return access("/sys/kernel", F_OK) == 0 || access("/sys/class/net", F_OK) == 0;
}
static int sees_host_sockets(void)
{
    return access("/var/run/docker.sock", F_OK) == 0 || access("/run/dbus", F_OK) == 0 || access("/run/systemd", F_OK) == 0;
}
static int sees_shadow(void)
{
    struct stat info;
    return stat("/etc/shadow", &info) == 0 && info.st_uid != 0;
}
static int raises_limits(void)
{
    return prctl(PR_CAPBSET_READ, 24, 0, 0, 0) == 1 || prctl(PR_CAPBSET_READ, 21, 0, 0, 0) == 1 || prctl(PR_CAPBSET_READ, 12, 0, 0, 0) == 1;
}
#ifdef __x86_64__
static int uses_foreign_calls(void)
{
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory", "r8", "r9", "r10", "r11"); // getpid of 32 bits
    return result > 0;
}
static int uses_x32_calls(void)
{
    return syscall(0x40000000 | SYS_getpid) > 0;
}
#endif
static int opens_by_handle(void)
{
    char handle[64] = {0};
    return syscall(SYS_open_by_handle_at, AT_FDCWD, handle, O_RDONLY) >= 0 || errno != EPERM;
}

static const struct attempt {
    const char *rule;
    int (*try)(void);
} attempts[] = {
    {"no mounts", mounts_tmpfs},
    {"mounts cannot be changed", remounts_usr},
    {"the host's programs cannot be written", writes_usr},
    {"no user namespaces", makes_userns},
    {"no user namespaces by clone3", makes_userns_by_clone3},
    {"the limit of user namespaces stays", raises_userns_limit},
    {"namespaces cannot be joined", joins_init_namespace},
    {"no AF_VSOCK", opens_vsock},
    {"no raw packets", opens_packet},
    {"no netfilter", opens_netfilter},
    {"no AF_ALG", opens_alg},
    {"no keys", uses_keys},
    {"no bpf", loads_bpf},
    {"no io_uring", uses_io_uring},
    {"terminal input cannot be faked", fakes_input},
    {"the first process cannot be traced", traces_init},
    {"the first process cannot be killed", signals_init},
    {"the first process's files are out of reach", reads_init_files},
    {"no devices", makes_devices},
    {"kernel memory and log are hidden", reads_kernel_memory},
    {"system settings are read-only", writes_sysctl},
    {"no /sys", sees_sys},
    {"no sockets of the host", sees_host_sockets},
    {"no passwords of the host", sees_shadow},
    {"no SYS_RESOURCE, SYS_ADMIN, NET_ADMIN", raises_limits},
    {"no open by handle", opens_by_handle},
#ifdef __x86_64__
    {"the native ABI only: 32 bits", uses_foreign_calls},
    {"the native ABI only: x32", uses_x32_calls},
#endif
};

// A user namespace of its own, in which root is somebody else outside, and the place where every sandbox has its tool server.
static int is_in_sandbox(void)
{
    unsigned inside = 0, outside = 0, count = 0;
    FILE *map = fopen("/proc/self/uid_map", "re");
    int fields = map ? fscanf(map, "%u %u %u", &inside, &outside, &count) : 0;
    if (map)
        fclose(map);
    return fields == 3 && inside == 0 && outside != 0 && access("/run/chat2shell/chat2shell-guest", F_OK) == 0;
}

int main(void)
{
    int broken = 0;
    if (!is_in_sandbox()) {
        fputs("this program attacks what it runs in: it runs in a chat2shell sandbox only\n", stderr);
        return 2;
    }
    for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(attempts[i].try());
        int status = 1 << 8;
        waitpid(pid, &status, 0);
        int is_broken = WIFEXITED(status) && WEXITSTATUS(status) != 0; // killed by the attempt: refused all the more
        printf("%s %s\n", is_broken ? "BROKEN" : "ok", attempts[i].rule);
        broken += is_broken;
    }
    return broken != 0;
}
