// The head of an HTTP/1.x message, parsed strictly: a second parser stands behind ours, and whatever the two could read
// differently is refused. CRLF only, no folding, tokens as RFC 9110 has them, values valid UTF-8 without control
// characters, Content-Length or Transfer-Encoding and neither twice, one Host, versions 1.0 and 1.1.
//
//     ssize_t size = http_head_end(bytes, len, &scanned);       // 0: more bytes are needed
//     if (size < 0 || http_parse_request(bytes, size, &head) < 0) → 400 with head.problem
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HTTP_MAX_HEAD_BYTES (16 * 1024)
#define HTTP_MAX_FIELDS 100

struct http_text {
    const char *at; // into the bytes that were parsed
    size_t len;
};
struct http_field {
    struct http_text name, value; // value without surrounding blanks
};
struct http_head {
    struct http_text method, target; // requests
    int status;                      // responses: 100–599
    struct http_text reason;
    int minor_version;               // 0 or 1
    struct http_field fields[HTTP_MAX_FIELDS];
    size_t field_count;
    bool has_host, has_length, is_chunked, is_upgrade;
    bool says_close, says_keep_alive; // Connection (or Proxy-Connection) tokens
    uint64_t length;
    const char *problem; // after a failure: a sentence
};

// Size of the head including its empty line, 0 if it is not complete, -1 (with *ret_problem) if it never can be.
// *scanned is where to go on; start with 0.
ssize_t http_head_end(const char *bytes, size_t len, size_t *scanned, const char **ret_problem);
int http_parse_request(const char *bytes, size_t size, struct http_head *ret);
int http_parse_response(const char *bytes, size_t size, struct http_head *ret);
bool http_text_is(struct http_text text, const char *word); // ignoring case
// Whether a field belongs to one connection only and must not be forwarded (named by Connection, or always so).
bool http_field_is_hop_by_hop(const struct http_head *head, const struct http_field *field);

// A message's body, passed through while its framing is checked.
enum http_body_kind { HTTP_BODY_NONE, HTTP_BODY_LENGTH, HTTP_BODY_CHUNKED, HTTP_BODY_UNTIL_CLOSE };
struct http_body {
    enum http_body_kind kind;
    bool is_done;
    const char *problem;  // not NULL: the framing is broken, a sentence
    uint64_t left;        // of the body, or of the chunk
    int state;            // chunked: where in the framing
    unsigned digits, line_bytes, trailer_bytes;
};
struct http_body http_body_of_request(const struct http_head *head);
struct http_body http_response_body(const struct http_head *head, bool is_head_request);
// How many of the bytes belong to the body: all of them are to be forwarded as they are.
size_t http_body_take(struct http_body *body, const char *bytes, size_t len);
