#include "tests/support/plain_http.h"
#include "controller/base/fs.h"
#include "tests/support/support.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void send_body(int fd, const struct plain_http_answer *answer)
{
    struct error ignored = ERROR_INIT;
    size_t total = answer->total_bytes > answer->len ? answer->total_bytes : answer->len;
    for (size_t sent = 0; sent < total && answer->len;) {
        size_t n = total - sent < answer->len ? total - sent : answer->len;
        if (fs_write_all(fd, answer->body, n, &ignored) < 0)
            return;
        sent += n;
    }
}

static void answer_one(int fd, const struct plain_http_answer *answers)
{
    char request[8192] = "", path[4096] = "";
    size_t len = 0;
    struct error ignored = ERROR_INIT;
    while (!strstr(request, "\r\n\r\n") && len < sizeof(request) - 1) {
        ssize_t n = read(fd, request + len, sizeof(request) - 1 - len);
        if (n <= 0)
            return;
        request[len += (size_t)n] = '\0';
    }
    sscanf(request, "%*s %4095s", path);
    for (; answers->path; answers++) {
        if (strcmp(answers->path, path) != 0)
            continue;
        fs_write_all(fd, answers->head, strlen(answers->head), &ignored);
        fs_write_all(fd, "\r\n\r\n", 4, &ignored);
        send_body(fd, answers);
        return;
    }
    static const char missing[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    fs_write_all(fd, missing, sizeof(missing) - 1, &ignored);
}

static void serve(int listener, const struct plain_http_answer *answers)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            _exit(1);
        answer_one(fd, answers);
        shutdown(fd, SHUT_WR);
        close(fd);
    }
}

void plain_http_start(struct plain_http *server, const struct plain_http_answer *answers)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(listener >= 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(listener, 16), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    server->port = ntohs(address.sin_port);
    server->pid = fork();
    if (server->pid == 0)
        serve(listener, answers);
    assert_true(server->pid > 0);
    close(listener);
}

void plain_http_stop(struct plain_http *server)
{
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
}
