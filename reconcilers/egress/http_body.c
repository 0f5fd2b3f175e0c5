#include "reconcilers/egress/http.h"
#include <string.h>

#define MAX_SIZE_DIGITS 15
#define MAX_TRAILER_BYTES (8 * 1024)

// Where a chunked body's framing stands. Extensions are refused: nobody sends them, and parsers differ about them.
enum { SIZE_DIGITS, SIZE_LF, DATA, DATA_CR, DATA_LF, TRAILER_START, TRAILER_NAME, TRAILER_VALUE, TRAILER_LF, END_LF };

struct http_body http_body_of_request(const struct http_head *head)
{
    struct http_body body = {.kind = HTTP_BODY_NONE};
    if (head->is_chunked)
        body.kind = HTTP_BODY_CHUNKED;
    else if (head->has_length && head->length) {
        body.kind = HTTP_BODY_LENGTH;
        body.left = head->length;
    }
    body.is_done = body.kind == HTTP_BODY_NONE;
    return body;
}

struct http_body http_response_body(const struct http_head *head, bool is_head_request)
{
    if (is_head_request || head->status < 200 || head->status == 204 || head->status == 304)
        return (struct http_body){.kind = HTTP_BODY_NONE, .is_done = true};
    if (!head->is_chunked && !head->has_length)
        return (struct http_body){.kind = HTTP_BODY_UNTIL_CLOSE};
    return http_body_of_request(head);
}

static int hex_value(unsigned char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int refuse(struct http_body *body, const char *problem)
{
    body->problem = problem;
    return -1;
}

static int expect(struct http_body *body, char c, char wanted, int next)
{
    if (c != wanted)
        return refuse(body, "a chunk does not end with a line end of its own");
    body->state = next;
    return 0;
}

static int take_size(struct http_body *body, char c)
{
    int value = hex_value((unsigned char)c);
    if (c == '\r' && body->digits) {
        body->state = SIZE_LF;
        return 0;
    }
    if (value < 0 || body->digits == MAX_SIZE_DIGITS)
        return refuse(body, "a chunk's size is not a hexadecimal number alone on its line");
    body->digits++;
    body->left = body->left * 16 + (uint64_t)value;
    return 0;
}

static int take_trailer(struct http_body *body, char c)
{
    unsigned char byte = (unsigned char)c;
    if (++body->trailer_bytes > MAX_TRAILER_BYTES)
        return refuse(body, "the trailer is larger than 8 KiB");
    if (body->state == TRAILER_START && c == '\r') {
        body->state = END_LF;
        return 0;
    }
    if (body->state != TRAILER_VALUE) { // in the name
        bool is_name = (byte > 0x20 && byte < 0x7f && !strchr("\"(),/;<=>?@[\\]{}:", c));
        if (c == ':' && body->state == TRAILER_NAME)
            body->state = TRAILER_VALUE;
        else if (is_name)
            body->state = TRAILER_NAME;
        else
            return refuse(body, "a trailer line is not a header field");
        return 0;
    }
    if (c == '\r')
        body->state = TRAILER_LF;
    else if ((byte < 0x20 && c != '\t') || byte == 0x7f)
        return refuse(body, "a trailer value holds control characters");
    return 0;
}

static int take_framing(struct http_body *body, char c)
{
    switch (body->state) {
    case SIZE_DIGITS:
        return take_size(body, c);
    case SIZE_LF:
        body->digits = 0;
        return expect(body, c, '\n', body->left ? DATA : TRAILER_START);
    case DATA_CR:
        return expect(body, c, '\r', DATA_LF);
    case DATA_LF:
        return expect(body, c, '\n', SIZE_DIGITS);
    case TRAILER_LF:
        return expect(body, c, '\n', TRAILER_START);
    case END_LF:
        body->is_done = c == '\n';
        return expect(body, c, '\n', END_LF);
    default:
        return take_trailer(body, c);
    }
}

static size_t take_counted(struct http_body *body, size_t len)
{
    size_t taken = len < body->left ? len : (size_t)body->left;
    body->left -= taken;
    return taken;
}

static size_t take_chunked(struct http_body *body, const char *bytes, size_t len)
{
    size_t at = 0;
    while (at < len && !body->is_done) {
        if (body->state == DATA) {
            at += take_counted(body, len - at);
            if (!body->left)
                body->state = DATA_CR;
        } else if (take_framing(body, bytes[at]) < 0) {
            return at;
        } else {
            at++;
        }
    }
    return at;
}

size_t http_body_take(struct http_body *body, const char *bytes, size_t len)
{
    size_t taken = 0;
    if (body->is_done || body->problem)
        return 0;
    switch (body->kind) {
    case HTTP_BODY_LENGTH:
        taken = take_counted(body, len);
        body->is_done = !body->left;
        return taken;
    case HTTP_BODY_CHUNKED:
        return take_chunked(body, bytes, len);
    case HTTP_BODY_UNTIL_CLOSE:
        return len;
    default:
        return 0;
    }
}
