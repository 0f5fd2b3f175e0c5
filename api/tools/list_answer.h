// Answers of the tools that list records. A list is rendered once and given to every caller until a record or a sandbox's
// last activity changes: rendering a hundred sandboxes takes a hundred times as long as sending the text.
#pragma once
#include "api/tools/tools.h"

// Answers with {KEY: [every live record of the kind, rendered]}; render gives NULL for one to leave out.
void tool_answer_list(struct tool_call *call, enum kind kind, const char *key, json_t *(*render)(struct world *world, const struct record *record));
