// What write and edit share: the answer after a file was changed.
#pragma once
#include "api/guest/diff.h"
#include "api/guest/tool.h"

struct change {
    const char *heading, *path;
    const char *label; // "Existed before" or "Replacements"
    const char *label_value;
    const char *old_text, *new_text;
    size_t old_len, new_len;
};

// Adds path, bytes, sha256, additions, deletions and diff to the call's fields and words its text.
void change_set_result(struct tool_call *call, const struct change *change);
// "content" and the like over the limit.
int change_check_size(size_t len, const char *what, struct error *err);
