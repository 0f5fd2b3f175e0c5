// Text as the file tools see it: decoded UTF-8, lines, hashes (rules in the comments of each function).
#pragma once
#include "controller/base/buffer.h"
#include "controller/base/error.h"
#include <stdbool.h>
#include <stddef.h>

#define TEXT_SHA256_SIZE 65
#define TEXT_MAX_READ_BYTES 180000
#define TEXT_MAX_RANGE_BYTES (4 * TEXT_MAX_READ_BYTES)
#define TEXT_MAX_WRITE_BYTES 1000000

struct text_line {
    const char *at;
    size_t len; // without \n and without the \r before it
};

// Lines point into the text. "a\n" has 2 lines, "" has 1.
struct text_lines {
    struct text_line *lines;
    size_t count;
};

void text_split(const char *text, size_t len, struct text_lines *ret);
void text_lines_free(struct text_lines *lines);
// "N | line" for the lines start to end (from 1, within the text), numbers as wide as the last one. -1 if out is full.
int text_number_lines(const struct text_lines *lines, size_t start, size_t end, struct buffer *out);
void text_sha256(const char *bytes, size_t len, char digest[TEXT_SHA256_SIZE]);
bool text_is_binary(const char *bytes, size_t len); // a NUL byte anywhere
