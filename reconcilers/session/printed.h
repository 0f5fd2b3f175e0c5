// What a held process prints where nothing matters but its last lines: it is read, and the rest thrown away. Whoever floods it
// is made to wait: after each burst nothing is read for a moment, so that the pipe is full and this loop is at rest.
// Loop thread only.
#pragma once
#include "controller/loop.h"
#include "reconcilers/session/last_lines.h"

struct printed {
    struct loop *loop;
    int fd; // -1: closed
    struct loop_source *source;
    struct loop_timer *rest;
    size_t burst_bytes;
    struct last_lines *last;
    void (*ended)(void *arg); // once, at its end; may stop it. NULL allowed
    void *arg;
};

// Takes fd; -1: there is nothing to read. The lines go to `last`, borrowed until the stop.
void printed_start(struct printed *printed, struct loop *loop, int fd, struct last_lines *last, void (*ended)(void *arg), void *arg);
void printed_stop(struct printed *printed); // takes what the pipe may still hold, closes it; again is fine
