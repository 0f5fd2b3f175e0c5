// The diff that write and edit show: one hunk from the first to the last differing line, 3 lines of context.
// CRLF and LF compare equal; the empty line after a final line end is a line.
#pragma once
#include <stddef.h>

#define DIFF_MAX_CHARS 60000

struct diff {
    char *text; // owned; may hold NUL characters
    size_t len;
    size_t additions, deletions;
};

void diff_make(const char *path, const char *old_text, size_t old_len, const char *new_text, size_t new_len,
               struct diff *ret);
void diff_free(struct diff *diff);
