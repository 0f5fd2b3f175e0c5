// Applies the usual patch without git: changes of existing files, whose hunks match exactly where they say.
// Whatever is not that plain (renames, modes, new and removed files, other line ends, hunks that moved,
// attributes, errors of any kind) is left to git, which then decides and words it: the result is git's in
// every case, only sooner.
#pragma once
#include "api/guest/patch_scratch.h"

// files of scratch are known and locked, nothing is copied. 1: all is in place, *ret_changed is how many; 0:
// git's business, nothing was done; -1: it applies but could not be put in place.
int patch_direct_apply(const struct patch_scratch *scratch, const struct workspace *workspace,
                       const char *patch, size_t len, size_t *ret_changed, struct error *err);
// The text of one file after its hunks, if all is as plain as above: *hunks points to the first "@@", and is
// moved behind the last. False otherwise. For tests too.
bool patch_direct_change(const char **hunks, const char *end, const char *text, size_t len,
                         struct buffer *out);
