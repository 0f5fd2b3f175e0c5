// A bare libmicrohttpd handler with the thread settings of api/http/server.c: takes the POST body, answers a fixed body of
// the given size. What the library alone can do on this machine is the limit for the MCP front.
//     bench_mhd BYTES        prints its port on loopback, ends at the end of its input
#include "api/http/microhttpd_library.h"
#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define THREADS 2 // as the MCP listener

struct answer {
    struct MHD_Response *response;
};

static enum MHD_Result answer_all(void *arg, struct MHD_Connection *connection, const char *url, const char *method, const char *version,
                                  const char *data, size_t *data_len, void **state)
{
    (void)url, (void)method, (void)version, (void)data;
    const struct answer *answer = arg;
    static int begun;
    if (!*state) {
        *state = &begun;
        return MHD_YES;
    }
    if (*data_len) {
        *data_len = 0;
        return MHD_YES;
    }
    return MHD_queue_response(connection, MHD_HTTP_OK, answer->response);
}

static int listen_on_loopback(int *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 512) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) < 0)
        return -1;
    *ret_port = ntohs(address.sin_port);
    return fd;
}

static struct MHD_Response *make_response(size_t bytes)
{
    char *body = malloc(bytes);
    if (!body)
        return NULL;
    memset(body, 'x', bytes);
    struct MHD_Response *response = MHD_create_response_from_buffer(bytes, body, MHD_RESPMEM_MUST_FREE);
    MHD_add_response_header(response, "Content-Type", "application/json");
    return response;
}

int main(int argc, char **argv)
{
    int port = 0, fd = listen_on_loopback(&port);
    struct answer answer = {.response = argc == 2 && atoi(argv[1]) > 0 ? make_response((size_t)atoi(argv[1])) : NULL};
    if (fd < 0 || !answer.response) {
        fprintf(stderr, "usage: bench_mhd BYTES\n");
        return 2;
    }
    if (microhttpd_load(NULL) < 0)
        return 1;
    struct MHD_Daemon *daemon =
        MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, answer_all, &answer, MHD_OPTION_LISTEN_SOCKET, fd,
                         MHD_OPTION_CONNECTION_LIMIT, 4096u, MHD_OPTION_THREAD_POOL_SIZE, (unsigned)THREADS, MHD_OPTION_END);
    if (!daemon)
        return 1;
    printf("%d\n", port);
    fflush(stdout);
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    MHD_stop_daemon(daemon);
    MHD_destroy_response(answer.response);
    return 0;
}
