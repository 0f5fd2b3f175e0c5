// Two texts line by line, as `diff -u` shows them.
#pragma once
#include "controller/base/buffer.h"
#include <stdbool.h>

#define DIFF_CONTEXT 3
#define DIFF_MAX_CELLS (16u * 1024 * 1024) // of comparing; beyond it what differs is shown as removed and added as a whole

// Appends "--- NAME", "+++ NAME" and hunks to out. False, and nothing, where the texts are the same.
bool unified_diff(const char *from, const char *to, const char *from_name, const char *to_name, struct buffer *out);
// On standard output, in colours where they are wanted.
void unified_diff_print(const char *diff);
