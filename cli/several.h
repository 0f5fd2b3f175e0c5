// A command that does the same to several things: one that fails is told and does not keep the others back; with -o json or
// yaml the results are one List, or the very object where one was named.
#pragma once
#include "cli/command.h"

struct several {
    struct invocation *in;
    bool is_one;            // by itself: its failure is the command's
    json_t *items;          // results
    enum error_code failed; // the first one's
};
void several_begin(struct several *several, struct invocation *in, bool is_one);
void several_clear(struct several *several);
void several_add(struct several *several, const json_t *object);
// Tells a failure: -1 (the command ends with err) or 0 (it goes on).
int several_fail(struct several *several, const struct error *why, struct error *err);
// Prints what -o json or yaml asks for. -1: something had failed, and was told.
int several_end(struct several *several, struct error *err);
