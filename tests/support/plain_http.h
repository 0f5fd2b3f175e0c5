// A small HTTP server on loopback for clients under test: a child process that answers what a table says.
// Nothing is parsed but the path. Every connection serves one request.
#pragma once
#include <stddef.h>
#include <sys/types.h>

struct plain_http_answer {
    const char *path; // NULL ends the table
    const char *head; // status line and headers without the empty line
    const char *body;
    size_t len;         // of body; sent again and again until total_bytes went out, if that is more
    size_t total_bytes; // SIZE_MAX: until the client goes
};

struct plain_http {
    pid_t pid;
    int port;
};

void plain_http_start(struct plain_http *server, const struct plain_http_answer *answers);
void plain_http_stop(struct plain_http *server);
