// A raw HTTP client for tests: sends exactly the bytes it is given and reads whole answers, so that malformed
// requests and kept-alive connections can be tried.
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct http_answer {
    int status; // 0: the connection ended without an answer
    char *head; // status line and headers
    char *body; // NUL-terminated
    size_t body_len;
};
void http_answer_clear(struct http_answer *answer);
// The header's value, trimmed, or NULL; owned by the caller.
char *http_answer_header(const struct http_answer *answer, const char *name);
json_t *http_answer_json(const struct http_answer *answer); // NULL if it is not JSON

int http_client_connect(int port);
void http_client_send(int fd, const void *bytes, size_t len);
void http_client_send_text(int fd, const char *text);
// Reads one answer (Content-Length or chunked); waits at most timeout_ms for each piece.
void http_client_read(int fd, struct http_answer *ret, int timeout_ms);
// Answers that follow each other on one connection.
struct http_reader;
struct http_reader *http_reader_new(int fd, int timeout_ms); // fd stays the caller's
void http_reader_next(struct http_reader *reader, struct http_answer *ret);
void http_reader_free(struct http_reader *reader);
bool http_client_is_closed(int fd, int timeout_ms); // end of file (or reset) within the time
// One exchange on a connection of its own.
void http_client_raw(int port, const char *bytes, size_t len, struct http_answer *ret);
// POST of JSON; headers: further lines, each ending in CRLF, or "".
void http_client_post(int port, const char *path, const char *headers, const char *body,
                      struct http_answer *ret);
// The same bytes, to be sent by http_client_send; owned by the caller.
char *http_client_post_text(const char *path, const char *headers, const char *body);
