// The text that `edit` puts in front of somebody: a heading of comments, what was wrong the last time, and the objects.
#pragma once
#include "controller/base/buffer.h"
#include <jansson.h>
#include <stdbool.h>

#define EDIT_MAX_BYTES (16u * 1024 * 1024)

// The objects as they are edited: one by itself, several as a List. The caller owns it. NULL: more than EDIT_MAX_BYTES.
char *edit_body(const json_t *objects, bool is_json);
// faults: lines of what was wrong, "" the first time. JSON has no comments: there is no heading.
char *edit_page(const char *faults, const char *body, bool is_json);
// What stands behind the comments at its beginning. Borrowed from text.
const char *edit_without_heading(const char *text);
// Nothing but blanks and comments?
bool edit_is_blank(const char *text);
