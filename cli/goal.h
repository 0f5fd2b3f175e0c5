// What can be waited for, as `wait --for` and `apply --wait` take it: condition=NAME[=VALUE], jsonpath=PATH[=VALUE], delete, create.
#pragma once
#include "cli/objects.h"
#include "cli/printers/jsonpath.h"

struct goal {
    look_fn *look; // for object_wait, with the goal as its argument
    bool may_be_absent; // is_gone, is_made: no object is an answer too
    char *condition, *value; // value NULL: any
    struct json_expression path;
    char *word; // "sandbox/dev", for errors
    char *wanted; // "at condition=Ready", "gone": what it is not, as object_wait takes it
};
// ERROR_USAGE. text NULL: --for is missing.
int goal_parse(const char *text, struct goal *ret, struct error *err);
void goal_free(struct goal *goal);
bool goal_is_deletion(const struct goal *goal);
