#include "reconcilers/session/codexpro/http_socket.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

struct http_socket {
    LIST_ENTRY(http_socket) link;
    struct http_sockets *sockets;
    int fd;
    int watched_fd; // a duplicate: libcurl 7.88 closes a socket that could not connect, and tells so afterwards
    struct loop_source *source;
};

// ---- watching ------------------------------------------------------------------------------------------------------

static struct http_socket *find(const struct http_sockets *sockets, int fd)
{
    struct http_socket *socket;
    LIST_FOREACH(socket, &sockets->watched, link)
        if (socket->fd == fd)
            return socket;
    return NULL;
}

static void forget(struct http_socket *socket)
{
    if (!socket)
        return;
    LIST_REMOVE(socket, link);
    loop_unwatch(socket->source);
    close(socket->watched_fd);
    free(socket);
}

static void on_ready(void *arg, uint32_t events)
{
    const struct http_socket *socket = arg;
    int ready = (events & EPOLLIN ? CURL_CSELECT_IN : 0) | (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                (events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
    socket->sockets->ready(socket->sockets->arg, socket->fd, ready); // may free the socket
}

// Without a descriptor to spare the exchange stands still until its deadline, which is what its caller then hears.
static void watch(struct http_sockets *sockets, int fd, uint32_t events)
{
    int watched_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (watched_fd < 0)
        return;
    struct http_socket *socket = mem_alloc(sizeof(*socket));
    *socket = (struct http_socket){.sockets = sockets, .fd = fd, .watched_fd = watched_fd};
    LIST_INSERT_HEAD(&sockets->watched, socket, link);
    socket->source = loop_watch(sockets->loop, watched_fd, events, on_ready, socket);
}

void http_sockets_set(struct http_sockets *sockets, int fd, int what)
{
    static const uint32_t wanted[] = {[CURL_POLL_NONE] = 0,
                                      [CURL_POLL_IN] = EPOLLIN,
                                      [CURL_POLL_OUT] = EPOLLOUT,
                                      [CURL_POLL_INOUT] = EPOLLIN | EPOLLOUT};
    struct http_socket *socket = find(sockets, fd);
    if (what == CURL_POLL_REMOVE) {
        forget(socket);
    } else if (socket) {
        loop_rewatch(socket->source, wanted[what]);
    } else {
        watch(sockets, fd, wanted[what]);
    }
}

void http_sockets_close(struct http_sockets *sockets)
{
    while (!LIST_EMPTY(&sockets->watched))
        forget(LIST_FIRST(&sockets->watched));
}

// ---- opening and closing -------------------------------------------------------------------------------------------

// Only the one address, whatever a library, a resolver or an environment may have come to.
static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    const struct http_sockets *sockets = arg;
    const struct sockaddr_in *to = (const struct sockaddr_in *)(const void *)&address->addr;
    bool is_ours = purpose == CURLSOCKTYPE_IPCXN && address->family == AF_INET && to->sin_addr.s_addr == htonl(INADDR_LOOPBACK) &&
                   to->sin_port == htons((uint16_t)sockets->port);
    if (!is_ours)
        return CURL_SOCKET_BAD;
    return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
}

// The number may be another's at once.
static int close_socket(void *arg, curl_socket_t fd)
{
    forget(find(arg, fd));
    return close(fd);
}

void http_sockets_bind(struct http_sockets *sockets, const struct curl_library *curl, CURL *easy)
{
    curl->easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl->easy_setopt(easy, CURLOPT_OPENSOCKETDATA, sockets);
    curl->easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
    curl->easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, sockets);
}

void http_sockets_init(struct http_sockets *sockets, struct loop *loop, int port, void (*ready)(void *arg, int fd, int events), void *arg)
{
    *sockets = (struct http_sockets){.loop = loop, .port = port, .ready = ready, .arg = arg};
    LIST_INIT(&sockets->watched);
}

// ---- heads ---------------------------------------------------------------------------------------------------------

// The field's value without blanks around it, if the line is that field; else NULL. Cut at `max` bytes; the caller's.
static char *value_of(const char *name, const char *bytes, size_t len, size_t max)
{
    size_t name_len = strlen(name);
    if (len <= name_len || strncasecmp(bytes, name, name_len) != 0 || bytes[name_len] != ':')
        return NULL;
    bytes += name_len + 1;
    len -= name_len + 1;
    for (; len && isspace((unsigned char)*bytes); bytes++)
        len--;
    while (len && isspace((unsigned char)bytes[len - 1]))
        len--;
    return len <= max ? mem_strndup(bytes, len) : mem_strdup("");
}

static void take_status(struct http_answer *answer, const char *bytes, size_t len)
{
    CLEANUP_FREE char *line = mem_strndup(bytes, len);
    const char *code = strchr(line, ' ');
    *answer = (struct http_answer){.status = code ? (int)strtol(code, NULL, 10) : 0, .retry_after_s = -1};
}

static void take_type(struct http_answer *answer, const char *value)
{
    size_t len = strcspn(value, "; \t");
    for (size_t i = 0; i < len && i < HTTP_TYPE_BYTES - 1; i++)
        answer->content_type[i] = (char)tolower((unsigned char)value[i]);
}

// Only visible ASCII may go back into a header field of ours.
static void take_session(struct http_answer *answer, const char *value)
{
    for (const char *at = value; *at; at++)
        if (*at <= ' ' || *at > '~')
            return;
    snprintf(answer->session_id, sizeof(answer->session_id), "%s", value);
}

static void take_retry(struct http_answer *answer, const char *value)
{
    char *end;
    long seconds = strtol(value, &end, 10);
    if (end != value && !*end && seconds >= 0) // a date is not understood: the default wait
        answer->retry_after_s = seconds;
}

bool http_field_is_coding(const char *bytes, size_t len)
{
    CLEANUP_FREE char *coding = value_of("Transfer-Encoding", bytes, len, HTTP_TYPE_BYTES);
    return coding && strcasecmp(coding, "chunked") != 0 && strcasecmp(coding, "identity") != 0;
}

void http_answer_field(struct http_answer *answer, const char *bytes, size_t len)
{
    static const struct {
        const char *name;
        size_t max;
        void (*take)(struct http_answer *answer, const char *value);
    } fields[] = {
        {"Content-Type", 4096, take_type},
        {"Mcp-Session-Id", HTTP_SESSION_BYTES - 1, take_session},
        {"Retry-After", 20, take_retry},
    };
    if (len > 5 && strncasecmp(bytes, "HTTP/", 5) == 0) {
        take_status(answer, bytes, len);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        CLEANUP_FREE char *value = value_of(fields[i].name, bytes, len, fields[i].max);
        if (value)
            fields[i].take(answer, value);
    }
}
