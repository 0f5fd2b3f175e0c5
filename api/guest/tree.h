// The drawn directory listing of `tree` and `open_current_workspace`.
#pragma once
#include "api/guest/workspace.h"
#include <stdatomic.h>

struct tree_options {
    int max_depth, max_entries;
    bool include_hidden;
    const atomic_bool *is_cancelled;
};

struct tree {
    struct buffer text; // first line "." or "PATH/"
    int entries;        // lines after the first
    bool is_truncated;
};

// fd is the directory; path its shown path.
void tree_draw(int fd, const char *path, const struct tree_options *options, struct tree *ret);
