// Goes through the lines of a text that match.
#pragma once
#include "api/guest/matcher.h"

#define LINE_MAX_CHARS 400

struct line_match {
    size_t number; // from 1
    const char *at;
    size_t len;
};

// found: 0 to go on, 1 to stop. Returns what the last found gave, 0, or -1 with err.
int lines_match(struct matcher *matcher, const char *text, size_t len,
                int (*found)(void *context, const struct line_match *match), void *context,
                struct error *err);
// The first LINE_MAX_CHARS characters, with … if more were there. The caller owns it.
char *line_cut(const char *at, size_t len);
