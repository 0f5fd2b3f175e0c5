#include "tests/support/egress_world.h"
#include "tests/support/support.h"
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/base/socket.h"
#include "tests/support/egress_origin.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "controller/base/egress_protocol.h"

extern char **environ;

static pid_t outside_pid;
static int foreign_fd = -1; // a TCP socket of the other namespace
static char *directory;

static bool run(const char *const *argv)
{
    pid_t pid;
    int status;
    if (posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ) != 0)
        return false;
    return waitpid(pid, &status, 0) == pid && status == 0;
}

#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})

static bool write_text(const char *path, const char *text)
{
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

// A user becomes root of a namespace of its own; root stays what it is.
static bool become_root(void)
{
    char map[64];
    uid_t uid = getuid();
    gid_t gid = getgid();
    if (uid == 0)
        return unshare(CLONE_NEWNS) == 0;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 || !write_text("/proc/self/setgroups", "deny"))
        return false;
    snprintf(map, sizeof(map), "0 %u 1", uid);
    if (!write_text("/proc/self/uid_map", map))
        return false;
    snprintf(map, sizeof(map), "0 %u 1", gid);
    return write_text("/proc/self/gid_map", map);
}

static bool replace_file(const char *path, const char *text)
{
    CLEANUP_FREE char *ours = mem_format("%s/%s", directory, strrchr(path, '/') + 1);
    return write_text(ours, text) && mount(ours, path, NULL, MS_BIND, NULL) == 0;
}

static bool replace_files(void)
{
    directory = support_make_dir();
    chmod(directory, 0755);
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           replace_file("/etc/resolv.conf", "nameserver " WORLD_OUTSIDE "\n") &&
           replace_file("/etc/hosts", "127.0.0.1 localhost\n" WORLD_OUTSIDE " hosted.example\n");
}

static bool lay_cable(int outside_ns, int host_ns)
{
    CLEANUP_FREE char *outside = mem_format("/proc/%d/fd/%d", getpid(), outside_ns);
    if (!RUN("ip", "link", "set", "lo", "up") || !RUN("ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1") ||
        !RUN("ip", "link", "set", "v1", "netns", outside) ||
        !RUN("ip", "address", "add", WORLD_HOST "/24", "dev", "v0") || !RUN("ip", "link", "set", "v0", "up"))
        return false;
    return setns(outside_ns, CLONE_NEWNET) == 0 && RUN("ip", "link", "set", "lo", "up") &&
           RUN("ip", "address", "add", WORLD_OUTSIDE "/24", "dev", "v1") && RUN("ip", "link", "set", "v1", "up") &&
           (outside_pid = origin_start(&foreign_fd)) > 0 && setns(host_ns, CLONE_NEWNET) == 0;
}

static bool make(void)
{
    if (!become_root() || !replace_files() || unshare(CLONE_NEWNET) < 0)
        return false;
    CLEANUP_CLOSE int outside_ns = open("/proc/self/ns/net", O_RDONLY); // ip must be able to reach it
    if (unshare(CLONE_NEWNET) < 0)
        return false;
    CLEANUP_CLOSE int host_ns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    return lay_cable(outside_ns, host_ns);
}

bool egress_world_make(void)
{
    static bool was_tried, is_made;
    if (!was_tried) {
        was_tried = true;
        errno = 0;
        is_made = make();
        if (!is_made)
            fprintf(stderr, "skipped: network namespaces, mounts or the ip program are not available (%s)\n",
                    strerror(errno));
    }
    return is_made;
}

void egress_world_end(void)
{
    if (outside_pid > 0) {
        kill(outside_pid, SIGKILL);
        waitpid(outside_pid, NULL, 0);
    }
    if (directory) {
        umount2("/etc/hosts", MNT_DETACH);
        umount2("/etc/resolv.conf", MNT_DETACH);
        support_remove_dir(directory);
    }
}

static int connect_inside(uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
        int code = errno;
        close(fd);
        errno = code;
        return -1;
    }
    return fd;
}

static int make_descriptor(struct egress_process *process, uint16_t port)
{
    switch (process->mode) {
    case CONNECTOR_OTHER_NAMESPACE:
        return dup(foreign_fd);
    case CONNECTOR_OTHER_PORT:
        return connect_inside(process->proxy_port);
    case CONNECTOR_UDP:
        return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    case CONNECTOR_UNIX:
        return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    case CONNECTOR_NOTHING:
        return -1;
    default:
        return connect_inside(port);
    }
}

// The net helper's part.
static void *serve_connector(void *data)
{
    struct egress_process *process = data;
    struct egress_connect request;
    while (recv(process->connector_fd, &request, sizeof(request), 0) == sizeof(request)) {
        if (process->mode == CONNECTOR_SILENT)
            continue;
        errno = 0;
        CLEANUP_CLOSE int fd = make_descriptor(process, request.port);
        struct egress_connected answer = {.seq = request.seq,
                                          .errno_value = process->mode == CONNECTOR_NOTHING ? 0 : errno};
        socket_send_fds(process->connector_fd, &answer, sizeof(answer), &fd, fd >= 0);
    }
    return NULL;
}

static char *program_path(void)
{
    char self[4096];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    assert_true(len > 0);
    self[len] = '\0';
    for (int i = 0; i < 2; i++)
        *strrchr(self, '/') = '\0'; // build/X/tests/NAME
    return mem_format("%s/chat2shell-egress", self);
}

static void spawn_program(struct egress_process *process, int proxy_fd, int control, int connector, const char *const *args)
{
    CLEANUP_FREE char *path = program_path();
    const char *argv[32] = {path, "--control-fd", "10", "--proxy-fd", "11", "--connector-fd", "12"};
    size_t count = 7;
    while (args && *args && count < ARRAY_LEN(argv) - 1)
        argv[count++] = *args++;
    process->pid = fork();
    assert_true(process->pid >= 0);
    if (process->pid == 0) {
        int from[] = {control, proxy_fd, connector};
        for (int i = 0; i < 3; i++)
            from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 20);
        for (int i = 0; i < 3; i++)
            dup2(from[i], 10 + i);
        execv(path, (char *const *)argv);
        _exit(126);
    }
}

void egress_start(struct egress_process *ret, const char *const *args)
{
    int control[2], connector[2];
    pthread_t thread;
    *ret = (struct egress_process){0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, connector), 0);
    CLEANUP_CLOSE int proxy_fd = world_listen(&ret->proxy_port);
    ret->control_fd = control[0];
    ret->connector_fd = connector[0];
    spawn_program(ret, proxy_fd, control[1], connector[1], args);
    close(control[1]);
    close(connector[1]);
    assert_int_equal(pthread_create(&thread, NULL, serve_connector, ret), 0);
    ret->thread = thread;
    CLEANUP_FREE char *ready = egress_read_control(ret);
    if (ready)
        assert_non_null(strstr(ready, "\"ready\""));
}

int egress_stop(struct egress_process *process)
{
    int status;
    close(process->control_fd);
    assert_int_equal(waitpid(process->pid, &status, 0), process->pid);
    shutdown(process->connector_fd, SHUT_RDWR);
    pthread_join(process->thread, NULL);
    close(process->connector_fd);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

pid_t egress_working_pid(const struct egress_process *process)
{
    CLEANUP_FREE char *path = mem_format("/proc/%d/task/%d/children", process->pid, process->pid);
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(4096);
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    char bytes[64] = "";
    if (fd < 0 || read(fd, bytes, sizeof(bytes) - 1) <= 0)
        return -1;
    return (pid_t)atoi(bytes);
}

char *egress_read_control(struct egress_process *process)
{
    char bytes[EGRESS_MESSAGE_MAX_BYTES + 1];
    setsockopt(process->control_fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_sec = 5}, sizeof(struct timeval));
    ssize_t len = recv(process->control_fd, bytes, sizeof(bytes) - 1, 0);
    return len > 0 ? mem_strndup(bytes, (size_t)len) : NULL;
}

char *egress_ask(struct egress_process *process, const char *message, int fd)
{
    assert_true(socket_send_fds(process->control_fd, message, strlen(message), &fd, fd >= 0) > 0);
    char *answer = egress_read_control(process);
    assert_non_null(answer);
    return answer;
}

int world_connect(uint16_t port)
{
    int fd = connect_inside(port);
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_sec = 10}, sizeof(struct timeval));
    return fd;
}

int world_listen(uint16_t *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 1024), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    *ret_port = ntohs(at.sin_port);
    return fd;
}

void world_send(int fd, const void *bytes, size_t len)
{
    for (size_t at = 0; at < len;) {
        ssize_t sent = send(fd, (const char *)bytes + at, len - at, MSG_NOSIGNAL);
        assert_true(sent > 0);
        at += (size_t)sent;
    }
}

char *world_read_all(int fd, size_t *ret_len)
{
    struct buffer text = BUFFER_INIT(64 * 1024 * 1024);
    ssize_t len;
    char *room;
    while ((room = buffer_reserve(&text, 65536)) && (len = recv(fd, room, 65536, 0)) > 0)
        text.len += (size_t)len;
    close(fd);
    if (ret_len)
        *ret_len = text.len;
    buffer_text(&text);
    return buffer_take_string(&text);
}

char *world_talk(uint16_t port, const char *text)
{
    int fd = world_connect(port);
    world_send(fd, text, strlen(text));
    return world_read_all(fd, NULL);
}

int world_tunnel(uint16_t proxy_port, const char *target)
{
    CLEANUP_CLOSE int fd = world_connect(proxy_port);
    CLEANUP_FREE char *request = mem_format("CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target);
    char head[4096];
    size_t len = 0;
    world_send(fd, request, strlen(request));
    while (len < sizeof(head) - 1 && recv(fd, head + len, 1, 0) == 1) {
        head[++len] = '\0';
        if (len >= 4 && memcmp(head + len - 4, "\r\n\r\n", 4) == 0)
            return strncmp(head, "HTTP/1.1 200 ", 13) == 0 ? TAKE_FD(fd) : -1;
    }
    return -1;
}
