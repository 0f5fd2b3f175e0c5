// Which objects a command is about: KIND, KIND,KIND, KIND NAME…, KIND/NAME….
#pragma once
#include "cli/command.h"

#define TARGETS_MAX 256

struct target {
    const struct kind_info *info; // of a kind, or `events_info`
    const char *name;             // a name, uid or prefix of one, borrowed from the arguments; NULL: all of the kind
};
struct targets {
    struct target items[TARGETS_MAX];
    size_t count;
    bool has_names;
};
// Core Events as something that can be listed: not a kind of records.
extern const struct kind_info events_info;

// A kind's word, or the one of Events. ERROR_USAGE with a likely meaning.
const struct kind_info *target_kind(const char *word, struct error *err);
int targets_parse(const struct invocation *in, struct targets *ret, struct error *err);
// "/apis/…/sandboxes", "/apis/…/sandboxes/NAME". The caller owns it.
char *target_path(const struct kind_info *info, const char *name);
// The collection's path with --selector, --field-selector and `more` (a field selector's term like "metadata.name=x", or
// NULL), and whatever `query` has (like "limit=1"; NULL: nothing). The caller owns it.
char *target_query(const struct invocation *in, const struct kind_info *info, const char *more, const char *query);
// An item of a collection's List as an object that can stand alone: the server's come without apiVersion and kind. New reference.
json_t *target_object(const struct kind_info *info, const json_t *item);
// Is it said what the objects have in common, by --selector, --field-selector or --all?
bool targets_are_selected(const struct invocation *in);
#define OPTION_SELECTOR {.name = "selector", .letter = 'l', .value = "SELECTOR", .doc = "only objects with these labels, like app=web,tier!=test"}
#define OPTION_FIELD_SELECTOR \
    {.name = "field-selector", .value = "SELECTOR", .doc = "only objects with these fields, like status.phase=running,metadata.name!=dev"}
