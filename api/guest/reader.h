// Cuts stdin into lines. A line over the maximum is reported once and skipped to its end.
#pragma once
#include "api/guest/loop.h"
#include "controller/base/buffer.h"

struct reader {
    struct loop *loop;
    struct loop_source source;
    struct buffer buffer;
    size_t scanned; // no newline before this
    size_t max_line;
    bool is_skipping, has_ended;
    void (*line)(struct reader *reader, const char *text, size_t len); // without the newline
    void (*too_long)(struct reader *reader);
    void (*ended)(struct reader *reader);
};

// The caller has set the three functions.
int reader_init(struct reader *reader, struct loop *loop, int fd, size_t max_line, struct error *err);
void reader_free(struct reader *reader);
void reader_pause(struct reader *reader, bool is_paused);
