// One check a hard rule, each a few microseconds: they run at the start of every sandbox. A check that cannot be made
// counts as broken.
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "reconcilers/drivers/bubblewrap/shim/inside.h"
#include "reconcilers/drivers/bubblewrap/shim/rules.h"
#include <errno.h>
#include <linux/netlink.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

static bool read_small(const char *path, struct buffer *text)
{
    return fs_read_file(path, text, NULL) == 0;
}

static bool root_is_not_host_root(void)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(4096);
    unsigned inside, outside, count;
    return read_small("/proc/self/uid_map", &text) && sscanf(buffer_text(&text), "%u %u %u", &inside, &outside, &count) == 3 &&
           inside == 0 && outside != 0;
}

static bool capabilities_are_the_kept_ones(void)
{
    static const char *const fields[] = {"CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"};
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(16384);
    if (!read_small("/proc/self/status", &text))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        const char *at = strstr(buffer_text(&text), fields[i]);
        if (at == NULL || (strtoull(at + strlen(fields[i]), NULL, 16) & ~kept_capability_mask()))
            return false;
    }
    return true;
}

static bool privileges_cannot_grow(void)
{
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
}

static bool filter_is_loaded(void)
{
    return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2;
}

// Without the filter the calls are not tried: they would do what they say.
static bool calls_are_refused(void)
{
    if (!filter_is_loaded())
        return false;
    for (size_t i = 0; i < refused_call_count; i++)
        if (syscall(refused_calls[i].number, -1L, -1L, -1L, -1L, -1L, -1L) != -1 || errno != refused_calls[i].errno_value)
            return false;
    return true;
}

static bool user_namespaces_are_off(void)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(64);
    if (!read_small("/proc/sys/user/max_user_namespaces", &text) || strtol(buffer_text(&text), NULL, 10) != 0)
        return false;
    return unshare(CLONE_NEWUSER) < 0 && unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWNET) < 0 &&
           syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL) < 0;
}

static bool has_socket(int domain, int type, int protocol)
{
    int fd = socket(domain, type | SOCK_CLOEXEC, protocol);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool sockets_are_the_allowed_ones(void)
{
    static const int refused[] = {AF_VSOCK, AF_PACKET, AF_ALG, AF_BLUETOOTH, AF_CAN, AF_TIPC, AF_XDP, AF_RDS, AF_KCM};
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        if (has_socket(refused[i], SOCK_DGRAM, 0) || has_socket(refused[i], SOCK_STREAM, 0) || has_socket(refused[i], SOCK_SEQPACKET, 0))
            return false;
    return !has_socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER) && !has_socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT) &&
           !has_socket(AF_INET, SOCK_RAW, 1);
}

static bool terminal_input_cannot_be_faked(void)
{
    char c = 'x';
    return ioctl(0, TIOCSTI, &c) < 0 && errno == EPERM && ioctl(0, TIOCLINUX, &c) < 0 && errno == EPERM;
}

static bool kernel_files_are_hidden(void)
{
    struct stat info;
    if (stat("/sys/kernel", &info) == 0)
        return false;
    struct statvfs at;
    if (statvfs("/proc/sys", &at) < 0 || !(at.f_flag & ST_RDONLY))
        return false;
    int fd = open("/proc/kcore", O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    return fd < 0;
}

static bool host_sockets_are_absent(void)
{
    static const char *const paths[] = {"/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock",
                                        "/run/podman/podman.sock", "/run/systemd/private", "/run/dbus/system_bus_socket"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        if (access(paths[i], F_OK) == 0)
            return false;
    return true;
}

static bool dies_first_without_memory(void)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(64);
    return read_small("/proc/self/oom_score_adj", &text) && strtol(buffer_text(&text), NULL, 10) == 1000;
}

static bool has_own_processes(void)
{
    return getpid() == 1;
}

static bool has_own_network(void)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(65536);
    if (!read_small("/proc/net/dev", &text))
        return false;
    int devices = 0;
    for (const char *at = strchr(buffer_text(&text), ':'); at; at = strchr(at + 1, ':'))
        devices++;
    return devices <= 1 || strstr(buffer_text(&text), "eth") == NULL;
}

static const struct rule_check {
    const char *sentence;
    bool (*holds)(void);
} checks[] = {
    {"root inside is root of the host", root_is_not_host_root},
    {"capabilities beyond the kept ones are there", capabilities_are_the_kept_ones},
    {"programs can gain privileges", privileges_cannot_grow},
    {"no system call filter is loaded", filter_is_loaded},
    {"a system call that must be refused is not", calls_are_refused},
    {"namespaces can be made inside", user_namespaces_are_off},
    {"a socket family that must be refused is not", sockets_are_the_allowed_ones},
    {"terminal input can be faked", terminal_input_cannot_be_faked},
    {"kernel files of the host can be seen or written", kernel_files_are_hidden},
    {"a control socket of the host is in reach", host_sockets_are_absent},
    {"the OOM score is not the highest", dies_first_without_memory},
    {"processes of the host can be seen", has_own_processes},
    {"the network of the host can be seen", has_own_network},
};

void inside_check_rules(json_t *broken)
{
    for (size_t i = 0; i < ARRAY_LEN(checks); i++)
        if (!checks[i].holds())
            json_array_append_new(broken, json_string(checks[i].sentence));
}
