// A directory of this user alone, for files that other programs are to see: 0700 below TMPDIR (or /tmp), files 0600.
#pragma once
#include "controller/base/buffer.h"
#include "controller/base/error.h"
#include <stdbool.h>

struct scratch {
    char *path; // NULL: none
    bool is_kept; // stays behind
};
int scratch_make(struct scratch *ret, const char *purpose, struct error *err); // "edit": /tmp/chat2shell-edit-…
void scratch_clear(struct scratch *scratch); // removes it with all that is in it, unless it is kept
int scratch_make_directory(const struct scratch *scratch, const char *name, struct error *err);
// A new file, or one that was there with other content. name may be in a directory that was made.
int scratch_write(const struct scratch *scratch, const char *name, const char *bytes, size_t len, struct error *err);
// A file as other programs left it, also where they put another in its place; no link. buf's maximum bounds it.
int scratch_read(const struct scratch *scratch, const char *name, struct buffer *buf, struct error *err);
char *scratch_path(const struct scratch *scratch, const char *name); // the caller owns it
