#include "tests/support/egress_origin.h"
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "tests/support/egress_world.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define BIG_BYTES (8 * 1024 * 1024)

static void send_all(int fd, const void *bytes, size_t len)
{
    for (size_t at = 0; at < len;) {
        ssize_t sent = send(fd, (const char *)bytes + at, len - at, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        at += (size_t)sent;
    }
}

static const struct {
    const char *path, *answer;
} answers[] = {
    {"/hello", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Origin: yes\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\r\nhello"},
    {"/chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\nT: x\r\n\r\n"},
    {"/close", "HTTP/1.1 200 OK\r\n\r\nhello"},
    {"/interim", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"},
    {"/both", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
    {"/lf", "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello"},
    {"/twice", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"},
    {"/cut", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello"},
    {"/badchunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n0\r\n\r\n"},
};

static void serve_big(int fd)
{
    CLEANUP_FREE char *body = mem_alloc(BIG_BYTES);
    char head[128];
    memset(body, 'b', BIG_BYTES);
    int len = snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", BIG_BYTES);
    send_all(fd, head, (size_t)len);
    send_all(fd, body, BIG_BYTES);
}

// Sends back head and body as they came; the body is over when its "END" is there.
static void serve_echo(int fd, struct buffer *request)
{
    char bytes[4096];
    ssize_t len;
    while (!strstr(buffer_text(request), "END") && (len = recv(fd, bytes, sizeof(bytes), 0)) > 0)
        buffer_append(request, bytes, (size_t)len);
    usleep(20000); // a chunked body's last chunk
    if ((len = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
        buffer_append(request, bytes, (size_t)len);
    int n = snprintf(bytes, sizeof(bytes), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", request->len);
    send_all(fd, bytes, (size_t)n);
    send_all(fd, request->data, request->len);
}

static void serve_http(int fd)
{
    CLEANUP(buffer_free) struct buffer request = BUFFER_INIT(1 << 20);
    char bytes[4096], path[64] = "";
    ssize_t len;
    while (!strstr(buffer_text(&request), "\r\n\r\n") && (len = recv(fd, bytes, sizeof(bytes), 0)) > 0)
        buffer_append(&request, bytes, (size_t)len);
    sscanf(buffer_text(&request), "%*s %63s", path);
    for (size_t i = 0; i < ARRAY_LEN(answers); i++)
        if (strcmp(answers[i].path, path) == 0)
            send_all(fd, answers[i].answer, strlen(answers[i].answer) - (request.data[0] == 'H' ? 5 : 0));
    if (strcmp(path, "/big") == 0)
        serve_big(fd);
    if (strcmp(path, "/echo") == 0)
        serve_echo(fd, &request);
    if (strcmp(path, "/silence") == 0)
        recv(fd, bytes, 1, 0);
}

static void serve_tcp_echo(int fd)
{
    char bytes[65536];
    ssize_t len;
    while ((len = recv(fd, bytes, sizeof(bytes), 0)) > 0)
        send_all(fd, bytes, (size_t)len);
    send_all(fd, "bye", 3);
}

static void copy_both_ways(int a, int b)
{
    char bytes[65536];
    struct pollfd fds[2] = {{a, POLLIN, 0}, {b, POLLIN, 0}};
    while (poll(fds, 2, -1) > 0)
        for (int i = 0; i < 2; i++) {
            if (!fds[i].revents)
                continue;
            ssize_t len = recv(fds[i].fd, bytes, sizeof(bytes), 0);
            if (len <= 0)
                return;
            send_all(fds[1 - i].fd, bytes, (size_t)len);
        }
}

// An upstream proxy: CONNECT to an address of this namespace (or a name, taken for the origin).
static void serve_upstream(int fd, bool takes_names_only)
{
    char head[2048] = "", host[256] = "";
    size_t len = 0;
    unsigned port = 0;
    while (len < sizeof(head) - 1 && !strstr(head, "\r\n\r\n") && recv(fd, head + len, 1, 0) == 1)
        head[++len] = '\0';
    sscanf(head, "CONNECT %255[^:]:%u", host, &port);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    bool is_address = inet_pton(AF_INET, host, &to.sin_addr) == 1;
    if (!is_address)
        inet_pton(AF_INET, WORLD_OUTSIDE, &to.sin_addr);
    CLEANUP_CLOSE int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if ((takes_names_only && is_address) || connect(other, (struct sockaddr *)&to, sizeof(to)) < 0) {
        send_all(fd, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", 45);
        return;
    }
    send_all(fd, "HTTP/1.1 200 OK\r\nX-Upstream: yes\r\n\r\n", 36);
    copy_both_ways(fd, other);
}

static void serve_any_upstream(int fd)
{
    serve_upstream(fd, false);
}

static void serve_picky_upstream(int fd)
{
    serve_upstream(fd, true);
}

static const struct {
    const char *name;
    const char *addresses[3];
} zone[] = {
    {"origin.example", {WORLD_OUTSIDE}},       {"api.denied.example", {WORLD_OUTSIDE}},
    {"inside.example", {"10.0.0.1"}},          {"mixed.example", {"10.0.0.1", WORLD_OUTSIDE}},
    {"own.example", {WORLD_HOST}},
    {"six.example", {NULL}},
};

static size_t read_question(const unsigned char *query, size_t len, char *name, size_t size)
{
    size_t at = 12, used = 0;
    while (at < len && query[at] && used + query[at] + 2 < size) {
        if (used)
            name[used++] = '.';
        memcpy(name + used, query + at + 1, query[at]);
        used += query[at];
        at += query[at] + 1U;
    }
    name[used] = '\0';
    return at + 5;
}

static size_t put_answers(unsigned char *answer, size_t at, const char *const *addresses)
{
    static const unsigned char record[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4};
    for (; *addresses; addresses++) {
        memcpy(answer + at, record, sizeof(record));
        inet_pton(AF_INET, *addresses, answer + at + sizeof(record));
        at += sizeof(record) + 4;
        answer[7]++;
    }
    return at;
}

static void serve_dns(int fd)
{
    unsigned char bytes[1024];
    char name[256];
    struct sockaddr_in from;
    socklen_t size = sizeof(from);
    ssize_t len;
    while ((len = recvfrom(fd, bytes, 512, 0, (struct sockaddr *)&from, &size)) > 12) {
        size_t end = read_question(bytes, (size_t)len, name, sizeof(name));
        bytes[2] |= 0x80;
        bytes[3] = 0x83; // no such name
        memset(bytes + 6, 0, 6);
        for (size_t i = 0; i < ARRAY_LEN(zone); i++)
            if (strcasecmp(zone[i].name, name) == 0) {
                bytes[3] = 0x80;
                if (bytes[end - 3] == 1) // A
                    end = put_answers(bytes, end, zone[i].addresses);
                break;
            }
        sendto(fd, bytes, end, 0, (struct sockaddr *)&from, size);
    }
}

static const struct service {
    uint16_t port;
    int type;
    void (*serve)(int fd);
} services[] = {
    {WORLD_HTTP_PORT, SOCK_STREAM, serve_http},
    {WORLD_ECHO_PORT, SOCK_STREAM, serve_tcp_echo},
    {WORLD_UPSTREAM_PORT, SOCK_STREAM, serve_any_upstream},
    {WORLD_PICKY_PORT, SOCK_STREAM, serve_picky_upstream},
    {53, SOCK_DGRAM, serve_dns},
};

struct job {
    int fd;
    void (*serve)(int fd);
};

static void *run_job(void *data)
{
    CLEANUP_FREE struct job *job = data;
    job->serve(job->fd);
    close(job->fd);
    return NULL;
}

static void start_job(int fd, void (*serve)(int fd))
{
    pthread_t thread;
    struct job *job = mem_alloc(sizeof(*job));
    *job = (struct job){fd, serve};
    if (pthread_create(&thread, NULL, run_job, job) == 0)
        pthread_detach(thread);
}

static _Noreturn void serve_all(struct pollfd *fds)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (size_t i = 0; i < ARRAY_LEN(services); i++)
        if (services[i].type == SOCK_DGRAM) {
            start_job(fds[i].fd, services[i].serve);
            fds[i].fd = -1;
        }
    while (poll(fds, ARRAY_LEN(services), -1) > 0)
        for (size_t i = 0; i < ARRAY_LEN(services); i++)
            if (fds[i].revents)
                start_job(accept(fds[i].fd, NULL, NULL), services[i].serve);
    _exit(0);
}

pid_t origin_start(int *ret_socket)
{
    struct pollfd fds[ARRAY_LEN(services)];
    for (size_t i = 0; i < ARRAY_LEN(services); i++) {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(services[i].port)};
        fds[i] = (struct pollfd){socket(AF_INET, services[i].type | SOCK_CLOEXEC, 0), POLLIN, 0};
        if (bind(fds[i].fd, (struct sockaddr *)&at, sizeof(at)) < 0)
            return -1;
        if (services[i].type == SOCK_STREAM)
            listen(fds[i].fd, 1024);
    }
    struct sockaddr_in self = {.sin_family = AF_INET, .sin_port = htons(WORLD_ECHO_PORT),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    *ret_socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(*ret_socket, (struct sockaddr *)&self, sizeof(self)) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0)
        serve_all(fds);
    for (size_t i = 0; i < ARRAY_LEN(services); i++)
        close(fds[i].fd);
    return pid;
}
