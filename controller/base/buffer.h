// A growing byte buffer that knows its maximum from birth. Always NUL-terminated at data[len] once something
// was appended or buffer_text() was called. Appending past the maximum appends nothing, marks the buffer
// and returns -1: the caller words the error, because only it knows what was too large.
//
//     CLEANUP(buffer_free) struct buffer line = BUFFER_INIT(64 * 1024);
//     if (buffer_append(&line, bytes, n) < 0) return error_set(err, ERROR_TOO_LARGE, …);
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct buffer {
    char *data;
    size_t len, cap;
    size_t max; // largest len
    bool is_over; // an append was refused
};

#define BUFFER_INIT(max_bytes) {.max = (max_bytes)}

void buffer_free(struct buffer *buf); // frees the bytes and zeroes all but max
int buffer_append(struct buffer *buf, const void *bytes, size_t len);
int buffer_append_text(struct buffer *buf, const char *text);
int buffer_append_char(struct buffer *buf, char c);
int buffer_format(struct buffer *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Makes room for `more` bytes behind len and returns where to write them (then add to len), or NULL if over max.
char *buffer_reserve(struct buffer *buf, size_t more);
void buffer_consume(struct buffer *buf, size_t len); // drops bytes from the front
const char *buffer_text(struct buffer *buf);         // never NULL
char *buffer_take_string(struct buffer *buf);        // the caller owns it; the buffer becomes empty
