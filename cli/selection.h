// Which live objects a command changes: KIND NAME…, KIND/NAME…, KIND with --selector, --field-selector or --all, or -f FILE.
#pragma once
#include "cli/command.h"
#include "controller/base/json.h"

struct selection {
    json_t *objects; // array, each with apiVersion and kind; none twice
    size_t missing;  // named, but not there: each is told on stderr
    bool is_named;   // one by one, not by what they have in common
};
// in_reverse: what -f names is taken from its end. --ignore-not-found is honoured where the command has it.
int selection_read(struct invocation *in, bool in_reverse, struct selection *ret, struct error *err);
void selection_clear(struct selection *selection);
// 0, or that some were missing (ERROR_NOT_FOUND, told already).
int selection_conclude(const struct selection *selection, struct error *err);
const struct kind_info *selection_kind(const json_t *object); // of one of the objects

#define OPTION_ALL {.name = "all", .doc = "all objects of the kind"}
