// What goes to stdout: whole lines, queued, written without blocking the loop. The reader of stdin pauses
// while too much is pending, so the queue is bounded by that limit and the answers then under way.
#pragma once
#include "api/guest/loop.h"

#define OUTPUT_PAUSE_BYTES (32 * 1024 * 1024)

struct output_line;
struct output {
    struct loop *loop;
    struct loop_source source;
    struct output_line *first, *last;
    size_t pending_bytes;
    bool is_broken;                         // nobody reads any more
    void (*changed)(struct output *output); // after bytes went out or it broke
};

int output_init(struct output *output, struct loop *loop, int fd, struct error *err);
void output_free(struct output *output);
void output_send(struct output *output, char *text, size_t len); // takes text; adds the newline
