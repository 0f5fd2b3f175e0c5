// The last lines that a process printed: at most LAST_LINES_MAX of LAST_LINE_CHARS characters, printable. Bytes are
// untrusted; memory is bounded whatever arrives.
#pragma once
#include "schemas/kinds/kinds.h"
#include "controller/base/buffer.h"

#define LAST_LINE_BYTES 1600 // of the line being read; the rest of a longer line is dropped

struct last_lines {
    struct text_list lines; // oldest first
    struct buffer partial;
    void (*told)(void *arg, const char *line); // each line once it is there; NULL: nobody wants them
    void *arg;
};
#define LAST_LINES_INIT {.partial = BUFFER_INIT(LAST_LINE_BYTES)}

void last_lines_add(struct last_lines *last, const char *bytes, size_t len);
void last_lines_end(struct last_lines *last); // what stands without a newline becomes a line
void last_lines_free(struct last_lines *last);
