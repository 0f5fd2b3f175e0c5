#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/base/socket.h"
#include "reconcilers/drivers/bubblewrap/shim/inside.h"
#include "reconcilers/drivers/bubblewrap/shim/launch.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define STATUS_LINE_BYTES 4096

static int take_lock(struct shim *shim, struct error *err)
{
    shim->lock_fd = openat(SHIM_FD_DIRECTORY, SHIM_LOCK_NAME, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (shim->lock_fd < 0)
        return error_errno(err, errno, NULL, "cannot make the lock file of the runtime directory");
    if (flock(shim->lock_fd, LOCK_SH | LOCK_NB) < 0)
        return error_errno(err, errno, NULL, "the runtime directory is being removed");
    return 0;
}

int shim_listen(struct shim *shim, struct error *err)
{
    shim->listen_fd = socket_listen_at(SHIM_FD_DIRECTORY, SHIM_SOCKET_NAME, SOCK_SEQPACKET, err);
    return shim->listen_fd < 0 ? -1 : 0;
}

// The parent of pid, -1 if there is none: tells a recycled number from the process bubblewrap made.
static pid_t parent_of(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    char text[1024];
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    const char *at = strstr(text, "\nPPid:");
    return at ? (pid_t)strtol(at + strlen("\nPPid:"), NULL, 10) : -1;
}

static int take_init(struct shim *shim, pid_t pid, int *ret_netns_fd, struct error *err)
{
    char path[64];
    CLEANUP_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
    CLEANUP_CLOSE int netns_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (pidfd < 0 || netns_fd < 0 || parent_of(pid) != shim->bwrap_pid)
        return error_set(err, ERROR_UNAVAILABLE, NULL, "the sandbox's first process ended at once");
    shim->init_pidfd = TAKE_FD(pidfd);
    *ret_netns_fd = TAKE_FD(netns_fd);
    return 0;
}

// bubblewrap writes its first status object in pieces.
static int read_status_line(struct shim *shim, struct boot_time deadline, struct buffer *line, struct error *err)
{
    while (strchr(buffer_text(line), '\n') == NULL) {
        if (launch_wait(shim, shim->status_fd, deadline, "its first process", err) < 0)
            return -1;
        char *at = buffer_reserve(line, 512);
        ssize_t n = at ? read(shim->status_fd, at, 512) : -1;
        if (n <= 0)
            return error_set(err, ERROR_UNSUPPORTED, "run: chat2shell doctor", "bubblewrap did not make a sandbox");
        line->len += (size_t)n;
    }
    return 0;
}

static int read_child_pid(struct shim *shim, struct boot_time deadline, pid_t *ret, struct error *err)
{
    CLEANUP(buffer_free) struct buffer line = BUFFER_INIT(STATUS_LINE_BYTES);
    CLEANUP_JSON json_t *status = NULL;
    if (read_status_line(shim, deadline, &line, err) < 0)
        return -1;
    json_parse(line.data, strcspn(line.data, "\n"), &status, NULL);
    pid_t pid = (pid_t)json_get_int(status, "child-pid", 0);
    if (pid <= 0)
        return error_set(err, ERROR_UNSUPPORTED, "run: chat2shell doctor", "bubblewrap did not say which process it made");
    *ret = pid;
    return 0;
}

static int read_report(struct shim *shim, struct boot_time deadline, struct error *err)
{
    char bytes[INSIDE_REPORT_MAX_BYTES];
    if (launch_wait(shim, shim->report_fd, deadline, "the checks inside", err) < 0)
        return -1;
    ssize_t n = socket_receive_fds(shim->report_fd, bytes, sizeof(bytes), NULL, NULL);
    CLEANUP_JSON json_t *report = NULL;
    if (n <= 0 || json_parse(bytes, (size_t)n, &report, err) < 0)
        return error_set(err, ERROR_INTERNAL, NULL, "the checks inside the sandbox gave no report");
    shim->broken_rules = json_incref(json_object_get(report, "broken"));
    return 0;
}

static int start_network(struct shim *shim, int netns_fd, struct boot_time deadline, struct error *err)
{
    if (!shim->config.has_network)
        return 0;
    if (net_start(&shim->identity, netns_fd, &shim->net, err) < 0 ||
        launch_wait(shim, shim->net.boot_fd, deadline, "the net helper", err) < 0)
        return -1;
    shim->proxy_fd = net_take_listener(&shim->net, err);
    return shim->proxy_fd < 0 ? -1 : 0;
}

static json_t *group_warning(const struct shim *shim)
{
    json_t *warnings = json_array();
    if (shim->identity.keeps_groups)
        json_array_append_new(warnings, json_string("the supplementary groups of the user that runs chat2shell cannot be dropped: "
                                                    "files that those groups may read can be read inside where they are mounted"));
    return warnings;
}

static void send_ready(struct shim *shim)
{
    json_t *held = json_array(), *missing = json_array(), *names = json_pack("[s]", "init");
    limits_report(&shim->limits, shim->identity.kind, held, missing);
    int fds[3] = {shim->init_pidfd, shim->proxy_fd, shim->net.connector_fd};
    if (shim->config.has_network) {
        json_array_append_new(names, json_string("proxy"));
        json_array_append_new(names, json_string("connector"));
    }
    json_t *ready = json_pack("{s:s, s:s, s:o, s:o, s:o, s:O, s:o}", "event", "ready", "identity",
                              identity_name(shim->identity.kind), "limits", held, "missing_limits", missing, "warnings",
                              group_warning(shim), "broken_rules", shim->broken_rules, "fds", names);
    shim_send(shim->controller_fd, ready, fds, shim->config.has_network ? 3 : 1);
}

int shim_start(struct shim *shim, struct error *err)
{
    struct boot_time deadline = {boot_time_now().ms + SHIM_START_DEADLINE_MS};
    pid_t init = -1;
    CLEANUP_CLOSE int netns_fd = -1;
    if (take_lock(shim, err) < 0 || shim_listen(shim, err) < 0 ||
        identity_make(shim->config.is_single_identity, &shim->identity, err) < 0)
        return -1;
    shim->limits.config = &shim->config;
    limits_make(&shim->limits);
    if (launch_stage(shim, err) < 0 || read_child_pid(shim, deadline, &init, err) < 0 ||
        take_init(shim, init, &netns_fd, err) < 0 || start_network(shim, netns_fd, deadline, err) < 0 ||
        read_report(shim, deadline, err) < 0)
        return -1;
    if (socket_send_fds(shim->report_fd, "g", 1, NULL, 0) != 1)
        return error_errno(err, errno, NULL, "cannot start the sandbox's command");
    close(TAKE_FD(shim->report_fd));
    shim->state = SHIM_RUNNING;
    send_ready(shim);
    return 0;
}
