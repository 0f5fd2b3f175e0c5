#include "reconcilers/drivers/bubblewrap/shim/net.h"
#include "controller/base/cleanup.h"
#include "controller/base/guest_protocol.h"
#include "controller/base/socket.h"
#include "reconcilers/drivers/bubblewrap/shim/rules.h"
#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/close_range.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#ifndef IP_FREEBIND
#define IP_FREEBIND 15
#endif
#define PROXY_BACKLOG 512

static const char *join(void)
{
    setgroups(0, NULL); // refused in a namespace of one id; checked by the shim's warning
    if (setns(NET_FD_USERNS, CLONE_NEWUSER) < 0)
        return "enter the user namespace";
    if (setns(NET_FD_NETNS, CLONE_NEWNET) < 0)
        return "enter the network namespace";
    close(NET_FD_USERNS);
    close(NET_FD_NETNS);
    if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        return "become root inside the user namespace";
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    if (syscall(SYS_capset, &head, none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return "drop capabilities";
    return chdir("/") < 0 ? "leave the working directory" : NULL;
}

// The address may not be up yet: bubblewrap raises the loopback device at about the same time.
static int open_listener(void)
{
    CLEANUP_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(GUEST_PROXY_PORT), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int one = 1;
    if (fd < 0 || setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &one, sizeof(one)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
        bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, PROXY_BACKLOG) < 0)
        return -1;
    return TAKE_FD(fd);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static int lock_down(void)
{
    return 0; // the sanitizers' own calls are not in the list
}
#else
static int lock_down(void)
{
    static const int allowed[] = {SYS_read,       SYS_write,    SYS_close,   SYS_socket,     SYS_connect,       SYS_getsockopt,
                                  SYS_setsockopt, SYS_sendmsg,  SYS_recvmsg, SYS_ppoll,      SYS_clock_gettime, SYS_exit_group,
                                  SYS_exit,       SYS_rt_sigreturn, SYS_restart_syscall,
#ifdef SYS_poll
                                  SYS_poll
#endif
    };
    struct sock_filter code[2 * ARRAY_LEN(allowed) + 2];
    size_t len = 0;
    code[len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
        code[len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)allowed[i], 0, 1);
        code[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    code[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {.len = (unsigned short)len, .filter = code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
#endif

static int boot(const char *failed_step, int listener_fd)
{
    struct net_boot message = {.errno_value = failed_step ? errno : 0};
    if (failed_step)
        snprintf(message.step, sizeof(message.step), "%s", failed_step);
    ssize_t n = socket_send_fds(NET_FD_BOOT, &message, sizeof(message), &listener_fd, failed_step ? 0 : 1);
    close(NET_FD_BOOT);
    return n < 0 || failed_step ? 1 : 0;
}

int net_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    // First of all: from the moment it is in the sandbox's user namespace, root inside would be allowed to trace it.
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    close_range(NET_FD_NETNS + 1, ~0U, 0);
    signal(SIGPIPE, SIG_IGN);
    const char *failed_step = join();
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    CLEANUP_CLOSE int listener_fd = failed_step ? -1 : open_listener();
    if (!failed_step && listener_fd < 0)
        failed_step = "listen";
    if (!failed_step && lock_down() < 0)
        failed_step = "load its filter";
    if (boot(failed_step, listener_fd) != 0)
        return 1;
    close(TAKE_FD(listener_fd));
    net_serve(NET_FD_CONNECTOR);
    return 0;
}
