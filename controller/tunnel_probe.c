#include "controller/tunnel_probe.h"
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define SAID_MAX_BYTES 200
#define BODY_MARK "\r\n\r\n"

struct tunnel_probe { // loop thread only
    struct loop *loop;
    int fd; // -1: could not be made
    int failure; // errno of a connect that failed at once
    struct loop_source *source;
    struct loop_timer *timer;
    struct buffer question, answer;
    tunnel_probe_fn done;
    void *arg;
};

static void probe_free(struct tunnel_probe *probe)
{
    loop_unwatch(probe->source);
    loop_cancel(probe->timer);
    if (probe->fd >= 0)
        close(probe->fd);
    buffer_free(&probe->question);
    buffer_free(&probe->answer);
    free(probe);
}

void tunnel_probe_cancel(struct tunnel_probe *probe)
{
    if (probe)
        probe_free(probe);
}

static void finish(struct tunnel_probe *probe, bool is_ready, const char *said)
{
    tunnel_probe_fn done = probe->done;
    void *arg = probe->arg;
    size_t len = strcspn(said, "\r\n");
    CLEANUP_FREE char *printable = utf8_to_printable(said, utf8_cut(said, len < SAID_MAX_BYTES ? len : SAID_MAX_BYTES), false);
    probe_free(probe);
    done(arg, is_ready, printable);
}

static void fail(struct tunnel_probe *probe, int errno_value)
{
    CLEANUP_FREE char *said = mem_format("its health address does not answer: %s", strerrordesc_np(errno_value));
    finish(probe, false, said);
}

// "HTTP/1.x NNN …": the number, or 0.
static int status_of(const char *head)
{
    if (strncmp(head, "HTTP/1.", 7) != 0 || !strchr("01", head[7]) || head[8] != ' ' || strspn(head + 9, "0123456789") != 3)
        return 0;
    return (int)strtol(head + 9, NULL, 10);
}

static void judge(struct tunnel_probe *probe)
{
    const char *text = buffer_text(&probe->answer), *body = strstr(text, BODY_MARK);
    int status = strlen(text) > 12 ? status_of(text) : 0;
    if (!status || !body)
        finish(probe, false, "its health address answers with something else than HTTP");
    else if (body[strlen(BODY_MARK)])
        finish(probe, status == 200, body + strlen(BODY_MARK));
    else
        finish(probe, status == 200, status == 200 ? "ready" : "it gives no reason");
}

// Returns false when nothing more comes.
static bool read_some(struct tunnel_probe *probe)
{
    size_t room = probe->answer.max - probe->answer.len;
    char *at = room ? buffer_reserve(&probe->answer, room) : NULL;
    ssize_t got = at ? read(probe->fd, at, room) : 0;
    if (got > 0)
        probe->answer.len += (size_t)got;
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

static void write_some(struct tunnel_probe *probe)
{
    ssize_t sent = send(probe->fd, probe->question.data, probe->question.len, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
        fail(probe, errno);
        return;
    }
    if (sent > 0)
        buffer_consume(&probe->question, (size_t)sent);
    if (!probe->question.len)
        loop_rewatch(probe->source, EPOLLIN);
}

static void on_event(void *arg, uint32_t events)
{
    struct tunnel_probe *probe = arg;
    int failure = 0;
    socklen_t len = sizeof(failure);
    (void)events;
    if (probe->question.len) {
        if (getsockopt(probe->fd, SOL_SOCKET, SO_ERROR, &failure, &len) == 0 && failure)
            fail(probe, failure);
        else
            write_some(probe);
    } else if (!read_some(probe)) {
        judge(probe);
    }
}

static void on_deadline(void *arg)
{
    struct tunnel_probe *probe = arg;
    probe->timer = NULL;
    fail(probe, probe->failure ? probe->failure : ETIMEDOUT);
}

struct tunnel_probe *tunnel_probe_start(struct loop *loop, const struct sockaddr_in *address, tunnel_probe_fn done, void *arg)
{
    struct tunnel_probe *probe = mem_alloc(sizeof(*probe));
    char host[INET_ADDRSTRLEN];
    *probe = (struct tunnel_probe){.loop = loop, .done = done, .arg = arg, .question = BUFFER_INIT(256), .answer = BUFFER_INIT(TUNNEL_PROBE_MAX_BYTES)};
    inet_ntop(AF_INET, &address->sin_addr, host, sizeof(host));
    buffer_format(&probe->question, "GET /readyz HTTP/1.0\r\nHost: %s:%d\r\nUser-Agent: chat2shell\r\n\r\n", host, ntohs(address->sin_port));
    probe->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe->fd < 0 || (connect(probe->fd, (const struct sockaddr *)address, sizeof(*address)) < 0 && errno != EINPROGRESS))
        probe->failure = errno;
    else
        probe->source = loop_watch(loop, probe->fd, EPOLLOUT, on_event, probe);
    probe->timer = loop_after(loop, probe->failure ? 0 : TUNNEL_PROBE_MS, on_deadline, probe);
    return probe;
}
