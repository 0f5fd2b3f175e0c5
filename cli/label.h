// What `label` and `annotate` do: KEY=VALUE sets, KEY- removes, on objects that are named or selected.
#pragma once
#include "cli/command.h"
#include "controller/base/json.h"

struct label_words {
    const char *part;        // "labels", "annotations": in metadata, and for people
    const char *one;         // "label"
    const char *done;        // "labeled"
    const char *taken;       // "unlabeled": only removed; NULL: `done`
    const char *nothing;     // "not labeled": nothing changed; NULL: `done`
    const char *manager;     // the field manager
};
int label_run(struct invocation *in, const struct label_words *words, struct error *err);

// ---- label_pairs.c --------------------------------------------------------------------------------------------------
// From the first argument that is a pair on: {KEY: "VALUE"} to set, {KEY: null} to remove; in->arguments is cut before them.
// ERROR_USAGE: a name behind a pair, a key that is set and removed, an empty key.
int label_take_pairs(struct invocation *in, const struct label_words *words, json_t **ret, struct error *err);
// One more: "KEY=VALUE" or "KEY-". one: what a pair is called, "label". ERROR_USAGE where the key is empty or there already, or it is not UTF-8.
int label_add_pair(json_t *pairs, const char *word, const char *one, struct error *err);
// What of the pairs would change `now` (an object of strings, or NULL): a merge patch, new reference, perhaps empty.
// ERROR_CONFLICT where a key has another value and may_overwrite is false.
int label_changes(const json_t *pairs, const json_t *now, bool may_overwrite, json_t **ret, struct error *err);
// Are all changes removals?
bool label_only_removes(const json_t *changes);
