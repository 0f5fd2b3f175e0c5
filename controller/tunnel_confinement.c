#include "controller/base/fs.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include "controller/log.h"
#include "controller/tunnel_state.h"
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>

// A pid means something only while its parent, our child, has not reaped it: what pidfd_open took is looked at again.
static void take_client_pid(struct tunnel *tunnel, pid_t pid)
{
    char path[64], state;
    int parent = 0;
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(1024);
    CLEANUP_CLOSE int pidfd = pid > 1 && tunnel->client_pidfd < 0 ? pidfd_open(pid, 0) : -1;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    const char *name_end = pidfd >= 0 && fs_read_file(path, &text, NULL) == 0 ? strrchr(buffer_text(&text), ')') : NULL;
    if (!name_end || sscanf(name_end + 1, " %c %d", &state, &parent) != 2 || parent != operation_pid(tunnel->operation))
        return;
    tunnel->client_pid = pid;
    tunnel->client_pidfd = TAKE_FD(pidfd);
}

static void take_status_line(struct tunnel *tunnel, const char *line, size_t len)
{
    CLEANUP_JSON json_t *json = NULL;
    if (json_parse(line, len, &json, NULL) < 0)
        return;
    if (json_object_get(json, "exit-code"))
        tunnel->was_confined = true;
    if (json_object_get(json, "child-pid"))
        take_client_pid(tunnel, (pid_t)json_get_int(json, "child-pid", 0));
}

void tunnel_read_confinement(struct tunnel *tunnel)
{
    char *end;
    char bytes[1024];
    ssize_t got;
    while (tunnel->status_fd >= 0 && (got = read(tunnel->status_fd, bytes, sizeof(bytes))) > 0)
        buffer_append(&tunnel->status_text, bytes, (size_t)got); // what is beyond the bound is not looked at
    while (tunnel->operation && (end = strchr(buffer_text(&tunnel->status_text), '\n'))) {
        take_status_line(tunnel, tunnel->status_text.data, (size_t)(end - tunnel->status_text.data));
        buffer_consume(&tunnel->status_text, (size_t)(end - tunnel->status_text.data) + 1);
    }
}

static void status_ready(void *arg, uint32_t events)
{
    struct tunnel *tunnel = arg;
    tunnel_read_confinement(tunnel);
    if (events & (EPOLLHUP | EPOLLERR))
        loop_rewatch(tunnel->status_source, 0);
}

bool tunnel_confinement_failed(const struct tunnel *tunnel, const struct operation_result *result)
{
    return tunnel->bwrap && !tunnel->was_confined && result->exit_code == 1 && strncmp(result->errors, "bwrap: ", 7) == 0;
}

void tunnel_go_without(struct tunnel *tunnel, const char *why)
{
    size_t len = strcspn(why, "\n");
    CLEANUP_FREE char *printable = utf8_to_printable(why, utf8_cut(why, len), false);
    tunnel->bwrap = NULL;
    mem_replace(&tunnel->not_confined, printable);
    log_warning("the tunnel client runs without confinement, as an ordinary process of this user: %s", printable);
}

void tunnel_watch_confinement(struct tunnel *tunnel)
{
    tunnel->status_source = loop_watch(tunnel->loop, tunnel->status_fd, EPOLLIN, status_ready, tunnel);
}
