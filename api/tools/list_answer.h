// Answers of the tools that list records. A list is rendered once and given to every caller until a record or a sandbox's
// last activity changes: rendering a hundred sandboxes takes a hundred times as long as sending the text.
#pragma once
#include "api/tools/tools.h"

#define LIST_MAX_RECORDS 1000 // of one answer: those in use first, then the newest; how many are left out is told
#define LIST_META_LEFT_OUT "dev.chat2shell/leftOut"

// Answers with {KEY: [every live record of the kind, rendered]}, oldest first; render gives NULL for one that is not told of.
void tool_answer_list(struct tool_call *call, enum kind kind, const char *key, json_t *(*render)(struct world *world, const struct record *record));
